//! Tests of the maximum number of keys of a user, and of the activity entries for keys.

use crate::support::prelude::*;

#[tokio::test]
async fn user_has_at_most_100_live_and_100_expired_keys() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let text = "You can only have 100 personal API keys. Remove an existing key before creating a new one.";
    let ending = |end: &str| json!({"label": "x", "scopes": ["user:read"], "expires_at": end});
    let soon = ending("2023-11-14T22:14:19Z");
    let lasting = json!({"label": "y", "scopes": ["user:read"]});
    let first = make_key(owner, soon.clone()).await;
    for _ in 0..98 {
        make_key(owner, soon.clone()).await;
    }
    owner.post(KEYS, lasting.clone()).await.assert_bad_body(text);
    owner.delete(&at(&first, "")).await.assert_empty(204);
    let revivable = make_key(owner, ending("2023-11-14T22:14:20Z")).await;
    owner.post(KEYS, lasting.clone()).await.assert_bad_body(text);

    clock.advance(Duration::from_mins(1));
    for _ in 0..2 {
        make_key(owner, ending("2023-11-14T22:15:20Z")).await;
    }
    for _ in 0..97 {
        make_key(owner, lasting.clone()).await;
    }
    owner.post(KEYS, lasting.clone()).await.assert_bad_body(text);
    let revive = json!({"expires_at": null});
    owner.patch(&at(&revivable, ""), revive.clone()).await.assert_bad_body(text);
    owner.patch(&at(&revivable, ""), json!({"label": "z"})).await.ok();

    clock.advance(Duration::from_mins(1));
    let known = entries(&workspace).len();
    let newest = make_key(owner, lasting.clone()).await;
    assert_eq!(entries(&workspace).len(), known + 1, "the entry is about the new key alone");
    // 99 unexpired keys, and 100 of the 101 expired ones.
    assert_eq!(owner.get(KEYS).await.ok().as_array().map(Vec::len), Some(199));
    assert_eq!(owner.get(&at(&newest, "")).await.status, 200);
    owner.patch(&at(&revivable, ""), revive).await.ok();
    assert_eq!(holder(&workspace, &revivable).get(ME).await.status, 200);
    owner.post(KEYS, lasting).await.assert_bad_body(text);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn every_change_of_a_key_is_logged_without_secrets() {
    let (workspace, clock) = Workspace::timed().await;
    let (owner, organization) = (&workspace.owner, workspace.made.organization_id);
    let (two, _) = workspace.second_organization().await;
    let begun = entries(&workspace).len();
    let tick = || clock.advance(Duration::from_secs(1));
    tick();
    let made = make_key(owner, json!({"label": "laptop", "scopes": ["user:read"]})).await;
    let one = at(&made, "");
    tick();
    owner.patch(&one, json!({"scoped_organizations": [organization], "label": "desk"})).await.ok();
    tick();
    let rolled = owner.post(&at(&made, "roll/"), json!({"grace_seconds": 60})).await.ok();
    for sent in [
        json!({"scoped_organizations": [organization, two]}),
        json!({"scoped_organizations": [two], "expires_at": "2024-01-01"}),
        // An update without a change records no entry.
        json!({"label": "desk"}),
    ] {
        tick();
        owner.patch(&one, sent).await.ok();
    }
    let path = format!("/api/organizations/{two}/");
    for path in [&path, &one] {
        tick();
        owner.delete(path).await.assert_empty(204);
    }

    let told: Vec<_> = entries(&workspace).split_off(begun);
    let text = format!("{told:?}");
    for secret in [&made["value"], &rolled["value"], &json!("argon2"), &made["mask_value"]] {
        assert!(!text.contains(secret.as_str().expect("a text")), "{text}");
    }
    let mine: Vec<_> = told.iter().filter(|entry| entry.fields.scope == "PersonalAPIKey").collect();
    assert!(mine.iter().all(|entry| made["id"] == entry.fields.item_id));
    assert!(mine.iter().all(|entry| entry.meta.user.map(|user| user.0) == Some(1)));
    let changes = |entry: &Entry| -> Vec<Value> {
        let changes = entry.fields.detail.changes.iter();
        changes.map(|change| json!([change.field, change.before, change.after])).collect()
    };
    let told = mine
        .iter()
        .map(|entry| json!([entry.fields.activity, entry.fields.detail.name, changes(entry)]));
    let (organizations, end) =
        (json!(["scoped_organizations", null, null]), "2024-01-01T00:00:00Z");
    assert_eq!(
        told.collect::<Value>(),
        json!([
            ["created", "laptop", []],
            ["updated", "desk", [["label", "laptop", "desk"], organizations]],
            ["rolled", "desk", [["last_rolled_at", null, "2023-11-14T22:13:23Z"]]],
            ["updated", "desk", [organizations]],
            ["updated", "desk", [organizations, ["expires_at", null, end]]],
            ["deleted", "desk", []],
        ])
    );
    let filed: Vec<_> = mine.iter().map(|entry| json!(entry.meta.organization)).collect();
    let (none, first) = (json!(NO_ORGANIZATION), json!(organization));
    // The organization of the last entry was deleted.
    assert_eq!(filed, [none.clone(), first.clone(), first, none.clone(), json!(two), none]);
}

#[tokio::test]
async fn former_member_adds_no_entries_to_the_organizations_log_by_a_key() {
    let (workspace, clock) = Workspace::timed().await;
    let max = workspace.member("max", Level::Member).await;
    let organization = json!(workspace.made.organization_id);
    let sent =
        json!({"label": "x", "scopes": ["user:read"], "scoped_organizations": [organization]});
    let key = make_key(&max, sent).await;
    workspace.remove_member("max@corp.example").await;
    clock.advance(Duration::from_secs(1));
    max.patch(&at(&key, ""), json!({"label": "a word to my former boss"})).await.ok();
    clock.advance(Duration::from_secs(1));
    max.delete(&at(&key, "")).await.assert_empty(204);
    let told: Vec<_> = entries(&workspace)
        .iter()
        .filter(|entry| key["id"] == entry.fields.item_id)
        .map(|entry| json!([entry.fields.activity, entry.meta.organization]))
        .collect();
    let none = json!(NO_ORGANIZATION);
    let expected = [("created", &organization), ("updated", &none), ("deleted", &none)];
    assert_eq!(told, expected.map(|(activity, place)| json!([activity, place])));
}
