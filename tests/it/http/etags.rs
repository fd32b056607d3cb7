//! Entity tags: a repeated read answers 304 if nothing changed, and a change with an outdated tag answers
//! 412.

use steward::testing::resources::api_keys::record_use;

use crate::support::prelude::*;
use crate::{batch_exports, domains};

/// Returns the tag of a response, which must have the form `"<version>-<hash>"`.
#[track_caller]
fn tag(answer: &TestResponse) -> String {
    let tag = answer.tag();
    let inner = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).expect("quotes");
    let (version, hash) = inner.split_once('-').expect("two parts");
    assert!(version.parse::<u64>().is_ok(), "{tag}");
    assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{tag}");
    tag
}

async fn get_if_none_match(caller: &TestClient, path: &str, sent: &str) -> TestResponse {
    caller.fetch(Method::GET, path, &[("if-none-match", sent)], "").await
}

async fn patch_if_match(caller: &TestClient, path: &str, sent: &str, body: Value) -> TestResponse {
    caller.if_match(Method::PATCH, path, sent, body).await
}

async fn delete_if_match(caller: &TestClient, path: &str, sent: &str) -> TestResponse {
    caller.fetch(Method::DELETE, path, &[("if-match", sent)], "").await
}

/// Asserts that a DELETE with this outdated tag fails, and with the current one succeeds.
async fn assert_deleted_if_current(caller: &TestClient, path: &str, old: &str, current: &str) {
    delete_if_match(caller, path, old).await.assert_stale();
    delete_if_match(caller, path, current).await.assert_empty(204);
}

#[track_caller]
fn is_not_modified(answer: &TestResponse, tag: &str) {
    answer.assert_empty(304);
    assert_eq!(answer.headers["etag"], tag);
}

/// Every kind of object that has a detail view and a PATCH, with a change of it.
async fn objects(workspace: &Workspace) -> Vec<(String, Value)> {
    let owner = &workspace.owner;
    let (_, domain) = domains::add(workspace, "corp.example").await;
    let (_, dashboard) = owner.create(&workspace.dashboards(""), json!({ "name": "Sales" })).await;
    let project = workspace.made.project_id;
    let (_, insight) = owner.create(&workspace.project("insights/"), json!({})).await;
    let (_, key) = owner.create(KEYS, json!({ "label": "x", "scopes": ["user:read"] })).await;
    let (_, [export, _]) = batch_exports::add(workspace, nowhere("Nightly")).await;
    vec![
        (key, json!({ "label": "y" })),
        (export, json!({ "name": "Hourly" })),
        (domain, json!({ "saml_entity_id": "x" })),
        (insight, json!({ "name": "Visits" })),
        (format!("{dashboard}sharing/"), json!({ "enabled": true })),
        (dashboard, json!({ "name": "Sales, again" })),
        (format!("/api/projects/{project}/"), json!({ "name": "Shop" })),
        (workspace.organization(&format!("projects/{project}/")), json!({ "anonymize_ips": true })),
        (workspace.organization(""), json!({ "name": "Corp, again" })),
        (ME.to_owned(), json!({ "first_name": "Olga, again" })),
    ]
}

