//! The insights of a project: the list with its filters, and the pages of one insight.

mod access;
mod filters;
mod form;
mod insight;
mod rights;
mod sharing;
mod state;
mod trash;

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::layout::{self, Command, Frame, In, Section, Undo};
use crate::console::list::List;
use crate::console::paging::Paging;
use crate::console::person::Person;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::creation::may_create_insights;
use super::people::People;
use super::{excerpt, insight_name};
use filters::Filters;

const LIST: &str = "/console/projects/{project_id}/insights/";

/// The number of insights on a page.
const PAGE_SIZE: u64 = 50;

/// Adds the pages and their actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
    form::routes(pages);
    insight::routes(pages);
    state::routes(pages);
    sharing::routes(pages);
    access::routes(pages);
    trash::routes(pages);
}

/// Returns the path of the list.
fn base(project: &str) -> String {
    format!("/console/projects/{project}/insights/")
}

/// An insight in the list.
#[derive(Deserialize)]
struct Insight {
    id: u64,
    name: Option<String>,
    derived_name: Option<String>,
    description: Option<String>,
    tags: Vec<String>,
    favorited: bool,
    saved: bool,
    dashboards: Vec<u64>,
    created_by: Option<Person>,
    last_modified_at: String,
}

impl Insight {
    fn name(&self) -> &str {
        insight_name(self.name.as_deref(), self.derived_name.as_deref())
    }

    fn description(&self) -> String {
        excerpt(self.description.as_deref().unwrap_or_default())
    }

    fn creator(&self) -> String {
        self.created_by.as_ref().map_or(String::new(), Person::name)
    }
}

#[derive(Template)]
#[template(path = "console/pages/insights/list.html")]
struct ListPage {
    base: String,
    filters: Filters,
    people: People,
    insights: Vec<Insight>,
    may_create: bool,
    paging: Paging,
    command: Command,
}

/// Returns the form that restores the insight that was just deleted, and leaves it unsaved if it was.
fn undo(request: &SignedIn, base: &str) -> Option<Undo> {
    let id = request.visit.query("undo").parse::<u64>().ok()?;
    let is_unsaved = !request.visit.query("unsaved").is_empty();
    let fields = is_unsaved.then(|| ("unsaved", id.to_string())).into_iter().collect();
    Some(Undo { action: format!("{base}{id}/restore/"), fields })
}

async fn list(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    let base = base(&project);
    let filters = Filters::of(&request.visit);
    let offset = Paging::offset(&request.visit);
    let query = filters.to_api_query(PAGE_SIZE, offset);
    let path = query.url(&format!("/api/projects/{project}/insights/"));
    let found: List<Insight> = request.api.get(&path).await?;
    let frame = Frame::load(&request, Section::Insights, In::Project(&project)).await?;
    let frame = frame.titled("Insights").with_undo(undo(&request, &base));
    let url = |offset| filters.to_query(offset).url(&base);
    let page = ListPage {
        people: People::load(&request.api, frame.organization()).await?,
        may_create: may_create_insights(&request, &project).await?,
        paging: Paging::new(&request.visit, found.results.len(), found.count, PAGE_SIZE, url)?,
        command: Command::get(&request.visit, &path),
        insights: found.results,
        base,
        filters,
    };
    Ok(layout::page(&frame, &page)?)
}
