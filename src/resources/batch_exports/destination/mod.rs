//! The destination of an export: a service and its configuration. Secrets are stored separately.

mod keys;

use std::fmt;

use utoipa::openapi::Ref;
use utoipa::openapi::schema::{Discriminator, ObjectBuilder, OneOfBuilder, Type};

use crate::input::{Choice, Choices, FreeObject, Nested, Required, choices_schema, named_values};
use crate::resources::shared::prelude::*;

named_values! {
    /// A service that exports are sent to.
    #[derive(Serialize)]
    pub enum Service {
        /// Amazon S3 or a compatible service.
        S3 = "S3",
        /// Snowflake.
        Snowflake = "Snowflake",
        /// `PostgreSQL`.
        Postgres = "Postgres",
        /// Amazon Redshift.
        Redshift = "Redshift",
        /// Google `BigQuery`.
        BigQuery = "BigQuery",
        /// Any HTTP endpoint.
        Http = "HTTP",
        /// No service: the data is discarded.
        NoOp = "NoOp",
    }
}

impl Service {
    /// Returns the name of the schema of a destination of this service.
    fn destination(self) -> String {
        format!("{}Destination", self.as_str())
    }
}

impl Choices for Service {
    type Value = Self;
    const ALL: &'static [Self] = &Self::ALL;
}

choices_schema!(Service);

/// The destination of a batch export, without secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Destination)]
pub struct Target {
    /// The service.
    pub r#type: Service,
    /// The configuration without secrets, in PostHog's order of keys.
    #[schema(value_type = Map<String, Value>)]
    pub config: JsonObject,
}

/// A checked destination, with its secrets separated.
#[derive(Clone)]
pub struct Destination {
    /// The part that responses show.
    pub target: Target,
    /// The secret values, which no response shows.
    pub secrets: JsonObject,
}

/// Hides the secrets.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("target", &self.target).finish_non_exhaustive()
    }
}

/// The configuration of a request, which may contain secrets.
#[derive(Clone)]
pub struct SentConfig(JsonObject);

/// Hides all values: without the service it is not known which ones are secret.
impl fmt::Debug for SentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SentConfig(..)")
    }
}

/// An object of any keys, within the limits of free-form values.
pub struct ConfigField;

impl FieldType for ConfigField {
    type Value = SentConfig;

    fn read(value: &Value) -> Result<SentConfig> {
        FreeObject::read(value).map(SentConfig)
    }

    fn schema() -> Schema {
        FreeObject::schema()
    }
}

input! {
    /// The destination of a batch export.
    pub struct DestinationFields {
        /// The service.
        r#type: Required<Choice<Service>>,
        /// The configuration of the service. Its keys depend on the service.
        config: Required<ConfigField>,
    }
}

input! {
    /// The fields of a destination to update.
    pub struct DestinationPatch {
        /// The service. Another service needs a complete new configuration.
        r#type: Choice<Service>,
        /// The keys of the configuration to update. Null removes an optional key.
        config: ConfigField,
    }
}

/// A complete destination.
pub struct WholeDestination;

impl FieldType for WholeDestination {
    type Value = Destination;

    fn read(value: &Value) -> Result<Destination> {
        let DestinationFields { r#type, config } = Nested::<DestinationFields>::read(value)?;
        Destination::of(r#type, config.0)
    }

    /// Returns one schema for each service, named after it, because the keys depend on the service.
    fn schema() -> Schema {
        let of_service = |one_of: OneOfBuilder, service: &Service| {
            let named = ObjectBuilder::new().schema_type(Type::String);
            let one = ObjectBuilder::new()
                .title(Some(service.destination()))
                .description(Some(format!("A destination of type {}.", service.as_str())))
                .property("type", named.enum_values(Some([service.as_str()])))
                .property("config", keys::schema(*service))
                .required("type")
                .required("config");
            one_of.item(one)
        };
        let places = Service::ALL.iter().map(|service| {
            (service.as_str(), Ref::from_schema_name(service.destination()).ref_location)
        });
        Service::ALL
            .iter()
            .fold(OneOfBuilder::new(), of_service)
            .discriminator(Some(Discriminator::with_mapping("type", places)))
            .into()
    }
}

impl DestinationPatch {
    /// Returns whether the patch has no other value than the stored destination.
    pub fn is_within(&self, stored: &Target) -> bool {
        let mut sent = self.config.iter().flat_map(|sent| &sent.0);
        self.r#type.is_none_or(|service| service == stored.r#type)
            && sent.all(|(key, value)| stored.config.get(key) == Some(value))
    }

    /// Merges the patch into a stored destination, key by key. Keys that are left out keep their values, including
    /// secrets. A patch with another service starts from an empty configuration.
    ///
    /// # Errors
    /// 400 if the merged configuration lacks a required key or has an invalid one.
    pub fn merge(&self, stored: &Target, secrets: &JsonObject) -> Result<Destination> {
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
    /// Checks a complete configuration.
    fn of(service: Service, config: JsonObject) -> Result<Self> {
        check(service, config).map_err(|error| error.with_attr_prefix("config"))
    }
}

fn check(service: Service, config: JsonObject) -> Result<Destination> {
    require_known(service, &config)?;
    // A merged configuration may exceed the limits although the request does not.
    let config = FreeObject::read(&Value::Object(config))?;
    let (mut fields, mut secrets) = (JsonObject::new(), JsonObject::new());
    for key in keys::of(service) {
        let value = match config.get(key.name) {
            None if key.is_required => {
                let detail = format!("Configuration missing required field: '{}'", key.name);
                return Err(Error::field(key.name, "invalid_input", detail));
            }
            Some(Value::Null) if key.is_required => {
                return Err(Error::field(key.name, "null", "This field may not be null."));
            }
            None | Some(Value::Null) => continue,
            Some(value) => (key.read)(value).map_err(|error| error.with_attr_prefix(key.name))?,
        };
        let part = if key.is_secret { &mut secrets } else { &mut fields };
        part.insert(key.name.to_owned(), value);
    }
    match service {
        Service::S3 => require_compressible(&fields)?,
        Service::Snowflake => require_credentials(&fields, &secrets)?,
        _ => {}
    }
    Ok(Destination { target: Target { r#type: service, config: fields }, secrets })
}

/// Fails if the configuration has unknown keys. Names only the first few, so that the error does not grow with the
/// request.
fn require_known(service: Service, config: &JsonObject) -> Result<()> {
    const TOLD: usize = 5;
    const LENGTH: usize = 50;
    let is_known = |name: &str| keys::of(service).any(|key| key.name == name);
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

/// Checks that the file format supports the compression. The default format is `JSONLines`.
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

/// Checks that Snowflake's credentials are present. The default authentication is by password.
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
    fn destination_keys_are_unique() {
        for service in Service::ALL {
            let names: Vec<_> = keys::of(service).map(|key| key.name).collect();
            assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{service:?}");
        }
    }

    /// The stored name of a service is the one that requests and responses use.
    #[test]
    fn service_is_stored_by_its_name() {
        for service in Service::ALL {
            assert_eq!(json!(service), Value::from(service));
        }
    }

    proptest! {
        /// Later values replace earlier ones, and no other values change.
        #[test]
        fn merging_config_equals_sending_it_at_once(
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
            let merged = sent.merge(&stored.target, &stored.secrets).unwrap();
            let mut expected = whole;
            expected.extend(config(&json!(later)));
            let at_once = Destination::of(Service::Postgres, expected).unwrap();
            prop_assert_eq!(merged.target, at_once.target);
            prop_assert_eq!(merged.secrets, at_once.secrets);
        }
    }
}
