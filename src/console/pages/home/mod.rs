//! The start page, the start page of an organization, and the page for unknown paths.

mod start;
mod steps;

use askama::Template;
use axum::http::Method;

use crate::console::headers::see_other;
use crate::console::layout::{self, Frame, In, Section};
use crate::console::model::{List, Project};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use start::StartPage;

const HOME: &str = "/console/";
const ORGANIZATION: &str = "/console/organizations/{organization_id}/";
const ANY: &str = "/console/{*rest}";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, HOME, home);
    pages.signed_in(Method::GET, ORGANIZATION, organization);
    pages.signed_in(Method::GET, ANY, unknown);
    steps::routes(pages);
}

/// The start page of a session that sees no project.
#[derive(Template)]
#[template(path = "console/pages/home/no_project.html")]
struct NoProjectPage {
    /// The pages that the session may still read.
    places: Vec<(String, Vec<(&'static str, String)>)>,
}

/// Shows what matters in the current project and organization.
async fn home(request: SignedIn) -> PageResult {
    // The form of a session that may not list projects.
    if let Ok(id) = request.visit.query("project").trim().parse::<u64>() {
        return Ok(see_other(&format!("/console/projects/{id}/dashboards/"))?);
    }
    let frame = Frame::load(&request, Section::Home, In::Nothing).await?;
    let Some(project) = frame.project() else {
        let page = NoProjectPage { places: frame.places() };
        return Ok(layout::page(&frame.titled("Projects"), &page)?);
    };
    let page = StartPage::load(&request, project, frame.organization()).await?;
    Ok(layout::page(&frame.titled("Home"), &page)?)
}

/// Opens the dashboards of the first project of an organization, or the list of projects if it has none.
async fn organization(request: SignedIn) -> PageResult {
    let id = super::organization_id(&request.visit)?;
    let path = format!("/api/organizations/{id}/projects/?limit=1");
    let found: List<Project> = request.api.get(&path).await?;
    let path = match found.results.first() {
        Some(project) => format!("/console/projects/{}/dashboards/", project.id),
        None => format!("/console/organizations/{id}/projects/"),
    };
    Ok(see_other(&path)?)
}

async fn unknown(_: SignedIn) -> PageResult {
    Err(Error::not_found_as("The console has no such page.").into())
}
