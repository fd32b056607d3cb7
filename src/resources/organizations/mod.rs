//! Organizations: the tenants (decisions §4; facts-org §6.1).

pub mod body;
pub mod http;
mod sweep;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::ids::OrganizationId;
use crate::input;
use crate::input::{Flag, Name, Nullable, Required, UuidField};
use crate::json::Object;
use crate::patch::set;
use crate::secret::Draw;
use crate::store::{Index, Indexed, Owner, Record, Table, Tx, WriteTx};
use crate::time::Timestamp;

pub use sweep::Sweep;

/// An organization.
#[derive(Debug, Clone, PartialEq)]
pub struct Organization {
    /// What rules decide by.
    pub head: Head,
    /// Its fields.
    pub shown: Shown,
}

/// What rules decide by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The organization's id.
    pub id: OrganizationId,
    /// Whether plain members' keys open it.
    pub members_can_use_personal_api_keys: bool,
}

/// The organization's own fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = OrganizationFixed)]
pub struct Shown {
    /// The organization's id.
    pub id: OrganizationId,
    /// Its name, not necessarily its alone.
    pub name: String,
    /// Its name in URLs, unique in the file.
    pub slug: String,
    /// The id of an uploaded logo.
    pub logo_media_id: Option<uuid::Uuid>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its own fields last changed.
    pub updated_at: Timestamp,
    /// Whether admins and owners get a mail when someone joins.
    pub is_member_join_email_enabled: bool,
    /// Whether a second factor is asked for.
    pub enforce_2fa: Option<bool>,
    /// Whether plain members may invite.
    pub members_can_invite: bool,
    /// Whether plain members' keys open it.
    pub members_can_use_personal_api_keys: bool,
    /// Whether its data may be processed by AI services.
    pub is_ai_data_processing_approved: Option<bool>,
}

/// By the name in URLs.
pub const BY_SLUG: Index<Organization, String> =
    Index::unique(Table::OrganizationsBySlug, |organization| Some(organization.shown.slug.clone()));

impl Record for Organization {
    const TABLE: Table = Table::Organizations;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_SLUG];
    type Key = OrganizationId;
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> OrganizationId {
        self.head.id
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.head.id.owner()))
    }
}

input! {
    /// An organization to make.
    pub struct NewOrganization {
        /// Its name.
        name: Required<Name<64>>,
    }
}

input! {
    /// What an admin may change of an organization.
    pub struct OrganizationPatch {
        /// Its name. The slug stays.
        name: Name<64>,
        /// The id of an uploaded logo.
        logo_media_id: Nullable<UuidField>,
        /// Whether admins and owners get a mail when someone joins.
        is_member_join_email_enabled: Flag,
        /// Whether a second factor is asked for.
        enforce_2fa: Nullable<Flag>,
        /// Whether plain members may invite.
        members_can_invite: Flag,
        /// Whether plain members' keys open it.
        members_can_use_personal_api_keys: Flag,
        /// Whether its data may be processed by AI services.
        is_ai_data_processing_approved: Nullable<Flag>,
    }
}

/// Makes an organization. Its first member and project are the caller's to add.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn create(
    tx: &mut WriteTx<'_>,
    new: &NewOrganization,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<OrganizationId> {
    let id = OrganizationId(draw.uuid(now));
    let slug = free_slug(tx, &new.name, draw)?;
    tx.put(&Organization {
        head: Head { id, members_can_use_personal_api_keys: true },
        shown: Shown {
            id,
            name: new.name.clone(),
            slug,
            logo_media_id: None,
            created_at: now,
            updated_at: now,
            is_member_join_email_enabled: true,
            enforce_2fa: None,
            members_can_invite: true,
            members_can_use_personal_api_keys: true,
            is_ai_data_processing_approved: None,
        },
    })?;
    Ok(id)
}

/// The name as a slug, with a few random characters where that is taken or empty.
fn free_slug(tx: &impl Tx, name: &str, draw: &mut Draw) -> Result<String> {
    let plain = slug::slugify(name);
    if !plain.is_empty() && tx.lookup(&BY_SLUG, &plain)?.is_none() {
        return Ok(plain);
    }
    let token = draw.token().to_lowercase();
    let end = &token[..8.min(token.len())];
    Ok(if plain.is_empty() { end.to_owned() } else { format!("{plain}-{end}") })
}

/// Changes an organization.
///
/// # Errors
/// 404 when it is gone.
pub fn update(
    tx: &mut WriteTx<'_>,
    id: OrganizationId,
    patch: &OrganizationPatch,
    now: Timestamp,
) -> Result<()> {
    let before: Organization = tx.get(&id)?;
    let mut organization = before.clone();
    apply(patch.clone(), &mut organization);
    if organization == before {
        return Ok(());
    }
    organization.shown.updated_at = now;
    tx.put(&organization)
}

fn apply(patch: OrganizationPatch, organization: &mut Organization) {
    let OrganizationPatch {
        name,
        logo_media_id,
        is_member_join_email_enabled,
        enforce_2fa,
        members_can_invite,
        members_can_use_personal_api_keys,
        is_ai_data_processing_approved,
    } = patch;
    let Organization { head, shown } = organization;
    set(&mut shown.name, name);
    logo_media_id.apply(&mut shown.logo_media_id);
    set(&mut shown.is_member_join_email_enabled, is_member_join_email_enabled);
    enforce_2fa.apply(&mut shown.enforce_2fa);
    set(&mut shown.members_can_invite, members_can_invite);
    set(&mut shown.members_can_use_personal_api_keys, members_can_use_personal_api_keys);
    is_ai_data_processing_approved.apply(&mut shown.is_ai_data_processing_approved);
    head.members_can_use_personal_api_keys = shown.members_can_use_personal_api_keys;
}

/// Removes an organization: from here on nothing in it can be reached, and its slug is free.
///
/// # Errors
/// 404 when it is gone.
pub fn remove(tx: &mut WriteTx<'_>, id: OrganizationId) -> Result<()> {
    tx.remove::<Organization>(&id)?.map(drop).ok_or_else(Error::not_found)
}

/// Appends the members of the full form that are the organization's own.
///
/// # Errors
/// 404 when it is gone.
pub fn splice_own<'o>(tx: &impl Tx, id: OrganizationId, body: Object<'o>) -> Result<Object<'o>> {
    let mut own = Vec::new();
    tx.view::<Organization, _>(&id, |row| {
        own.extend_from_slice(row.shown);
        Ok(())
    })?
    .ok_or_else(Error::not_found)?;
    Ok(body
        .splice(&own)
        .raw("plugins_access_level", b"9")
        .raw("available_product_features", b"[]")
        .raw("customer_id", b"null"))
}
