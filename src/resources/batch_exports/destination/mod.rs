//! Where an export goes: a service and its configuration, of which the secrets are kept apart
//! (facts-crosscutting §e).

mod keys;
mod kinds;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{Discriminator, ObjectBuilder, OneOfBuilder, Type};

use crate::error::{Error, Result};
use crate::input;
use crate::input::{
    Choice, Choices, FreeObject, JsonObject, Kind, Nested, Required, Schema, choices_schema,
};

/// A service that exports go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Service {
    /// Amazon S3, or what speaks like it.
    S3,
    /// Snowflake.
    Snowflake,
    /// `PostgreSQL`.
    Postgres,
    /// Amazon Redshift.
    Redshift,
    /// Google `BigQuery`.
    BigQuery,
    /// Any HTTP endpoint.
    #[serde(rename = "HTTP")]
    Http,
    /// Nothing.
    NoOp,
}

impl Service {
    const fn word(self) -> &'static str {
        match self {
            Self::S3 => "S3",
            Self::Snowflake => "Snowflake",
            Self::Postgres => "Postgres",
            Self::Redshift => "Redshift",
            Self::BigQuery => "BigQuery",
            Self::Http => "HTTP",
            Self::NoOp => "NoOp",
        }
    }

    /// What the schema of a destination of this service is called.
    fn destination(self) -> String {
        format!("{}Destination", self.word())
    }
}

impl From<Service> for Value {
    fn from(service: Service) -> Self {
        service.word().into()
    }
}

impl Choices for Service {
    type Value = Self;
    const ALL: &'static [Self] = &[
        Self::S3,
        Self::Snowflake,
        Self::Postgres,
        Self::Redshift,
        Self::BigQuery,
        Self::Http,
        Self::NoOp,
    ];
}

choices_schema!(Service);

/// A destination as it is shown: no secret is in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Destination)]
pub struct Target {
    /// The service.
    pub r#type: Service,
    /// Its configuration without the secrets, in the order of the facts.
    #[schema(value_type = Map<String, Value>)]
    pub config: JsonObject,
}

/// A destination whose configuration was checked as a whole, its secrets set apart.
#[derive(Clone)]
pub struct Destination {
    /// What is shown of it.
    pub target: Target,
    /// What never is.
    pub secrets: JsonObject,
}

/// Shows nothing of the secrets.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A configuration as it was sent, secrets and all.
#[derive(Clone)]
pub struct SentConfig(JsonObject);

/// Shows nothing: which of it is a secret is not known yet.
impl fmt::Debug for SentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SentConfig(..)")
    }
}

/// Any object within the bounds of what is free-form.
pub struct Config;

impl Kind for Config {
    type Value = SentConfig;

    fn read(value: &Value) -> Result<SentConfig> {
        FreeObject::read(value).map(SentConfig)
    }

    fn schema() -> Schema {
        FreeObject::schema()
    }
}

input! {
    /// Where an export goes.
    pub struct DestinationFields {
        /// The service.
        r#type: Required<Choice<Service>>,
        /// Its configuration, whose keys depend on the service.
        config: Required<Config>,
    }
}

input! {
    /// What may be changed of where an export goes.
    pub struct DestinationPatch {
        /// The service. Another one begins with a new configuration.
        r#type: Choice<Service>,
        /// The keys of its configuration that change; null clears an optional one.
        config: Config,
    }
}

/// A destination that is sent whole.
pub struct WholeDestination;

impl Kind for WholeDestination {
    type Value = Destination;

