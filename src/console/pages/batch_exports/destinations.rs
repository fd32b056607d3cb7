//! The destinations of exports: their names, the order of their fields, and their forms.

use crate::console::form::{FormSpec, Input};

/// The operation whose body has a schema for each destination.
pub(super) const CREATE: &str = "projects_batch_exports_create";

/// A service that exports are sent to.
pub(super) struct Destination {
    /// The name in the API.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// The service in a sentence, with what it needs.
    pub(super) about: &'static str,
    pub(super) create: FormSpec,
    pub(super) change: FormSpec,
}

const fn destination(
    name: &'static str,
    label: &'static str,
    about: &'static str,
    config: &'static [Input],
) -> Destination {
    let create = FormSpec::create("Create batch export", EXPORT).and(config);
    let change = FormSpec::change("Save", EXPORT).and(config).described_by(CREATE);
    Destination {
        name,
        label,
        about,
        create: create.variant("type", name),
        change: change.variant("type", name),
    }
}

const INTERVALS: &[(&str, &str)] = &[
    ("every 5 minutes", "Every 5 minutes"),
    ("every 15 minutes", "Every 15 minutes"),
    ("hour", "Every hour"),
    ("day", "Every day"),
    ("week", "Every week"),
];

/// The fields that exports to all destinations have.
const EXPORT: &[Input] = &[
    Input::new("name").label("Name"),
    Input::new("interval").choices(INTERVALS).label("Interval"),
    Input::new("start_at").label("Start").hint("It does not run before this time."),
    Input::new("end_at").label("End").hint("It does not run after this time."),
    Input::new("model")
        .choices(&[("", "Not set"), ("events", "Events"), ("persons", "Persons")])
        .heading("Content")
        .label("Model"),
    Input::new("hogql_query")
        .label("Query")
        .hint("The rows and columns to export, in HogQL: one SELECT FROM events.")
        .code(),
    Input::new("filters").label("Filters").hint("JSON."),
];

/// Begins the group of the destination.
const fn first(name: &'static str, label: &'static str) -> Input {
    Input::new(name).label(label).heading("Destination")
}

const fn field(name: &'static str, label: &'static str) -> Input {
    Input::new(name).label(label)
}

/// All destinations.
pub(super) static DESTINATIONS: [Destination; 7] = [
    destination(
        "S3",
        "Amazon S3",
        "A bucket of Amazon S3, or of a service with the same interface.",
        &[
            first("destination.config.bucket_name", "Bucket"),
            field("destination.config.region", "Region"),
            field("destination.config.prefix", "Prefix")
                .hint("The start of the names of all objects."),
            field("destination.config.endpoint_url", "Endpoint")
                .hint("Only for services other than Amazon S3."),
            field("destination.config.aws_access_key_id", "Access key ID"),
            field("destination.config.aws_secret_access_key", "Secret access key"),
            field("destination.config.file_format", "File format"),
            field("destination.config.compression", "Compression")
                .hint("Parquet supports all, JSONLines only gzip and brotli."),
            field("destination.config.encryption", "Encryption"),
            field("destination.config.kms_key_id", "KMS key ID"),
            field("destination.config.include_events", "Include events"),
            field("destination.config.exclude_events", "Exclude events"),
        ],
    ),
    destination(
        "Snowflake",
        "Snowflake",
        "A table of a Snowflake warehouse, with a password or a key pair.",
        &[
            first("destination.config.account", "Account"),
            field("destination.config.user", "User"),
            field("destination.config.authentication_type", "Authentication").choices(&[
                ("", "Not set: by password"),
                ("password", "Password"),
                ("keypair", "Key pair"),
            ]),
            field("destination.config.password", "Password"),
            field("destination.config.private_key", "Private key"),
            field("destination.config.private_key_passphrase", "Passphrase of the private key"),
            field("destination.config.database", "Database"),
            field("destination.config.warehouse", "Warehouse"),
            field("destination.config.schema", "Schema"),
            field("destination.config.table_name", "Table"),
            field("destination.config.role", "Role"),
        ],
    ),
    destination(
        "Postgres",
        "PostgreSQL",
        "A table of a PostgreSQL database.",
        &[
            first("destination.config.host", "Host"),
            field("destination.config.port", "Port"),
            field("destination.config.user", "User"),
            field("destination.config.password", "Password"),
            field("destination.config.database", "Database"),
            field("destination.config.schema", "Schema"),
            field("destination.config.table_name", "Table"),
            field("destination.config.has_self_signed_cert", "The certificate is self-signed"),
        ],
    ),
    destination(
        "Redshift",
        "Amazon Redshift",
        "A table of an Amazon Redshift database.",
        &[
            first("destination.config.host", "Host"),
            field("destination.config.port", "Port"),
            field("destination.config.user", "User"),
            field("destination.config.password", "Password"),
            field("destination.config.database", "Database"),
            field("destination.config.schema", "Schema"),
            field("destination.config.table_name", "Table"),
            field("destination.config.has_self_signed_cert", "The certificate is self-signed"),
            field("destination.config.properties_data_type", "Type of properties"),
        ],
    ),
    destination(
        "BigQuery",
        "Google BigQuery",
        "A table of Google BigQuery, with the key of a service account.",
        &[
            first("destination.config.project_id", "Project ID"),
            field("destination.config.dataset_id", "Dataset ID"),
            field("destination.config.table_id", "Table ID"),
            field("destination.config.client_email", "Client email"),
            field("destination.config.private_key_id", "Private key ID"),
            field("destination.config.private_key", "Private key"),
            field("destination.config.token_uri", "Token URI"),
            field("destination.config.use_json_type", "Use the JSON type"),
        ],
    ),
    destination(
        "HTTP",
        "HTTP",
        "A URL that accepts events.",
        &[first("destination.config.url", "URL"), field("destination.config.token", "Token")],
    ),
    destination(
        "NoOp",
        "Nowhere",
        "Discards the data, for tests.",
        &[first("destination.config.arg", "Argument")],
    ),
];

/// Returns the destination with this name in the API.
pub(super) fn find(name: &str) -> Option<&'static Destination> {
    DESTINATIONS.iter().find(|destination| destination.name == name)
}

/// Returns the name of a destination for people.
pub(super) fn label(name: &str) -> &str {
    find(name).map_or(name, |destination| destination.label)
}

/// Returns an interval in words.
pub(super) fn interval(value: &str) -> &str {
    INTERVALS.iter().find(|(known, _)| *known == value).map_or(value, |(_, label)| *label)
}
