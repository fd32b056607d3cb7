//! The question before selected dashboards are moved to the trash.

use askama::Template;

use crate::console::layout::{self, Frame, In, Section};
use crate::console::pages::bulk::MAX_OBJECTS;
use crate::console::pages::dashboard::dashboard_names;
use crate::console::registry::PageResult;
use crate::console::visit::SignedIn;
use crate::error::Error;

/// The action of the form.
const DELETE: &str = "delete";

/// The field of a form that comes from the question.
const SURE: &str = "sure";

#[derive(Template)]
#[template(path = "console/pages/dashboards/deletion.html")]
struct DeletionPage {
    question: String,
    /// The ids and the names.
    dashboards: Vec<(u64, String)>,
    /// The URL of the list.
    here: String,
}

/// Returns whether a form deletes the selected dashboards, and has to be asked about first.
pub(super) fn needs_question(request: &SignedIn) -> bool {
    let form = &request.visit.form;
    let is_deletion = form.value("action") == DELETE && form.has("id") && !form.has("only");
    is_deletion && !form.has(SURE) && !request.visit.changes_nothing()
}

/// Asks whether the selected dashboards are to be deleted.
pub(super) async fn ask(request: &SignedIn, project: &str) -> PageResult {
    let ids = request.visit.form.values("id").take(MAX_OBJECTS).map(str::parse::<u64>);
    let ids = ids.collect::<Result<Vec<_>, _>>().map_err(|_| Error::not_found())?;
    let dashboards = dashboard_names(request, project, &ids).await?;
    let question = match dashboards.as_slice() {
        [(_, name)] => format!("Delete the dashboard {name}?"),
        several => format!("Delete {} dashboards?", several.len()),
    };
    let frame = Frame::load(request, Section::Dashboards, In::Project(project)).await?;
    let frame = frame.titled(question.clone());
    let here = request.visit.path_and_query().to_owned();
    Ok(layout::page(&frame, &DeletionPage { question, dashboards, here })?)
}
