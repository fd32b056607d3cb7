//! The members of an organization whom pages name and offer.

use serde::de::DeserializeOwned;

use crate::console::api::Api;

use super::prelude::*;

/// The maximum number of members that a page can name, and that the filter lists.
const MAX_MEMBERS: usize = 100;

/// The members that the session may see.
#[derive(Default)]
pub(super) struct People(pub(super) Vec<Member>);

impl People {
    /// Loads the members of an organization. A session that may not list them knows no names.
    pub(super) async fn load(api: &Api, organization: Option<&str>) -> Result<Self> {
        let Some(id) = organization else { return Ok(Self::default()) };
        let path = format!("/api/organizations/{id}/members/?limit={MAX_MEMBERS}");
        let found = api.get_if_allowed::<List<Member>>(&path).await?;
        Ok(Self(found.unwrap_or_default().results))
    }

    /// Returns the user with this number.
    pub(super) fn by_number(&self, number: &str) -> Option<&User> {
        let number = number.parse::<u64>().ok()?;
        self.0.iter().map(|member| &member.user).find(|user| user.id == number)
    }

    /// Returns whether a filter names a user that is not among the members.
    pub(super) fn is_unknown(&self, user: &str) -> bool {
        !matches!(user, "" | "@me") && self.0.iter().all(|member| member.user.uuid != user)
    }

    /// Returns the user of a membership.
    pub(super) fn by_membership(&self, id: &str) -> Option<&User> {
        self.0.iter().find(|member| member.id == id).map(|member| &member.user)
    }
}

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
        mut self,
        request: &SignedIn,
        organization: &str,
    ) -> Result<(Self, List<T>)> {
        let limit = MAX_FOUND.to_string();
        let query = Query::of([("limit", &*limit), ("order", "joined_at"), ("search", &self.text)]);
        let path = query.url(&format!("/api/organizations/{organization}/members/"));
        let found: List<T> = request.api.get_if_allowed(&path).await?.unwrap_or_default();
        self.is_cut = !found.is_complete();
        Ok((self, found))
    }

    /// Returns whether the page shows the search: if there is something to search for, or a search to end.
    pub(super) const fn is_needed(&self) -> bool {
        self.is_cut || !self.text.is_empty()
    }
}
