//! What the API reads of domains, and what domains declare about their records.

use std::marker::PhantomData;

use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::input::{Choice, Flag, Name, Nullable, Required, Text, WebUrl, choices};
use crate::resources::shared::loggable::public_text;
use crate::resources::shared::prelude::*;

use super::certificate::Certificate;
use super::{Domain, Fields, SAML};

choices! {
    /// The values of `sso_enforcement`.
    pub struct Providers: &'static str = ["", "google-oauth2", "github", "gitlab", SAML];
}

/// A field that accepts any value and ignores it. The schema shows only the type.
pub struct IgnoredField<K>(PhantomData<K>);

impl<K: Field> Field for IgnoredField<K> {
    type Output = ();

    fn parse(_: &str, _: Option<&Value>) -> Result<()> {
        Ok(())
    }

    fn property() -> Schema {
        match K::property() {
            Schema::Object(object) => ObjectBuilder::new().schema_type(object.schema_type).into(),
            other => other,
        }
    }
}

/// The name of a domain. Checks only its length; [`require_domain`] checks its format.
pub struct DomainName;

impl FieldType for DomainName {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        Name::<128>::read(value)
    }

    fn schema() -> Schema {
        let name = ObjectBuilder::new().schema_type(Type::String).max_length(Some(128));
        name.pattern(Some(DOMAIN_PATTERN)).into()
    }
}

input! {
    /// The domain to create.
    pub struct DomainFields {
        /// The name of the domain in lower case: `corp.example`. No other organization may have the same domain.
        domain: Required<DomainName> => _,
        /// Ignored, because a new domain is not verified.
        jit_provisioning_enabled: IgnoredField<Flag> => _,
        /// Ignored, because a new domain is not verified.
        sso_enforcement: IgnoredField<Choice<Providers>> => _,
        /// The entity id of the identity provider.
        saml_entity_id: Nullable<Text<512>> => domain,
        /// The URL of the identity provider.
        saml_acs_url: Nullable<WebUrl<512>> => domain,
        /// The signing certificate of the identity provider, as PEM or as its base64.
        saml_x509_cert: Nullable<Certificate> => domain,
    }
    fn apply_to(domain: &mut Fields);
}

input! {
    /// The fields of a domain to update.
    pub struct DomainPatch {
        /// Ignored: the name of a domain cannot change.
        domain: IgnoredField<DomainName> => _,
        /// Whether users that sign in with an address in the domain become members. Stored for the service that signs
        /// users in. Only for a verified domain.
        jit_provisioning_enabled: Flag => domain,
        /// How users with an address in the domain must sign in; empty for any way. Stored for the service that signs
        /// users in. Only for a verified domain.
        sso_enforcement: Choice<Providers> => domain,
        /// The entity id of the identity provider.
        saml_entity_id: Nullable<Text<512>> => domain,
        /// The URL of the identity provider.
        saml_acs_url: Nullable<WebUrl<512>> => domain,
        /// The signing certificate of the identity provider, as PEM or as its base64.
        saml_x509_cert: Nullable<Certificate> => domain,
    }
    fn apply_to(domain: &mut Fields);
}

input! {
    /// The body of a verification. All fields are ignored.
    pub struct DomainVerification {}
    ignored: [
        domain, jit_provisioning_enabled, sso_enforcement, saml_entity_id, saml_acs_url, saml_x509_cert,
    ]
}

/// A domain to create, parsed. The name is parsed separately, because its errors precede those of the other fields.
#[derive(Debug, Clone)]
pub struct NewDomain {
    /// The name, if its type and length are valid.
    pub(super) name: Option<String>,
    pub(super) fields: Parsed<DomainFields>,
}

impl NewDomain {
    /// Parses `body` and keeps the result.
    pub fn of(body: &JsonObject) -> Self {
        let name = <Required<DomainName> as Field>::parse("domain", body.get("domain"));
        Self { name: name.ok(), fields: Parsed::new(body) }
    }
}

/// The format of a domain name.
const DOMAIN_PATTERN: &str = r"^([a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,}$";

/// Whether `name` matches [`DOMAIN_PATTERN`].
fn is_domain(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let Some((labels, last)) = name.rsplit_once('.') else { return false };
    last.len() >= 2
        && last.bytes().all(|b| b.is_ascii_lowercase())
        && labels.split('.').all(|label| label.split('-').all(is_part))
}

/// Checks the format of a domain name. Names in upper case or Punycode fail, as in PostHog.
pub(super) fn require_domain(name: &str) -> Result<()> {
    if is_domain(name) {
        return Ok(());
    }
    let detail = "Please enter a valid domain or subdomain name.";
    Err(Error::field("domain", "invalid_input", detail))
}

/// Fails if the patch changes sign-in rules and the domain is not verified, because its ownership is not yet proven.
pub(super) fn require_verified(domain: &Fields, patch: &DomainPatch) -> Result<()> {
    let DomainPatch { jit_provisioning_enabled: provisions, sso_enforcement: enforces, .. } = patch;
    let field = if provisions.is_some_and(|sent| sent != domain.jit_provisioning_enabled) {
        "jit_provisioning_enabled"
    } else if enforces.is_some_and(|sent| sent != domain.sso_enforcement) {
        "sso_enforcement"
    } else {
        return Ok(());
    };
    if domain.is_verified {
        return Ok(());
    }
    let detail = "This attribute cannot be updated until the domain is verified.";
    Err(Error::field(field, "verification_required", detail))
}

/// The records of domains.
pub const RECORDS: &[&dyn RegisteredRecord] =
    &[&record::<Domain>().logged().deleted_with_organization()];

impl Loggable for Domain {
    const SCOPE: &'static str = "OrganizationDomain";

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.1, Some(meta.0), None))
    }

    fn name(row: &Row<'_, Self>) -> Result<Option<String>> {
        public_text(row, "domain")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    proptest! {
        #[test]
        fn is_domain_agrees_with_the_documented_pattern(
            name in prop_oneof!["[ab0-9A.-]{0,8}", "[a-z0-9-]{1,4}[.][a-z0-9]{1,3}\n?", "([a-z0-9]+(-[a-z0-9]+)*[.])+[a-z]{2,4}", ".{0,6}"],
        ) {
            let pattern = Regex::new(DOMAIN_PATTERN).expect("a pattern");
            prop_assert_eq!(is_domain(&name), pattern.is_match(&name), "{:?}", name);
        }
    }
}
