//! What is sent to accept an invite.

use crate::error::{Error, Result};
use crate::ids::InviteId;
use crate::input;
use crate::input::{Field, JsonObject, Name, Nullable, Parsed, Required, Text};
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
    }
}

/// What was sent to accept an invite. The names are looked at only of somebody new. It holds a token: no
/// Debug.
pub struct Acceptance {
    /// The invite that the path names; a text that is no id names none.
    pub(super) invite: Option<InviteId>,
    token: Result<String>,
    fields: Parsed<SignupFields>,
}

impl Acceptance {
    /// What a path and a body say.
    pub fn of(invite: Option<InviteId>, sent: &JsonObject) -> Self {
        let token = Token::take("token", sent.get("token"));
        Self { invite, token, fields: Parsed::of(sent) }
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

    /// What somebody new is in the organization, where they say it.
    ///
    /// # Errors
    /// 400 for a field.
    pub(super) fn role(&self) -> Result<Option<String>> {
        let role = self.fields.get()?.role_at_organization.clone().value();
        Ok(role.filter(|role| !role.is_empty()))
    }
}
