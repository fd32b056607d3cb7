//! The JSON of invites and acceptances, as the invited person sees them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::ids::{ApiKeyId, InviteId, OrganizationId};
use crate::json::{JsonText, output};
use crate::resources::users;

use super::UnprovenAccount;

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
