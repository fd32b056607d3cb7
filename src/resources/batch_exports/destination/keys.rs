//! The configuration keys of each service: their types, and which are required or secret.

use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder};

use crate::input::{Choice, Email, Exact, Flag, Integer, ListOf, Name, Nullable, WebUrl, choices};
use crate::resources::shared::prelude::*;

use super::Service;

/// A key of a configuration.
pub(super) struct ConfigKey {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
    /// Whether the value is stored separately and no response shows it.
    pub(super) is_secret: bool,
    /// Validates and converts a value that is not null.
    pub(super) read: fn(&Value) -> Result<Value>,
    /// Returns the schema of the value.
    schema: fn() -> Schema,
}

const fn required<K: FieldType>(name: &'static str) -> ConfigKey
where
    K::Value: Into<Value>,
{
    ConfigKey { name, is_required: true, is_secret: false, read: read::<K>, schema: K::schema }
}

const fn optional<K: FieldType>(name: &'static str) -> ConfigKey
where
    K::Value: Into<Value>,
{
    ConfigKey { is_required: false, schema: Nullable::<K>::property, ..required::<K>(name) }
}

impl ConfigKey {
    const fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    /// Returns the schema of the value. The schema of a secret is write-only.
    fn property(&self) -> Schema {
        let mut schema = (self.schema)();
        if let (true, Schema::Object(value)) = (self.is_secret, &mut schema) {
            value.write_only = Some(true);
        }
        schema
    }
}

fn read<K: FieldType>(value: &Value) -> Result<Value>
where
    K::Value: Into<Value>,
{
    K::read(value).map(Into::into)
}

/// The name of a table, host, bucket or similar.
type Word = Exact<512>;
/// A name that must not be blank.
type Named = Filled<512>;
/// A private key in PEM format.
type Pem = Exact<16_384>;
/// A list of event names.
type Events = ListOf<Filled<400>, 500>;
type Port = Integer<1, 65_535>;

const S3: &[ConfigKey] = &[
    required::<Named>("bucket_name"),
    required::<Named>("region"),
    required::<Word>("prefix"),
    optional::<Word>("aws_access_key_id").secret(),
    optional::<Word>("aws_secret_access_key").secret(),
    optional::<Choice<Compressions>>("compression"),
    optional::<Word>("encryption"),
    optional::<Word>("kms_key_id"),
    optional::<WebUrl<2048>>("endpoint_url"),
    optional::<Choice<FileFormats>>("file_format"),
    optional::<Events>("exclude_events"),
    optional::<Events>("include_events"),
];

const SNOWFLAKE: &[ConfigKey] = &[
    required::<Named>("user").secret(),
    required::<Named>("account"),
    required::<Named>("database"),
    required::<Named>("warehouse"),
    required::<Named>("schema"),
    optional::<Choice<Authentications>>("authentication_type"),
    optional::<Word>("password").secret(),
    optional::<Pem>("private_key").secret(),
    optional::<Word>("private_key_passphrase").secret(),
    optional::<Word>("table_name"),
    optional::<Word>("role"),
];

const POSTGRES: &[ConfigKey] = &[
    required::<Named>("user").secret(),
    required::<Named>("password").secret(),
    required::<Named>("host"),
    required::<Named>("database"),
    optional::<Port>("port"),
    optional::<Word>("schema"),
    optional::<Word>("table_name"),
    optional::<Flag>("has_self_signed_cert"),
];

/// The keys of Redshift besides those of Postgres.
const REDSHIFT: &[ConfigKey] = &[optional::<Choice<PropertyTypes>>("properties_data_type")];

const BIG_QUERY: &[ConfigKey] = &[
    required::<Named>("project_id"),
    required::<Named>("dataset_id"),
    required::<Filled<16_384>>("private_key").secret(),
    required::<Named>("private_key_id").secret(),
    required::<FilledUrl>("token_uri").secret(),
    required::<Email>("client_email").secret(),
    optional::<Word>("table_id"),
    optional::<Flag>("use_json_type"),
];

const HTTP: &[ConfigKey] =
    &[required::<FilledUrl>("url"), required::<Filled<2048>>("token").secret()];

const NO_OP: &[ConfigKey] = &[optional::<Word>("arg")];

/// Returns the keys of a service's configuration, in the order in which they are checked and shown.
pub(super) fn of(service: Service) -> impl Iterator<Item = &'static ConfigKey> {
    let keys = match service {
        Service::S3 => S3,
        Service::Snowflake => SNOWFLAKE,
        Service::Postgres | Service::Redshift => POSTGRES,
        Service::BigQuery => BIG_QUERY,
        Service::Http => HTTP,
        Service::NoOp => NO_OP,
    };
    let more = if service == Service::Redshift { REDSHIFT } else { &[] };
    keys.iter().chain(more)
}

/// Returns the schema of a service's configuration.
pub(super) fn schema(service: Service) -> Schema {
    let config =
        ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
    let config = of(service).fold(config, |config, key| {
        let config = config.property(key.name, key.property());
        if key.is_required { config.required(key.name) } else { config }
    });
    config.into()
}

/// An [`Exact`] text that must not be blank.
struct Filled<const MAX: usize>;

impl<const MAX: usize> FieldType for Filled<MAX> {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Exact::<MAX>::read(value)?;
        require_filled(&text)?;
        Ok(text)
    }

    fn schema() -> Schema {
        Name::<MAX>::schema()
    }
}

/// A [`WebUrl`] that must not be blank.
struct FilledUrl;

impl FieldType for FilledUrl {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let url = WebUrl::<2048>::read(value)?;
        require_filled(&url)?;
        Ok(url)
    }

    fn schema() -> Schema {
        let mut schema = WebUrl::<2048>::schema();
        if let Schema::Object(url) = &mut schema {
            url.min_length = Some(1);
        }
        schema
    }
}

fn require_filled(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid("blank", "This field may not be blank."));
    }
    Ok(())
}

choices! {
    /// S3's `file_format`.
    struct FileFormats: &'static str = ["JSONLines", "Parquet"];
    /// S3's `compression`, for all file formats together.
    struct Compressions: &'static str = ["gzip", "brotli", "zstd", "lz4", "snappy"];
    /// Snowflake's `authentication_type`.
    struct Authentications: &'static str = ["password", "keypair"];
    /// Redshift's `properties_data_type`.
    struct PropertyTypes: &'static str = ["varchar", "super"];
}
