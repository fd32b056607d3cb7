//! The access of the members, and the rules that decide it.

use serde::Deserialize;

use crate::console::failure::Failure;
use crate::console::list::List;
use crate::console::paging::Paging;
use crate::console::person::User;
use crate::console::query::Query;
use crate::console::visit::{SignedIn, Visit};
use crate::error::Result;

/// The number of members on a page.
const PAGE_SIZE: u64 = 50;

/// The levels with their words.
pub(in crate::console::pages) const LEVELS: [(&str, &str); 4] =
    [("none", "Nothing"), ("viewer", "View"), ("editor", "Edit"), ("manager", "Manage")];

/// The filters of the list, which stand in the query.
pub(in crate::console::pages) struct Filters {
    pub(in crate::console::pages) search: String,
    pub(in crate::console::pages) level: String,
    offset: u64,
    /// The UUID of the member whose rules are explained.
    member: String,
}

impl Filters {
    pub(in crate::console::pages) fn of(visit: &Visit) -> Self {
        let level = visit.query("access_level");
        let level = LEVELS.iter().find(|(name, _)| *name == level);
        Self {
            search: visit.query("search").trim().to_owned(),
            level: level.map_or(String::new(), |(name, _)| (*name).to_owned()),
            offset: Paging::offset(visit),
            member: visit.query("member").to_owned(),
        }
    }

    fn fields(&self) -> [(&'static str, &str); 2] {
        [("search", &self.search), ("access_level", &self.level)]
    }

    /// Returns the query of the page with these members and with another list that begins at `at`, the value of `offset`.
    pub(in crate::console::pages) fn beside(&self, offset: &'static str, at: u64) -> Query {
        let at = if at == 0 { String::new() } else { at.to_string() };
        self.explaining(&self.member).and([(offset, at.as_str())])
    }

    /// Returns the query of the page that explains the access of a member.
    pub(in crate::console::pages) fn explaining(&self, member: &str) -> Query {
        Query::of(self.fields()).and([("member", member)]).at(self.offset)
    }
}

/// The access of a member, as the API describes it.
#[derive(Deserialize)]
pub(in crate::console::pages) struct MemberAccess {
    user: User,
    pub(in crate::console::pages) organization_member: String,
    access_level: String,
    pub(in crate::console::pages) because: Vec<Reason>,
}

/// A rule that can decide.
#[derive(Deserialize)]
pub(in crate::console::pages) struct Reason {
    pub(in crate::console::pages) role_name: Option<String>,
    pub(in crate::console::pages) reached: bool,
    pub(in crate::console::pages) decided: bool,
    pub(in crate::console::pages) text: String,
}

impl MemberAccess {
    pub(in crate::console::pages) fn name(&self) -> String {
        self.user.person.name()
    }

    pub(in crate::console::pages) fn uuid(&self) -> &str {
        &self.user.uuid
    }

    /// Returns the name with the address.
    pub(super) fn label(&self) -> String {
        self.user.person.label()
    }

    /// Returns what the member may do, in a word.
    pub(in crate::console::pages) fn may(&self) -> &str {
        let known = LEVELS.iter().find(|(name, _)| *name == self.access_level);
        known.map_or(&*self.access_level, |(_, word)| *word)
    }

    /// Returns the class of the tag with [`may`](Self::may).
    pub(in crate::console::pages) fn tag(&self) -> &'static str {
        match self.access_level.as_str() {
            "none" => "bad",
            "viewer" => "warn",
            "editor" => "good",
            _ => "on",
        }
    }

    /// Returns the rule that decided.
    pub(in crate::console::pages) fn deciding(&self) -> Option<&Reason> {
        self.because.iter().find(|reason| reason.decided)
    }
}

/// Loads the members on a page. `page` is the path of the page, and `api` that of the list in the API.
///
/// # Errors
/// Those of [`Paging::new`] and of the API.
pub(in crate::console::pages) async fn load(
    request: &SignedIn,
    [page, api]: [&str; 2],
    filters: &Filters,
) -> Result<(Vec<MemberAccess>, Paging), Failure> {
    let found: List<MemberAccess> = request.api.get(&path(api, filters)).await?;
    let url = |offset| Query::of(filters.fields()).at(offset).url(page);
    let paging = Paging::new(&request.visit, found.results.len(), found.count, PAGE_SIZE, url)?;
    Ok((found.results, paging))
}

/// Returns the URL of the page of the list in the API, which is at the path `api`.
pub(in crate::console::pages) fn path(api: &str, filters: &Filters) -> String {
    let query = Query::of([("limit", PAGE_SIZE.to_string().as_str())]).and(filters.fields());
    query.at(filters.offset).url(api)
}

/// Reads the access of the member that the query names.
pub(in crate::console::pages) async fn chosen(
    request: &SignedIn,
    api: &str,
    filters: &Filters,
) -> Result<Option<MemberAccess>> {
    if filters.member.is_empty() {
        return Ok(None);
    }
    let path = Query::of([("user", filters.member.as_str())]).url(api);
    let found: List<MemberAccess> = request.api.get(&path).await?;
    Ok(found.results.into_iter().next())
}
