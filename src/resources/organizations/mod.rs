//! Organizations: the tenants. See `docs/spec/organizations.md`.

pub mod http;

use crate::input::{Flag, Name, Nullable, Required, UuidField};
use crate::resources::shared::prelude::*;

/// An organization.
pub type Organization = RecordOf<Meta, Fields>;

/// The fields of an organization that access rules need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The id of the organization.
    pub id: OrganizationId,
    /// Whether plain members may access the organization with API keys.
    pub members_can_use_personal_api_keys: bool,
}

/// The organization's own fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = OrganizationFixed)]
pub struct Fields {
    /// The id of the organization.
    pub id: OrganizationId,
    /// The name of the organization. Names need not be unique.
    pub name: String,
    /// The name of the organization in URLs. Unique in the installation.
    #[schema(max_length = 48)]
    pub slug: String,
    /// The id of an uploaded logo.
    pub logo_media_id: Option<uuid::Uuid>,
    /// When the organization was created.
    pub created_at: Timestamp,
    /// When its own fields were last updated.
    pub updated_at: Timestamp,
    /// Whether admins and owners receive a mail when a user joins.
    pub is_member_join_email_enabled: bool,
    /// Whether members need a second factor. Stored only: Steward does not enforce it.
    pub enforce_2fa: Option<bool>,
    /// Whether plain members may create invites.
    pub members_can_invite: bool,
    /// Whether plain members may access the organization with API keys.
    pub members_can_use_personal_api_keys: bool,
    /// Whether AI services may process its data.
    pub is_ai_data_processing_approved: Option<bool>,
}

/// The organization with a slug.
pub const BY_SLUG: Index<Organization, String> =
    Index::unique(Table::OrganizationsBySlug, |organization| {
        Some(organization.fields.slug.clone())
    });

impl_record!(Organization {
    table: Organizations,
    key: |organization| -> OrganizationId { organization.meta.id },
    parts: meta: Meta, fields: Fields,
    projection: |meta, fields| Meta {
        members_can_use_personal_api_keys: fields.members_can_use_personal_api_keys,
        ..*meta
    },
    indexes: [&BY_SLUG],
    owner: |organization, _| Ok(Some(organization.meta.id.owner())),
});

input! {
    /// The organization to create.
    pub struct NewOrganization {
        /// The name of the organization.
        name: Required<Name<64>>,
    }
}

input! {
    /// The fields of an organization that an admin may update.
    pub struct OrganizationPatch {
        /// The name of the organization. The slug does not change with it.
        name: Name<64> => organization,
        /// The id of an uploaded logo.
        logo_media_id: Nullable<UuidField> => organization,
        /// Whether admins and owners receive a mail when a user joins.
        is_member_join_email_enabled: Flag => organization,
        /// Whether members need a second factor. Stored only: Steward does not enforce it.
        enforce_2fa: Nullable<Flag> => organization,
        /// Whether plain members may create invites.
        members_can_invite: Flag => organization,
        /// Whether plain members may access the organization with API keys.
        members_can_use_personal_api_keys: Flag => organization,
        /// Whether AI services may process its data.
        is_ai_data_processing_approved: Nullable<Flag> => organization,
        /// The id of the role that users get when they join. Members who joined before do not get it.
        default_role_id: Nullable<UuidField> => _,
    }
    fn apply_to(organization: &mut Fields);
}

/// Creates an organization. The caller must add its first member and project in the same transaction.
pub fn create(
    tx: &mut WriteTx<'_>,
    new: &NewOrganization,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<OrganizationId> {
    let id = OrganizationId(rng.uuid(now));
    let slug = free_slug(tx, &new.name, rng)?;
    tx.log_about::<Organization>(&id);
    tx.put(&Organization {
        meta: Meta { id, members_can_use_personal_api_keys: true },
        fields: Fields {
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

/// The maximum number of characters of a slug.
const MAX_SLUG_LENGTH: usize = 48;

/// Returns the beginning of the name as a slug. If the slug is empty or in use, appends random characters.
fn free_slug(tx: &dyn Raw, name: &str, rng: &mut SeededRng) -> Result<String> {
    let plain: String = slug::slugify(name).chars().take(MAX_SLUG_LENGTH).collect();
    if !plain.is_empty() && tx.lookup(&BY_SLUG, &plain)?.is_none() {
        return Ok(plain);
    }
    let token = rng.token().to_lowercase();
    let end = &token[..8.min(token.len())];
    Ok(if plain.is_empty() { end.to_owned() } else { with_end(&plain, end) })
}

/// Returns a slug that ends in `end`, which replaces as much of `slug` as it needs.
fn with_end(slug: &str, end: &str) -> String {
    let kept: String = slug.chars().take(MAX_SLUG_LENGTH - 1 - end.len()).collect();
    format!("{}-{end}", kept.trim_end_matches('-'))
}

/// Gives an organization of another installation a slug of its own if its slug is in use here or too long. It ends in a
/// part of the id.
fn free_arriving_slug(organization: &mut Organization, tx: &WriteTx<'_>) -> Result<()> {
    let slug = &mut organization.fields.slug;
    if slug.len() > MAX_SLUG_LENGTH || tx.lookup(&BY_SLUG, slug)?.is_some() {
        let [.., a, b, c, d] = *organization.meta.id.0.as_bytes();
        *slug = with_end(slug, &format!("{:08x}", u32::from_be_bytes([a, b, c, d])));
    }
    Ok(())
}

/// Updates an organization, except `default_role_id`, which is stored with the roles.
///
/// # Errors
/// 404 if it was deleted.
pub fn update(
    tx: &mut WriteTx<'_>,
    id: OrganizationId,
    patch: &OrganizationPatch,
    now: Timestamp,
) -> Result<()> {
    let before: Organization = tx.get(&id)?;
    let mut organization = before.clone();
    patch.clone().apply_to(&mut organization.fields);
    if organization == before {
        return Ok(());
    }
    organization.fields.updated_at = now;
    tx.put(&organization)
}

/// Sets the time of the last update.
///
/// # Errors
/// 404 if the organization was deleted.
pub fn set_updated(tx: &mut WriteTx<'_>, id: OrganizationId, now: Timestamp) -> Result<()> {
    let mut organization: Organization = tx.get(&id)?;
    if organization.fields.updated_at == now {
        return tx.bump_version::<Organization>(&id);
    }
    organization.fields.updated_at = now;
    tx.put(&organization)
}

/// Deletes an organization. Nothing in it can be accessed any more, and its slug is free.
///
/// # Errors
/// 404 if it was deleted before.
pub fn delete(tx: &mut WriteTx<'_>, id: OrganizationId) -> Result<()> {
    tx.remove::<Organization>(&id)?.map(drop).ok_or_else(Error::not_found)
}

/// The records of organizations.
pub const RECORDS: &[&dyn RegisteredRecord] = &[&record::<Organization>()
    .logged()
    .parent(PendingDeletion::Organization)
    .adapted(free_arriving_slug)];

impl Loggable for Organization {
    const SCOPE: &'static str = "Organization";

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.id, Some(meta.id), None))
    }
}
