//! What the API reads and shows when an invite is accepted.

use crate::ids::{ApiKeyId, InviteId};
use crate::input::{Flag, Name, Nullable, Required, Text};
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, NewUser};

use super::UnprovenAccount;

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
        let first_name = Some(first_name.ok_or_else(|| missing("first_name"))?);
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

/// An invite, as the invited person sees it.
#[derive(Serialize, ToSchema)]
pub struct InviteOffer {
    /// The id of the invite.
    pub id: InviteId,
    /// The invited address.
    #[schema(format = IdnEmail)]
    pub target_email: String,
    /// The name that the inviter entered.
    pub first_name: String,
    /// The name of the organization.
    pub organization_name: String,
    /// The account with this address that `take_over` takes over; null if there is none or the request has no token
    /// from the mail. With a key of that account, the user joins with the account instead, which verifies the address.
    pub unproven_account: Option<UnprovenAccount>,
}

output! {
    /// The result of accepting an invite.
    pub struct Signup<'a> {
        /// The user that joined.
        ..user: JsonText<'a, users::Fields> as users::Fields,
        /// The organization that the user joined.
        organization: JoinedOrganization,
        /// Always `/`.
        redirect_url: String = "/",
        /// The first API key of a new user, shown only once; null for a user with an account.
        personal_api_key: Option<FirstKey<'a>>,
    }
}

/// The organization that a user joined.
#[derive(Serialize, ToSchema)]
pub struct JoinedOrganization {
    /// The id of the organization.
    pub id: OrganizationId,
    /// The name of the organization.
    pub name: String,
}

/// The first API key of a new user.
#[derive(Serialize, ToSchema)]
pub struct FirstKey<'a> {
    /// The id of the key.
    pub id: ApiKeyId,
    /// The value to send as `Authorization: Bearer`. Shown only once.
    pub value: &'a str,
    /// The name of the key.
    pub label: &'a str,
    /// The scopes of the key.
    pub scopes: &'a [&'a str],
}
