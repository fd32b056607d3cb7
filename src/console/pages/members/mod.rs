//! The members of an organization: their list, with search and their levels; the level, roles and projects of one, and the
//! removal.

use std::collections::HashMap;

use crate::console::words::{LEVELS, level_name, level_value};

use super::prelude::*;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/organizations/{organization_id}/members/", &list_members, &change_level);
    pages.page("/console/organizations/{organization_id}/members/{id}/", &member, &save);
    pages.form("/console/organizations/{organization_id}/members/{id}/remove/", &remove);
}

/// A member on the page.
struct Row {
    member: Member,
    is_own: bool,
    rights: MemberRights,
}

#[derive(Template)]
#[template(path = "console/pages/members/list.html")]
struct MembersPage {
    base: String,
    /// The URL of this page of the list, which forms are sent to.
    here: String,
    search: String,
    list: ListPage<Row>,
    /// The page of invites, if the session may invite.
    invites: Option<String>,
}

async fn change_level(request: SignedIn) -> PageResult {
    let organization = request.visit.organization_id()?;
    let form = &request.visit.form;
    let write = Write::new(UPDATE, [&organization, form.value("user")]);
    let write = write.body(json!({ "level": level_value(form.value("level")) }));
    let here = here(&request.visit, &organization);
    press(request, write, &here, "level-saved", &list_members).await
}

async fn list_members(request: SignedIn, feedback: Feedback) -> PageResult {
    let organization = request.visit.organization_id()?;
    let search = request.visit.query("search").trim();
    let base = MEMBERS.list(&organization);
    let list = ListSpec::new(MEMBERS.api(&organization), &base).filtered([("search", search)]);
    let ListPage::<Member> { rows: members, paging, command } =
        list_page(&request, list).await.read()?;
    let invite = Operation::new("invites_create", [&organization]);
    let invites = request.api.may(&invite).await?;
    let invites = invites.then(|| format!("/console/organizations/{organization}/invites/"));
    let own = own_uuid(&request, &organization).await?;
    // To the API, the other members of one level are alike.
    let mut known: HashMap<(bool, u8), MemberRights> = HashMap::new();
    let mut rows = Vec::new();
    for member in members {
        let is_own = own.as_ref() == Some(&member.user.uuid);
        let kind = (is_own, member.level);
        let rights = match known.get(&kind) {
            Some(rights) => rights.clone(),
            None => MemberRights::load(&request, &organization, &member).await?,
        };
        known.insert(kind, rights.clone());
        rows.push(Row { member, is_own, rights });
    }
    let page = MembersPage {
        base,
        here: here(&request.visit, &organization),
        search: search.to_owned(),
        list: ListPage { rows, paging, command },
        invites,
    };
    feedback.show(&request, "Members", &page).await
}

/// Returns the URL of this page of the list.
fn here(visit: &Visit, organization: &str) -> String {
    let query = Query::of([("search", visit.query("search").trim())]);
    query.at(Paging::offset(visit)).url(&MEMBERS.list(organization))
}

impl Member {
    fn name(&self) -> String {
        self.user.person.name()
    }

    fn level_name(&self) -> &'static str {
        level_name(self.level)
    }
}

/// Returns the UUID of the session's user, if the user is a member that lists show.
///
/// # Errors
/// The errors of the API, except refusals.
async fn own_uuid(request: &SignedIn, organization: &str) -> Result<Option<String>> {
    let path = format!("/api/organizations/{organization}/members/@me/");
    let own = request.api.get(&path).await.read_if_allowed::<Member>()?;
    Ok(own.map(|member| member.user.uuid))
}

/// The changes of a member that the session may make: `rights/` of the member.
#[derive(Clone, Default, Deserialize)]
struct MemberRights {
    /// The levels that it may give. Empty if it may give no other than the present one.
    levels: Vec<u8>,
    /// Why it may give no other level.
    level_reason: Option<String>,
    can_remove: bool,
    /// Why it may not remove the member.
    removal_reason: Option<String>,
}

