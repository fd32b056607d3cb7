//! How an invite, and who accepted it, are shown to whom it is for; for the schema.

use utoipa::ToSchema;

use crate::ids::{ApiKeyId, InviteId, OrganizationId};
use crate::resources::users;

use super::UnprovenAccount;

/// What an invite offers.
#[derive(ToSchema)]
pub struct InviteOffer {
    /// The invite's id.
    pub id: InviteId,
    /// Whom it is for.
    #[schema(format = IdnEmail)]
    pub target_email: String,
    /// What the inviter calls them.
    pub first_name: String,
    /// The organization that it leads into.
    pub organization_name: String,
    /// The account of the address that accepting with `take_over` takes over; null if there is none, or if the token
    /// of the mail was not sent. Sending a key of that account joins with it instead, and verifies the address.
    pub unproven_account: Option<UnprovenAccount>,
}

/// Who joined, and with what.
#[derive(ToSchema)]
pub struct Signup {
    /// Who it is.
    #[serde(flatten)]
    pub user: users::Shown,
    /// The organization that they joined.
    pub organization: JoinedOrganization,
    /// `/`.
    pub redirect_url: String,
    /// A first key for somebody new, shown this once; null for whom has an account.
    pub personal_api_key: Option<FirstKey>,
}

/// The organization that somebody joined.
#[derive(ToSchema)]
pub struct JoinedOrganization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
}

/// A key, and its value.
#[derive(ToSchema)]
pub struct FirstKey {
    /// Its id.
    pub id: ApiKeyId,
    /// What is sent in `Authorization: Bearer`; shown this once.
    pub value: String,
    /// Its label.
    pub label: String,
    /// What it opens.
    pub scopes: Vec<String>,
}
