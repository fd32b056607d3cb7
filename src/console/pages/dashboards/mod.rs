//! The dashboards of a project: the list with its filters, changes of one or many, and new ones.

mod change;
mod deletion;
mod filters;
mod list;
mod new;
mod tags;
mod undo;

use axum::http::Method;

use crate::console::layout::with_notice_of;
use crate::console::pages::bulk::BulkFeedback;
use crate::console::pages::object::DASHBOARDS;
use crate::console::pages::shareable::DASHBOARD;
use crate::console::paging::Paging;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use change::Changes;
use filters::Filters;

const LIST: &str = "/console/projects/{project_id}/dashboards/";

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list::list);
    pages.signed_in(Method::POST, LIST, apply);
    new::routes(pages);
}

async fn apply(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    if deletion::needs_question(&request) && DASHBOARD.may_write(&request, &project).await? {
        return deletion::ask(&request, &project).await;
    }
    match change::apply(&request, &project).await {
        Ok(Changes { outcome, is_deletion, .. }) if outcome.has_refusals() => {
            let done = if is_deletion { outcome.done.clone() } else { Vec::new() };
            let undo = undo::restoring(done, &DASHBOARDS.list(&project));
            list::show(&request, BulkFeedback { undo, ..outcome.into() }).await
        }
        Ok(changes) => Ok(see_other(&after(&request, &project, &changes))?),
        Err(error) if error.status() == 400 => list::show(&request, error.into()).await,
        Err(error) => Err(error.into()),
    }
}

/// Returns the page after changes that all succeeded: that of the dashboard whose page had the form, or the list.
fn after(request: &SignedIn, project: &str, changes: &Changes) -> String {
    let base = DASHBOARDS.list(project);
    let from = request.visit.form.value("from").parse::<u64>();
    let page = match from {
        Ok(id) if !changes.is_deletion => format!("{base}{id}/"),
        _ => Filters::of(&request.visit).to_query().at(Paging::offset(&request.visit)).url(&base),
    };
    let page = with_notice_of(&page, changes.notice, changes.outcome.done.len());
    if changes.is_deletion {
        format!("{page}&undo={}", changes.outcome.done.join(","))
    } else {
        page
    }
}
