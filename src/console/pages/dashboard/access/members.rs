//! The members with what they may do, and the rules that decide it.

use serde::Deserialize;
use url::form_urlencoded::Serializer;

use crate::console::form::Choice;
use crate::console::layout::Paging;
use crate::console::pages::dashboard::address::Address;
use crate::console::person::Person;
use crate::console::visit::{SignedIn, Visit};
use crate::error::Result;

/// The number of members on a page.
const PAGE_SIZE: u64 = 50;
/// The maximum number of members that a form offers.
const MAX_CHOICES: u64 = 500;

/// The levels with their words.
pub(super) const LEVELS: [(&str, &str); 4] =
    [("none", "Nothing"), ("viewer", "View"), ("editor", "Edit"), ("manager", "Manage")];

/// The filters of the list, which stand in the query.
pub(super) struct Filters {
    pub(super) search: String,
    pub(super) level: String,
    offset: u64,
    /// The UUID of the member whose rules are explained.
    member: String,
}

impl Filters {
    pub(super) fn of(visit: &Visit) -> Self {
        let level = visit.query("access_level");
        let level = LEVELS.iter().find(|(name, _)| *name == level);
        Self {
            search: visit.query("search").trim().to_owned(),
            level: level.map_or(String::new(), |(name, _)| (*name).to_owned()),
            offset: Paging::offset(visit),
            member: visit.query("member").to_owned(),
        }
    }

    fn append(&self, mut query: Serializer<'_, String>, offset: u64, member: &str) -> String {
        for (name, value) in
            [("search", self.search.as_str()), ("access_level", &self.level), ("member", member)]
        {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        if offset > 0 {
            query.append_pair("offset", &offset.to_string());
        }
        query.finish()
    }

    /// Returns the query of the page that explains the access of a member.
    pub(super) fn explaining(&self, member: &str) -> String {
        self.append(Serializer::new(String::new()), self.offset, member)
    }
}

/// A page of members.
#[derive(Deserialize)]
pub(super) struct Members {
    count: u64,
    pub(super) results: Vec<MemberAccess>,
}

/// What a member may do, as the API describes it.
#[derive(Deserialize)]
pub(super) struct MemberAccess {
    user: User,
    pub(super) organization_member: String,
    access_level: String,
    pub(super) because: Vec<Reason>,
}

#[derive(Deserialize)]
struct User {
    uuid: String,
    #[serde(flatten)]
    person: Person,
}

/// A rule that can decide.
#[derive(Deserialize)]
pub(super) struct Reason {
    pub(super) role_name: Option<String>,
    pub(super) reached: bool,
    pub(super) decided: bool,
    pub(super) text: String,
}

impl MemberAccess {
    pub(super) fn name(&self) -> String {
        self.user.person.name()
    }

    pub(super) fn uuid(&self) -> &str {
        &self.user.uuid
    }

    /// Returns what the member may do, in a word.
    pub(super) fn may(&self) -> &str {
        let known = LEVELS.iter().find(|(name, _)| *name == self.access_level);
        known.map_or(&*self.access_level, |(_, word)| *word)
    }

    /// Returns the class of the tag with [`may`](Self::may).
    pub(super) fn tag(&self) -> &'static str {
        match self.access_level.as_str() {
            "none" => "bad",
            "viewer" => "warn",
            "editor" => "good",
            _ => "on",
        }
    }

    /// Returns the rule that decided.
    pub(super) fn deciding(&self) -> Option<&Reason> {
        self.because.iter().find(|reason| reason.decided)
    }
}

impl Members {
    pub(super) async fn load(
        request: &SignedIn,
        address: &Address,
        filters: &Filters,
    ) -> Result<(Self, Paging)> {
        let found: Self = request.api.get(&path(address, filters)).await?;
        let url = |offset| {
            let query = Serializer::new(String::new());
            address.page(&format!("access/?{}", filters.append(query, offset, "")))
        };
        let paging = Paging::new(filters.offset, found.results.len(), found.count, PAGE_SIZE, url)?;
        Ok((found, paging))
    }
}

/// Returns the path of the API that lists the members.
pub(super) fn path(address: &Address, filters: &Filters) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("limit", &PAGE_SIZE.to_string());
    address.api(&format!("access/?{}", filters.append(query, filters.offset, "")))
}

/// Reads the access of the member that the query names.
pub(super) async fn chosen(
    request: &SignedIn,
    address: &Address,
    filters: &Filters,
) -> Result<Option<MemberAccess>> {
    if filters.member.is_empty() {
        return Ok(None);
    }
    let query = Serializer::new(String::new()).append_pair("user", &filters.member).finish();
    let path = address.api(&format!("access/?{query}"));
    let found: Members = request.api.get(&path).await?;
    Ok(found.results.into_iter().next())
}

/// Returns the members who may view the dashboard but not edit it, as choices of a form.
pub(super) async fn who_only_views(request: &SignedIn, address: &Address) -> Result<Vec<Choice>> {
    let path = address.api(&format!("access/?access_level=viewer&limit={MAX_CHOICES}"));
    let found: Members = request.api.get(&path).await?;
    Ok(found.results.iter().map(|member| Choice::new(member.uuid(), member.name())).collect())
}
