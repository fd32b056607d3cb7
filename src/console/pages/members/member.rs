//! The changes of a member that the session may make.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::console::api::Operation;
use crate::console::form::Choice;
use crate::console::model::Member;
use crate::console::visit::SignedIn;
use crate::console::words::{LEVELS, level_name};
use crate::error::Result;

impl Member {
    pub(super) fn name(&self) -> String {
        self.user.person.name()
    }

    pub(super) fn level_name(&self) -> &'static str {
        level_name(self.level)
    }
}

/// Returns the UUID of the session's user, if the user is a member that lists show.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn own_uuid(request: &SignedIn, organization: &str) -> Result<Option<String>> {
    let path = format!("/api/organizations/{organization}/members/@me/");
    let own = request.api.get_if_allowed::<Member>(&path).await?;
    Ok(own.map(|member| member.user.uuid))
}

/// The changes of a member that the session may make.
#[derive(Clone, Default)]
pub(super) struct MemberRights {
    /// The levels that it may give, with the present one. Empty if it may give no other.
    pub(super) levels: Vec<Choice>,
    /// Why it may give no other level.
    pub(super) level_reason: Option<String>,
    pub(super) is_removable: bool,
    /// Why it may not remove the member.
    pub(super) removal_reason: Option<String>,
}

impl MemberRights {
    /// Asks the API.
    ///
    /// # Errors
    /// The errors of the API, except that somebody has removed the member meanwhile.
    pub(super) async fn load(
        request: &SignedIn,
        organization: &str,
        member: &Member,
    ) -> Result<Self> {
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
pub(super) fn level_body(level: &str) -> Value {
    json!({ "level": level_value(level) })
}
