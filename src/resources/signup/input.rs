//! The request body that accepts an invite.

use crate::error::{Error, Result};
use crate::ids::InviteId;
use crate::input;
use crate::input::{Field, Flag, JsonObject, Name, Nullable, Parsed, Required, Text};
use crate::resources::users::NewUser;

/// The token in the link of an invite.
type Token = Required<Name<200>>;

input! {
    /// The acceptance of an invite. Only new users need names.
    pub struct SignupFields {
        /// The token from the link of the invite.
        token: Token,
        /// The given name. Required for a new user.
        first_name: Name<128>,
        /// The family name.
        last_name: Text<150>,
        /// The role of the user in the organization.
        role_at_organization: Nullable<Text<128>>,
        /// Whether to take over the account that `unproven_account` describes. This revokes its API keys and deletes
        /// its memberships. Without `take_over`, the request fails with `account_exists` unless it has a key of that
        /// account.
        take_over: Flag,
    }
}

/// A parsed request to accept an invite. The names are checked only for a new user. Not `Debug`, because it contains a
/// token.
pub struct Acceptance {
    /// The id in the path; `None` if it is not a UUID.
    pub(super) invite: Option<InviteId>,
    token: Result<String>,
    /// Parsed separately, because `account_exists` precedes errors of other fields.
    take_over: Result<Option<bool>>,
    fields: Parsed<SignupFields>,
}

impl Acceptance {
    /// Parses a request.
    pub fn of(invite: Option<InviteId>, sent: &JsonObject) -> Self {
        let token = Token::parse("token", sent.get("token"));
        let take_over = <Flag as Field>::parse("take_over", sent.get("take_over"));
        Self { invite, token, take_over, fields: Parsed::new(sent) }
    }

    /// Returns the token of the request.
    ///
    /// # Errors
    /// 400 at `token` if it is missing or invalid.
    pub(super) fn token(&self) -> Result<&str> {
        self.token.as_deref().map_err(Clone::clone)
    }

    /// Returns the new user to create, with the invite's address.
    ///
    /// # Errors
    /// 400 for an invalid field.
    pub(super) fn new_user(&self, email: &str) -> Result<NewUser> {
        let SignupFields { first_name, last_name, .. } = self.fields.get()?.clone();
        let required = || Error::field("first_name", "required", "This field is required.");
        let first_name = Some(first_name.ok_or_else(required)?);
        Ok(NewUser { email: email.to_owned(), first_name, last_name })
    }

    /// Returns whether the request takes over an account.
    ///
    /// # Errors
    /// 400 at `take_over` if it is not a boolean.
    pub(super) fn takes_over(&self) -> Result<bool> {
        self.take_over.clone().map(Option::unwrap_or_default)
    }

    /// Returns the role of the new user, if the request has one.
    ///
    /// # Errors
    /// 400 for an invalid field.
    pub(super) fn role(&self) -> Result<Option<String>> {
        let role = self.fields.get()?.role_at_organization.clone().value();
        Ok(role.filter(|role| !role.is_empty()))
    }
}
