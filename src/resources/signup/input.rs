//! What is sent to accept an invite.

use crate::error::{Error, Result};
use crate::ids::InviteId;
use crate::input;
use crate::input::{Field, Flag, JsonObject, Name, Nullable, Parsed, Required, Text};
use crate::resources::users::NewUser;

/// The token of an invite's link.
type Token = Required<Name<200>>;

input! {
    /// An invite to accept. The names are asked of somebody new only.
    pub struct SignupFields {
        /// The token of the invite's link.
        token: Token,
        /// Given name; required of somebody new.
        first_name: Name<128>,
        /// Family name.
        last_name: Text<150>,
        /// What they are in the organization.
        role_at_organization: Nullable<Text<128>>,
        /// Whether to take over the account that `unproven_account` of the offer describes. Its keys and memberships
        /// end. Without it the request is refused with `account_exists`, unless a key of that account is sent.
        take_over: Flag,
    }
}

/// What was sent to accept an invite. The names are looked at only of somebody new. It holds a token: no
/// Debug.
pub struct Acceptance {
    /// The invite that the path names; a text that is no id names none.
    pub(super) invite: Option<InviteId>,
    token: Result<String>,
    /// Read apart from the other fields: whether the account exists is said before they are checked.
    take_over: Result<Option<bool>>,
    fields: Parsed<SignupFields>,
}

impl Acceptance {
    /// What a path and a body say.
    pub fn of(invite: Option<InviteId>, sent: &JsonObject) -> Self {
        let token = Token::take("token", sent.get("token"));
        let take_over = <Flag as Field>::take("take_over", sent.get("take_over"));
        Self { invite, token, take_over, fields: Parsed::of(sent) }
    }

    /// The token that was presented.
    ///
    /// # Errors
    /// 400 at `token` where there is none.
    pub(super) fn token(&self) -> Result<&str> {
        self.token.as_deref().map_err(Clone::clone)
    }

    /// The user that somebody new is to become, with the invite's address.
    ///
    /// # Errors
    /// 400 for a field.
    pub(super) fn new_user(&self, email: &str) -> Result<NewUser> {
        let SignupFields { first_name, last_name, .. } = self.fields.get()?.clone();
        let required = || Error::field("first_name", "required", "This field is required.");
        let first_name = Some(first_name.ok_or_else(required)?);
        Ok(NewUser { email: email.to_owned(), first_name, last_name })
    }

    /// Whether an account that only a link made is to be taken over.
    ///
    /// # Errors
    /// 400 at `take_over` if it is not a boolean.
    pub(super) fn takes_over(&self) -> Result<bool> {
        self.take_over.clone().map(Option::unwrap_or_default)
    }

    /// What somebody new is in the organization, where they say it.
    ///
    /// # Errors
    /// 400 for a field.
    pub(super) fn role(&self) -> Result<Option<String>> {
        let role = self.fields.get()?.role_at_organization.clone().value();
        Ok(role.filter(|role| !role.is_empty()))
    }
}
