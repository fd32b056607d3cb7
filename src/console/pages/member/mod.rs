//! One member: level, roles and projects, and the removal.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::entrance::see_other;
use crate::console::form::{Confirm, ConfirmState, Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::operation::{Operation, Write};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::members::{Member, MemberRights, own_uuid};

const MEMBER: &str = "/console/organizations/{organization_id}/members/{user_uuid}/";
const REMOVE: &str = "/console/organizations/{organization_id}/members/{user_uuid}/remove/";

const FORM: FormSpec = FormSpec::change("Save", &[Input::new("level").label("Level").hint("")]);

/// The maximum number of projects and of roles on the page.
const MAX_LISTED: usize = 100;
/// The number of members of roles from which on a response of the API may lack some.
const MAX_ROLE_MEMBERS: usize = 5000;

/// Adds the page and its actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, MEMBER, page);
    pages.signed_in(Method::POST, MEMBER, save);
    pages.signed_in(Method::GET, REMOVE, remove);
    pages.signed_in(Method::POST, REMOVE, remove);
}

#[derive(Deserialize)]
struct List<T> {
    count: usize,
    results: Vec<T>,
}

#[derive(Deserialize)]
struct Project {
    id: u64,
    name: String,
    access_control: bool,
    /// Whether the session may read the rules of the project.
    #[serde(skip)]
    may_read_access: bool,
}

#[derive(Deserialize)]
struct Role {
    id: String,
    name: String,
    members: Vec<RoleMember>,
}

#[derive(Deserialize)]
struct RoleMember {
    user: RoleUser,
}

#[derive(Deserialize)]
struct RoleUser {
    uuid: String,
}

/// The roles of a member among those that a page can read.
struct MemberRoles {
    found: Vec<Role>,
    /// Whether the member may have other roles.
    is_cut: bool,
}

#[derive(Template)]
#[template(path = "console/pages/member/page.html")]
struct MemberPage {
    organization: String,
    member: Member,
    is_own: bool,
    rights: MemberRights,
    /// The form of the level, if the session may give another one.
    form: Option<Form>,
    /// The roles of the member, if the session may read them.
    roles: Option<MemberRoles>,
    /// The projects that the session sees.
    projects: Vec<Project>,
}

fn place(request: &SignedIn) -> Result<(String, String)> {
    let organization = super::organization_id(&request.visit)?;
    Ok((organization, super::uuid(&request.visit, "user_uuid")?))
}

fn operation(organization: &str, user: &str) -> Operation {
    Operation::new("members_partial_update", [organization, user])
}

fn base(organization: &str, user: &str) -> String {
    format!("/console/organizations/{organization}/members/{user}/")
}

async fn page(request: SignedIn) -> PageResult {
    show(&request, None).await
}

async fn save(request: SignedIn) -> PageResult {
    let (organization, user) = place(&request)?;
    let action = base(&organization, &user);
    match FORM.sent(&request, operation(&organization, &user), &action)?.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&action, "saved"))?),
        Outcome::Again(form) => show(&request, Some(*form)).await,
    }
}

/// Shows the page with a form that was sent, or with a new one.
async fn show(request: &SignedIn, sent: Option<Form>) -> PageResult {
    let (organization, user) = place(request)?;
    let path = format!("/api/organizations/{organization}/members/{user}/");
    let found = request.api.get_versioned(&path).await?;
    let member: Member = serde_json::from_value(found.body.clone()).map_err(Error::internal)?;
    let is_own = own_uuid(request, &organization).await?.as_ref() == Some(&member.user.uuid);
    let rights = MemberRights::load(request, &organization, &member).await?;
    let action = base(&organization, &user);
    let form = match sent {
        None if rights.levels.is_empty() => None,
        None => Some(FORM.filled(request, &operation(&organization, &user), &action, &found)?),
        sent => sent,
    };
    let form = form.map(|form| form.with_choices("level", rights.levels.clone()));
    let frame = Frame::load(request, Section::Members, In::Organization(&organization)).await?;
    let frame = frame.titled(member.name());
    let page = MemberPage {
        roles: roles(request, &organization, &member).await?,
        projects: projects(request, &organization).await?,
        organization,
        member,
        is_own,
        rights,
        form,
    };
    let status = page.form.as_ref().map_or(axum::http::StatusCode::OK, Form::status);
    Ok(layout::page_with_status(&frame, &page, status)?)
}

async fn roles(
    request: &SignedIn,
    organization: &str,
    member: &Member,
) -> Result<Option<MemberRoles>> {
    let path = format!("/api/organizations/{organization}/roles/?limit={MAX_LISTED}");
    let List { count, mut results } = match request.api.get_if_allowed(&path).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        // The list is too large for a page.
        Err(error) if error.status() == 400 => {
            return Ok(Some(MemberRoles { found: Vec::new(), is_cut: true }));
        }
        Err(error) => return Err(error),
    };
    let members: usize = results.iter().map(|role: &Role| role.members.len()).sum();
    let is_cut = count > MAX_LISTED || members >= MAX_ROLE_MEMBERS;
    results.retain(|role| role.members.iter().any(|one| one.user.uuid == member.user.uuid));
    Ok(Some(MemberRoles { found: results, is_cut }))
}

async fn projects(request: &SignedIn, organization: &str) -> Result<Vec<Project>> {
    let path = format!("/api/organizations/{organization}/projects/?limit={MAX_LISTED}");
    let found = request.api.get_if_allowed::<List<Project>>(&path).await?;
    let mut projects = found.map_or(Vec::new(), |found| found.results);
    for project in &mut projects {
        let id = project.id.to_string();
        let access = Operation::new("projects_access_controls_retrieve", [&id]);
        project.may_read_access = request.api.may(&access).await?;
    }
    Ok(projects)
}

/// Asks before a member is removed.
async fn remove(request: SignedIn) -> PageResult {
    let (organization, user) = place(&request)?;
    let back = base(&organization, &user);
    let frame = Frame::load(&request, Section::Members, In::Organization(&organization)).await?;
    let path = format!("/api/organizations/{organization}/members/{user}/");
    let member: Member = request.api.get(&path).await?;
    let is_own = own_uuid(&request, &organization).await?.as_ref() == Some(&member.user.uuid);
    let members = format!("/console/organizations/{organization}/members/");
    let (question, submit, done) = if is_own {
        ("Leave the organization?".to_owned(), "Leave", with_notice("/console/", "left"))
    } else {
        (format!("Remove {}?", member.name()), "Remove", with_notice(&members, "removed"))
    };
    let confirm = Confirm {
        question,
        text: "The membership, its roles and access rules, and pending invites by this member end at once. Dashboards and \
               other content stay. The member's API keys open nothing in this organization any more."
            .to_owned(),
        name: None,
        submit,
        action: format!("{back}remove/"),
        back,
        write: Write::new("members_destroy", [&organization, &user]),
        state: ConfirmState::default(),
    };
    confirm.respond(&request, frame, &done).await
}
