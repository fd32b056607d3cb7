//! Domains of an organization, and the proof that they are its own (API document, Domain; facts-org §2).

mod certificate;
pub mod http;
mod input;
mod saml;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{DomainId, OrganizationId};
use crate::input::Parsed;
use crate::json::Items;
use crate::resources::organizations::Organization;
use crate::secret::Draw;
use crate::store::{
    Count, Index, Indexed, Key, Owner, Record, Reference, Row, Table, Tx, Window, WriteTx,
};
use crate::time::Timestamp;

pub use input::{DomainFields, DomainPatch, DomainVerification, NewDomain};

/// A domain of an organization.
#[derive(Debug, Clone, PartialEq)]
pub struct Domain {
    /// The organization, and the domain's id.
    pub key: (OrganizationId, DomainId),
    /// Its fields.
    pub shown: Shown,
}

/// A domain of an organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Domain)]
pub struct Shown {
    /// Its id.
    pub id: DomainId,
    /// Its name: `corp.example`.
    pub domain: String,
    /// Whether it was proven to be the organization's.
    pub is_verified: bool,
    /// When it was.
    pub verified_at: Option<Timestamp>,
    /// What its TXT record has to say to prove it. Public by its nature.
    pub verification_challenge: String,
    /// Whether whoever signs on with an address under it becomes a member.
    pub jit_provisioning_enabled: bool,
    /// How users with an address under it have to sign on; empty for any way.
    #[schema(value_type = input::Providers)]
    pub sso_enforcement: String,
    /// Whether all that SAML needs is there.
    pub has_saml: bool,
    /// What the identity provider calls itself.
    pub saml_entity_id: Option<String>,
    /// Where the identity provider is.
    pub saml_acs_url: Option<String>,
    /// The certificate that the identity provider signs with.
    pub saml_x509_cert: Option<String>,
}

/// By name, over all organizations.
pub const BY_NAME: Index<Domain, String> =
    Index::unique(Table::DomainsByName, |domain| Some(domain.shown.domain.clone()));
/// The domains of an organization, by name.
pub const OF_ORGANIZATION: Index<Domain, (OrganizationId, String)> =
    Index::many(Table::DomainsOfOrganization, |domain| {
        Some((domain.key.0, domain.shown.domain.clone()))
    });

impl Record for Domain {
    const TABLE: Table = Table::Domains;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_NAME, &OF_ORGANIZATION];
    const COUNTS: &'static [Count<Self>] = &[Count::per(|domain| Some(domain.key.0.encoded()))];
    type Key = (OrganizationId, DomainId);
    type Head = (OrganizationId, DomainId);
    type Shown = Shown;

    fn key(&self) -> Self::Key {
        self.key
    }

    fn parts(&self) -> (&Self::Head, &Shown) {
        (&self.key, &self.shown)
    }

    fn join(key: Self::Head, shown: Shown) -> Self {
        Self { key, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.key.0.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Organization>(&self.key.0)]
    }
}

/// Adds a domain to an organization, unverified.
///
/// # Errors
/// 400 for a field; what is wrong with the name goes first, and that it is taken before what it looks like.
pub fn create(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    new: &NewDomain,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<DomainId> {
    if let Some(name) = new.name() {
        require_free(tx, name)?;
        input::require_domain(name)?;
    }
    let new = new.get()?.clone();
    let id = DomainId(draw.uuid(now));
    let mut shown = Shown {
        id,
        domain: String::new(),
        is_verified: false,
        verified_at: None,
        verification_challenge: URL_SAFE_NO_PAD.encode(draw.bytes()),
        jit_provisioning_enabled: false,
        sso_enforcement: String::new(),
        has_saml: false,
        saml_entity_id: None,
        saml_acs_url: None,
        saml_x509_cert: None,
    };
    input::fill(new, &mut shown);
    tx.put(&Domain { key: (organization, id), shown })?;
    Ok(id)
}

/// A name is free again the moment its organization is removed, although the sweeper may have yet to come to
/// the record that holds it; that is then removed here.
fn require_free(tx: &mut WriteTx<'_>, name: &str) -> Result<()> {
    let Some(holder) = tx.lookup(&BY_NAME, &name.to_owned())? else { return Ok(()) };
    if tx.exists::<Organization>(&holder.0)? {
        let detail = "domain with this domain already exists.";
        return Err(Error::field("domain", "unique", detail));
    }
    tx.remove::<Domain>(&holder).map(drop)
}

/// Changes a domain: everything but its name.
///
/// # Errors
/// 404 for no such domain; 400 for a field, for one that only verified domains have, and for enforcing SAML
/// without all that it needs.
pub fn update(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    id: DomainId,
    patch: &Parsed<DomainPatch>,
) -> Result<()> {
    let mut domain: Domain = tx.get(&(organization, id))?;
    let patch = patch.get()?;
    input::require_verified(&domain.shown, patch)?;
    input::apply(patch.clone(), &mut domain.shown);
    saml::require_enforceable(&domain.shown, patch)?;
    tx.put(&domain)
}

/// Removes a domain. Its name is free at once.
///
/// # Errors
/// 404 for no such domain.
pub fn remove(tx: &mut WriteTx<'_>, organization: OrganizationId, id: DomainId) -> Result<()> {
    tx.remove::<Domain>(&(organization, id))?.map(drop).ok_or_else(Error::not_found)
}

/// What has to be found in the DNS before a domain is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    domain: String,
    value: String,
}