    fn read(value: &Value) -> Result<Destination> {
        let DestinationFields { r#type, config } = Nested::<DestinationFields>::read(value)?;
        Destination::of(r#type, config.0)
    }

    /// Which keys a configuration has depends on the service: a schema for each, called after it.
    fn schema() -> Schema {
        let of_service = |one_of: OneOfBuilder, service: &Service| {
            let named = ObjectBuilder::new().schema_type(Type::String);
            let one = ObjectBuilder::new()
                .title(Some(service.destination()))
                .description(Some(format!("Where an export goes: {}.", service.word())))
                .property("type", named.enum_values(Some([service.word()])))
                .property("config", keys::schema(*service))
                .required("type")
                .required("config");
            one_of.item(one)
        };
        let places = Service::ALL.iter().map(|service| {
            (service.word(), Ref::from_schema_name(service.destination()).ref_location)
        });
        Service::ALL
            .iter()
            .fold(OneOfBuilder::new(), of_service)
            .discriminator(Some(Discriminator::with_mapping("type", places)))
            .into()
    }
}

impl DestinationPatch {
    /// The destination that this makes of a stored one: key by key, so that what was not sent, secrets above
    /// all, is kept. Another service begins anew.
    ///
    /// # Errors
    /// 400 for what the configuration as a whole lacks or may not have.
    pub fn onto(&self, stored: &Target, secrets: &JsonObject) -> Result<Destination> {
        let service = self.r#type.unwrap_or(stored.r#type);
        let mut config = JsonObject::new();
        if service == stored.r#type {
            config.extend(stored.config.clone());
            config.extend(secrets.clone());
        }
        config.extend(self.config.clone().map(|sent| sent.0).unwrap_or_default());
        Destination::of(service, config)
    }
}

impl Destination {
    /// Checks a configuration as a whole.
    fn of(service: Service, config: JsonObject) -> Result<Self> {
        check(service, config).map_err(|error| error.within("config"))
    }
}

fn check(service: Service, config: JsonObject) -> Result<Destination> {
    let keys = keys::of(service);
    require_known(keys, &config)?;
    // A merged one may be longer than what was sent.
    let config = FreeObject::read(&Value::Object(config))?;
    let (mut shown, mut secrets) = (JsonObject::new(), JsonObject::new());
    for key in keys {
        let value = match config.get(key.name) {
            None if key.is_required => {
                let detail = format!("Configuration missing required field: '{}'", key.name);
                return Err(Error::field(key.name, "invalid_input", detail));
            }
            Some(Value::Null) if key.is_required => {
                return Err(Error::field(key.name, "null", "This field may not be null."));
            }
            None | Some(Value::Null) => continue,
            Some(value) => (key.read)(value).map_err(|error| error.within(key.name))?,
        };
        let part = if key.is_secret { &mut secrets } else { &mut shown };
        part.insert(key.name.to_owned(), value);
    }
    match service {
        Service::S3 => require_compressible(&shown)?,
        Service::Snowflake => require_credentials(&shown, &secrets)?,
        _ => {}
    }
    Ok(Destination { target: Target { r#type: service, config: shown }, secrets })
}

/// Names only the first few: an answer should not grow with what was sent.
fn require_known(keys: &[keys::Key], config: &JsonObject) -> Result<()> {
    const TOLD: usize = 5;
    const LENGTH: usize = 50;
    let is_known = |name: &str| keys.iter().any(|key| key.name == name);
    let unknown: Vec<_> = config
        .keys()
        .filter(|name| !is_known(name))
        .take(TOLD)
        .map(|name| format!("'{}'", name.chars().take(LENGTH).collect::<String>()))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let detail = format!("Configuration has unknown fields {}", unknown.join(", "));
    Err(Error::invalid("invalid_input", detail))
}

/// Which compression goes with which format of files; lines of JSON where none is named.
fn require_compressible(config: &JsonObject) -> Result<()> {
    let text = |name: &str| config.get(name).and_then(Value::as_str);
    let format = text("file_format").unwrap_or("JSONLines");
    let allowed: &[&str] = match format {
        "Parquet" => &["zstd", "lz4", "snappy", "gzip", "brotli"],
        _ => &["gzip", "brotli"],
    };
    match text("compression").filter(|sent| !allowed.contains(sent)) {
        Some(sent) => {
            let detail = format!("Compression {sent} is not supported for file format {format}");
            Err(Error::field("compression", "invalid_input", detail))
        }
        None => Ok(()),
    }
}

/// By password where nothing else is said.
fn require_credentials(config: &JsonObject, secrets: &JsonObject) -> Result<()> {
    let has = |name: &str| {
        secrets.get(name).and_then(Value::as_str).is_some_and(|secret| !secret.is_empty())
    };
    let by_key = config.get("authentication_type").and_then(Value::as_str) == Some("keypair");
    let (field, detail) = if by_key {
        ("private_key", "Private key is required if authentication type is key pair")
    } else {
        ("password", "Password is required if authentication type is password")
    };
    if has(field) { Ok(()) } else { Err(Error::field(field, "invalid_input", detail)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn config(config: &Value) -> JsonObject {
        config.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn every_key_is_named_once() {
        for service in Service::ALL {
            let names: Vec<_> = keys::of(*service).iter().map(|key| key.name).collect();
            assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{service:?}");
        }
    }

    /// The name that is stored, and the one that is sent and shown, are the same.
    #[test]
    fn a_service_is_stored_under_its_name() {
        for service in Service::ALL {
            assert_eq!(json!(service), Value::from(*service));
        }
    }

    proptest! {
        /// Whatever is sent first and whatever later: the later values hold, and no other.
        #[test]
        fn merging_is_as_sending_all_at_once(
            first in "[a-z]{1,4}", secret in "[a-z]{1,4}",
            later in proptest::collection::btree_map(
                prop::sample::select(vec!["user", "password", "host", "database", "schema", "table_name"]), "[a-z]{1,4}", 0..6,
            ),
        ) {
            let whole = config(&json!({
                "user": secret, "password": secret, "host": first, "database": first, "schema": first,
            }));
            let stored = Destination::of(Service::Postgres, whole.clone()).unwrap();
            let sent = DestinationPatch { r#type: None, config: Some(SentConfig(config(&json!(later)))) };
            let merged = sent.onto(&stored.target, &stored.secrets).unwrap();
            let mut expected = whole;
            expected.extend(config(&json!(later)));
            let at_once = Destination::of(Service::Postgres, expected).unwrap();
            prop_assert_eq!(merged.target, at_once.target);
            prop_assert_eq!(merged.secrets, at_once.secrets);
        }
    }
}
