//! The search for a member whom a form offers, for organizations with more members than a choice shows.

use askama::Template;
use serde::de::DeserializeOwned;

use crate::console::model::List;
use crate::console::urls::Query;
use crate::console::visit::{SignedIn, Visit};
use crate::error::Result;

/// The maximum number of members that a search finds.
pub(super) const MAX_FOUND: u64 = 100;

/// The search, as a form above the choice.
#[derive(Template)]
#[template(path = "console/pages/member_search.html")]
pub(super) struct MemberSearch {
    /// The path of the page.
    page: String,
    /// The parameter of the query with the text.
    parameter: &'static str,
    /// The id of the section with the choice.
    section: &'static str,
    pub(super) text: String,
    /// Whether the choice does not have all members.
    pub(super) is_cut: bool,
}

impl MemberSearch {
    /// Reads the search from the query.
    pub(super) fn of(
        visit: &Visit,
        parameter: &'static str,
        page: &str,
        section: &'static str,
    ) -> Self {
        let text = visit.query(parameter).trim().to_owned();
        Self { page: page.to_owned(), parameter, section, text, is_cut: false }
    }

    /// Searches the members of an organization.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn find<T: DeserializeOwned>(
        self,
        request: &SignedIn,
        organization: &str,
    ) -> Result<(Self, List<T>)> {
        let limit = MAX_FOUND.to_string();
        let query = Query::of([("limit", &*limit), ("order", "joined_at"), ("search", &self.text)]);
        let path = query.url(&format!("/api/organizations/{organization}/members/"));
        let found: List<T> = request.api.get_if_allowed(&path).await?.unwrap_or_default();
        Ok((self.with_result(&found), found))
    }

    /// Notes whether a search found more members than the choice shows.
    pub(super) fn with_result<T>(mut self, found: &List<T>) -> Self {
        self.is_cut = !found.is_complete();
        self
    }

    /// Returns whether the page shows the search: if there is something to search for, or a search to end.
    pub(super) const fn is_needed(&self) -> bool {
        self.is_cut || !self.text.is_empty()
    }
}
