//! What is sent to add or change a domain (facts-org §2).

use std::marker::PhantomData;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::error::{Error, Result};
use crate::input;
use crate::input::{
    Choice, Choices, Field, Flag, JsonObject, Kind, Name, Nullable, Parsed, Required, Schema, Text,
    Untyped, WebUrl, choices_schema,
};
use crate::patch::set;

use super::certificate::Certificate;
use super::{Shown, saml};

/// What `sso_enforcement` takes (decisions §4, Domain).
pub struct Providers;

impl Choices for Providers {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["", "google-oauth2", "github", "gitlab", saml::PROVIDER];
}

choices_schema!(Providers);

/// A field that may hold anything and is not looked at: no more than its type is told.
pub struct Ignored<K>(PhantomData<K>);

impl<K: Field> Field for Ignored<K> {
    type Out = ();

    fn take(_: &str, _: Option<&Value>) -> Result<()> {
        Ok(())
    }

    fn property() -> Schema {
        match K::property() {
            Schema::Object(told) => ObjectBuilder::new().schema_type(told.schema_type).into(),
            other => other,
        }
    }
}

/// A domain's name. Only its length is looked at here; how it is written, by [`require_domain`].
pub struct DomainName;

impl Kind for DomainName {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        Name::<128>::read(value)
    }

    fn schema() -> Schema {
        let name = ObjectBuilder::new().schema_type(Type::String).max_length(Some(128));
        name.pattern(Some(WRITTEN)).into()
    }
}

input! {
    /// A domain to add.
    pub struct DomainFields {
        /// Its name, in lower case: `corp.example`. No other organization's.
        domain: Required<DomainName>,
        /// Without effect before the domain is verified.
        jit_provisioning_enabled: Ignored<Flag>,
        /// Without effect before the domain is verified.
        sso_enforcement: Ignored<Choice<Providers>>,
        /// What the identity provider calls itself.
        saml_entity_id: Nullable<Text<512>>,
        /// Where the identity provider is.
        saml_acs_url: Nullable<WebUrl<512>>,
        /// The certificate that the identity provider signs with: as PEM, or bare base64.
        saml_x509_cert: Nullable<Certificate>,
    }
}

input! {
    /// What may be changed of a domain.
    pub struct DomainPatch {
        /// Without effect: a domain keeps its name.
        domain: Ignored<DomainName>,
        /// Whether whoever signs on with an address under it is to become a member; kept for those who sign users
        /// on. Once it is verified.
        jit_provisioning_enabled: Flag,
        /// How users with an address under it are to sign on, empty for any way; kept for those who sign users on.
        /// Once it is verified.
        sso_enforcement: Choice<Providers>,
        /// What the identity provider calls itself.
        saml_entity_id: Nullable<Text<512>>,
        /// Where the identity provider is.
        saml_acs_url: Nullable<WebUrl<512>>,
        /// The certificate that the identity provider signs with: as PEM, or bare base64.
        saml_x509_cert: Nullable<Certificate>,
    }
}

input! {
    /// What a verification takes, and then leaves alone (decisions §4).
    pub struct DomainVerification {
        /// Without effect.
        domain: Untyped,
        /// Without effect.
        jit_provisioning_enabled: Untyped,
        /// Without effect.
        sso_enforcement: Untyped,
        /// Without effect.
        saml_entity_id: Untyped,
        /// Without effect.
        saml_acs_url: Untyped,
        /// Without effect.
        saml_x509_cert: Untyped,
    }
}

/// A domain to add, parsed, and its name by itself, which is looked at before the other fields even where one
/// of those is bad.
#[derive(Debug, Clone)]
pub struct NewDomain {
    name: Option<String>,
    fields: Parsed<DomainFields>,
}

impl NewDomain {
    /// Parses `body` and keeps the outcome.
    #[must_use]
    pub fn of(body: &JsonObject) -> Self {
        let name = <Required<DomainName> as Field>::take("domain", body.get("domain"));
        Self { name: name.ok(), fields: Parsed::of(body) }
    }

    /// The name, where its type and its length are right.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The input.
    ///
    /// # Errors
    /// 400 for the first bad field.
    pub(super) fn get(&self) -> Result<&DomainFields> {
        self.fields.get()
    }
}

static DOMAIN: LazyLock<Result<Regex, regex::Error>> = LazyLock::new(|| Regex::new(WRITTEN));

/// How a domain's name is written.
const WRITTEN: &str = r"^([a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,}$";

/// Nothing is folded: a name in upper case is refused, and so is one in Punycode.
pub(super) fn require_domain(name: &str) -> Result<()> {
    if DOMAIN.as_ref().map_err(Error::internal)?.is_match(name) {
        return Ok(());
    }
    let detail = "Please enter a valid domain or subdomain name.";
    Err(Error::field("domain", "invalid_input", detail))
}

/// Who signs on by a domain's rules is settled only once it is proven whose it is, so before that these
/// fields are refused whatever they say.
pub(super) fn require_verified(domain: &Shown, patch: &DomainPatch) -> Result<()> {
    let gated = [
        ("jit_provisioning_enabled", patch.jit_provisioning_enabled.is_some()),
        ("sso_enforcement", patch.sso_enforcement.is_some()),
    ];
    match gated.into_iter().find(|(_, sent)| *sent && !domain.is_verified) {
        Some((field, _)) => {
            let detail = "This attribute cannot be updated until the domain is verified.";
            Err(Error::field(field, "verification_required", detail))
        }
        None => Ok(()),
    }
}

/// Writes what was sent into a new domain.
pub(super) fn fill(new: DomainFields, domain: &mut Shown) {
    let DomainFields {
        domain: name,
        jit_provisioning_enabled: (),
        sso_enforcement: (),
        saml_entity_id,
        saml_acs_url,
        saml_x509_cert,
    } = new;
    domain.domain = name;
    saml::apply([saml_entity_id, saml_acs_url, saml_x509_cert], domain);
}

/// Writes what was sent into a domain.
pub(super) fn apply(patch: DomainPatch, domain: &mut Shown) {
    let DomainPatch {
        domain: (),
        jit_provisioning_enabled,
        sso_enforcement,
        saml_entity_id,
        saml_acs_url,
        saml_x509_cert,
    } = patch;
    set(&mut domain.jit_provisioning_enabled, jit_provisioning_enabled);
    set(&mut domain.sso_enforcement, sso_enforcement.map(str::to_owned));
    saml::apply([saml_entity_id, saml_acs_url, saml_x509_cert], domain);
}
