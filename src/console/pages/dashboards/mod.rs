//! The list of a project's dashboards, with search, filters and paging.

mod filters;

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::layout::{self, Command, Frame, In, Section, Target};
use crate::console::person::Person;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use filters::Filters;

const LIST: &str = "/console/projects/{project_id}/dashboards/";

/// The number of dashboards on a page.
const PAGE_SIZE: u64 = 50;

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
}

#[derive(Deserialize)]
struct Dashboards {
    count: u64,
    results: Vec<Dashboard>,
}

/// A dashboard in the list.
#[derive(Deserialize)]
struct Dashboard {
    id: u64,
    name: Option<String>,
    description: String,
    pinned: bool,
    created_at: String,
    is_shared: bool,
    tags: Vec<String>,
    restriction_level: u8,
    user_access_level: String,
    created_by: Option<Person>,
}

impl Dashboard {
    fn name(&self) -> &str {
        super::name_or(self.name.as_deref(), "Untitled dashboard")
    }

    fn is_restricted(&self) -> bool {
        self.restriction_level == 37
    }

    fn creator(&self) -> String {
        self.created_by.as_ref().map_or(String::new(), Person::name)
    }

    fn created_on(&self) -> &str {
        super::day(&self.created_at)
    }
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/page.html")]
struct DashboardsPage {
    base: String,
    filters: Filters,
    dashboards: Vec<Dashboard>,
    count: u64,
    first: u64,
    last: u64,
    /// The queries of the pages before and after.
    previous: Option<String>,
    next: Option<String>,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    let filters = Filters::of(&request.visit);
    let offset = request.visit.query("offset").parse::<u32>().map_or(0, u64::from);
    let path =
        format!("/api/projects/{project}/dashboards/?{}", filters.to_api_query(PAGE_SIZE, offset));
    let found: Dashboards = request.api.get(&path).await?;
    if found.results.is_empty() && offset > 0 {
        return Err(Error::not_found_as("The list of dashboards has no such page.").into());
    }
    let base = format!("/console/projects/{project}/dashboards/");
    let targets = found.results.iter().map(|dashboard| Target {
        icon: icon("layout-dashboard"),
        text: dashboard.name().to_owned(),
        kind: "dashboard",
        href: format!("{base}{}/", dashboard.id),
    });
    let frame = Frame::load(&request, Section::Dashboards, In::Project(&project)).await?;
    let frame = frame.titled("Dashboards").with_targets(targets);
    let last = offset + found.results.len() as u64;
    let page = DashboardsPage {
        previous: (offset > 0).then(|| filters.to_query(offset.saturating_sub(PAGE_SIZE))),
        next: (last < found.count).then(|| filters.to_query(last)),
        command: Command::get(&request.visit, &path),
        base,
        filters,
        count: found.count,
        first: offset + 1,
        last,
        dashboards: found.results,
    };
    Ok(layout::page(&frame, &page)?)
}
