//! One member: level, roles and projects, and the removal.

mod projects;
mod removal;
mod roles;

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::console::assets::icon;
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, with_notice};
use crate::console::list::List;
use crate::console::pages::object::{MEMBERS, ObjectPath};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use super::members::{Member, MemberRights, own_uuid};
use projects::Projects;
use roles::Role;

const MEMBER: &str = "/console/organizations/{organization_id}/members/{user_uuid}/";

/// The operation that changes the level.
const UPDATE: &str = "members_partial_update";

const FORM: FormSpec = FormSpec::change("Save", &[Input::new("level").label("Level")]);

/// Adds the page and its actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, MEMBER, page);
    pages.signed_in(Method::POST, MEMBER, save);
    removal::routes(pages);
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
    roles: Option<List<Role>>,
    /// What the member may do in projects, if the session may read access rules.
    projects: Option<Projects>,
}

async fn page(request: SignedIn) -> PageResult {
    show(&request, None).await
}

async fn save(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, MEMBERS)?;
    match FORM.sent(&request, object.operation(UPDATE), &object.page(""))?.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&object.page(""), "level-saved"))?),
        Outcome::Again(form) => show(&request, Some(*form)).await,
    }
}

/// Shows the page with a form that was sent, or with a new one.
async fn show(request: &SignedIn, sent: Option<Form>) -> PageResult {
    let object = ObjectPath::of(&request.visit, MEMBERS)?;
    let organization = &object.tenant;
    let found = request.api.get_versioned(&object.api("")).await?;
    let member: Member = serde_json::from_value(found.body.clone()).map_err(Error::internal)?;
    let is_own = own_uuid(request, organization).await?.as_ref() == Some(&member.user.uuid);
    let rights = MemberRights::load(request, organization, &member).await?;
    let form = match sent {
        None if rights.levels.is_empty() => None,
        None => Some(FORM.filled(request, &object.operation(UPDATE), &object.page(""), &found)?),
        sent => sent,
    };
    let form = form.map(|form| form.with_choices("level", rights.levels.clone()));
    let frame = object.frame(request).await?.titled(member.name());
    let page = MemberPage {
        roles: roles::load(request, organization, &member).await?,
        projects: projects::load(request, organization, &member.user.uuid).await?,
        organization: organization.clone(),
        member,
        is_own,
        rights,
        form,
    };
    let status = page.form.as_ref().map_or(StatusCode::OK, Form::status);
    Ok(layout::page_with_status(&frame, &page, status)?)
}
