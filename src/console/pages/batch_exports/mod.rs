//! The batch exports of a project: their list, with pause and unpause for many; one export with the form of its fields, and its
//! deletion.

mod forms;

use super::prelude::*;
use forms::{Destination, destination_label, find_destination, interval_label};

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/projects/{project_id}/batch_exports/", &list_exports, &act_on_several);
    pages.form("/console/projects/{project_id}/batch_exports/new/", &forms::new);
    pages.page("/console/projects/{project_id}/batch_exports/{id}/", &show, &save);
    pages.post(PAUSES, &|request| act(request, PAUSE));
    pages.post(UNPAUSES, &|request| act(request, UNPAUSE));
    pages.form("/console/projects/{project_id}/batch_exports/{id}/delete/", &|request| {
        confirm_delete(request, BATCH_EXPORTS, ["", "name"], DESTROY, "export-deleted", DELETION)
    });
}

#[derive(Template)]
#[template(path = "console/pages/batch_exports/list.html")]
struct ExportsPage {
    base: String,
    list: ListPage<BatchExport>,
    /// The key of the form, if the session may pause and unpause exports.
    once: Option<String>,
    may_create: bool,
    refusals: Option<Refusals>,
    chosen: Chosen,
}

async fn list_exports(request: SignedIn, mut feedback: BulkFeedback) -> PageResult {
    let project = &request.visit.project_id()?;
    let base = BATCH_EXPORTS.list(project);
    let list = ListSpec::new(BATCH_EXPORTS.api(project), &base);
    let list = list_page(&request, list).await.read::<BatchExport>()?;
    let frame = feedback.on(Frame::load(&request).await?.titled("Batch exports"));
    let create = Operation::new("projects_batch_exports_create", [project]);
    let may_act = match list.rows.first() {
        Some(first) => {
            request.api.may(&Operation::new(PAUSE.operation, [project, &first.id])).await?
        }
        None => false,
    };
    let name = |id: &str| {
        let known = list.rows.iter().find(|one| one.id == id);
        known.map_or_else(|| format!("Batch export {id}"), |known| known.name.clone())
    };
    let page = ExportsPage {
        once: may_act.then(once_key),
        may_create: request.api.may(&create).await?,
        refusals: feedback.refusals(name),
        chosen: Chosen::of(&request),
        base,
        list,
    };
    Ok(layout::page(&frame, &page)?)
}

async fn act_on_several(request: SignedIn) -> PageResult {
    let project = request.visit.project_id()?;
    let form = &request.visit.form;
    let known = [PAUSE, UNPAUSE].into_iter().find(|action| action.name == form.value("action"));
    let Some(action) = known else { return Err(Error::not_found().into()) };
    if form.values("id").next().is_none() {
        let refusal = Error::invalid_request("invalid_form", "Select the batch exports first.");
        return list_exports(request, refusal.into()).await;
    }
    let mut outcome = BulkFeedback::default();
    for (index, id) in form.values("id").take(MAX_OBJECTS).enumerate() {
        let once = format!("{}-{index}", form.value(ONCE));
        let sent = request.api.write(&action.write(&project, id, &once)).await;
        outcome.add(id.to_owned(), sent)?;
    }
    if !outcome.refused.is_empty() {
        return list_exports(request, outcome).await;
    }
    let list =
        format!("{}?offset={}", BATCH_EXPORTS.list(&project), Paging::offset(&request.visit));
    Ok(see_other(&with_notice_of(&list, action.notice, outcome.done.len()))?)
}

/// An action that changes the state of an export.
#[derive(Clone, Copy)]
struct Action {
    /// The value of the button in the list.
    name: &'static str,
    operation: &'static str,
    notice: &'static str,
}

const PAUSE: Action = Action {
    name: "pause",
    operation: "projects_batch_exports_pause_create",
    notice: "export-paused",
};
const UNPAUSE: Action = Action {
    name: "unpause",
    operation: "projects_batch_exports_unpause_create",
    notice: "export-unpaused",
};

impl Action {
    /// Returns the request for one export.
    fn write(self, project: &str, id: &str, once: &str) -> Write {
        Write::new(self.operation, [project, id]).body(json!({})).once(once)
    }
}

const PAUSES: &str = "/console/projects/{project_id}/batch_exports/{id}/pause/";
const UNPAUSES: &str = "/console/projects/{project_id}/batch_exports/{id}/unpause/";

/// The operation that changes an export.
const UPDATE: &str = "projects_batch_exports_partial_update";
/// The operation that deletes an export.
const DESTROY: &str = "projects_batch_exports_destroy";

#[derive(Template)]
#[template(path = "console/pages/batch_exports/one.html")]
struct ExportPage {
    object: ObjectPath,
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
    submit(request, sent, &object.page(""), "export-saved", &show).await
}

/// Shows the export, and why an action was refused.
async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, BATCH_EXPORTS)?;
    let stored = request.api.get_versioned(&object.api("")).await?;
    let destination = destination(&stored.body)?;
    let (update, action) = (object.operation(UPDATE), object.page(""));
    let mut form = destination.change.shown(&request, &update, &action, &stored, &mut feedback)?;
    form.is_read_only = !request.api.may(&update).await?;
    let export: BatchExport = serde_json::from_value(stored.body).map_err(Error::internal)?;
    let page = ExportPage {
        export,
        destination,
        form,
        may_delete: request.api.may(&object.operation(DESTROY)).await?,
        once: request.api.may(&object.operation(PAUSE.operation)).await?.then(once_key),
        object,
    };
    feedback.show(&request, &page.export.name, &page).await
}

async fn act(request: SignedIn, action: Action) -> PageResult {
    let object = ObjectPath::of(&request.visit, BATCH_EXPORTS)?;
    let write = action.write(&object.tenant, &object.id, request.visit.form.value(ONCE));
    press(request, write, &object.page(""), action.notice, &show).await
}

/// The consequences of a deletion.
const DELETION: &str =
    "The export and the secrets of its destination are deleted. They cannot be restored.";
