//! The deleted dashboards, with buttons to restore them.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::console::layout::{self, Command, Frame, In, Section, with_notice_of};
use crate::console::list::List;
use crate::console::pages::bulk::{BulkFeedback, Refusals};
use crate::console::pages::chosen::Chosen;
use crate::console::pages::dashboard::Rights;
use crate::console::pages::dashboard::rights::may_write;
use crate::console::pages::object::DASHBOARDS;
use crate::console::pages::{dashboard_name, excerpt, project_id};
use crate::console::paging::Paging;
use crate::console::person::Person;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::change::{self, Changes};

const TRASH: &str = "/console/projects/{project_id}/dashboards/trash/";

/// The number of dashboards on a page.
const PAGE_SIZE: u64 = 50;

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, TRASH, page);
    pages.signed_in(Method::POST, TRASH, restore);
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
        dashboard_name(self.name.as_deref())
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
    refusals: Option<Refusals>,
    command: Command,
}

async fn page(request: SignedIn) -> PageResult {
    show(&request, BulkFeedback::default()).await
}

async fn restore(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let base = DASHBOARDS.list(&project);
    match change::apply(&request, &project).await {
        Ok(Changes { outcome, .. }) if outcome.has_refusals() => {
            show(&request, outcome.into()).await
        }
        Ok(changes) => {
            let count = changes.outcome.done.len();
            Ok(see_other(&with_notice_of(&format!("{base}trash/"), changes.notice, count))?)
        }
        Err(error) if error.status() == 400 => show(&request, error.into()).await,
        Err(error) => Err(error.into()),
    }
}

async fn show(request: &SignedIn, feedback: BulkFeedback) -> PageResult {
    let project = project_id(&request.visit)?;
    let offset = Paging::offset(&request.visit);
    let query = format!("deleted=true&limit={PAGE_SIZE}&offset={offset}");
    let path = format!("/api/projects/{project}/dashboards/?{query}");
    let found: List<Dashboard> = request.api.get(&path).await?;
    let base = DASHBOARDS.list(&project);
    let url = |offset| format!("{base}trash/?offset={offset}");
    let paging = Paging::new(&request.visit, found.results.len(), found.count, PAGE_SIZE, url)?;
    let frame = Frame::load(request, Section::Dashboards, In::Project(&project)).await?;
    let frame = frame.titled("Trash").with_refusal(feedback.refusal);
    let name = |id: &str| {
        let known = found.results.iter().find(|one| one.id.to_string() == id);
        known.map_or_else(|| format!("Dashboard {id}"), |known| known.name().to_owned())
    };
    let page = TrashPage {
        base,
        may_write: may_write(request, &project).await?,
        paging,
        chosen: Chosen::of(request),
        refusals: feedback.outcome.refusals(name),
        dashboards: found.results,
        command: Command::get(&request.visit, &path),
    };
    Ok(layout::page_with_status(&frame, &page, feedback.outcome.status())?)
}
