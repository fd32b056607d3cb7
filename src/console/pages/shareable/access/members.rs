//! The access of the members, and the rules that decide it.

use serde::Deserialize;

use crate::console::model::{List, User};
use crate::console::pages::object::ObjectPath;
use crate::console::paging::{LIMIT, ListSpec, Paging};
use crate::console::urls::Query;
use crate::console::visit::{SignedIn, Visit};
use crate::error::Result;

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

    fn fields(&self) -> [(&'static str, &str); 2] {
        [("search", &self.search), ("access_level", &self.level)]
    }

    /// Returns the query of the page with these members and with another list that begins at `at`, the value of `offset`.
    pub(super) fn beside(&self, offset: &'static str, at: u64) -> Query {
        let at = if at == 0 { String::new() } else { at.to_string() };
        self.explaining(&self.member).and([(offset, at.as_str())])
    }

    /// Returns the query of the page that explains the access of a member.
    pub(super) fn explaining(&self, member: &str) -> Query {
        Query::of(self.fields()).and([("member", member)]).at(self.offset)
    }

    /// Describes the list of the members.
    pub(super) fn list(&self, object: &ObjectPath) -> ListSpec {
        ListSpec {
            api: object.api("access/"),
            api_query: Query::of([LIMIT]).and(self.fields()),
            page: object.page("access/"),
            page_query: Query::of(self.fields()),
        }
    }

    /// Reads the access of the member that the query names.
    ///
    /// # Errors
    /// The errors of the API.
    pub(super) async fn chosen(
        &self,
        request: &SignedIn,
        object: &ObjectPath,
    ) -> Result<Option<MemberAccess>> {
        if self.member.is_empty() {
            return Ok(None);
        }
        let path = Query::of([("user", self.member.as_str())]).url(&object.api("access/"));
        let found: List<MemberAccess> = request.api.get(&path).await?;
        Ok(found.results.into_iter().next())
    }
}

/// The access of a member, as the API describes it.
#[derive(Deserialize)]
pub(super) struct MemberAccess {
    user: User,
    pub(super) organization_member: String,
    access_level: String,
    pub(super) because: Vec<Reason>,
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

    /// Returns the name with the address.
    pub(super) fn label(&self) -> String {
        self.user.person.label()
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
