//! The list of a project's dashboards, with search, filters, paging, and changes of one or many.

mod change;
mod filters;
mod new;
mod trash;

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::entrance::see_other;
use crate::console::layout::{
    self, Command, Frame, In, Paging, Section, Target, Undo, with_notice,
};
use crate::console::operation::Operation;
use crate::console::person::Person;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::chosen::Chosen;
use super::dashboard::Rights;
use super::dashboard::rights::{may_create, may_write};
use change::{Changes, Refusal};
use filters::Filters;

const LIST: &str = "/console/projects/{project_id}/dashboards/";

/// The number of dashboards on a page.
const PAGE_SIZE: u64 = 50;

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
    pages.signed_in(Method::POST, LIST, apply);
    new::routes(pages);
    trash::routes(pages);
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
    created_by: Option<Person>,
    #[serde(flatten)]
    rights: Rights,
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

/// What the session may do on the page.
struct Offers {
    /// Change dashboards, as far as each dashboard lets it.
    write: bool,
    create: bool,
    /// See who may do what.
    access: bool,
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/page.html")]
struct DashboardsPage {
    base: String,
    filters: Filters,
    dashboards: Vec<Dashboard>,
    offers: Offers,
    paging: Paging,
    /// The query of this page.
    query: String,
    chosen: Chosen,
    done: usize,
    /// The names of dashboards that were not changed, and why.
    refused: Vec<(String, String)>,
    command: Command,
}

impl DashboardsPage {
    /// Whether a row can be selected.
    fn selects(&self) -> bool {
        self.offers.write && self.dashboards.iter().any(|dashboard| dashboard.rights.may_edit())
    }
}

/// What a form has changed, for the page that follows it.
#[derive(Default)]
struct Outcome {
    status: StatusCode,
    /// Why the whole form was refused.
    refusal: Option<Error>,
    done: usize,
    refused: Vec<Refusal>,
}

async fn list(request: SignedIn) -> PageResult {
    show(&request, Outcome::default()).await
}

async fn apply(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    match change::apply(&request, &project).await {
        Ok(changes) if changes.refused.is_empty() => {
            Ok(see_other(&after(&request, &project, &changes))?)
        }
        Ok(Changes { done, refused, .. }) => {
            show(&request, Outcome { status: status(done, &refused), refusal: None, done, refused })
                .await
        }
        Err(error) if error.status() == 400 => {
            show(&request, Outcome { refusal: Some(error), ..Outcome::default() }).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the status of a page after changes: an error if all were refused.
fn status(done: usize, refused: &[Refusal]) -> StatusCode {
    let refusal = refused.first().filter(|_| done == 0);
    let status = refusal.and_then(|refusal| StatusCode::from_u16(refusal.status).ok());
    status.unwrap_or_default()
}

/// Returns the page after changes that all succeeded: that of the dashboard whose page had the form, or the list.
fn after(request: &SignedIn, project: &str, changes: &Changes) -> String {
    let base = base(project);
    let from = request.visit.form.value("from").parse::<u64>();
    let page = match from {
        Ok(id) if changes.deleted.is_empty() => format!("{base}{id}/"),
        _ => format!(
            "{base}?{}",
            Filters::of(&request.visit).to_query(Paging::offset(&request.visit))
        ),
    };
    let page = with_notice(page.trim_end_matches('?'), changes.notice);
    if changes.deleted.is_empty() {
        page
    } else {
        format!("{page}&undo={}", changes.deleted.join(","))
    }
}

fn base(project: &str) -> String {
    format!("/console/projects/{project}/dashboards/")
}

/// Returns the form that restores the dashboards that were just deleted.
fn undo(request: &SignedIn, base: &str) -> Option<Undo> {
    let ids = request.visit.query("undo").split(',').filter_map(|id| id.parse::<u64>().ok());
    let mut fields: Vec<_> = ids.map(|id| ("id", id.to_string())).collect();
    if fields.is_empty() {
        return None;
    }
    fields.push(("action", "restore".to_owned()));
    Some(Undo { action: base.to_owned(), fields })
}

async fn show(request: &SignedIn, outcome: Outcome) -> PageResult {
    let project = super::project_id(&request.visit)?;
    let filters = Filters::of(&request.visit);
    let offset = Paging::offset(&request.visit);
    let path =
        format!("/api/projects/{project}/dashboards/?{}", filters.to_api_query(PAGE_SIZE, offset));
    let found: Dashboards = request.api.get(&path).await?;
    let base = base(&project);
    let url = |offset| format!("{base}?{}", filters.to_query(offset));
    let paging = Paging::new(offset, found.results.len(), found.count, PAGE_SIZE, url)?;
    let targets = found.results.iter().map(|dashboard| Target {
        icon: icon("layout-dashboard"),
        text: dashboard.name().to_owned(),
        kind: "dashboard",
        href: format!("{base}{}/", dashboard.id),
    });
    let frame = Frame::load(request, Section::Dashboards, In::Project(&project)).await?;
    let frame = frame.titled("Dashboards").with_targets(targets).with_undo(undo(request, &base));
    let frame = frame.with_refusal(outcome.refusal);
    let refused = outcome.refused.into_iter().map(|refusal| {
        let of = found.results.iter().find(|one| one.id.to_string() == refusal.id);
        let name =
            of.map_or_else(|| format!("Dashboard {}", refusal.id), |of| of.name().to_owned());
        (name, refusal.detail)
    });
    let page = DashboardsPage {
        query: filters.to_query(offset),
        chosen: Chosen::of(request),
        command: Command::get(&request.visit, &path),
        offers: offers(request, &project).await?,
        done: outcome.done,
        refused: refused.collect(),
        base,
        filters,
        paging,
        dashboards: found.results,
    };
    Ok(layout::page_with_status(&frame, &page, outcome.status)?)
}

async fn offers(request: &SignedIn, project: &str) -> Result<Offers> {
    let access = Operation::new("dashboards_access_list", [project, "0"]);
    Ok(Offers {
        write: may_write(request, project).await?,
        create: may_create(request, project).await?,
        access: request.api.may(&access).await?,
    })
}
