//! Authentication with personal API keys. See `docs/spec/authentication.md`.

use steward::testing::operator::KeyOptions;

use crate::support::prelude::*;

async fn authorized(workspace: &Workspace, header: &str) -> TestResponse {
    workspace.anonymous().fetch(Method::GET, ME, &[("authorization", header)], "").await
}

/// Returns the newest key of `email`, as listed.
async fn listed(app: &App, email: &str) -> Value {
    let keys = perform(app, Operation::KeyList, Progress::silent()).await.expect("a list");
    let keys = keys["results"].as_array().expect("a list").iter();
    let mut keys: Vec<&Value> = keys.filter(|key| key["email"] == email).collect();
    keys.sort_by_key(|key| key["id"].as_str().expect("an id"));
    keys.pop().expect("a key").clone()
}

/// Waits until the recorded last use of the key is not `before`, and returns it.
async fn use_recorded(app: &App, email: &str, before: &Value) -> Value {
    eventually_async("the use is recorded", async || {
        let recorded = listed(app, email).await["last_used_at"].clone();
        Some(recorded).filter(|recorded| recorded != before)
    })
    .await
}

#[tokio::test]
async fn bearer_header_with_any_spacing_is_the_only_credential() {
    let workspace = Workspace::new().await;
    let key = workspace.made.api_key.clone();
    for header in [
        format!("Bearer {key}"),
        format!("Bearer    {key}"),
        format!("Bearer {key}   "),
        format!("Bearer \t{key}\t"),
    ] {
        assert_eq!(authorized(&workspace, &header).await.status, 200, "{header:?}");
    }
    workspace.anonymous().get(ME).await.is_no_key();
    for header in [
        format!("bearer {key}"),
        format!("BEARER {key}"),
        format!("Bearer{key}"),
        format!("Token {key}"),
        format!("Basic {key}"),
        key.clone(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer x".to_owned(),
        "Bearer pha_1234567890".to_owned(),
        String::new(),
    ] {
        authorized(&workspace, &header).await.is_no_key();
    }
    workspace.anonymous().get(&format!("{ME}?personal_api_key={key}")).await.is_no_key();
    workspace.anonymous().patch(ME, json!({ "personal_api_key": key })).await.is_no_key();
}

#[tokio::test]
async fn truncated_altered_or_foreign_key_is_rejected() {
    let workspace = Workspace::new().await;
    let key = &workspace.made.api_key;
    for at in [4, 25, 50, 75] {
        workspace.with_key(&key[..at]).get(ME).await.is_bad_key();
        let other = if key.as_bytes()[at] == b'a' { "b" } else { "a" };
        let mut changed = key.clone();
        changed.replace_range(at..=at, other);
        workspace.with_key(&changed).get(ME).await.is_bad_key();
    }
    for wrong in [
        Workspace::new().await.made.api_key,
        format!("{key}x"),
        format!("{key} {key}"),
        key.replace("phx_", "phc_"),
        key.to_uppercase(),
        "phx_".to_owned(),
        "xx".to_owned(),
        "x".repeat(16_000),
        "phx_é".to_owned(),
    ] {
        authorized(&workspace, &format!("Bearer {wrong}")).await.is_bad_key();
    }
    assert_eq!(workspace.owner.get(ME).await.status, 200);
}

#[tokio::test]
async fn key_expires_exactly_at_its_expiry_time() {
    let (workspace, _) = Workspace::timed().await;
    for (expires_in, open) in [(-1, false), (0, false), (1, true)] {
        let key = workspace.limited_key(OWNER, &["*"], json!({"expires_in": expires_in})).await;
        let answer = key.get(ME).await;
        if open {
            assert_eq!(answer.status, 200);
        } else {
            answer.is_bad_key();
        }
    }
}

#[tokio::test]
async fn scope_allows_what_it_names_and_write_implies_read() {
    let workspace = Workspace::new().await;
    let list = workspace.dashboards("");
    let lacks = |scope| format!("API key missing required scope '{scope}'");
    for (scopes, reads, writes) in [
        (&["*"][..], true, true),
        (&["dashboard:write"], true, true),
        (&["user:read", "dashboard:read"], true, false),
        (&["dashboard_template:write", "project:write"], false, false),
    ] {
        let key = workspace.key(OWNER, scopes).await;
        let (get, post) = (key.get(&list).await, key.post(&list, json!({})).await);
        allows(&get, reads, &lacks("dashboard:read"));
        allows(&post, writes, &lacks("dashboard:write"));
    }
}

#[tokio::test]
async fn key_use_is_recorded_once_an_hour() {
    let (config, clock) = with_clock();
    let workspace = Workspace::with(config.clone()).await;
    let max = workspace.member("max", Level::Member).await.key.expect("a key");
    assert_eq!(listed(&workspace.app, OWNER).await["last_used_at"], json!(null));
    assert_eq!(workspace.owner.get(ME).await.status, 200);
    let first = use_recorded(&workspace.app, OWNER, &json!(null)).await;
    assert_eq!(first, "2023-11-14T22:13:20Z");
    clock.advance(Duration::from_secs(3599));
    let workspace = workspace.reopened(config.clone()).await;
    workspace.owner.get(ME).await.ok();
    // A use of the owner's key would be recorded before this later one.
    workspace.with_key(&max).get(ME).await.ok();
    use_recorded(&workspace.app, "max@corp.example", &json!(null)).await;
    assert_eq!(listed(&workspace.app, OWNER).await["last_used_at"], first);

    clock.advance(Duration::from_secs(1));
    let workspace = workspace.reopened(config).await;
    workspace.owner.get(ME).await.ok();
    assert_eq!(use_recorded(&workspace.app, OWNER, &first).await, "2023-11-14T23:13:20Z");
}

#[tokio::test]
async fn rejected_key_is_not_recorded_as_used() {
    let (workspace, member) = Workspace::with_member("max", Level::Member).await;
    let mut wrong = member.key.clone().expect("a key");
    wrong.pop();
    workspace.with_key(&wrong).get(ME).await.is_bad_key();
    // A use of that key would be recorded before this later one of another.
    workspace.owner.get(ME).await.ok();
    use_recorded(&workspace.app, OWNER, &json!(null)).await;
    assert_eq!(listed(&workspace.app, "max@corp.example").await["last_used_at"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_uses_of_a_key_all_succeed() {
    let workspace = Workspace::new().await;
    let key = workspace.key(OWNER, &["user:read"]).await;
    let herd = (0..64).map(|_| {
        let key = key.clone();
        tokio::spawn(async move { key.get(ME).await.status })
    });
    for answer in join_all(herd).await {
        assert_eq!(answer.expect("no panic"), 200);
    }
}

#[tokio::test]
async fn key_label_is_trimmed_and_must_not_be_blank() {
    let workspace = Workspace::new().await;
    let create = |label: &str| {
        let scopes = vec!["logs:read".to_owned(), "llm_gateway:read".to_owned()];
        Operation::KeyCreate(KeyOptions { scopes, ..new_key(OWNER, label) })
    };
    let refused =
        perform(&workspace.app, create("  "), Progress::silent()).await.expect_err("no label");
    assert_eq!((refused.attr(), refused.code()), (Some("label"), "blank"));
    let made = workspace.run_operation(create("  laptop ")).await;
    let keys = workspace.run_operation(Operation::KeyList).await;
    let listed = keys["results"].as_array().expect("keys").iter();
    let labels: Vec<_> =
        listed.filter(|key| key["id"] == made["id"]).map(|key| &key["label"]).collect();
    assert_eq!(labels, ["laptop"]);
}
