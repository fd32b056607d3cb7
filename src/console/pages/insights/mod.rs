//! The insights of a project: the list with its filters, and the pages of one insight.

mod address;
mod filters;
mod form;
mod insight;
mod sharing;
mod state;

use askama::Template;
use axum::http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::console::assets::icon;
use crate::console::layout::{self, Command, Frame, In, Paging, Section, Target, Undo};
use crate::console::operation::{Operation, Write};
use crate::console::person::Person;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Result;

use super::{day, excerpt, name_or};
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
}

/// Returns the path of the list.
fn base(project: &str) -> String {
    format!("/console/projects/{project}/insights/")
}

/// Returns the name of an insight for people.
fn name_of<'n>(name: Option<&'n str>, derived: Option<&'n str>) -> &'n str {
    name_or(name, name_or(derived, "Untitled insight"))
}

#[derive(Deserialize)]
struct Insights {
    count: u64,
    results: Vec<Insight>,
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
        name_of(self.name.as_deref(), self.derived_name.as_deref())
    }

    fn description(&self) -> String {
        excerpt(self.description.as_deref().unwrap_or_default())
    }

    fn creator(&self) -> String {
        self.created_by.as_ref().map_or(String::new(), Person::name)
    }
}

#[derive(Deserialize)]
struct Members {
    results: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    user: User,
}

/// A user who may have created insights.
#[derive(Deserialize)]
struct User {
    id: u64,
    #[serde(flatten)]
    person: Person,
}

#[derive(Template)]
#[template(path = "console/pages/insights/list.html")]
struct ListPage {
    base: String,
    filters: Filters,
    creators: Vec<User>,
    insights: Vec<Insight>,
    may_create: bool,
    paging: Paging,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    let base = base(&project);
    let filters = Filters::of(&request.visit);
    let offset = Paging::offset(&request.visit);
    let query = filters.to_api_query(PAGE_SIZE, offset);
    let path = format!("/api/projects/{project}/insights/?{query}");
    let found: Insights = request.api.get(&path).await?;
    let frame = Frame::load(&request, Section::Insights, In::Project(&project)).await?;
    let targets = found.results.iter().map(|insight| Target {
        icon: icon("chart-line"),
        text: insight.name().to_owned(),
        kind: "insight",
        href: format!("{base}{}/", insight.id),
    });
    let undo = request.visit.query("undo").parse::<u64>().ok();
    let undo = undo.map(|id| Undo { action: format!("{base}{id}/restore/"), fields: Vec::new() });
    let frame = frame.titled("Insights").with_targets(targets).with_undo(undo);
    let url = |offset| format!("{base}?{}", filters.to_query(offset));
    let page = ListPage {
        creators: creators(&request, frame.organization()).await?,
        may_create: may_create(&request, &project).await?,
        paging: Paging::new(offset, found.results.len(), found.count, PAGE_SIZE, url)?,
        command: Command::get(&request.visit, &path),
        insights: found.results,
        base,
        filters,
    };
    Ok(layout::page(&frame, &page)?)
}

/// Returns the first members of the organization, for the filter by creator.
async fn creators(request: &SignedIn, organization: Option<&str>) -> Result<Vec<User>> {
    let Some(organization) = organization else { return Ok(Vec::new()) };
    let path = format!("/api/organizations/{organization}/members/?limit=100");
    let found = request.api.get_if_allowed::<Members>(&path).await?;
    let members = found.map(|found| found.results).unwrap_or_default();
    Ok(members.into_iter().map(|member| member.user).collect())
}

/// Returns whether the session may create insights in a project.
async fn may_create(request: &SignedIn, project: &str) -> Result<bool> {
    const CREATE: &str = "insights_create";
    if !request.api.may(&Operation::new(CREATE, [project])).await? {
        return Ok(false);
    }
    let write = Write::new(CREATE, [project]).body(json!({}));
    Ok(request.api.dry_run(&write).await?.is_none())
}
