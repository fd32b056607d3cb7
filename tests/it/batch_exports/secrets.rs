//! Tests that secrets of destinations are stored, updated, and never shown.

use steward::testing::ids::BatchExportId;
use steward::testing::input::{self, Parsed};
use steward::testing::resources::batch_exports::{
    BatchExport, BatchExportFields, PatchBody, Secrets,
};

use crate::batch_exports::destinations::{public, services};
use crate::batch_exports::{add, list_of};
use crate::support::log;
use crate::support::prelude::*;

/// Returns the stored secrets of an export.
fn kept(workspace: &Workspace, made: &Value) -> Option<Value> {
    let id: BatchExportId = serde_json::from_value(made["id"].clone()).expect("an id");
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let secrets = tx.find::<Secrets>(&(workspace.made.project_id, id)).expect("read");
    secrets.map(|secrets| {
        assert!(!format!("{secrets:?}").contains("secret-"), "{secrets:?}");
        json!(secrets.parts().1)
    })
}

/// Returns the secret part of a configuration.
fn secret(config: &Value, secrets: &[&str]) -> Value {
    let mut config = config.clone();
    config.as_object_mut().expect("keys").retain(|key, _| secrets.contains(&key.as_str()));
    config
}

/// Returns all texts in a JSON value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Returns whether `bytes` contains one of these secrets, in plain form or escaped for JSON.
fn tells(bytes: &[u8], secrets: &[String]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let written = |secret: &String| json!(secret).to_string().trim_matches('"').to_owned();
    secrets.iter().any(|secret| text.contains(secret.as_str()) || text.contains(&written(secret)))
}

#[tokio::test]
async fn secrets_appear_in_no_response_log_or_other_record() {
    log::capture();
    let (workspace, owner) = Workspace::owned().await;
    let [of_project, of_organization] =
        [list_of(&workspace), workspace.organization("batch_exports/")];
    let mut all = Vec::new();
    for (service, _, most, secrets) in services() {
        let told = texts(&secret(&most, &secrets));
        let mut answers = Vec::new();
        let (made, paths) = add(&workspace, to(service, &most)).await;
        answers.push(made.to_string().into_bytes());
        for path in &paths {
            let changes = [
                json!({ "name": "changed" }),
                json!({ "destination": { "config": secret(&most, &secrets) } }),
                json!({ "destination": { "type": service, "config": { "nobody-knows": told } } }),
                json!({ "destination": { "config": { "arg": told, "user": told, "token": told } } }),
                json!({ "name": "x", "hogql_query": "SELECT", "destination": { "config": most } }),
                json!({ "destination": { "type": "HTTP", "config": most } }),
            ];
            for sent in changes {
                answers.push(owner.patch(path, sent).await.bytes);
            }
            answers.push(owner.get(path).await.bytes);
            for below in ["pause/", "unpause/"] {
                answers.push(owner.post(&format!("{path}{below}"), to(service, &most)).await.bytes);
            }
        }
        for list in [&of_project, &of_organization] {
            answers.push(owner.get(list).await.bytes);
        }
        owner.delete(&paths[0]).await.assert_empty(204);
        assert!(answers.iter().all(|bytes| !tells(bytes, &told)), "{service}");
        all.extend(told);
    }
    assert!(all.len() > 10, "{all:?}");
    for table in Table::ALL.iter().filter(|table| **table != Table::BatchExportSecrets) {
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        let walked = steward::testing::store::Raw::raw_walk(
            &*tx,
            *table,
            &[],
            0,
            Order::Ascending,
            &mut |_, payload| {
                assert!(!tells(payload, &all), "{}", table.name());
                Ok(std::ops::ControlFlow::Continue(()))
            },
        );
        walked.expect("walked");
    }
    assert_eq!(log::lines_about("secret-"), Vec::<Value>::new());
    workspace.assert_file_valid().await;
}

#[test]
fn debug_output_of_a_request_shows_no_secrets() {
    for (service, _, most, secrets) in services() {
        let told = texts(&secret(&most, &secrets));
        let sent = input::require_object(to(service, &most)).expect("an object");
        let new = Parsed::<BatchExportFields>::new(&sent);
        assert!(new.get().is_ok());
        for printed in [format!("{new:?}"), format!("{:?}", PatchBody::of(&sent))] {
            assert!(printed.contains('e') && !tells(printed.as_bytes(), &told), "{printed}");
        }
    }
}

