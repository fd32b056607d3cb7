//! Actions on one insight that need no form: mark it as a favorite, delete and restore it.

use axum::http::Method;
use serde_json::{Value, json};

use crate::console::form::{Confirm, ConfirmState, answered_before};
use crate::console::layout::with_notice;
use crate::console::pages::object::{INSIGHTS, ObjectPath};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::insight::{self, Insight};
use super::rights::{self, UPDATE};

const FAVORITE: &str = "/console/projects/{project_id}/insights/{id}/favorite/";
const DELETE: &str = "/console/projects/{project_id}/insights/{id}/delete/";
const RESTORE: &str = "/console/projects/{project_id}/insights/{id}/restore/";

/// Adds the actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, FAVORITE, favorite);
    pages.signed_in(Method::GET, DELETE, delete);
    pages.signed_in(Method::POST, DELETE, delete);
    pages.signed_in(Method::POST, RESTORE, restore);
}

async fn favorite(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let found: Insight = request.api.get(&object.api("")).await?;
    let favorited = request.visit.form.value("favorited") == "true";
    // The API sets `saved` to true if it is absent.
    let body = json!({ "favorited": favorited, "saved": found.saved });
    let done = with_notice(&object.page(""), "insight-saved");
    change(request, object, body, &done).await
}

/// Asks before an insight is moved to the trash.
async fn delete(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let list = with_notice(&object.list(), "insight-deleted");
    let done = format!("{list}&undo={}", object.id);
    let found: Insight = match request.api.get(&object.api("")).await {
        Ok(found) => found,
        Err(error) => return answered_before(&request, error, &done),
    };
    let done = if found.saved { done } else { format!("{done}&unsaved=true") };
    let frame = object.frame(&request).await?;
    let refusal = rights::refusal(&request, &object, &found.rights).await?;
    let confirm = Confirm {
        question: format!("Delete the insight {}?", found.name()),
        text: "The insight moves to the trash and leaves its dashboards. It can be restored there. Its public page is closed, if it has one."
            .to_owned(),
        name: None,
        submit: "Delete the insight".to_owned(),
        action: object.page("delete/"),
        back: object.page(""),
        // The API sets `saved` to true if it is absent.
        write: object.write(UPDATE).body(json!({ "deleted": true, "saved": found.saved })),
        state: ConfirmState::default(),
    };
    let confirm = confirm.refused_for(refusal.map(str::to_owned));
    confirm.respond(&request, frame, &done).await
}

async fn restore(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let done = with_notice(&object.page(""), "insight-restored");
    // The API sets `saved` to true if it is absent.
    let saved = request.visit.form.values("unsaved").all(|id| id != object.id);
    let body = json!({ "deleted": false, "saved": saved });
    request.api.write(&object.write(UPDATE).body(body)).await?;
    Ok(see_other(&done)?)
}

/// Sends a change. A refused one shows the insight with the reason.
async fn change(request: SignedIn, object: ObjectPath, body: Value, done: &str) -> PageResult {
    let write = object.write(UPDATE).body(body);
    match request.api.attempt(&write).await? {
        Ok(_) => Ok(see_other(done)?),
        Err(error) if error.status() == 404 => Err(error.into()),
        Err(error) => Ok(insight::show(&request, object, Some(error)).await?),
    }
}
