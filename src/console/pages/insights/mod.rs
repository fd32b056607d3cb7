//! The insights of a project: the list with its filters, and the pages of one insight.

mod filters;
mod form;
mod insight;
mod state;

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::layout::{self, Command, Undo};
use crate::console::paging::{ListPage, ListSpec, Paging, list_page};
use crate::console::person::Person;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::creation::may_create_insights;
use super::object::INSIGHTS;
use super::people::People;
use super::{excerpt, insight_name};
use filters::Filters;

const LIST: &str = "/console/projects/{project_id}/insights/";

/// Adds the pages and their actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
    form::routes(pages);
    insight::routes(pages);
    state::routes(pages);
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
struct InsightsPage {
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
    let base = INSIGHTS.list(&project);
    let filters = Filters::of(&request.visit);
    let list = ListSpec {
        api: INSIGHTS.api(&project),
        api_query: filters.to_api_query(),
        page: base.clone(),
        page_query: filters.to_query(),
    };
    let ListPage { rows: insights, paging, command } = list_page(&request, list).await?;
    let frame = INSIGHTS.frame(&request, &project).await?;
    let frame = frame.titled("Insights").with_undo(undo(&request, &base));
    let page = InsightsPage {
        people: People::load(&request.api, frame.organization()).await?,
        may_create: may_create_insights(&request, &project).await?,
        paging,
        command,
        insights,
        base,
        filters,
    };
    Ok(layout::page(&frame, &page)?)
}
