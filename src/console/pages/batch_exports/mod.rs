//! The batch exports of a project: their list, with pause and unpause for many.

mod forms;
mod one;

use super::bulk::{BulkFeedback, BulkOutcome, Chosen, MAX_OBJECTS, Refusals};
use super::prelude::*;
use forms::{destination_label, interval_label};

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/projects/{project_id}/batch_exports/", show, act);
    forms::routes(pages);
    one::routes(pages);
}

impl BatchExport {
    fn destination(&self) -> &str {
        destination_label(&self.destination.r#type)
    }

    fn interval(&self) -> &str {
        interval_label(&self.interval)
    }
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

async fn show(request: SignedIn, feedback: BulkFeedback) -> PageResult {
    let project = &project_id(&request.visit)?;
    let base = BATCH_EXPORTS.list(project);
    let list = ListSpec::new(BATCH_EXPORTS.api(project), &base);
    let list = list_page::<BatchExport>(&request, list).await?;
    let frame = BATCH_EXPORTS.frame(&request, project).await?;
    let frame = frame.titled("Batch exports");
    let frame = frame.with_refusal(feedback.refusal).with_status(feedback.outcome.status());
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
        refusals: feedback.outcome.refusals(name),
        chosen: Chosen::of(&request),
        base,
        list,
    };
    Ok(layout::page(&frame, &page)?)
}

async fn act(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let form = &request.visit.form;
    let known = [PAUSE, UNPAUSE].into_iter().find(|action| action.name == form.value("action"));
    let Some(action) = known else { return Err(Error::not_found().into()) };
    if form.values("id").next().is_none() {
        let refusal = Error::invalid_request("invalid_form", "Select the batch exports first.");
        return show(request, refusal.into()).await;
    }
    let mut outcome = BulkOutcome::default();
    for (index, id) in form.values("id").take(MAX_OBJECTS).enumerate() {
        let once = format!("{}-{index}", form.value(ONCE));
        let sent = action.send(&request, &project, id, &once).await;
        outcome.add(id.to_owned(), sent)?;
    }
    if outcome.has_refusals() {
        return show(request, outcome.into()).await;
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
    /// Sends the request for one export.
    ///
    /// # Errors
    /// The errors of the API.
    async fn send(self, request: &SignedIn, project: &str, id: &str, once: &str) -> Result<()> {
        let write = Write::new(self.operation, [project, id]).body(json!({})).once(once);
        request.api.write(&write).await.map(drop)
    }
}
