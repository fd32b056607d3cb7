//! Domains of an organization and their verification. See `docs/spec/domains.md`.

mod api;
mod certificate;
mod challenge;
pub mod http;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::ids::DomainId;
use crate::resources::organizations::Organization;
use crate::resources::shared::prelude::*;
use crate::resources::shared::reading::walk_page;

pub use api::{DomainFields, DomainPatch, DomainVerification, NewDomain, RECORDS};

/// The organization and the id of a domain.
pub type DomainKey = (OrganizationId, DomainId);

/// A domain of an organization.
pub type Domain = RecordOf<DomainKey, Fields>;

/// A domain of an organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Domain)]
pub struct Fields {
    /// The id of the domain.
    pub id: DomainId,
    /// The name of the domain: `corp.example`.
    pub domain: String,
    /// Whether the organization proved that it owns the domain.
    pub is_verified: bool,
    /// When the domain was verified.
    pub verified_at: Option<Timestamp>,
    /// The text that the domain's TXT record must contain for verification. Not a secret.
    pub verification_challenge: String,
    /// Whether users that sign in with an address in the domain become members.
    pub jit_provisioning_enabled: bool,
    /// How users with an address in the domain must sign in; empty for any way.
    #[schema(value_type = api::Providers)]
    pub sso_enforcement: String,
    /// Whether all SAML fields are set.
    pub has_saml: bool,
    /// The entity id of the identity provider.
    pub saml_entity_id: Option<String>,
    /// The URL of the identity provider.
    pub saml_acs_url: Option<String>,
    /// The signing certificate of the identity provider.
    pub saml_x509_cert: Option<String>,
}

/// The domain with a name. Names are unique over all organizations.
pub const BY_NAME: Index<Domain, String> =
    Index::unique(Table::DomainsByName, |domain| Some(domain.fields.domain.clone()));
/// The domains of an organization, by name.
pub const OF_ORGANIZATION: Index<Domain, (OrganizationId, String)> =
    Index::many(Table::DomainsOfOrganization, |domain| {
        Some((domain.meta.0, domain.fields.domain.clone()))
    });

impl_record!(Domain {
    table: Domains,
    key: |domain| -> DomainKey { domain.meta },
    parts: meta: DomainKey, fields: Fields,
    indexes: [&BY_NAME, &OF_ORGANIZATION],
    counts: [|domain| Some(domain.meta.0.encoded())],
    owner: |domain, _| Ok(Some(domain.meta.0.owner())),
    references: |domain| [Reference::to::<Organization>(&domain.meta.0)],
});

