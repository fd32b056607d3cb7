//! The start page, the start page of an organization, and the page for unknown paths.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::console::entrance::see_other;
use crate::console::layout::{self, Frame, In, Section};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;
use crate::ids::OrganizationId;

const HOME: &str = "/console/";
const ORGANIZATION: &str = "/console/organizations/{organization_id}/";
const ANY: &str = "/console/{*rest}";

/// Adds the pages to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, HOME, home);
    pages.signed_in(Method::GET, ORGANIZATION, organization);
    pages.signed_in(Method::GET, ANY, unknown);
}

/// A page without a project to open.
#[derive(Template)]
#[template(path = "console/pages/home/page.html")]
struct HomePage;

/// Opens the dashboards of the current project.
async fn home(request: SignedIn) -> PageResult {
    // The form of a session that may not list projects.
    if let Ok(id) = request.visit.query("project").trim().parse::<u64>() {
        return Ok(see_other(&format!("/console/projects/{id}/dashboards/"))?);
    }
    let frame = Frame::load(&request, Section::Other, In::Nothing).await?;
    match frame.dashboards() {
        Some(href) => Ok(see_other(&href)?),
        None => Ok(layout::page(&frame.titled("Projects"), &HomePage)?),
    }
}

/// Opens the dashboards of the first project of an organization.
async fn organization(request: SignedIn) -> PageResult {
    #[derive(Deserialize)]
    struct Projects {
        results: Vec<Project>,
    }
    #[derive(Deserialize)]
    struct Project {
        id: u64,
    }
    let id = request.visit.parameter("organization_id");
    let id = id.parse::<OrganizationId>().map_err(|_| Error::not_found())?;
    let path = format!("/api/organizations/{id}/projects/?limit=1");
    if let Some(project) = request.api.get::<Projects>(&path).await?.results.first() {
        return Ok(see_other(&format!("/console/projects/{}/dashboards/", project.id))?);
    }
    let frame = Frame::load(&request, Section::Other, In::Nothing).await?;
    Ok(layout::page(&frame.titled("Projects"), &HomePage)?)
}

async fn unknown(_: SignedIn) -> PageResult {
    Err(Error::not_found_as("The console has no such page.").into())
}
