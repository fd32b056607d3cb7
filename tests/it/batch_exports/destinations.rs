//! Tests of destinations: the configuration of each service.

use serde_json::{Value, json};

use crate::batch_exports::{add, list_of, with};
use crate::support::Workspace;
use crate::support::batch_exports::nowhere;
use crate::support::batch_exports::to;

/// Each service with a minimal and a complete configuration, and the secret keys of the latter.
pub fn services() -> Vec<(&'static str, Value, Value, Vec<&'static str>)> {
    let pem = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LXBlbQ==\n-----END PRIVATE KEY-----\n";
    let postgres = json!({ "user": "secret-user", "password": " secret-word ", "host": "db.example", "database": "d" });
    let postgres_all = json!({
        "user": "secret-user", "password": " secret-word ", "host": "db.example", "database": "d",
        "port": 5432, "schema": "public", "table_name": "events", "has_self_signed_cert": true,
    });
    let redshift_all = with(postgres_all.clone(), json!({ "properties_data_type": "varchar" }));
    let snowflake = json!({
        "user": "secret-user", "account": "a", "database": "d", "warehouse": "w", "schema": "s",
        "password": "secret-word",
    });
    let big_query = json!({
        "project_id": "p", "dataset_id": "d", "private_key": pem, "private_key_id": "secret-id",
        "token_uri": "https://secret.example/token", "client_email": "secret@accounts.example",
    });
    vec![
        ("NoOp", json!({}), json!({ "arg": "x" }), vec![]),
        (
            "HTTP",
            json!({ "url": "https://hook.example/in", "token": "secret-token" }),
            json!({ "url": "http://127.0.0.1:8080/", "token": "secret-token" }),
            vec!["token"],
        ),
        (
            "S3",
            json!({ "bucket_name": "b", "region": "us-east-1", "prefix": "" }),
            json!({
                "bucket_name": "b", "region": "us-east-1", "prefix": "p/", "aws_access_key_id": "secret-id",
                "aws_secret_access_key": "secret-key", "compression": "zstd", "encryption": "aws:kms",
                "kms_key_id": "k", "endpoint_url": "https://minio.example:9000", "file_format": "Parquet",
                "exclude_events": ["a"], "include_events": [],
            }),
            vec!["aws_access_key_id", "aws_secret_access_key"],
        ),
        (
            "Snowflake",
            snowflake.clone(),
            with(
                snowflake,
                json!({
                    "authentication_type": "keypair", "private_key": pem, "private_key_passphrase": "secret-phrase",
                    "table_name": "events", "role": "r",
                }),
            ),
            vec!["user", "password", "private_key", "private_key_passphrase"],
        ),
        ("Postgres", postgres.clone(), postgres_all, vec!["user", "password"]),
        ("Redshift", postgres, redshift_all, vec!["user", "password"]),
        (
            "BigQuery",
            big_query.clone(),
            with(big_query, json!({ "table_id": "events", "use_json_type": false })),
            vec!["private_key", "private_key_id", "token_uri", "client_email"],
        ),
    ]
}

/// Returns a configuration without its secrets.
pub fn public(config: &Value, secrets: &[&str]) -> Value {
    let mut config = config.clone();
    config.as_object_mut().expect("keys").retain(|key, _| !secrets.contains(&key.as_str()));
    config
}

