//! Tests of destinations: the configuration of each service.

use crate::batch_exports::{add, list_of};
use crate::support::prelude::*;

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
    let http = |url: &str| json!({ "url": url, "token": "secret-token" });
    let s3 = json!({ "bucket_name": "b", "region": "us-east-1", "prefix": "" });
    let s3_all = json!({
        "bucket_name": "b", "region": "us-east-1", "prefix": "p/", "aws_access_key_id": "secret-id",
        "aws_secret_access_key": "secret-key", "compression": "zstd", "encryption": "aws:kms",
        "kms_key_id": "k", "endpoint_url": "https://minio.example:9000", "file_format": "Parquet",
        "exclude_events": ["a"], "include_events": [],
    });
    let keypair = json!({
        "authentication_type": "keypair", "private_key": pem, "private_key_passphrase": "secret-phrase",
        "table_name": "events", "role": "r",
    });
    let events = json!({ "table_id": "events", "use_json_type": false });
    let of_snowflake = vec!["user", "password", "private_key", "private_key_passphrase"];
    let of_big_query = vec!["private_key", "private_key_id", "token_uri", "client_email"];
    vec![
        ("NoOp", json!({}), json!({ "arg": "x" }), vec![]),
        ("HTTP", http("https://hook.example/in"), http("http://127.0.0.1:8080/"), vec!["token"]),
        ("S3", s3, s3_all, vec!["aws_access_key_id", "aws_secret_access_key"]),
        ("Snowflake", snowflake.clone(), with(snowflake, keypair), of_snowflake),
        ("Postgres", postgres.clone(), postgres_all, vec!["user", "password"]),
        ("Redshift", postgres, redshift_all, vec!["user", "password"]),
        ("BigQuery", big_query.clone(), with(big_query, events), of_big_query),
    ]
}

/// Returns an export to this service with a minimal configuration, in which these values are replaced.
fn least_with(service: &str, change: Value) -> Value {
    let found = services().into_iter().find(|(name, ..)| *name == service);
    let (_, least, ..) = found.expect("a service");
    to(service, &with(least, change))
}

/// The expected error of a key of the configuration.
fn of_config(key: &str, code: &'static str, detail: &str) -> Refusal {
    Refusal::new(&format!("destination__config__{key}"), code, detail)
}

/// Returns a configuration without its secrets.
pub fn public(config: &Value, secrets: &[&str]) -> Value {
    let mut config = config.clone();
    config.as_object_mut().expect("keys").retain(|key, _| !secrets.contains(&key.as_str()));
    config
}

#[tokio::test]
async fn every_destination_accepts_its_keys_and_converts_their_values() {
    let workspace = Workspace::new().await;
    for (service, least, most, secrets) in services() {
        for config in [least, most] {
            let (made, [path, _]) = add(&workspace, to(service, &config)).await;
            let shown = json!({ "type": service, "config": public(&config, &secrets) });
            assert_eq!(made["destination"], shown);
            workspace.owner.get(&path).await.assert_is(200, made);
        }
    }
    let change = json!({ "port": "5432", "has_self_signed_cert": "on", "schema": null });
    let (made, _) = add(&workspace, least_with("Postgres", change)).await;
    let shown = json!({ "host": "db.example", "database": "d", "port": 5432, "has_self_signed_cert": true });
    assert_eq!(made["destination"]["config"], shown);
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
            let without = public(&least, &[key]);
            let missing = format!("Configuration missing required field: '{key}'");
            let null = with(least.clone(), json!({ key: null }));
            let blank = with(least.clone(), json!({ key: " " }));
            let mut cases = vec![
                (to(service, &without), of_config(key, "invalid_input", &missing)),
                (to(service, &null), of_config(key, "null", "This field may not be null.")),
            ];
            if key == "prefix" {
                workspace.owner.post(&list, to(service, &blank)).await.ok();
            } else {
                let refusal = of_config(key, "blank", "This field may not be blank.");
                cases.push((to(service, &blank), refusal));
            }
            workspace.owner.assert_refusals(Method::POST, &list, cases).await;
        }
    }
}

