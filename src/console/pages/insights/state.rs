//! Actions on one insight that need no form: mark it as a favorite, and restore it.

use axum::http::Method;
use serde_json::{Value, json};

use crate::console::layout::with_notice;
use crate::console::pages::object::{INSIGHTS, ObjectPath};
use crate::console::pages::shareable::INSIGHT;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::insight::{self, Insight};

const FAVORITE: &str = "/console/projects/{project_id}/insights/{id}/favorite/";
const RESTORE: &str = "/console/projects/{project_id}/insights/{id}/restore/";

/// Adds the actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, FAVORITE, favorite);
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

async fn restore(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let done = with_notice(&object.page(""), "insight-restored");
    // The API sets `saved` to true if it is absent.
    let saved = request.visit.form.values("unsaved").all(|id| id != object.id);
    let body = json!({ "deleted": false, "saved": saved });
    request.api.write(&object.write(INSIGHT.update).body(body)).await?;
    Ok(see_other(&done)?)
}

/// Sends a change. A refused one shows the insight with the reason.
async fn change(request: SignedIn, object: ObjectPath, body: Value, done: &str) -> PageResult {
    let write = object.write(INSIGHT.update).body(body);
    match request.api.attempt(&write).await? {
        Ok(_) => Ok(see_other(done)?),
        Err(error) if error.status() == 404 => Err(error.into()),
        Err(error) => Ok(insight::show(&request, object, Some(error)).await?),
    }
}
