//! Deleted dashboards: by whom, when, and buttons to restore them.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::entrance::see_other;
use crate::console::layout::{self, Command, Frame, In, Paging, Section, with_notice};
use crate::console::pages::chosen::Chosen;
use crate::console::pages::dashboard::Rights;
use crate::console::pages::dashboard::rights::may_write;
use crate::console::pages::{day, excerpt, name_or, project_id};
use crate::console::person::Person;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::change;

const TRASH: &str = "/console/projects/{project_id}/dashboards/trash/";

/// The number of dashboards on a page.
const PAGE_SIZE: u64 = 50;

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, TRASH, page);
    pages.signed_in(Method::POST, TRASH, restore);
}

#[derive(Deserialize)]
struct Dashboards {
    count: u64,
    results: Vec<Dashboard>,
}

/// A deleted dashboard.
#[derive(Deserialize)]
struct Dashboard {
    id: u64,
    name: Option<String>,
    description: String,
    deleted_at: String,
    deleted_by: Option<Person>,
    #[serde(flatten)]
    rights: Rights,
}

impl Dashboard {
    fn name(&self) -> &str {
        name_or(self.name.as_deref(), "Untitled dashboard")
    }

    fn deleter(&self) -> String {
        self.deleted_by.as_ref().map_or(String::new(), Person::name)
    }
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/trash/page.html")]
struct TrashPage {
    base: String,
    dashboards: Vec<Dashboard>,
    may_write: bool,
    paging: Paging,
    chosen: Chosen,
    errors: Vec<String>,
    command: Command,
}

async fn page(request: SignedIn) -> PageResult {
    show(&request, StatusCode::OK, Vec::new()).await
}

async fn restore(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let base = super::base(&project);
    match change::apply(&request, &project).await {
        Ok(changes) if changes.refused.is_empty() => {
            Ok(see_other(&with_notice(&format!("{base}trash/"), changes.notice))?)
        }
        Ok(changes) => {
            let status = super::status(changes.done, &changes.refused);
            let refused = changes.refused.into_iter();
            let errors = refused.map(|one| format!("Dashboard {}: {}", one.id, one.detail));
            show(&request, status, errors.collect()).await
        }
        Err(error) if error.status() == 400 => {
            show(&request, StatusCode::BAD_REQUEST, vec![error.detail().to_owned()]).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn show(request: &SignedIn, status: StatusCode, errors: Vec<String>) -> PageResult {
    let project = project_id(&request.visit)?;
    let offset = Paging::offset(&request.visit);
    let query = format!("deleted=true&limit={PAGE_SIZE}&offset={offset}");
    let path = format!("/api/projects/{project}/dashboards/?{query}");
    let found: Dashboards = request.api.get(&path).await?;
    let base = super::base(&project);
    let url = |offset| format!("{base}trash/?offset={offset}");
    let paging = Paging::new(offset, found.results.len(), found.count, PAGE_SIZE, url)?;
    let frame = Frame::load(request, Section::Dashboards, In::Project(&project)).await?;
    let page = TrashPage {
        base,
        may_write: may_write(request, &project).await?,
        paging,
        chosen: Chosen::of(request),
        errors,
        dashboards: found.results,
        command: Command::get(&request.visit, &path),
    };
    Ok(layout::page_with_status(&frame.titled("Trash"), &page, status)?)
}
