//! A member, as the API describes one, and the changes that the session may make.

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::console::form::Choice;
use crate::console::levels::{LEVELS, level_name};
use crate::console::operation::{Operation, Write};
use crate::console::person::{Person, User};
use crate::console::visit::SignedIn;
use crate::error::Result;

/// A user in an organization.
#[derive(Deserialize)]
pub(in crate::console::pages) struct Member {
    pub(in crate::console::pages) user: User,
    pub(in crate::console::pages) level: u8,
    pub(in crate::console::pages) joined_at: String,
    pub(in crate::console::pages) invited_by: Option<Person>,
    pub(in crate::console::pages) joined_by: Option<String>,
}

impl Member {
    pub(in crate::console::pages) fn name(&self) -> String {
        self.user.person.name()
    }

    pub(in crate::console::pages) fn level_name(&self) -> &'static str {
        level_name(self.level)
    }
}

/// Returns the UUID of the session's user, if the user is a member that lists show.
///
/// # Errors
/// The errors of the API, except refusals.
pub(in crate::console::pages) async fn own_uuid(
    request: &SignedIn,
    organization: &str,
) -> Result<Option<String>> {
    let path = format!("/api/organizations/{organization}/members/@me/");
    let own = request.api.get_if_allowed::<Member>(&path).await?;
    Ok(own.map(|member| member.user.uuid))
}

/// The changes of a member that the session may make.
#[derive(Clone, Default)]
pub(in crate::console::pages) struct MemberRights {
    /// The levels that it may give, with the present one. Empty if it may give no other.
    pub(in crate::console::pages) levels: Vec<Choice>,
    /// Why it may give no other level.
    pub(in crate::console::pages) level_reason: Option<String>,
    pub(in crate::console::pages) is_removable: bool,
    /// Why it may not remove the member.
    pub(in crate::console::pages) removal_reason: Option<String>,
}

impl MemberRights {
    /// Asks the API by dry runs.
    ///
    /// # Errors
    /// 401 if the session has ended; 500.
    pub(in crate::console::pages) async fn load(
        request: &SignedIn,
        organization: &str,
        member: &Member,
    ) -> Result<Self> {
        let ids = [organization, &member.user.uuid];
        if !request.api.may(&Operation::new("members_partial_update", ids)).await? {
            return Ok(Self::default());
        }
        let change =
            |level: &str| Write::new("members_partial_update", ids).body(level_body(level));
        let present = member.level.to_string();
        let others = LEVELS.iter().filter(|(level, _)| *level != present);
        let mut writes: Vec<_> = others.map(|(level, _)| change(level)).collect();
        writes.push(Write::new("members_destroy", ids));
        let mut answers =
            try_join_all(writes.iter().map(|write| request.api.dry_run(write))).await?;
        let removal = answers.pop().flatten();
        let reason = answers.iter().flatten().next().map(|error| error.detail().to_owned());
        let mut refusals = answers.iter();
        let given = LEVELS
            .iter()
            .filter(|(level, _)| *level == present || refusals.next().is_some_and(Option::is_none));
        let levels: Vec<_> = given.map(|(level, name)| choice(level, name)).collect();
        let has_other = levels.len() > 1;
        Ok(Self {
            levels: if has_other { levels } else { Vec::new() },
            level_reason: reason.filter(|_| !has_other),
            is_removable: removal.is_none(),
            removal_reason: removal.map(|error| error.detail().to_owned()),
        })
    }
}

fn choice(level: &str, name: &str) -> Choice {
    Choice::new(level_value(level), name)
}

fn level_value(level: &str) -> Value {
    level.parse::<u8>().map_or_else(|_| Value::from(level), Value::from)
}

/// Returns the body that gives a level.
pub(super) fn level_body(level: &str) -> Value {
    json!({ "level": level_value(level) })
}