/// Creates an unverified domain in an organization.
///
/// # Errors
/// 400 for an invalid field. Errors of the name come first: in use, then malformed.
pub fn create(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    new: &NewDomain,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<DomainId> {
    if let Some(name) = &new.name {
        require_free(tx, name)?;
        api::require_domain(name)?;
    }
    let new = new.fields.get()?.clone();
    let id = DomainId(rng.uuid(now));
    let mut fields = Fields {
        id,
        domain: new.domain.clone(),
        is_verified: false,
        verified_at: None,
        verification_challenge: URL_SAFE_NO_PAD.encode(rng.bytes()),
        jit_provisioning_enabled: false,
        sso_enforcement: String::new(),
        has_saml: false,
        saml_entity_id: None,
        saml_acs_url: None,
        saml_x509_cert: None,
    };
    new.apply_to(&mut fields);
    fields.has_saml = has_all_saml_fields(&fields);
    tx.log_about::<Domain>(&(organization, id));
    tx.put(&Domain { meta: (organization, id), fields })?;
    Ok(id)
}

/// Fails if a domain with this name exists. Deleting an organization frees its names at once, although its records are
/// deleted later; in that case, this function deletes the old record.
fn require_free(tx: &mut WriteTx<'_>, name: &str) -> Result<()> {
    let Some(holder) = tx.lookup(&BY_NAME, &name.to_owned())? else { return Ok(()) };
    if tx.exists::<Organization>(&holder.0)? {
        let detail = "domain with this domain already exists.";
        return Err(Error::field("domain", "unique", detail));
    }
    tx.remove::<Domain>(&holder).map(drop)
}

/// Updates a domain. Its name cannot change.
///
/// # Errors
/// 404 if the domain does not exist. 400 for an invalid field, for a field that only a verified domain may have, and
/// for enforcing SAML without the SAML fields.
pub fn update(tx: &mut WriteTx<'_>, key: DomainKey, patch: &Parsed<DomainPatch>) -> Result<()> {
    let mut domain: Domain = tx.get(&key)?;
    let patch = patch.get()?;
    api::require_verified(&domain.fields, patch)?;
    patch.clone().apply_to(&mut domain.fields);
    domain.fields.has_saml = has_all_saml_fields(&domain.fields);
    require_saml_fields(&domain.fields, patch)?;
    tx.put(&domain)
}

/// Deletes a domain. Its name is free at once.
///
/// # Errors
/// 404 if the domain does not exist.
pub fn delete(tx: &mut WriteTx<'_>, key: DomainKey) -> Result<()> {
    tx.remove::<Domain>(&key)?.map(drop).ok_or_else(Error::not_found)
}

/// Marks a domain as verified, after a TXT record met its challenge. The name and the challenge never
/// change, so an earlier DNS lookup remains valid. A verified domain stays unchanged.
///
/// # Errors
/// 404 if the domain was deleted in the meantime.
pub fn verify(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    id: DomainId,
    now: Timestamp,
) -> Result<()> {
    let mut domain: Domain = tx.get(&(organization, id))?;
    if domain.fields.is_verified {
        return Ok(());
    }
    domain.fields.is_verified = true;
    domain.fields.verified_at = Some(now);
    tx.put(&domain)
}

/// Returns the organization that verified the domain of an address, or the nearest parent domain.
pub fn owner_of(tx: &dyn Raw, email: &str) -> Result<Option<OrganizationId>> {
    Ok(find_verified(tx, email)?.map(|domain| domain.meta.0))
}

/// Whether an organization demands single sign-on of an address: by the domain that it verified, or the nearest parent
/// domain.
pub fn enforces_sso(tx: &dyn Raw, email: &str) -> Result<bool> {
    Ok(find_verified(tx, email)?.is_some_and(|domain| !domain.fields.sso_enforcement.is_empty()))
}

fn find_verified(tx: &dyn Raw, email: &str) -> Result<Option<Domain>> {
    let mut name = email.rsplit_once('@').map(|(_, domain)| domain.to_lowercase());
    while let Some(domain) = name {
        if let Some(key) = tx.lookup(&BY_NAME, &domain)?
            && tx.exists::<Organization>(&key.0)?
            && let Some(domain) =
                tx.find::<Domain>(&key)?.filter(|domain| domain.fields.is_verified)
        {
            return Ok(Some(domain));
        }
        name = domain.split_once('.').map(|(_, above)| above.to_owned());
    }
    Ok(None)
}

/// Lists the domains of an organization by name. Returns the total and the items in `window` as the items of a JSON
/// array.
pub fn list(tx: &dyn Raw, organization: OrganizationId, window: Window) -> Result<(u64, Vec<u8>)> {
    let mut items = JsonItems::default();
    let push = |row: Row<'_, Domain>| items.push(row.json());
    let count = walk_page(tx, &OF_ORGANIZATION, &organization, window, push)?;
    Ok((count, items.into_bytes()))
}

/// Returns the JSON of a domain.
///
/// # Errors
/// 404 if the domain does not exist.
pub fn body(tx: &dyn Raw, key: DomainKey) -> Result<Versioned> {
    let fields =
        tx.view(&key, |row: Row<'_, Domain>| Ok(Versioned::new(row.version, row.fields.to_vec())))?;
    fields.ok_or_else(Error::not_found)
}

/// The value of `sso_enforcement` that requires the SAML fields.
const SAML: &str = "saml";

/// Returns whether all SAML fields are set.
fn has_all_saml_fields(domain: &Fields) -> bool {
    [&domain.saml_entity_id, &domain.saml_acs_url, &domain.saml_x509_cert]
        .into_iter()
        .all(|field| field.as_deref().is_some_and(|text| !text.is_empty()))
}

/// Fails if the updated domain enforces SAML without all SAML fields. The error names `sso_enforcement` if the patch
/// contains it, or else the cleared field.
fn require_saml_fields(domain: &Fields, patch: &DomainPatch) -> Result<()> {
    if domain.sso_enforcement != SAML || domain.has_saml {
        return Ok(());
    }
    if patch.sso_enforcement.is_some() {
        let detail =
            "SAML can be enforced only with saml_entity_id, saml_acs_url and saml_x509_cert set.";
        return Err(Error::field("sso_enforcement", "invalid_input", detail));
    }
    let clears = |sent: &Patch<String>| match sent {
        Patch::Absent => false,
        Patch::Null => true,
        Patch::Value(text) => text.is_empty(),
    };
    let cleared = [
        ("saml_entity_id", clears(&patch.saml_entity_id)),
        ("saml_acs_url", clears(&patch.saml_acs_url)),
        ("saml_x509_cert", clears(&patch.saml_x509_cert)),
    ];
    match cleared.into_iter().find(|(_, cleared)| *cleared) {
        Some((field, _)) => {
            let detail = "This attribute cannot be cleared while SAML is enforced.";
            Err(Error::field(field, "invalid_input", detail))
        }
        None => Ok(()),
    }
}
