//! The three SAML fields of a domain. SAML can be enforced only if all of them are set.

use crate::error::{Error, Result};
use crate::patch::Patch;

use super::{DomainPatch, Fields};

/// The value of `sso_enforcement` that requires the SAML fields.
pub(super) const PROVIDER: &str = "saml";

/// Returns whether all SAML fields are set.
pub(super) fn is_complete(domain: &Fields) -> bool {
    [&domain.saml_entity_id, &domain.saml_acs_url, &domain.saml_x509_cert]
        .into_iter()
        .all(|field| field.as_deref().is_some_and(|text| !text.is_empty()))
}

/// Fails if the updated domain enforces SAML without all SAML fields. The error names `sso_enforcement` if the patch
/// contains it, or else the cleared field.
pub(super) fn require_enforceable(domain: &Fields, patch: &DomainPatch) -> Result<()> {
    if domain.sso_enforcement != PROVIDER || domain.has_saml {
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
