//! The actions on one batch export: pause, unpause and delete it.

use axum::http::Method;
use serde_json::Value;

use crate::console::form::{Confirm, ConfirmState, ONCE, answered_before};
use crate::console::layout::{Frame, In, Section, with_notice};
use crate::console::operation::Write;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::address::Address;
use super::export::{DESTROY, form, show};
use super::state::{Action, PAUSE, UNPAUSE};

const PAUSES: &str = "/console/projects/{project_id}/batch_exports/{id}/pause/";
const UNPAUSES: &str = "/console/projects/{project_id}/batch_exports/{id}/unpause/";
const DELETE: &str = "/console/projects/{project_id}/batch_exports/{id}/delete/";

/// Adds the actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, PAUSES, |request| act(request, PAUSE));
    pages.signed_in(Method::POST, UNPAUSES, |request| act(request, UNPAUSE));
    pages.signed_in(Method::GET, DELETE, delete);
    pages.signed_in(Method::POST, DELETE, delete);
}

async fn act(request: SignedIn, action: Action) -> PageResult {
    let address = Address::of(&request.visit)?;
    let once = request.visit.form.value(ONCE);
    match action.send(&request, &address.project, &address.id, once).await {
        Ok(()) => Ok(see_other(&with_notice(&address.page(), action.notice))?),
        Err(error) if matches!(error.status(), 401 | 404 | 500) => Err(error.into()),
        Err(error) => {
            let object = address.read(&request).await?;
            let form = form(&request, &address, &object)?;
            show(&request, &address, object, form, Some(error)).await
        }
    }
}

/// Asks before an export is deleted.
async fn delete(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let write = Write::new(DESTROY, [&address.project, &address.id]);
    let done = with_notice(&address.list(), "export-deleted");
    let name = match address.read(&request).await {
        Ok(found) => found.body.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Err(error) => return answered_before(&request, error, &done),
    };
    let frame = Frame::load(&request, Section::BatchExports, In::Project(&address.project)).await?;
    let confirm = Confirm {
        question: format!("Delete the batch export {name}?"),
        text: "The export and the secrets of its destination are deleted. They cannot be restored."
            .to_owned(),
        name: None,
        submit: "Delete the batch export",
        action: format!("{}delete/", address.page()),
        back: address.page(),
        write,
        state: ConfirmState::default(),
    };
    confirm.respond(&request, frame, &done).await
}