#[tokio::test]
async fn matching_if_none_match_returns_304() {
    let (workspace, owner) = Workspace::owned().await;
    for (path, change) in objects(&workspace).await {
        let shown = owner.get(&path).await;
        let tag = tag(&shown);
        assert_eq!(shown.status, 200, "{path}");
        for sent in [&tag, &format!("W/{tag}"), "*", &format!("\"other\", {tag}")] {
            is_not_modified(&get_if_none_match(&owner, &path, sent).await, &tag);
        }
        let head = owner.fetch(Method::HEAD, &path, &[], "").await;
        assert_eq!((head.status, &head.headers["etag"]), (200, &shown.headers["etag"]), "{path}");
        let head = owner.fetch(Method::HEAD, &path, &[("if-none-match", &tag)], "").await;
        is_not_modified(&head, &tag);
        for sent in ["\"other\"", "", "\"", tag.trim_matches('"')] {
            get_if_none_match(&owner, &path, sent).await.assert_is(200, shown.body.clone());
        }
        owner.patch(&path, change).await.ok();
        assert_eq!(get_if_none_match(&owner, &path, &tag).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn stale_if_match_is_rejected_and_changes_nothing() {
    let (workspace, owner) = Workspace::owned().await;
    for (path, change) in objects(&workspace).await {
        let old = tag(&owner.get(&path).await);
        let changed = patch_if_match(&owner, &path, &old, change.clone()).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.body);
        let new = tag(&changed);
        let shown = owner.get(&path).await;
        assert_eq!(tag(&shown), new, "{path}: what a change answers is what is read then");
        let known = entries(&workspace);
        for sent in
            [&*old, &format!("W/{new}"), "\"other\"", "", "\"1e9-0\"", &format!("{old}, W/{new}")]
        {
            patch_if_match(&owner, &path, sent, change.clone()).await.assert_stale();
        }
        owner.get(&path).await.assert_is(200, shown.body.clone());
        assert_eq!(entries(&workspace), known, "{path}");
        for sent in [&*new, "*", &format!("{old}, {new}")] {
            let answer = patch_if_match(&owner, &path, sent, json!({})).await;
            assert_eq!((answer.status, tag(&answer)), (200, new.clone()), "{path}");
        }
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn delete_with_if_match_requires_the_current_version() {
    let (workspace, owner) = Workspace::owned().await;
    workspace.member("ann", Level::Member).await;
    let ann = workspace.uuid(ANN).await;
    let members = workspace.organization(&format!("members/{ann}/"));
    let (_, board) = owner.create(&workspace.dashboards(""), json!({})).await;
    owner.patch(&board, json!({ "restriction_level": 37 })).await.ok();
    let current = async |path: &str| owner.get(path).await.tag();

    let (_, domain) = domains::add(&workspace, "corp.example").await;
    let old = current(&domain).await;
    owner.patch(&domain, json!({ "saml_entity_id": "x" })).await.ok();
    assert_deleted_if_current(&owner, &domain, &old, &current(&domain).await).await;

    let invites = workspace.organization("invites/");
    let invite = owner.post(&invites, json!({ "target_email": "bob@corp.example" })).await;
    let path = format!("{invites}{}/", invite.body["id"].as_str().expect("an id"));
    assert_deleted_if_current(&owner, &path, "\"7-0\"", &invite.tag()).await;

    let key = owner.post(KEYS, json!({ "label": "x", "scopes": ["user:read"] })).await;
    let rolled = owner.post(&at(&key.body, "roll/"), json!({})).await;
    let path = at(&key.body, "");
    patch_if_match(&owner, &path, &key.tag(), json!({ "label": "y" })).await.assert_stale();
    assert_deleted_if_current(&owner, &path, &key.tag(), &rolled.tag()).await;

    let (_, role) = add_role(&workspace, "Analysts").await;
    let added = add_to_role(&workspace, &role, ANN).await;
    let path = format!("{role}role_memberships/{}/", added["id"].as_str().expect("an id"));
    assert_deleted_if_current(&owner, &path, "\"0-a\"", &current(&path).await).await;

    let rows = format!("{board}collaborators/");
    let row = owner.post(&rows, json!({ "user_uuid": ann, "level": 37 })).await;
    assert_deleted_if_current(&owner, &format!("{rows}{ann}/"), "\"7-0\"", &row.tag()).await;

    let old = owner.patch(&members, json!({ "level": 8 })).await.tag();
    owner.patch(&members, json!({ "level": 1 })).await.ok();
    patch_if_match(&owner, &members, &old, json!({ "level": 8 })).await.assert_stale();
    assert_deleted_if_current(&owner, &members, &old, &current(&members).await).await;

    let (_, [export, _]) = batch_exports::add(&workspace, nowhere("Nightly")).await;
    let project = workspace.project("");
    for path in [export, project, workspace.organization("")] {
        assert_deleted_if_current(&owner, &path, "\"99-0\"", &current(&path).await).await;
    }
}

#[tokio::test]
async fn recorded_key_use_changes_the_etag_but_does_not_fail_if_match() {
    let (workspace, owner) = Workspace::owned().await;
    let key = owner.post(KEYS, json!({ "label": "x", "scopes": ["user:read"] })).await.ok();
    let (path, id) = (at(&key, ""), serde_json::from_value(key["id"].clone()).expect("an id"));
    let known = tag(&owner.get(&path).await);
    let now = Timestamp::from_micros(1_700_000_000_000_000);
    workspace.write(move |tx| record_use(tx, id, now)).await;
    let read = get_if_none_match(&owner, &path, &known).await;
    assert_eq!((read.status, &read.body["last_used_at"]), (200, &json!("2023-11-14T22:13:20Z")));
    let changed = patch_if_match(&owner, &path, &known, json!({ "label": "y" })).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    patch_if_match(&owner, &path, &known, json!({ "label": "z" })).await.assert_stale();

    // Reading `@current` records a use of the key, which must not outdate its tag.
    let own = tag(&owner.get(CURRENT).await);
    let path = at(&owner.get(CURRENT).await.ok(), "");
    let changed = patch_if_match(&owner, &path, &own, json!({ "label": "mine" })).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
}

/// A tag of a deleted record must not match a record that is created later under the same key.
#[tokio::test]
async fn etag_of_a_deleted_record_does_not_match_its_replacement() {
    let (workspace, owner) = Workspace::owned().await;
    workspace.member("ann", Level::Member).await;
    let ann = workspace.uuid(ANN).await;
    let (_, one) = owner.create(&workspace.dashboards(""), json!({})).await;
    owner.patch(&one, json!({ "restriction_level": 37 })).await.ok();
    let rows = format!("{one}collaborators/");
    let (row, member) =
        (format!("{rows}{ann}/"), workspace.organization(&format!("members/{ann}/")));
    let mut known: Vec<String> = Vec::new();
    for _ in 0..3 {
        let made = owner.post(&rows, json!({ "user_uuid": ann, "level": 37 })).await;
        for tag in &known {
            delete_if_match(&owner, &row, tag).await.assert_stale();
        }
        known.push(tag(&made));
        owner.delete(&row).await.assert_empty(204);
    }
    let mut known: Vec<String> = Vec::new();
    for _ in 0..3 {
        for tag in &known {
            patch_if_match(&owner, &member, tag, json!({ "level": 8 })).await.assert_stale();
            delete_if_match(&owner, &member, tag).await.assert_stale();
        }
        known.push(tag(&owner.patch(&member, json!({})).await));
        owner.patch(&member, json!({ "level": 8 })).await.ok();
        owner.delete(&member).await.assert_empty(204);
        workspace.rejoin(ANN, Level::Member).await;
    }
}

#[tokio::test]
async fn other_errors_take_precedence_over_if_match() {
    let (workspace, owner) = Workspace::owned().await;
    let stale = "\"99-0\"";
    let one = workspace.dashboards("1/");
    patch_if_match(&owner, &one, stale, json!({})).await.assert_not_found("Not found.");
    owner.post(&workspace.dashboards(""), json!({ "restriction_level": 37 })).await.ok();
    let member = workspace.member("ann", Level::Member).await;
    let refused = patch_if_match(&member, &one, stale, json!({ "name": "x" })).await;
    assert_eq!((refused.status, &refused.body["code"]), (403, &json!("permission_denied")));
    let bad = patch_if_match(&owner, &one, stale, json!({ "pinned": "maybe" })).await;
    bad.assert_bad("pinned", "Must be a valid boolean.");
    delete_if_match(&owner, &one, stale).await.assert_empty(405);
    let nobody = workspace.anonymous();
    assert_eq!(patch_if_match(&nobody, &one, stale, json!({})).await.status, 401);
    assert_eq!(get_if_none_match(&nobody, &one, "*").await.status, 401);
    let gone = get_if_none_match(&owner, &workspace.dashboards("2/"), "*").await;
    gone.assert_not_found("Not found.");
}

#[tokio::test]
async fn etags_differ_per_reader_and_each_names_the_version() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let one = workspace.dashboards("1/");
    owner.post(&workspace.dashboards(""), json!({ "restriction_level": 37 })).await.ok();
    let (own, anns) = (tag(&owner.get(&one).await), tag(&ann.get(&one).await));
    assert_ne!(own, anns);
    assert_eq!(own.split_once('-').map(|it| it.0), anns.split_once('-').map(|it| it.0));
    assert_eq!(get_if_none_match(&owner, &one, &anns).await.status, 200);
    assert_eq!(patch_if_match(&owner, &one, &anns, json!({ "name": "x" })).await.status, 200);
}

#[tokio::test]
async fn concurrent_updates_of_one_version_succeed_once_and_moves_require_the_current_one() {
    let (workspace, owner) = Workspace::owned().await;
    owner.post(&workspace.dashboards(""), json!({})).await.ok();
    let one = workspace.dashboards("1/");
    let known = tag(&owner.get(&one).await);
    let asked = (0..32).map(|number| {
        let (owner, one, known) = (owner.clone(), one.clone(), known.clone());
        let body = json!({ "name": format!("Name {number}") });
        tokio::spawn(async move { patch_if_match(&owner, &one, &known, body).await.status })
    });
    let mut statuses = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        statuses.push(asked.await.expect("an answer"));
    }
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (200, [412; 31].as_slice()));
    let (from, to) = (workspace.dashboards("1/"), workspace.dashboards("2/"));
    for _ in 0..2 {
        owner.post(&workspace.dashboards(""), json!({})).await.ok();
    }
    let made = owner.patch(&from, json!({ "tiles": [{ "text": { "body": "x" } }] })).await;
    let sent = json!({ "tile": { "id": made.body["tiles"][0]["id"] }, "toDashboard": 2 });
    let path = format!("{from}move_tile/");
    patch_if_match(&owner, &path, "\"1-0\"", sent.clone()).await.assert_stale();
    assert_eq!(owner.get(&to).await.ok()["tiles"], json!([]));
    patch_if_match(&owner, &path, &tag(&made), sent).await.assert_empty(200);
    patch_if_match(&owner, &from, &tag(&made), json!({})).await.assert_stale();
}

#[tokio::test]
async fn lists_and_public_responses_have_no_etag() {
    let (workspace, owner) = Workspace::owned().await;
    let lists = [workspace.dashboards(""), workspace.organization("members/"), KEYS.to_owned()];
    for path in lists.into_iter().chain(["/_livez".to_owned()]) {
        let answer = get_if_none_match(&owner, &path, "*").await;
        assert_eq!((answer.status, answer.headers.get("etag")), (200, None), "{path}");
    }
}
