//! The actions on one batch export: pause, unpause and delete it.

use axum::http::Method;
use serde_json::Value;

use crate::console::form::ONCE;
use crate::console::layout::with_notice;
use crate::console::pages::object::{BATCH_EXPORTS, ObjectPath, confirm_delete};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

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
    let object = ObjectPath::of(&request.visit, BATCH_EXPORTS)?;
    let once = request.visit.form.value(ONCE);
    match action.send(&request, &object.tenant, &object.id, once).await {
        Ok(()) => Ok(see_other(&with_notice(&object.page(""), action.notice))?),
        Err(error) if matches!(error.status(), 401 | 404 | 500) => Err(error.into()),
        Err(error) => {
            let stored = request.api.get_versioned(&object.api("")).await?;
            let form = form(&request, &object, &stored)?;
            show(&request, &object, stored, form, Some(error)).await
        }
    }
}

/// Asks before an export is deleted.
async fn delete(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, BATCH_EXPORTS)?;
    confirm_delete(&request, &object, "", "export-deleted", |export: Value| {
        let name = export.get("name").and_then(Value::as_str).unwrap_or_default();
        let text =
            "The export and the secrets of its destination are deleted. They cannot be restored.";
        object.deletion(name, text, object.write(DESTROY))
    })
    .await
}