impl MemberRights {
    /// Asks the API.
    ///
    /// # Errors
    /// The errors of the API, except that somebody has removed the member meanwhile.
    async fn load(request: &SignedIn, organization: &str, member: &Member) -> Result<Self> {
        let uuid = &member.user.uuid;
        let change = Operation::new(UPDATE, [organization, uuid]);
        if !request.api.may(&change).await? {
            return Ok(Self::default());
        }
        let path = format!("/api/organizations/{organization}/members/{uuid}/rights/");
        let mut found: Self = request.api.get(&path).await.read_if_allowed()?.unwrap_or_default();
        if found.levels.iter().any(|level| *level != member.level) {
            found.level_reason = None;
        } else {
            found.levels.clear();
        }
        Ok(found)
    }

    /// Returns the levels that the session may give, and the present one.
    fn choices(&self, member: &Member) -> Vec<Choice> {
        let levels = LEVELS.iter().map(|(text, name)| Choice::new(level_value(text), *name));
        let is_given = |choice: &Choice| self.levels.iter().any(|level| choice.value == *level);
        levels.filter(|choice| choice.value == member.level || is_given(choice)).collect()
    }
}

/// The operation that changes the level.
const UPDATE: &str = "members_partial_update";

const FORM: FormSpec = FormSpec::change("Save", &[Input::new("level").label("Level")]);

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
    let page = object.page("");
    let sent = FORM.sent(&request, object.operation(UPDATE), &page)?;
    submit(request, sent, &page, "level-saved", &member).await
}

async fn member(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, MEMBERS)?;
    let (update, action) = (object.operation(UPDATE), object.page(""));
    let organization = &object.tenant;
    let found = request.api.get_versioned(&object.api("")).await?;
    let member: Member = serde_json::from_value(found.body.clone()).map_err(Error::internal)?;
    let is_own = own_uuid(&request, organization).await?.as_ref() == Some(&member.user.uuid);
    let rights = MemberRights::load(&request, organization, &member).await?;
    let form = match feedback.take(FORM.id) {
        None if rights.levels.is_empty() => None,
        None => Some(FORM.filled(&request, &update, &action, &found)?),
        sent => sent,
    };
    let form = form.map(|form| form.with_choices("level", rights.choices(&member)));
    let query = format!("user={}&basic=true&limit={MAX_ROLES}", member.user.uuid);
    let path = format!("/api/organizations/{organization}/roles/?{query}");
    let roles = request.api.get(&path).await.read_if_allowed()?;
    let page = MemberPage {
        roles,
        projects: load_projects(&request, &object).await?,
        organization: organization.clone(),
        member,
        is_own,
        rights,
        form,
    };
    feedback.show(&request, &page.member.name(), &page).await
}

async fn remove(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, MEMBERS)?;
    let done = with_notice(&object.list(), "member-removed");
    let member = request.api.get(&object.api("")).await.read::<Member>();
    let member = member.map_err(|error| answered_before(&request, error, &done))?;
    let is_own = own_uuid(&request, &object.tenant).await?.as_ref() == Some(&member.user.uuid);
    let (question, submit, done) = if is_own {
        ("Leave the organization?".to_owned(), "Leave", with_notice("/console/", "left"))
    } else {
        (format!("Remove {}?", member.name()), "Remove", done)
    };
    let text = "The membership, its roles and access rules, and pending invites by this member end at once. Dashboards and \
                other content stay. The member's API keys open nothing in this organization any more.";
    let confirm = Confirm::new(&question, text, submit, object.write("members_destroy"));
    confirm.respond(&request, &object.page(""), &done).await
}

/// The maximum number of roles on the page.
const MAX_ROLES: u64 = 100;

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
    let found = request.api.get(&path).await.read_if_allowed::<List<Project>>()?;
    let Some(List { count, results }) = found else { return Ok(None) };
    let url = |offset| object.page(&format!("?offset={offset}"));
    let may_read_rules = match results.first() {
        Some(project) => {
            let id = project.id.to_string();
            request.api.may(&Operation::new("projects_access_controls_retrieve", [&id])).await?
        }
        None => false,
    };
    let paging = Paging::new(&request.visit, OFFSET, results.len(), count, PAGE_SIZE, &url)?;
    Ok(Some(Projects { list: results, paging, may_read_rules }))
}