#[tokio::test]
async fn patch_updates_public_destination_values_key_by_key_and_another_service_begins_with_none() {
    let workspace = Workspace::new().await;
    let sent =
        json!({ "user": "u", "password": "p", "host": "a.example", "database": "d", "port": 5432 });
    let (made, [path, _]) = add(&workspace, to("Postgres", &sent)).await;
    let change = json!({ "destination": { "config": { "host": "b.example", "port": null, "schema": "s" } } });
    let changed = workspace.owner.patch(&path, change).await.ok();
    let config = json!({ "host": "b.example", "database": "d", "schema": "s" });
    assert_eq!(changed["destination"], json!({ "type": "Postgres", "config": config }));
    let told = json!({ "destination": [made["destination"], changed["destination"]] });
    assert_eq!(entries_about(&workspace, &made["id"])[1][4], told);
    let null = json!({ "destination": { "config": { "password": null } } });
    let refused = workspace.owner.patch(&path, null).await;
    refused.assert_invalid("destination__config__password", "null", "This field may not be null.");
    let unknown = json!({ "destination": { "config": { "token": "t" } }, "interval": "never" });
    let refused = workspace.owner.patch(&path, unknown).await;
    refused.assert_bad("destination__config", "Configuration has unknown fields 'token'");
    workspace.owner.get(&path).await.assert_is(200, changed);
    let sent = json!({ "user": "u", "password": "secret-word", "host": "h", "database": "d" });
    let (made, [path, _]) = add(&workspace, to("Postgres", &sent)).await;
    let bare = json!({ "destination": { "type": "Redshift" } });
    let missing = "Configuration missing required field: 'user'";
    workspace.owner.patch(&path, bare).await.assert_bad("destination__config__user", missing);
    let to_http = json!({ "destination": { "type": "HTTP", "config": { "url": "https://a.example", "token": "t" } } });
    let changed = workspace.owner.patch(&path, to_http).await.ok();
    let expected = json!({ "type": "HTTP", "config": { "url": "https://a.example" } });
    assert_eq!(changed["destination"], expected);
    assert_eq!(kept(&workspace, &made), Some(json!({ "token": "t" })));
    workspace.owner.patch(&path, json!({ "destination": nowhere("a")["destination"] })).await.ok();
    assert_eq!(kept(&workspace, &made), None);
    let told = entries_about(&workspace, &made["id"]).pop().expect("an entry")[4].clone();
    assert_eq!(told["destination__secrets"], json!([null, null]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn secrets_are_deleted_with_their_export_and_a_patch_keeps_what_is_not_sent() {
    let workspace = Workspace::new().await;
    for (service, _, most, secrets) in services() {
        let (made, [path, _]) = add(&workspace, to(service, &most)).await;
        assert_eq!(made["destination"]["config"], public(&most, &secrets));
        workspace.owner.delete(&path).await.assert_empty(204);
        assert_eq!(kept(&workspace, &made), None);
        let entries = entries_about(&workspace, &made["id"]);
        assert_eq!(entries[1], json!(["BatchExport", made["id"], "deleted", "e", {}]));
        assert_eq!(entries.len(), 2);
    }
    assert_eq!((stored::<BatchExport>(&workspace), stored::<Secrets>(&workspace)), (0, 0));
    for (service, _, most, secrets) in
        services().into_iter().filter(|(.., secrets)| !secrets.is_empty())
    {
        let (made, [path, _]) = add(&workspace, to(service, &most)).await;
        let shown = json!({ "destination": made["destination"], "name": "again" });
        let again = workspace.owner.patch(&path, shown).await.ok();
        assert_eq!(again["destination"], made["destination"]);
        assert_eq!(kept(&workspace, &made), Some(secret(&most, &secrets)), "{service}");
        // Updates one secret. In the response, only the time of the last update changes.
        let key = secrets[0];
        let value = json!(if key == "token_uri" { "https://new.example/" } else { "new" });
        let sent = json!({ "destination": { "config": { key: value } } });
        let changed = workspace.owner.patch(&path, sent).await.ok();
        let moved = json!({ "last_updated_at": changed["last_updated_at"] });
        assert_eq!(changed, with(again.clone(), moved));
        assert_ne!(changed["last_updated_at"], again["last_updated_at"]);
        let expected = with(secret(&most, &secrets), json!({ key: value }));
        assert_eq!(kept(&workspace, &made), Some(expected));
        let entries = entries_about(&workspace, &made["id"]);
        let told = json!(["BatchExport", made["id"], "updated", "again", { "destination__secrets": [null, null] }]);
        assert_eq!(entries.last(), Some(&told));
    }
    workspace.assert_file_valid().await;
}
