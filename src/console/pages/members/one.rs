//! One member: level, roles and projects, and the removal.

use crate::console::failure::Failure;
use crate::console::pages::prelude::*;

use super::{MemberRights, own_uuid};

/// The operation that changes the level.
const UPDATE: &str = "members_partial_update";

const FORM: FormSpec = FormSpec::change("Save", &[Input::new("level").label("Level")]);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/organizations/{organization_id}/members/{user_uuid}/", show, save);
    pages.confirm("/console/organizations/{organization_id}/members/{user_uuid}/remove/", remove);
}

#[derive(Template)]
#[template(path = "console/pages/members/one.html")]
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

async fn save(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, MEMBERS)?;
    match FORM.sent(&request, object.operation(UPDATE), &object.page(""))?.send(&request).await? {
        Outcome::Done(_) => finish(&object.page(""), "level-saved"),
        Outcome::Again(form) => show(request, form.into()).await,
    }
}

async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, MEMBERS)?;
    let organization = &object.tenant;
    let found = request.api.get_versioned(&object.api("")).await?;
    let member: Member = serde_json::from_value(found.body.clone()).map_err(Error::internal)?;
    let is_own = own_uuid(&request, organization).await?.as_ref() == Some(&member.user.uuid);
    let rights = MemberRights::load(&request, organization, &member).await?;
    let form = match feedback.take(FORM.id) {
        None if rights.levels.is_empty() => None,
        None => Some(FORM.filled(&request, &object.operation(UPDATE), &object.page(""), &found)?),
        sent => sent,
    };
    let form = form.map(|form| form.with_choices("level", rights.levels.clone()));
    let frame = object.frame(&request).await?.titled(member.name());
    let page = MemberPage {
        roles: load_roles(&request, organization, &member).await?,
        projects: load_projects(&request, &object).await?,
        organization: organization.clone(),
        member,
        is_own,
        rights,
        form,
    };
    Ok(layout::page(&feedback.on(frame), &page)?)
}

async fn remove(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, MEMBERS)?;
    let frame = object.frame(&request).await?;
    let done = with_notice(&object.list(), "member-removed");
    let member = request.api.get::<Member>(&object.api("")).await;
    let member = member.map_err(|error| answered_before(&request, error, &done))?;
    let is_own = own_uuid(&request, &object.tenant).await?.as_ref() == Some(&member.user.uuid);
    let (question, submit, done) = if is_own {
        ("Leave the organization?".to_owned(), "Leave", with_notice("/console/", "left"))
    } else {
        (format!("Remove {}?", member.name()), "Remove", done)
    };
    let text = "The membership, its roles and access rules, and pending invites by this member end at once. Dashboards and \
                other content stay. The member's API keys open nothing in this organization any more.";
    let confirm = Confirm::new(question, text, submit, object.write("members_destroy"));
    confirm.respond(&request, frame, &object.page(""), &done).await
}

/// The maximum number of roles on the page.
const MAX_ROLES: u64 = 100;

/// Loads the roles of a member. Returns `None` if the session may not read them.
///
/// # Errors
/// The errors of the API, except refusals.
async fn load_roles(
    request: &SignedIn,
    organization: &str,
    member: &Member,
) -> Result<Option<List<Role>>> {
    let query = format!("user={}&basic=true&limit={MAX_ROLES}", member.user.uuid);
    let path = format!("/api/organizations/{organization}/roles/?{query}");
    request.api.get_if_allowed(&path).await
}

/// The number of projects on a page.
const PAGE_SIZE: u64 = 50;

/// A project, with the level of the member and the rule that decides it.
#[derive(Deserialize)]
struct Project {
    id: u64,
    name: String,
    access_control: bool,
    access_level: String,
    role: Option<String>,
    role_name: Option<String>,
    text: String,
}

impl Project {
    /// Returns the level in words, and the class of its tag.
    fn level(&self) -> (&str, &'static str) {
        match self.access_level.as_str() {
            "none" => ("No access", "warn"),
            "member" => ("Member", ""),
            "admin" => ("Admin", "on"),
            other => (other, ""),
        }
    }
}

/// A page of the projects.
struct Projects {
    list: Vec<Project>,
    paging: Paging,
    /// Whether the session may read the rules on the projects.
    may_read_rules: bool,
}

/// Loads the projects, if the session may read access rules.
///
/// # Errors
/// Those of [`Paging::new`] and of the API, except refusals.
async fn load_projects(
    request: &SignedIn,
    object: &ObjectPath,
) -> Result<Option<Projects>, Failure> {
    let offset = Paging::offset(&request.visit);
    let path = object.api(&format!("projects/?limit={PAGE_SIZE}&offset={offset}"));
    let found = request.api.get_if_allowed::<List<Project>>(&path).await?;
    let Some(List { count, results }) = found else { return Ok(None) };
    let url = |offset| object.page(&format!("?offset={offset}"));
    let may_read_rules = match results.first() {
        Some(project) => {
            let id = project.id.to_string();
            request.api.may(&Operation::new("projects_access_controls_retrieve", [&id])).await?
        }
        None => false,
    };
    let paging = Paging::new(&request.visit, results.len(), count, PAGE_SIZE, url)?;
    Ok(Some(Projects { list: results, paging, may_read_rules }))
}
