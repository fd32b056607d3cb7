//! A tenant stores only so many bytes.

use std::path::Path;

use axum::http::Method;
use serde_json::{Value, json};
use steward::App;
use steward::config::{Caps, Config};
use steward::meters::Meters;
use steward::operator::Operation;
use steward::resources::members::Level;
use steward::router::router;
use steward::store::Store;

use crate::support::{Answer, Caller, Workspace};

const QUOTA: usize = 256 * 1024;

async fn with_quota(bytes: usize) -> Workspace {
    let mut config = Config::default();
    config.caps = Caps { organization_bytes: bytes, ..Caps::DEFAULT };
    config.meters = Meters::on();
    Workspace::with(config).await
}

/// What `steward organization list` tells of an organization.
async fn stored(workspace: &Workspace, id: &str) -> u64 {
    let listed = workspace.operate(Operation::OrganizationList).await;
    let all = listed["results"].as_array().expect("a list");
    let found = all.iter().find(|one| one["id"] == *id).expect("the organization");
    found["bytes"].as_u64().expect("a number")
}

/// A dashboard of 16 KB.
fn large(name: &str) -> Value {
    json!({ "name": name, "description": "x".repeat(16_000) })
}

#[track_caller]
fn reached(answer: &Answer) {
    assert_eq!((answer.status, &answer.body["code"]), (400, &json!("limit_reached")));
    let detail = answer.body["detail"].as_str().expect("a text");
    assert!(detail.starts_with(&format!("The organization may take {QUOTA} bytes.")), "{detail}");
}

/// Creates large dashboards until one is refused; answers the numbers of those created.
async fn fill_up(workspace: &Workspace) -> Vec<Value> {
    let mut created = Vec::new();
    loop {
        let answer = workspace.owner.post(&workspace.dashboards(""), large("Large")).await;
        if answer.status == 201 {
            created.push(answer.body["id"].clone());
            assert!(created.len() < 64, "64 times 16 KB are in a quota of {QUOTA} bytes");
        } else {
            reached(&answer);
            return created;
        }
    }
}

