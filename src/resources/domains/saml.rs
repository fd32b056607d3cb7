//! The three fields of SAML, all of which it takes to enforce it (decisions §4, Domain).

use crate::error::{Error, Result};
use crate::patch::Patch;

use super::{DomainPatch, Shown};

/// The `sso_enforcement` that needs more than itself.
pub(super) const PROVIDER: &str = "saml";

/// Writes what was sent of the three fields, in the document's order, into a domain.
pub(super) fn apply(sent: [Patch<String>; 3], domain: &mut Shown) {
    let [entity_id, acs_url, x509_cert] = sent;
    entity_id.apply(&mut domain.saml_entity_id);
    acs_url.apply(&mut domain.saml_acs_url);
    x509_cert.apply(&mut domain.saml_x509_cert);
    domain.has_saml = is_complete(domain);
}

/// Whether all that SAML needs is there.
fn is_complete(domain: &Shown) -> bool {
    [&domain.saml_entity_id, &domain.saml_acs_url, &domain.saml_x509_cert]
        .into_iter()
        .all(|field| field.as_deref().is_some_and(|text| !text.is_empty()))
}

/// What a PATCH has made of a domain must not enforce SAML without all that it needs. At fault is
/// `sso_enforcement` where that was sent, and otherwise the field that was cleared.
pub(super) fn require_enforceable(domain: &Shown, patch: &DomainPatch) -> Result<()> {
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
