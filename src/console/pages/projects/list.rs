//! The list of projects.

use askama::Template;
use axum::http::Method;

use crate::console::api::Operation;
use crate::console::assets::icon;
use crate::console::layout::{self, Command, Frame, In, Section};
use crate::console::model::Project;
use crate::console::pages::organization_id;
use crate::console::paging::{ListPage, ListSpec, Paging, list_page};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

const LIST: &str = "/console/organizations/{organization_id}/projects/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
}

#[derive(Template)]
#[template(path = "console/pages/projects/list.html")]
struct ProjectsPage {
    base: String,
    projects: Vec<Project>,
    may_create: bool,
    paging: Paging,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    let organization = organization_id(&request.visit)?;
    let base = format!("/console/organizations/{organization}/projects/");
    let list = ListSpec::new(format!("/api/organizations/{organization}/projects/"), &base);
    let ListPage { rows: projects, paging, command } = list_page(&request, list).await?;
    let create = Operation::new("organizations_projects_create", [&organization]);
    let frame = Frame::load(&request, Section::Projects, In::Organization(&organization)).await?;
    let frame = frame.titled("Projects");
    let page = ProjectsPage {
        base,
        may_create: request.api.may(&create).await?,
        projects,
        paging,
        command,
    };
    Ok(layout::page(&frame, &page)?)
}
