//! The members of an organization: their list, with search and their levels, and the changes that the session may make.

mod one;

use std::collections::HashMap;

use crate::console::words::{LEVELS, level_name};

use super::prelude::*;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/organizations/{organization_id}/members/", show, change_level);
    one::routes(pages);
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
    rows: Vec<Row>,
    paging: Paging,
    /// The page of invites, if the session may invite.
    invites: Option<String>,
    command: Command,
}

async fn change_level(request: SignedIn) -> PageResult {
    let organization = organization_id(&request.visit)?;
    let form = &request.visit.form;
    let write = Write::new("members_partial_update", [&organization, form.value("user")]);
    let write = write.body(level_body(form.value("level")));
    match request.api.attempt(&write).await? {
        Ok(_) => {
            let here = here(&request.visit, &organization);
            finish(&here, "level-saved")
        }
        Err(refusal) => show(request, refusal.into()).await,
    }
}

async fn show(request: SignedIn, feedback: Feedback) -> PageResult {
    let organization = organization_id(&request.visit)?;
    let search = request.visit.query("search").trim();
    let base = MEMBERS.list(&organization);
    let list = ListSpec {
        api: MEMBERS.api(&organization),
        api_query: Query::of([LIMIT, ("search", search)]),
        page: base.clone(),
        page_query: Query::of([("search", search)]),
    };
    let ListPage { rows: members, paging, command } = list_page(&request, list).await?;
    let invite = Operation::new("invites_create", [&organization]);
    let invites = request.api.may(&invite).await?;
    let invites = invites.then(|| format!("/console/organizations/{organization}/invites/"));
    let frame = MEMBERS.frame(&request, &organization).await?.titled("Members");
    let page = MembersPage {
        base,
        here: here(&request.visit, &organization),
        search: search.to_owned(),
        rows: rows(&request, &organization, members).await?,
        paging,
        invites,
        command,
    };
    Ok(layout::page(&feedback.on(frame), &page)?)
}

/// Returns the URL of this page of the list.
fn here(visit: &Visit, organization: &str) -> String {
    let query = Query::of([("search", visit.query("search").trim())]);
    query.at(Paging::offset(visit)).url(&MEMBERS.list(organization))
}

/// Returns the rows. To the API, the other members of one level are alike.
async fn rows(request: &SignedIn, organization: &str, members: Vec<Member>) -> Result<Vec<Row>> {
    let own = own_uuid(request, organization).await?;
    let mut known: HashMap<(bool, u8), MemberRights> = HashMap::new();
    let mut rows = Vec::new();
    for member in members {
        let is_own = own.as_ref() == Some(&member.user.uuid);
        let kind = (is_own, member.level);
        let rights = match known.get(&kind) {
            Some(rights) => rights.clone(),
            None => MemberRights::load(request, organization, &member).await?,
        };
        known.insert(kind, rights.clone());
        rows.push(Row { member, is_own, rights });
    }
    Ok(rows)
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
    let own = request.api.get_if_allowed::<Member>(&path).await?;
    Ok(own.map(|member| member.user.uuid))
}

/// The changes of a member that the session may make.
#[derive(Clone, Default)]
struct MemberRights {
    /// The levels that it may give, with the present one. Empty if it may give no other.
    levels: Vec<Choice>,
    /// Why it may give no other level.
    level_reason: Option<String>,
    is_removable: bool,
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
        let change = Operation::new("members_partial_update", [organization, uuid]);
        if !request.api.may(&change).await? {
            return Ok(Self::default());
        }
        let path = format!("/api/organizations/{organization}/members/{uuid}/rights/");
        let found = request.api.get_if_allowed::<Rights>(&path).await?;
        let Some(found) = found else { return Ok(Self::default()) };
        let is_shown = |level: &u8| *level == member.level || found.levels.contains(level);
        let has_other = found.levels.iter().any(|level| *level != member.level);
        let levels = LEVELS.iter().filter_map(|(text, name)| Some((text.parse().ok()?, name)));
        let levels = levels.filter(|(level, _)| has_other && is_shown(level));
        Ok(Self {
            levels: levels.map(|(level, name)| Choice::new(Value::from(level), *name)).collect(),
            level_reason: found.level_reason.filter(|_| !has_other),
            is_removable: found.can_remove,
            removal_reason: found.removal_reason,
        })
    }
}

/// `rights/` of a member.
#[derive(Deserialize)]
struct Rights {
    levels: Vec<u8>,
    level_reason: Option<String>,
    can_remove: bool,
    removal_reason: Option<String>,
}

fn level_value(level: &str) -> Value {
    level.parse::<u8>().map_or_else(|_| Value::from(level), Value::from)
}

/// Returns the body that gives a level.
fn level_body(level: &str) -> Value {
    json!({ "level": level_value(level) })
}
