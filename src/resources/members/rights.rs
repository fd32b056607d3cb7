//! What the caller may change about a member, by the rules that every change follows.

use crate::error::{Error, Result};
use crate::json::{WriteJson, output};
use crate::store::Tx;

use super::{Level, Membership, UserId, find_listed, require_may_give, require_may_remove};

output! {
    /// What you may change about a member. A key also needs the scope `organization_member:write`.
    pub struct MemberRightsBody as MemberRights {
        /// The levels that you may give the member.
        levels: Vec<Level>,
        /// Why you may not give the other levels. Null if you may give all.
        level_reason: Option<String>,
        /// Whether you may remove the member.
        can_remove: bool,
        /// Why you may not remove the member. Null if you may.
        removal_reason: Option<String>,
    }
}

/// Returns the JSON of what the caller may change about a member.
///
/// # Errors
/// 404 if the user is not a member that lists show.
pub fn body(tx: &impl Tx, caller: &Membership, user: UserId) -> Result<Vec<u8>> {
    let member = find_listed(tx, caller.organization, user)?.ok_or_else(Error::not_found)?;
    let (mut levels, mut refusal) = (Vec::new(), None);
    for level in Level::ALL {
        match require_may_give(caller, &member, level) {
            Ok(()) => levels.push(level),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    let removal = require_may_remove(caller, &member).err();
    let body = MemberRightsBody {
        levels,
        level_reason: refusal.map(|error| error.detail().to_owned()),
        can_remove: removal.is_none(),
        removal_reason: removal.map(|error| error.detail().to_owned()),
    };
    body.to_json(256)
}
