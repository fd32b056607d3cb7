//! The invites of an organization: the state of their mails, new ones, and links to hand over.

mod again;
mod create;
mod invite;

use std::collections::HashMap;

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::console::api::Operation;
use crate::console::assets::icon;
use crate::console::form::{Form, once_key};
use crate::console::layout::{self, Command, Frame, In, Section};
use crate::console::model::{Invite, List, Project};
use crate::console::origin::local_base;
use crate::console::paging::Paging;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use invite::Row;

const LIST: &str = "/console/organizations/{organization_id}/invites/";

/// The number of invites on a page.
const PAGE_SIZE: u64 = 20;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
    create::routes(pages);
    again::routes(pages);
}

fn base(organization: &str) -> String {
    format!("/console/organizations/{organization}/invites/")
}

/// The link of a new invite.
struct Link {
    address: String,
    url: String,
}

/// The feedback of the page on a form that was sent.
#[derive(Default)]
struct Feedback {
    /// The form that was sent and has to be corrected.
    form: Option<Form>,
    /// The links of the invites that were created.
    links: Vec<Link>,
    refusal: Option<Error>,
}

#[derive(Template)]
#[template(path = "console/pages/invites/page.html")]
struct InvitesPage {
    base: String,
    links: Vec<Link>,
    /// The base of the links, if they work on this machine only.
    local_base: Option<String>,
    rows: Vec<Row>,
    paging: Paging,
    /// The form of a new invite, if the session may invite.
    form: Option<Form>,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    show(&request, Feedback::default()).await
}

async fn show(request: &SignedIn, feedback: Feedback) -> PageResult {
    let organization = super::organization_id(&request.visit)?;
    let offset = Paging::offset(&request.visit);
    let path =
        format!("/api/organizations/{organization}/invites/?limit={PAGE_SIZE}&offset={offset}");
    let found: List<Invite> = request.api.get(&path).await?;
    let base = base(&organization);
    let url = |offset| format!("{base}?offset={offset}");
    let paging = Paging::new(&request.visit, found.results.len(), found.count, PAGE_SIZE, url)?;
    let projects = projects(request, &organization).await?;
    let levels = create::levels(request, &organization).await?;
    let names: HashMap<_, _> =
        projects.iter().map(|project| (project.id, project.name.clone())).collect();
    let mut mails = invite::load_mails(request, &organization, (PAGE_SIZE, offset)).await?;
    let may_delete = may_delete(request, &organization, found.results.first()).await?;
    let row = |invite: Invite| Row {
        mail: mails.remove(&invite.id),
        projects: invite.projects(&names),
        may_repeat: levels.iter().any(|level| level.value == invite.level),
        may_delete,
        once: once_key(),
        invite,
    };
    let rows = found.results.into_iter().map(row).collect();
    let form = create::form(request, &organization, feedback.form, levels, &projects)?;
    let status = form.as_ref().map_or(StatusCode::OK, Form::status);
    let frame = Frame::load(request, Section::Invites, In::Organization(&organization)).await?;
    let frame = frame.titled("Invites").with_refusal(feedback.refusal);
    let command = Command::get(&request.visit, &path);
    let local_base = local_base(request.visit.app.config().link_base());
    let page = InvitesPage { base, links: feedback.links, local_base, rows, paging, form, command };
    Ok(layout::page_with_status(&frame, &page, status)?)
}

async fn projects(request: &SignedIn, organization: &str) -> Result<Vec<Project>> {
    const MAX_PROJECTS: usize = 100;
    let path = format!("/api/organizations/{organization}/projects/?limit={MAX_PROJECTS}");
    let found = request.api.get_if_allowed::<List<Project>>(&path).await?;
    Ok(found.unwrap_or_default().results)
}

async fn may_delete(
    request: &SignedIn,
    organization: &str,
    first: Option<&Invite>,
) -> Result<bool> {
    let Some(first) = first else { return Ok(false) };
    request.api.may(&Operation::new("invites_destroy", [organization, &first.id])).await
}