impl Challenge {
    /// Where the record has to be: an absolute name.
    pub fn name(&self, prefix: &str) -> String {
        format!("{prefix}.{}.", self.domain)
    }

    /// Whether these are the records of a domain that is proven to be the organization's: the first string of
    /// one of them is the challenge (facts-org §2.3). The challenge is no secret, so nothing is told by how
    /// long this takes.
    pub fn is_met_by(&self, records: &[Vec<Vec<u8>>]) -> bool {
        let value = self.value.as_bytes();
        records.iter().any(|strings| strings.first().is_some_and(|first| first == value))
    }
}

/// What is still to be found for a domain.
///
/// # Errors
/// 404 for no such domain; 400 for one that is verified.
pub fn challenge(tx: &impl Tx, organization: OrganizationId, id: DomainId) -> Result<Challenge> {
    let Shown { domain, verification_challenge: value, is_verified, .. } =
        tx.get::<Domain>(&(organization, id))?.shown;
    if is_verified {
        let detail = "This domain has already been verified.";
        return Err(Error::invalid("already_verified", detail));
    }
    Ok(Challenge { domain, value })
}

/// Marks a domain verified whose [`Challenge`] was met. Neither its name nor its challenge ever changes, so
/// what was found before still holds; one that was verified meanwhile stays as it is.
///
/// # Errors
/// 404 when the domain was removed meanwhile.
pub fn verify(
    tx: &mut WriteTx<'_>,
    organization: OrganizationId,
    id: DomainId,
    now: Timestamp,
) -> Result<()> {
    let mut domain: Domain = tx.get(&(organization, id))?;
    if domain.shown.is_verified {
        return Ok(());
    }
    domain.shown.is_verified = true;
    domain.shown.verified_at = Some(now);
    tx.put(&domain)
}

/// The organization that proved that an address is under its domain: the address's own, or the nearest one above.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn holder_of(tx: &impl Tx, email: &str) -> Result<Option<OrganizationId>> {
    let mut name = email.rsplit_once('@').map(|(_, domain)| domain.to_lowercase());
    while let Some(domain) = name {
        if let Some(key) = tx.lookup(&BY_NAME, &domain)?
            && tx.exists::<Organization>(&key.0)?
            && tx.get::<Domain>(&key)?.shown.is_verified
        {
            return Ok(Some(key.0));
        }
        name = domain.split_once('.').map(|(_, above)| above.to_owned());
    }
    Ok(None)
}

/// The domains of an organization: how many there are in all, and those in `window` as the items of a JSON
/// array.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list(tx: &impl Tx, organization: OrganizationId, window: Window) -> Result<(u64, Vec<u8>)> {
    let count = tx.count::<Domain>(&organization)?;
    let mut items = Items::default();
    if window.begins_within(count) {
        tx.walk(&OF_ORGANIZATION, &organization, window, |row| {
            items.push(|out| {
                out.extend_from_slice(row.shown);
                Ok(())
            })
        })?;
    }
    Ok((count, items.into_bytes()))
}

/// The Domain of the API document.
///
/// # Errors
/// 404 for no such domain.
pub fn body(tx: &impl Tx, organization: OrganizationId, id: DomainId) -> Result<Versioned> {
    let shown = tx.view(&(organization, id), |row: Row<'_, Domain>| {
        Ok(Versioned::new(row.version, row.shown.to_vec()))
    })?;
    shown.ok_or_else(Error::not_found)
}