#[tokio::test]
async fn unknown_destination_keys_are_rejected() {
    let (workspace, owner) = Workspace::owned().await;
    let list = list_of(&workspace);
    for (service, least, ..) in services() {
        let sent = with(least, json!({ "bucket": 1, "Host": "x" }));
        let detail = "Configuration has unknown fields 'bucket', 'Host'";
        owner.post(&list, to(service, &sent)).await.assert_bad("destination__config", detail);
    }
    // The error does not grow with the request.
    let mut many = json!({});
    for number in 0..500 {
        many[format!("{number:03}{}", "ä".repeat(20))] = json!(1);
    }
    let refused = owner.post(&list, to("NoOp", &many)).await;
    assert_eq!(refused.status, 400);
    assert!(refused.bytes.len() < 1000);
    let long = json!({ "x".repeat(30_000): 1 });
    assert!(owner.post(&list, to("NoOp", &long)).await.bytes.len() < 300);
}

#[tokio::test]
async fn destination_values_are_validated_by_type() {
    let workspace = Workspace::new().await;
    let case = |service: &str, attr: &str, value: Value, code: &'static str, detail: &str| {
        let key = attr.split("__").next().expect("a key");
        (least_with(service, json!({ key: value })), of_config(attr, code, detail))
    };
    let invalid = "invalid_input";
    let text = |service: &str, key: &str, value: Value| {
        case(service, key, value, invalid, "Not a valid string.")
    };
    let url = |service: &str, key: &str, value: &str| {
        case(service, key, json!(value), invalid, "Enter a valid URL.")
    };
    let boolean = |service: &str, key: &str, value: Value| {
        case(service, key, value, invalid, "Must be a valid boolean.")
    };
    let choice = |service: &str, key: &str, word: &str| {
        let detail = format!("\"{word}\" is not a valid choice.");
        case(service, key, json!(word), "invalid_choice", &detail)
    };
    let null = "Null characters are not allowed.";
    let long = "Ensure this field has no more than 512 characters.";
    let no_list = "Expected a list of items but got type \"str\".";
    let least = "Ensure this value is greater than or equal to 1.";
    let most = "Ensure this value is less than or equal to 65535.";
    let cases = [
        text("S3", "bucket_name", json!(5)),
        text("S3", "region", json!(["x"])),
        text("S3", "aws_secret_access_key", json!({})),
        text("Snowflake", "private_key", json!(1)),
        text("NoOp", "arg", json!(true)),
        url("S3", "endpoint_url", "minio.example"),
        url("S3", "endpoint_url", "https://id:key@minio.example"),
        url("BigQuery", "token_uri", "ftp://a.example"),
        url("HTTP", "url", "javascript:alert(1)"),
        boolean("Postgres", "has_self_signed_cert", json!("maybe")),
        boolean("BigQuery", "use_json_type", json!([])),
        choice("S3", "file_format", "CSV"),
        choice("S3", "compression", "zip"),
        choice("Snowflake", "authentication_type", "oauth"),
        choice("Redshift", "properties_data_type", "json"),
        case("S3", "prefix", json!("a\u{0}"), "null_characters_not_allowed", null),
        case("S3", "prefix", json!("ä".repeat(513)), "max_length", long),
        case("S3", "include_events", json!("a"), "not_a_list", no_list),
        case("S3", "exclude_events__1", json!(["a", ""]), "blank", "This field may not be blank."),
        case("Postgres", "port", json!("x"), invalid, "A valid integer is required."),
        case("Postgres", "port", json!(0), "min_value", least),
        case("Redshift", "port", json!(65_536), "max_value", most),
        case("BigQuery", "client_email", json!("a"), invalid, "Enter a valid email address."),
    ];
    workspace.owner.assert_refusals(Method::POST, &list_of(&workspace), cases).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn destination_requires_a_known_type_and_a_config_object() {
    let workspace = Workspace::new().await;
    let list = list_of(&workspace);
    let choice = |word: &str| {
        let detail = format!("\"{word}\" is not a valid choice.");
        Refusal::new("destination__type", "invalid_choice", detail)
    };
    let no_list = "Expected a dictionary of items but got type \"list\".";
    let no_list = Refusal::new("destination__config", "not_a_dict", no_list);
    let no_object = "Invalid data. Expected a dictionary, but got str.";
    let cases = [
        (json!({}), Refusal::required("destination__type")),
        (json!({ "type": "NoOp" }), Refusal::required("destination__config")),
        (json!({ "type": null, "config": {} }), Refusal::null("destination__type")),
        (json!({ "type": "noop", "config": {} }), choice("noop")),
        (json!({ "type": "Databricks" }), choice("Databricks")),
        (json!({ "type": "NoOp", "config": [] }), no_list),
        (json!("S3"), Refusal::invalid("destination__non_field_errors", no_object)),
    ];
    let cases = cases.map(|(destination, refusal)| {
        (with(nowhere("a"), json!({ "destination": destination })), refusal)
    });
    workspace.owner.assert_refusals(Method::POST, &list, cases).await;
}

