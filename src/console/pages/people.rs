//! The first members of an organization, for filters and to name the users that objects mention by their ids.

use crate::console::api::Api;
use crate::console::model::{List, Member, User};
use crate::error::Result;

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
