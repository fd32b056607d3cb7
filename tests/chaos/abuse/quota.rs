//! Tests of the quota on the bytes that a tenant stores.

use steward::testing::ids::ActivityId;
use steward::testing::resources::users;
use steward::testing::store::FreeSpace;
use uuid::Uuid;

use crate::prelude::*;
use crate::support::activity::entries;
use crate::support::idempotency::post_once;
use crate::support::metrics::is;

const QUOTA: usize = 256 * 1024;

async fn with_quota(bytes: usize) -> Workspace {
    let mut config = Config::default();
    config.caps.organization_quota = bytes;
    config.metrics = Metrics::enabled();
    Workspace::with(config).await
}

/// Returns the bytes of an organization in the output of `steward organization list`.
async fn stored(workspace: &Workspace, id: &str) -> u64 {
    let listed = workspace.run_operation(Operation::OrganizationList).await;
    let place = column(&listed, "id").iter().position(|one| one == id).expect("the organization");
    listed["results"][place]["bytes"].as_u64().expect("a number")
}

/// Returns a dashboard of 16 KB.
fn large(name: &str) -> Value {
    json!({ "name": name, "description": "x".repeat(16_000) })
}

#[track_caller]
fn reached(answer: &TestResponse) {
    assert_eq!((answer.status, &answer.body["code"]), (400, &json!("limit_reached")));
    // The error does not contain the bytes in use, which only the operator may know.
    let told =
        format!("The organization may store at most {QUOTA} bytes. This change would exceed that.");
    assert_eq!(answer.body["detail"], told);
}

/// Creates large dashboards until one fails. Returns the ids of those created.
async fn fill_up(workspace: &Workspace) -> Vec<Value> {
    let mut created = Vec::new();
    loop {
        let answer = workspace.owner.post(&workspace.dashboards(""), large("Large")).await;
        if answer.status == 201 {
            created.push(answer.body["id"].clone());
            assert!(created.len() < 64, "64 dashboards of 16 KB fit in a quota of {QUOTA} bytes");
        } else {
            reached(&answer);
            return created;
        }
    }
}

/// Sends updates until one fails, which must be one of the first `most`. Returns the error.
async fn patch_until_refused(
    caller: &TestClient,
    path: &str,
    most: u64,
    edit: impl Fn(u64) -> Value,
) -> TestResponse {
    for number in 0..most {
        let answer = caller.patch(path, edit(number)).await;
        if answer.status != 200 {
            return answer;
        }
    }
    panic!("{most} updates succeeded, although each adds an entry to the activity log");
}

