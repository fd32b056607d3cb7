//! Batch exports.

use serde_json::{Value, json};

/// A field of a form with what is typed.
pub type Typed = (&'static str, &'static str);

/// For each destination: what is typed, and what is changed later without typing a secret.
pub const DESTINATIONS: [(&str, &[Typed], Typed); 7] = [
    (
        "S3",
        &[
            ("bucket_name", "lake"),
            ("region", "eu-central-1"),
            ("prefix", "events/"),
            ("aws_access_key_id", "AKIA"),
            ("aws_secret_access_key", " s3cret "),
            ("compression", "gzip"),
            ("encryption", "aws:kms"),
            ("kms_key_id", "k"),
            ("endpoint_url", "https://s3.corp.example"),
            ("file_format", "JSONLines"),
            ("exclude_events", "a\r\nb"),
            ("include_events", "c"),
        ],
        ("prefix", "other/"),
    ),
    (
        "Snowflake",
        &[
            ("user", "u"),
            ("account", "acc"),
            ("database", "db"),
            ("warehouse", "wh"),
            ("schema", "sc"),
            ("authentication_type", "keypair"),
            ("password", "p"),
            ("private_key", "-----BEGIN\r\nkey\r\nEND-----\r\n"),
            ("private_key_passphrase", "pp"),
            ("table_name", "t"),
            ("role", "r"),
        ],
        ("warehouse", "large"),
    ),
    (
        "Postgres",
        &[
            ("user", "u"),
            ("password", "p"),
            ("host", "db.corp.example"),
            ("database", "db"),
            ("port", "5433"),
            ("schema", "sc"),
            ("table_name", "t"),
            ("has_self_signed_cert", "true"),
        ],
        ("port", "5434"),
    ),
    (
        "Redshift",
        &[
            ("user", "u"),
            ("password", "p"),
            ("host", "db.corp.example"),
            ("database", "db"),
            ("port", "5439"),
            ("schema", "sc"),
            ("table_name", "t"),
            ("has_self_signed_cert", "false"),
            ("properties_data_type", "super"),
        ],
        ("properties_data_type", "varchar"),
    ),
    (
        "BigQuery",
        &[
            ("project_id", "p"),
            ("dataset_id", "d"),
            ("private_key", "-----BEGIN\r\nkey\r\nEND-----"),
            ("private_key_id", "i"),
            ("token_uri", "https://t.example"),
            ("client_email", "a@corp.example"),
            ("table_id", "t"),
            ("use_json_type", "true"),
        ],
        ("table_id", "events"),
    ),
    (
        "HTTP",
        &[("url", "https://events.corp.example/in"), ("token", "t0k3n")],
        ("url", "https://other.corp.example/"),
    ),
    ("NoOp", &[("arg", "x")], ("arg", "y")),
];

/// Returns a minimal export.
pub fn nowhere(name: &str) -> Value {
    json!({ "name": name, "destination": { "type": "NoOp", "config": {} }, "interval": "hour" })
}

/// Returns an export with the fields of `change` replaced.
pub fn with(mut export: Value, change: Value) -> Value {
    for (name, value) in change.as_object().expect("members") {
        export[name] = value.clone();
    }
    export
}

/// Returns an export to this service.
pub fn to(service: &str, config: &Value) -> Value {
    with(nowhere("e"), json!({ "destination": { "type": service, "config": config } }))
}