#[tokio::test]
async fn compression_must_be_supported_by_the_file_format() {
    let (workspace, owner) = Workspace::owned().await;
    let least = json!({ "bucket_name": "b", "region": "r", "prefix": "p" });
    for (format, allowed) in [
        (None, vec!["gzip", "brotli"]),
        (Some("JSONLines"), vec!["gzip", "brotli"]),
        (Some("Parquet"), vec!["zstd", "lz4", "snappy", "gzip", "brotli"]),
    ] {
        for compression in ["gzip", "brotli", "zstd", "lz4", "snappy"] {
            let change = json!({ "file_format": format, "compression": compression });
            let sent = to("S3", &with(least.clone(), change));
            let answer = owner.post(&list_of(&workspace), sent).await;
            if allowed.contains(&compression) {
                answer.ok();
                continue;
            }
            let format = format.unwrap_or("JSONLines");
            let detail =
                format!("Compression {compression} is not supported for file format {format}");
            answer.assert_bad("destination__config__compression", &detail);
        }
    }
    // The check also applies when the format changes in a later request.
    let parquet = with(least, json!({ "file_format": "Parquet", "compression": "lz4" }));
    let (_, [path, _]) = add(&workspace, to("S3", &parquet)).await;
    let lines = json!({ "destination": { "config": { "file_format": "JSONLines" } } });
    let detail = "Compression lz4 is not supported for file format JSONLines";
    owner.patch(&path, lines).await.assert_bad("destination__config__compression", detail);
}

#[tokio::test]
async fn snowflake_requires_the_secret_of_its_authentication_type() {
    let workspace = Workspace::new().await;
    let list = list_of(&workspace);
    let least =
        json!({ "user": "u", "account": "a", "database": "d", "warehouse": "w", "schema": "s" });
    let password = "Password is required if authentication type is password";
    let key = "Private key is required if authentication type is key pair";
    let cases = [
        (json!({}), "password", password),
        (json!({ "authentication_type": "password", "private_key": "k" }), "password", password),
        (json!({ "password": "" }), "password", password),
        (json!({ "authentication_type": "keypair", "password": "p" }), "private_key", key),
    ];
    let cases = cases.map(|(change, key, detail)| {
        (to("Snowflake", &with(least.clone(), change)), of_config(key, "invalid_input", detail))
    });
    workspace.owner.assert_refusals(Method::POST, &list, cases).await;
    let (_, [path, _]) =
        add(&workspace, to("Snowflake", &with(least, json!({ "password": "p" })))).await;
    let by_key = |key: Value| json!({ "destination": { "config": { "authentication_type": "keypair", "private_key": key } } });
    let refused = workspace.owner.patch(&path, by_key(json!(null))).await;
    refused.assert_bad("destination__config__private_key", key);
    workspace.owner.patch(&path, by_key(json!("k"))).await.ok();
}
