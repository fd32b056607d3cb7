//! One batch export: the form of its fields, and the actions that pause, unpause and delete it.

use crate::console::pages::prelude::*;

use super::forms::{Destination, find_destination};
use super::{Action, PAUSE, UNPAUSE};

const PAUSES: &str = "/console/projects/{project_id}/batch_exports/{id}/pause/";
const UNPAUSES: &str = "/console/projects/{project_id}/batch_exports/{id}/unpause/";

/// The operation that changes an export.
const UPDATE: &str = "projects_batch_exports_partial_update";
/// The operation that deletes an export.
const DESTROY: &str = "projects_batch_exports_destroy";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/projects/{project_id}/batch_exports/{id}/", show, save);
    pages.post(PAUSES, |request| act(request, PAUSE));
    pages.post(UNPAUSES, |request| act(request, UNPAUSE));
    pages.confirm("/console/projects/{project_id}/batch_exports/{id}/delete/", delete);
}

#[derive(Template)]
#[template(path = "console/pages/batch_exports/one.html")]
struct ExportPage {
    base: String,
    path: String,
    export: BatchExport,
    destination: &'static Destination,
    form: Form,
    may_delete: bool,
    /// The key of the button that pauses or unpauses, if the session may do that.
    once: Option<String>,
}

/// Returns the destination of an export.
fn destination(export: &Value) -> Result<&'static Destination> {
    let name = export.pointer("/destination/type").and_then(Value::as_str).unwrap_or_default();
    find_destination(name).ok_or_else(|| Error::internal(format!("an unknown service {name}")))
}

async fn save(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, BATCH_EXPORTS)?;
    let stored = request.api.get_versioned(&object.api("")).await?;
    let destination = destination(&stored.body)?;
    let sent = destination.change.sent(&request, object.operation(UPDATE), &object.page(""))?;
    match sent.send(&request).await? {
        Outcome::Done(_) => finish(&object.page(""), "export-saved"),
        Outcome::Again(form) => show(request, form.into()).await,
    }
}

/// Shows the export, and why an action was refused.
async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, BATCH_EXPORTS)?;
    let stored = request.api.get_versioned(&object.api("")).await?;
    let destination = destination(&stored.body)?;
    let (update, action) = (object.operation(UPDATE), object.page(""));
    let form = destination.change.shown(&request, &update, &action, &stored, &mut feedback)?;
    let export: BatchExport = serde_json::from_value(stored.body).map_err(Error::internal)?;
    let may_update = request.api.may(&update).await?;
    let frame = object.frame(&request).await?.titled(export.name.clone());
    let page = ExportPage {
        base: object.list(),
        path: action,
        export,
        destination,
        form: form.read_only(!may_update),
        may_delete: request.api.may(&object.operation(DESTROY)).await?,
        once: request.api.may(&object.operation(PAUSE.operation)).await?.then(once_key),
    };
    Ok(layout::page(&feedback.on(frame), &page)?)
}

async fn act(request: SignedIn, action: Action) -> PageResult {
    let object = ObjectPath::of(&request.visit, BATCH_EXPORTS)?;
    let once = request.visit.form.value(ONCE);
    match action.send(&request, &object.tenant, &object.id, once).await {
        Ok(()) => finish(&object.page(""), action.notice),
        Err(error) if matches!(error.status(), 401 | 404 | 500) => Err(error.into()),
        Err(error) => show(request, error.into()).await,
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