#[tokio::test]
async fn every_destination_accepts_its_required_and_all_optional_keys() {
    let workspace = Workspace::new().await;
    for (service, least, most, secrets) in services() {
        for config in [least, most] {
            let (made, [path, _]) = add(&workspace, to(service, &config)).await;
            let shown = json!({ "type": service, "config": public(&config, &secrets) });
            assert_eq!(made["destination"], shown);
            workspace.owner.get(&path).await.assert_is(200, made);
        }
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn missing_null_or_blank_required_destination_key_is_reported() {
    let workspace = Workspace::new().await;
    let list = list_of(&workspace);
    for (service, least, ..) in services() {
        // Whether Snowflake needs a password depends on its authentication type.
        let keys = least
            .as_object()
            .expect("keys")
            .keys()
            .filter(|key| service != "Snowflake" || *key != "password");
        for key in keys {
            let attr = format!("destination__config__{key}");
            let without = public(&least, &[key]);
            let detail = format!("Configuration missing required field: '{key}'");
            let refused = workspace.owner.post(&list, to(service, &without)).await;
            refused.assert_invalid(&attr, "invalid_input", &detail);
            let null = with(least.clone(), json!({ key: null }));
            let refused = workspace.owner.post(&list, to(service, &null)).await;
            refused.assert_invalid(&attr, "null", "This field may not be null.");
            let blank = workspace
                .owner
                .post(&list, to(service, &with(least.clone(), json!({ key: " " }))))
                .await;
            if key == "prefix" {
                blank.ok();
            } else {
                blank.assert_invalid(&attr, "blank", "This field may not be blank.");
            }
        }
    }
}

#[tokio::test]
async fn unknown_destination_keys_are_rejected() {
    let workspace = Workspace::new().await;
    let list = list_of(&workspace);
    for (service, least, ..) in services() {
        let sent = with(least, json!({ "bucket": 1, "Host": "x" }));
        workspace.owner.post(&list, to(service, &sent)).await.assert_invalid(
            "destination__config",
            "invalid_input",
            "Configuration has unknown fields 'bucket', 'Host'",
        );
    }
    // The error does not grow with the request.
    let mut many = json!({});
    for number in 0..500 {
        many[format!("{number:03}{}", "ä".repeat(20))] = json!(1);
    }
    let refused = workspace.owner.post(&list, to("NoOp", &many)).await;
    assert_eq!(refused.status, 400);
    assert!(refused.bytes.len() < 1000);
    let long = json!({ "x".repeat(30_000): 1 });
    assert!(workspace.owner.post(&list, to("NoOp", &long)).await.bytes.len() < 300);
}

#[tokio::test]
async fn destination_values_are_validated_by_type() {
    let workspace = Workspace::new().await;
    let list = list_of(&workspace);
    let (text, choice) =
        ("Not a valid string.", |word: &str| format!("\"{word}\" is not a valid choice."));
    let url = "Enter a valid URL.";
    let cases = [
        ("S3", "bucket_name", json!(5), "invalid_input", text.to_owned()),
        ("S3", "region", json!(["x"]), "invalid_input", text.to_owned()),
        ("S3", "aws_secret_access_key", json!({}), "invalid_input", text.to_owned()),
        (
            "S3",
            "prefix",
            json!("a\u{0}"),
            "null_characters_not_allowed",
            "Null characters are not allowed.".to_owned(),
        ),
        (
            "S3",
            "prefix",
            json!("ä".repeat(513)),
            "max_length",
            "Ensure this field has no more than 512 characters.".to_owned(),
        ),
        ("S3", "endpoint_url", json!("minio.example"), "invalid_input", url.to_owned()),
        (
            "S3",
            "endpoint_url",
            json!("https://id:key@minio.example"),
            "invalid_input",
            url.to_owned(),
        ),
        ("S3", "file_format", json!("CSV"), "invalid_choice", choice("CSV")),
        ("S3", "compression", json!("zip"), "invalid_choice", choice("zip")),
        (
            "S3",
            "include_events",
            json!("a"),
            "not_a_list",
            "Expected a list of items but got type \"str\".".to_owned(),
        ),
        (
            "S3",
            "exclude_events__1",
            json!(["a", ""]),
            "blank",
            "This field may not be blank.".to_owned(),
        ),
        ("Snowflake", "authentication_type", json!("oauth"), "invalid_choice", choice("oauth")),
        ("Snowflake", "private_key", json!(1), "invalid_input", text.to_owned()),
        (
            "Postgres",
            "port",
            json!("x"),
            "invalid_input",
            "A valid integer is required.".to_owned(),
        ),
        (
            "Postgres",
            "port",
            json!(0),
            "min_value",
            "Ensure this value is greater than or equal to 1.".to_owned(),
        ),
        (
            "Redshift",
            "port",
            json!(65_536),
            "max_value",
            "Ensure this value is less than or equal to 65535.".to_owned(),
        ),
        (
            "Postgres",
            "has_self_signed_cert",
            json!("maybe"),
            "invalid_input",
            "Must be a valid boolean.".to_owned(),
        ),
        ("Redshift", "properties_data_type", json!("json"), "invalid_choice", choice("json")),
        ("BigQuery", "token_uri", json!("ftp://a.example"), "invalid_input", url.to_owned()),
        (
            "BigQuery",
            "client_email",
            json!("a"),
            "invalid_input",
            "Enter a valid email address.".to_owned(),
        ),
        (
            "BigQuery",
            "use_json_type",
            json!([]),
            "invalid_input",
            "Must be a valid boolean.".to_owned(),
        ),
        ("HTTP", "url", json!("javascript:alert(1)"), "invalid_input", url.to_owned()),
        ("NoOp", "arg", json!(true), "invalid_input", text.to_owned()),
    ];
    let services = services();
    for (service, key, value, code, detail) in cases {
        let (_, least, ..) =
            services.iter().find(|(name, ..)| *name == service).expect("a service");
        let name = key.split("__").next().expect("a name");
        let sent = to(service, &with(least.clone(), json!({ name: value })));
        let attr = format!("destination__config__{key}");
        workspace.owner.post(&list, sent).await.assert_invalid(&attr, code, &detail);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn destination_values_are_converted_and_optional_null_is_omitted() {
    let workspace = Workspace::new().await;
    let services = services();
    let (_, least, ..) = services.iter().find(|(name, ..)| *name == "Postgres").expect("a service");
    let sent = with(
        least.clone(),
        json!({ "port": "5432", "has_self_signed_cert": "on", "schema": null }),
    );
    let (made, _) = add(&workspace, to("Postgres", &sent)).await;
    let shown = json!({ "host": "db.example", "database": "d", "port": 5432, "has_self_signed_cert": true });
    assert_eq!(made["destination"]["config"], shown);
}

#[tokio::test]
async fn destination_requires_a_known_type_and_a_config_object() {
    let workspace = Workspace::new().await;
    let list = list_of(&workspace);
    let required = "This field is required.";
    for (destination, attr, code, detail) in [
        (json!({}), "type", "required", required),
        (json!({ "type": "NoOp" }), "config", "required", required),
        (json!({ "type": null, "config": {} }), "type", "null", "This field may not be null."),
        (
            json!({ "type": "noop", "config": {} }),
            "type",
            "invalid_choice",
            "\"noop\" is not a valid choice.",
        ),
        (
            json!({ "type": "Databricks" }),
            "type",
            "invalid_choice",
            "\"Databricks\" is not a valid choice.",
        ),
        (
            json!({ "type": "NoOp", "config": [] }),
            "config",
            "not_a_dict",
            "Expected a dictionary of items but got type \"list\".",
        ),
        (
            json!("S3"),
            "non_field_errors",
            "invalid_input",
            "Invalid data. Expected a dictionary, but got str.",
        ),
    ] {
        let sent = with(nowhere("a"), json!({ "destination": destination }));
        let attr = format!("destination__{attr}");
        workspace.owner.post(&list, sent).await.assert_invalid(&attr, code, detail);
    }
}

#[tokio::test]
async fn compression_must_be_supported_by_the_file_format() {
    let workspace = Workspace::new().await;
    let least = json!({ "bucket_name": "b", "region": "r", "prefix": "p" });
    for (format, allowed) in [
        (None, vec!["gzip", "brotli"]),
        (Some("JSONLines"), vec!["gzip", "brotli"]),
        (Some("Parquet"), vec!["zstd", "lz4", "snappy", "gzip", "brotli"]),
    ] {
        for compression in ["gzip", "brotli", "zstd", "lz4", "snappy"] {
            let change = json!({ "file_format": format, "compression": compression });
            let answer = workspace
                .owner
                .post(&list_of(&workspace), to("S3", &with(least.clone(), change)))
                .await;
            if allowed.contains(&compression) {
                answer.ok();
                continue;
            }
            let format = format.unwrap_or("JSONLines");
            let detail =
                format!("Compression {compression} is not supported for file format {format}");
            answer.assert_invalid("destination__config__compression", "invalid_input", &detail);
        }
    }
    // The check also applies when the format changes in a later request.
    let parquet = with(least, json!({ "file_format": "Parquet", "compression": "lz4" }));
    let (_, [path, _]) = add(&workspace, to("S3", &parquet)).await;
    let lines = json!({ "destination": { "config": { "file_format": "JSONLines" } } });
    let detail = "Compression lz4 is not supported for file format JSONLines";
    let refused = workspace.owner.patch(&path, lines).await;
    refused.assert_invalid("destination__config__compression", "invalid_input", detail);
}

#[tokio::test]
async fn snowflake_requires_the_secret_of_its_authentication_type() {
    let workspace = Workspace::new().await;
    let list = list_of(&workspace);
    let least =
        json!({ "user": "u", "account": "a", "database": "d", "warehouse": "w", "schema": "s" });
    let password = "Password is required if authentication type is password";
    let key = "Private key is required if authentication type is key pair";
    for (change, attr, detail) in [
        (json!({}), "password", password),
        (json!({ "authentication_type": "password", "private_key": "k" }), "password", password),
        (json!({ "password": "" }), "password", password),
        (json!({ "authentication_type": "keypair", "password": "p" }), "private_key", key),
    ] {
        let sent = to("Snowflake", &with(least.clone(), change));
        let attr = format!("destination__config__{attr}");
        workspace.owner.post(&list, sent).await.assert_invalid(&attr, "invalid_input", detail);
    }
    let (_, [path, _]) =
        add(&workspace, to("Snowflake", &with(least, json!({ "password": "p" })))).await;
    let by_key = |key: Value| json!({ "destination": { "config": { "authentication_type": "keypair", "private_key": key } } });
    let refused = workspace.owner.patch(&path, by_key(json!(null))).await;
    refused.assert_invalid("destination__config__private_key", "invalid_input", key);
    workspace.owner.patch(&path, by_key(json!("k"))).await.ok();
}
