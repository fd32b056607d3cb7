//! What is sent to accept an invite.

use crate::error::Result;
use crate::ids::InviteId;
use crate::input;
use crate::input::{JsonObject, Name, Nullable, Parsed, Required, Text};
use crate::resources::users::NewUser;

input! {
    /// What everybody sends to accept an invite.
    pub(super) struct Token {
        /// The token of the invite's link.
        token: Required<Name<200>>,
    }
}

input! {
    /// What somebody new says of themselves.
    pub(super) struct NewMember {
        /// Given name.
        first_name: Required<Name<128>>,
        /// Family name.
        last_name: Text<150>,
        /// What they are in the organization.
        role_at_organization: Nullable<Text<128>>,
    }
}

input! {
    /// An invite to accept. The names are asked of somebody new only.
    pub struct SignupFields {
        /// The token of the invite's link.
        token: Required<Name<200>>,
        /// Given name; required of somebody new.
        first_name: Name<128>,
        /// Family name.
        last_name: Text<150>,
        /// What they are in the organization.
        role_at_organization: Nullable<Text<128>>,
    }
}

impl NewMember {
    /// The user to make, with the invite's address.
    pub(super) fn user(&self, email: &str) -> NewUser {
        NewUser {
            email: email.to_owned(),
            first_name: Some(self.first_name.clone()),
            last_name: self.last_name.clone(),
        }
    }

    /// What they are in the organization, where they say it.
    pub(super) fn role(&self) -> Option<String> {
        self.role_at_organization.clone().value().filter(|role| !role.is_empty())
    }
}

/// What was sent to accept an invite. The names are looked at only of somebody new. It holds a token: no
/// Debug.
pub struct Acceptance {
    /// The invite that the path names; a text that is no id names none.
    pub(super) invite: Option<InviteId>,
    token: Parsed<Token>,
    new_member: Parsed<NewMember>,
}

impl Acceptance {
    /// What a path and a body say.
    pub fn of(invite: Option<InviteId>, sent: &JsonObject) -> Self {
        Self { invite, token: Parsed::of(sent), new_member: Parsed::of(sent) }
    }

    /// The token that was presented.
    ///
    /// # Errors
    /// 400 at `token` where there is none.
    pub(super) fn token(&self) -> Result<&str> {
        Ok(&self.token.get()?.token)
    }

    /// What somebody new says of themselves.
    ///
    /// # Errors
    /// 400 for a field.
    pub(super) fn new_member(&self) -> Result<&NewMember> {
        self.new_member.get()
    }
}
