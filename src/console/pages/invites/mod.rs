//! The invites of an organization: the state of their mails, new ones, and links to hand over.

mod again;
mod create;
mod invite;

use std::collections::HashMap;

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::form::{Choice, Form, once_key};
use crate::console::layout::{self, Command, Frame, In, Paging, Section};
use crate::console::list::List;
use crate::console::operation::Operation;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use invite::{Invite, Row};

const LIST: &str = "/console/organizations/{organization_id}/invites/";

/// The number of invites on a page. The state of each mail is a request of its own.
const PAGE_SIZE: u64 = 20;

/// Adds the page and its actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
    create::routes(pages);
    again::routes(pages);
}

fn base(organization: &str) -> String {
    format!("/console/organizations/{organization}/invites/")
}

/// A project that an invite may give access to.
#[derive(Deserialize)]
struct Project {
    id: u64,
    name: String,
    access_control: bool,
}

/// The feedback of the page on a form that was sent.
#[derive(Default)]
struct Feedback {
    /// The form that was sent and has to be corrected.
    form: Option<Form>,
    /// The link of the invite that was created.
    link: Option<String>,
    refusal: Option<Error>,
}

#[derive(Template)]
#[template(path = "console/pages/invites/page.html")]
struct InvitesPage {
    base: String,
    link: Option<String>,
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
    let paging = Paging::new(offset, found.results.len(), found.count, PAGE_SIZE, url)?;
    let projects = projects(request, &organization).await?;
    let levels = create::levels(request, &organization).await?;
    let names = projects.iter().map(|project| (project.id, project.name.clone())).collect();
    let rows = rows(request, &organization, found.results, &names, &levels).await?;
    let form = create::form(request, &organization, feedback.form, levels, &projects)?;
    let status = form.as_ref().map_or(StatusCode::OK, Form::status);
    let frame = Frame::load(request, Section::Invites, In::Organization(&organization)).await?;
    let frame = frame.titled("Invites").with_refusal(feedback.refusal);
    let command = Command::get(&request.visit, &path);
    let page = InvitesPage { base, link: feedback.link, rows, paging, form, command };
    Ok(layout::page_with_status(&frame, &page, status)?)
}

async fn projects(request: &SignedIn, organization: &str) -> Result<Vec<Project>> {
    const MAX_PROJECTS: usize = 100;
    let path = format!("/api/organizations/{organization}/projects/?limit={MAX_PROJECTS}");
    let found = request.api.get_if_allowed::<List<Project>>(&path).await?;
    Ok(found.unwrap_or_default().results)
}

async fn rows(
    request: &SignedIn,
    organization: &str,
    invites: Vec<Invite>,
    projects: &HashMap<u64, String>,
    levels: &[Choice],
) -> Result<Vec<Row>> {
    let Some(first) = invites.first() else { return Ok(Vec::new()) };
    let delete = Operation::new("invites_destroy", [organization, &first.id]);
    let may_delete = request.api.may(&delete).await?;
    let mut rows = Vec::new();
    for invite in invites {
        rows.push(Row {
            mail: invite.mail(request, organization).await?,
            projects: invite.projects(projects),
            may_repeat: levels.iter().any(|level| level.value == invite.level),
            may_delete,
            once: once_key(),
            invite,
        });
    }
    Ok(rows)
}