#[tokio::test]
async fn all_that_belongs_to_an_organization_is_counted_and_given_back() {
    let workspace = Workspace::new().await;
    let (owner, id) = (&workspace.owner, workspace.made.organization_id.to_string());
    let (_, other) = workspace.outsider("eve").await;
    let other = other["id"].as_str().expect("an id");
    let (before, others) = (stored(&workspace, &id).await, stored(&workspace, other).await);
    let made = owner.post(&workspace.organization("projects/"), json!({ "name": "P" })).await.ok();
    let path = format!("/api/projects/{}/dashboards/", made["id"]);
    let board = owner.post(&path, large("Large")).await.ok();
    let one = stored(&workspace, &id).await;
    assert!(one > before + 16_000, "{before} {one}");

    // A copy, free-form fields, tiles, and an answer that is kept count as well.
    let headers = [("idempotency-key", "copy"), ("content-type", "application/json")];
    let sent = large("Kept").to_string();
    owner.fetch(Method::POST, &path, &headers, sent.clone()).await.ok();
    let kept = stored(&workspace, &id).await;
    assert!(kept > one + 32_000, "the dashboard and its answer: {one} {kept}");
    owner.fetch(Method::POST, &path, &headers, sent).await.ok();
    assert_eq!(stored(&workspace, &id).await, kept, "a repeated request adds nothing");
    let text = json!({ "tiles": [{ "text": { "body": "y".repeat(3_900) } }] });
    let filters = json!({ "filters": { "note": "z".repeat(8_000) } });
    let this = format!("{path}{}/", board["id"]);
    owner.patch(&this, text).await.ok();
    owner.patch(&this, filters).await.ok();
    let full = stored(&workspace, &id).await;
    assert!(full > kept + 11_900, "{kept} {full}");
    workspace.check().await;

    // What is refused leaves no trace.
    assert_eq!(owner.post(&path, json!({ "use_dashboard": 404 })).await.status, 400);
    assert_eq!(stored(&workspace, &id).await, full);

    owner.delete(&format!("/api/projects/{}/", made["id"])).await.is_empty(204);
    let mut left = full;
    while left > before + 26_000 {
        left = stored(&workspace, &id).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(stored(&workspace, other).await, others, "another organization's is its own");
    workspace.check().await;
}

#[tokio::test]
async fn beyond_its_quota_an_organization_adds_nothing_and_the_others_go_on() {
    let workspace = with_quota(QUOTA).await;
    let (eve, other) = workspace.outsider("eve").await;
    let ben = workspace.member("ben", Level::Member).await;
    let id = workspace.made.organization_id.to_string();
    let created = fill_up(&workspace).await;
    let used = stored(&workspace, &id).await;
    assert!(used <= QUOTA as u64 && used + 17_000 > QUOTA as u64, "{used} of {QUOTA}");
    let (owner, path) = (&workspace.owner, workspace.dashboards(""));
    reached(&ben.post(&path, large("By another member")).await);
    let one = workspace.dashboards(&format!("{}/", created[0]));
    let sharing = format!("{one}sharing/");
    owner.patch(&sharing, json!({ "enabled": true })).await.ok();
    let grown = json!({ "filters": { "note": "z".repeat(17_000) } });
    reached(&owner.patch(&one, grown).await);
    let new = json!({ "name": "x".repeat(200), "description": "y".repeat(3_000) });
    while owner.post(&path, new.clone()).await.status == 201 {}
    reached(&owner.post(&path, new).await);
    let copy = json!({ "use_dashboard": created[0] });
    while owner.post(&path, copy.clone()).await.status == 201 {}
    reached(&owner.post(&path, copy).await);

    let others = format!("/api/projects/{}/dashboards/", other["project_id"]);
    eve.post(&others, large("Another tenant's")).await.ok();
    // A user's own changes are in no organization.
    owner.patch("/api/users/@me/", json!({ "first_name": "Olga" })).await.ok();
    let key = json!({ "label": "Nightly", "scopes": ["dashboard:read"] });
    owner.post("/api/personal_api_keys/", key).await.ok();

    // Everything is still read, edited, revoked and deleted.
    owner.get(&one).await.ok();
    owner.patch(&one, json!({ "pinned": true })).await.ok();
    owner.patch(&sharing, json!({ "enabled": false })).await.ok();
    let uuid = workspace.uuid("ben@corp.example").await;
    let member = workspace.organization(&format!("members/{uuid}/"));
    owner.patch(&member, json!({ "level": 8 })).await.ok();
    owner.patch(&member, json!({ "level": 1 })).await.ok();
    owner.delete(&member).await.is_empty(204);
    for number in &created {
        let path = workspace.dashboards(&format!("{number}/"));
        owner.patch(&path, json!({ "deleted": true })).await.ok();
    }
    workspace.check().await;
}

#[tokio::test]
async fn small_edits_beyond_the_quota_end_at_a_sixteenth_and_removals_do_not() {
    let workspace = with_quota(QUOTA).await;
    let created = fill_up(&workspace).await;
    let one = workspace.dashboards(&format!("{}/", created[0]));
    let id = workspace.made.organization_id.to_string();
    let mut edits = 0;
    let refused = loop {
        let answer = workspace.owner.patch(&one, json!({ "pinned": edits % 2 == 0 })).await;
        if answer.status != 200 {
            break answer;
        }
        edits += 1;
        assert!(edits < 1_000, "each leaves an entry in the activity log");
    };
    reached(&refused);
    let used = stored(&workspace, &id).await;
    let most = QUOTA as u64 / 16 * 17;
    assert!(used <= most && used + 4_096 > most, "{used} of {most}");
    for number in &created {
        let path = workspace.dashboards(&format!("{number}/"));
        workspace.owner.patch(&path, json!({ "deleted": true })).await.ok();
    }
    reached(&workspace.owner.patch(&one, json!({ "deleted": false })).await);
    workspace.check().await;
}

#[tokio::test]
async fn the_operator_sees_who_is_near_the_quota_and_no_tenant_in_the_numbers() {
    let workspace = with_quota(QUOTA).await;
    workspace.outsider("eve").await;
    fill_up(&workspace).await;
    let id = workspace.made.organization_id.to_string();
    let listed = workspace.operate(Operation::OrganizationList).await;
    assert_eq!(listed["results"][0]["quota"], QUOTA);
    let numbers = workspace.app.numbers().await.expect("numbers");
    let value = |name: &str| {
        let line = numbers.lines().find(|line| line.starts_with(name)).expect("a series");
        line.rsplit(' ').next().and_then(|value| value.parse::<u64>().ok()).expect("a number")
    };
    assert_eq!(value("steward_organizations_near_quota "), 1);
    assert_eq!(value("steward_largest_organization_bytes "), stored(&workspace, &id).await);
    assert!(!numbers.contains(&id));
}

/// The same file, served with this much of the disk to be kept free.
fn serve(path: &Path, key: &str, reserve: Option<usize>) -> (App, Caller) {
    let mut config = Config::default();
    config.caps.disk_reserve = reserve;
    let app = App::new(Store::open(path, 4 << 20).expect("it opens"), config).expect("it serves");
    let caller = Caller::of(router(app.clone()), key);
    (app, caller)
}

#[tokio::test]
async fn near_a_full_disk_what_adds_is_refused_and_what_removes_goes_on() {
    let workspace = Workspace::new().await;
    let (path, boards) = (workspace.path(), workspace.dashboards(""));
    let made = workspace.owner.post(&boards, large("Large")).await.ok();
    let one = workspace.dashboards(&format!("{}/", made["id"]));
    let sharing = format!("{one}sharing/");
    workspace.owner.patch(&sharing, json!({ "enabled": true })).await.ok();
    let key = workspace.owner.key.clone().expect("a key");
    workspace.app.close().await;

    // More than any disk has.
    let (app, owner) = serve(&path, &key, Some(usize::MAX));
    let answer = owner.post(&boards, large("Refused")).await;
    assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")));
    assert!(answer.headers.contains_key("retry-after"));
    owner.get(&one).await.ok();
    owner.patch(&one, json!({ "description": "" })).await.ok();
    owner.patch(&one, json!({ "deleted": true })).await.ok();
    assert_eq!(owner.patch(&one, json!({ "deleted": false })).await.status, 503);
    app.close().await;
    drop(owner);

    let (app, owner) = serve(&path, &key, Some(0));
    owner.post(&boards, large("There is room")).await.ok();
    app.close().await;
}