#[tokio::test]
async fn all_data_of_an_organization_counts_against_its_quota_and_is_released() {
    let workspace = Workspace::new().await;
    let (owner, id) = (&workspace.owner, workspace.made.organization_id.to_string());
    let (_, other) = workspace.outsider("eve").await;
    let other = other["id"].as_str().expect("an id");
    let (before, others) = (stored(&workspace, &id).await, stored(&workspace, other).await);
    let made = owner.post(&workspace.organization("projects/"), json!({ "name": "P" })).await.ok();
    let path = format!("/api/projects/{}/dashboards/", made["id"]);
    let (_, this) = owner.create(&path, large("Large")).await;
    let one = stored(&workspace, &id).await;
    assert!(one > before + 16_000, "{before} {one}");

    // A copy, free-form fields, tiles and a stored response count as well.
    post_once(owner, &path, "copy", &large("Kept")).await.ok();
    let kept = stored(&workspace, &id).await;
    assert!(kept > one + 32_000, "the dashboard and the stored response must count: {one} {kept}");
    post_once(owner, &path, "copy", &large("Kept")).await.ok();
    assert_eq!(stored(&workspace, &id).await, kept, "a repeated request adds nothing");
    let text = json!({ "tiles": [{ "text": { "body": "y".repeat(3_900) } }] });
    let filters = json!({ "filters": { "note": "z".repeat(8_000) } });
    owner.patch(&this, text).await.ok();
    owner.patch(&this, filters).await.ok();
    let full = stored(&workspace, &id).await;
    assert!(full > kept + 11_900, "{kept} {full}");
    workspace.assert_file_valid().await;

    // A failed request changes nothing.
    assert_eq!(owner.post(&path, json!({ "use_dashboard": 404 })).await.status, 400);
    assert_eq!(stored(&workspace, &id).await, full);

    owner.delete(&format!("/api/projects/{}/", made["id"])).await.assert_empty(204);
    eventually_async("the bytes are released", async || {
        (stored(&workspace, &id).await <= before + 26_000).then_some(())
    })
    .await;
    assert_eq!(stored(&workspace, other).await, others, "bytes of another organization");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn organization_over_its_quota_cannot_add_data_and_others_can() {
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
    reached(&owner.patch(&one, json!({ "filters": { "note": "z".repeat(17_000) } })).await);
    let new = json!({ "name": "x".repeat(200), "description": "y".repeat(3_000) });
    while owner.post(&path, new.clone()).await.status == 201 {}
    reached(&owner.post(&path, new).await);
    let copy = json!({ "use_dashboard": created[0] });
    while owner.post(&path, copy.clone()).await.status == 201 {}
    reached(&owner.post(&path, copy).await);

    let others = format!("/api/projects/{}/dashboards/", other["project_id"]);
    eve.post(&others, large("Another tenant's")).await.ok();
    // Changes to a user's own account do not count towards an organization.
    owner.patch("/api/users/@me/", json!({ "first_name": "Olga" })).await.ok();
    let key = json!({ "label": "Nightly", "scopes": ["dashboard:read"] });
    owner.post("/api/personal_api_keys/", key).await.ok();

    // Reading, small updates, revoking and deleting still succeed.
    owner.get(&one).await.ok();
    owner.patch(&one, json!({ "pinned": true })).await.ok();
    owner.patch(&sharing, json!({ "enabled": false })).await.ok();
    let uuid = workspace.uuid("ben@corp.example").await;
    let member = workspace.organization(&format!("members/{uuid}/"));
    owner.patch(&member, json!({ "level": 8 })).await.ok();
    owner.patch(&member, json!({ "level": 1 })).await.ok();
    owner.delete(&member).await.assert_empty(204);
    for number in &created {
        let path = workspace.dashboards(&format!("{number}/"));
        owner.patch(&path, json!({ "deleted": true })).await.ok();
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn updates_over_the_quota_stop_at_a_sixteenth_and_deletions_continue() {
    let workspace = with_quota(QUOTA).await;
    workspace.outsider("eve").await;
    let created = fill_up(&workspace).await;
    let one = workspace.dashboards(&format!("{}/", created[0]));
    let id = workspace.made.organization_id.to_string();
    // The operator sees the use, and metrics name no organization.
    let listed = workspace.run_operation(Operation::OrganizationList).await;
    assert_eq!(listed["results"][0]["quota"], QUOTA);
    let text = workspace.app.metrics().await.expect("numbers");
    let numbers = Numbers::read(&text);
    assert!(is(numbers.value("steward_organizations_near_quota", &[]), 1), "{text}");
    let largest = u32::try_from(stored(&workspace, &id).await).expect("few bytes");
    assert!(is(numbers.value("steward_largest_organization_bytes", &[]), largest), "{text}");
    assert!(!text.contains(&id));

    let edit = |number: u64| json!({ "pinned": number.is_multiple_of(2) });
    reached(&patch_until_refused(&workspace.owner, &one, 1_000, edit).await);
    let used = stored(&workspace, &id).await;
    let most = QUOTA as u64 / 16 * 17;
    assert!(used <= most && used + 4_096 > most, "{used} of {most}");
    for number in &created {
        let path = workspace.dashboards(&format!("{number}/"));
        workspace.owner.patch(&path, json!({ "deleted": true })).await.ok();
    }
    reached(&workspace.owner.patch(&one, json!({ "deleted": false })).await);
    workspace.assert_file_valid().await;
}

/// Returns the bytes that count towards the owner's account.
fn stored_by_owner(workspace: &Workspace) -> u64 {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let owner = users::owner_of(&*tx, workspace.made.user_id).expect("read").expect("a user");
    owner.stored_bytes(&*tx).expect("a sum")
}

#[tokio::test]
async fn changes_of_a_users_own_profile_count_against_the_users_limit() {
    const MOST: u64 = 64 << 20;
    let workspace = Workspace::new().await;
    let ben = workspace.member("ben", Level::Member).await;
    let (owner, me, keys) = (&workspace.owner, "/api/users/@me/", "/api/personal_api_keys/");
    let key = json!({ "label": "Nightly", "scopes": ["dashboard:read"] });
    let (_, one) = owner.create(keys, key).await;
    let profile = |letter: &str| {
        let value = json!({ "note": letter.repeat(2_000) });
        json!({
            "notification_settings": value, "events_column_config": value,
            "has_seen_product_intro_for": value, "hedgehog_config": value,
        })
    };
    owner.patch(me, profile("a")).await.ok();
    let before = stored_by_owner(&workspace);
    owner.patch(me, profile("b")).await.ok();
    let each = stored_by_owner(&workspace) - before;
    assert!((16_000..20_000).contains(&each), "an entry has the old and the new values: {each}");

    workspace.assert_file_valid().await;
    // The same entry many times, with a name of 1 MiB.
    let last = entries(&workspace).pop().expect("an entry");
    let filled = workspace.app.operate(move |tx, _| {
        let mut entry = last.clone();
        entry.meta.created_at = Timestamp::from_micros(0);
        entry.fields.detail.name = Some("x".repeat(1 << 20));
        entry.fields.detail.changes.clear();
        (0..67).try_for_each(|number| {
            entry.meta.id = ActivityId(Uuid::from_u128(number));
            tx.put(&entry)
        })
    });
    filled.await.expect("written");
    let edit = |number: u64| profile(&(number % 10).to_string());
    let refused = patch_until_refused(owner, me, (1 << 20) / each, edit).await;
    let told =
        format!("Your account may store at most {MOST} bytes. This change would exceed that.");
    refused.assert_error(400, "validation_error", "limit_reached", &told, None);
    assert!(stored_by_owner(&workspace) <= MOST / 16 * 17);
    owner.post(&workspace.dashboards(""), large("In an organization")).await.ok();
    ben.patch(me, profile("a")).await.ok();
    owner.delete(&one).await.assert_empty(204);
}

#[tokio::test]
async fn repeated_updates_of_a_limited_key_stop_at_the_organization_quota() {
    let workspace = with_quota(QUOTA).await;
    let id = workspace.made.organization_id.to_string();
    let keys = "/api/personal_api_keys/";
    let key = json!({ "label": "Own", "scopes": ["*"], "scoped_organizations": [id] });
    let (_, one) = workspace.owner.create(keys, key).await;
    fill_up(&workspace).await;
    let edit = |number: u64| json!({ "label": format!("{number:040}") });
    reached(&patch_until_refused(&workspace.owner, &one, 1_000, edit).await);
    assert!(stored(&workspace, &id).await <= QUOTA as u64 / 16 * 17);
    workspace.owner.delete(&one).await.assert_empty(204);
    workspace.assert_file_valid().await;
}

/// Creates a dashboard with this many insights. Returns its path.
async fn with_insights(workspace: &Workspace, count: usize) -> String {
    let tile = json!({ "type": "INSIGHT", "name": "An insight", "query": { "kind": "A" } });
    let made = from_tiles(&workspace.owner, workspace, json!(vec![tile; count])).await.ok();
    assert_eq!(made["tiles"].as_array().expect("tiles").len(), count);
    workspace.dashboards(&format!("{}/", made["id"]))
}

/// Returns the requests that delete a dashboard.
fn removals() -> [Value; 2] {
    [json!({ "deleted": true }), json!({ "deleted": true, "delete_insights": true })]
}

#[tokio::test]
async fn dashboards_of_any_size_can_be_deleted_over_the_quota() {
    let workspace = with_quota(5 * QUOTA).await;
    let mut boards = Vec::new();
    for count in [150, 245, 600] {
        for removal in removals() {
            boards.push((with_insights(&workspace, count).await, removal));
        }
    }
    let new = json!({ "name": "x".repeat(200) });
    let path = workspace.dashboards("");
    while workspace.owner.post(&path, new.clone()).await.status == 201 {}
    for (one, removal) in boards {
        assert_eq!(workspace.owner.patch(&one, removal).await.ok()["deleted"], true);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn near_full_disk_rejects_additions_and_allows_rotation_and_deletions() {
    let workspace = Workspace::new().await;
    workspace.member("ben", Level::Member).await;
    let mut removed = Vec::new();
    for removal in removals() {
        removed.push((with_insights(&workspace, 150).await, removal));
    }
    let rules = format!("{}access_controls/", removed[0].0);
    let member = workspace.membership("ben@corp.example").await;
    let rule = |level: Value| json!({ "access_level": level, "organization_member": member });
    workspace.owner.put(&rules, rule(json!("none"))).await.ok();
    // The operator created the key, so there is no record of its creator's permissions.
    let leaked = workspace.key(OWNER, &["dashboard:read"]).await;
    let leaked = leaked.get("/api/personal_api_keys/@current/").await.ok();
    let boards = workspace.dashboards("");
    let (_, one) = workspace.owner.create(&boards, large("Large")).await;
    workspace.owner.patch(&format!("{one}sharing/"), json!({ "enabled": true })).await.ok();
    let key = workspace.owner.key.clone().expect("a key");
    workspace.app.close().await;

    // A reserve larger than any disk.
    let (app, owner) = serve(&workspace.path(), &key, Some(usize::MAX));
    let answer = owner.post(&boards, large("Refused")).await;
    assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")));
    assert!(answer.headers.contains_key("retry-after"));
    owner.get(&one).await.ok();
    owner.patch(&one, json!({ "description": "" })).await.ok();
    owner.patch(&one, json!({ "deleted": true })).await.ok();
    assert_eq!(owner.patch(&one, json!({ "deleted": false })).await.status, 503);
    owner.put(&rules, rule(Value::Null)).await.assert_empty(204);
    for (one, removal) in removed {
        owner.patch(&one, removal).await.ok();
    }
    let refused = perform(&app, Operation::Check, Progress::silent()).await;
    assert_eq!(refused.expect_err("no room for a copy").status(), 503);
    app.close().await;
    drop(owner);

    // Free space is between half of the reserve and the reserve.
    let store = Store::open(&workspace.path(), 4 << 20).expect("it opens");
    let free = FreeSpace::of(&store).get().expect("free space").free;
    store.close().await;
    drop(store);
    let reserve = usize::try_from(free / 2 * 3).expect("a size");
    let (app, owner) = serve(&workspace.path(), &key, Some(reserve));
    assert_eq!(owner.post(&boards, json!({ "name": "Refused" })).await.status, 503);
    let path = format!("/api/personal_api_keys/{}/roll/", leaked["id"].as_str().expect("an id"));
    owner.post(&path, json!({ "grace_seconds": 0 })).await.ok();
    app.close().await;
    drop(owner);

    let (app, owner) = serve(&workspace.path(), &key, Some(0));
    owner.post(&boards, large("There is room")).await.ok();
    app.close().await;
}

/// Opens the file with this reserve of free disk space.
fn serve(path: &Path, key: &str, reserve: Option<usize>) -> (App, TestClient) {
    let mut config = Config::default();
    config.caps.disk_reserve = reserve;
    let app = App::new(Store::open(path, 4 << 20).expect("it opens"), config).expect("it serves");
    let caller = TestClient::of(router(app.clone()), key);
    (app, caller)
}
