//! Tests that each change writes one activity entry in the same transaction, without secrets. The tests read the
//! entries from the data file; `log` reads them over HTTP.

pub mod log;
mod retention;
pub mod secrets;
mod visibility;

use tokio::sync::Notify;

use crate::support::prelude::*;

/// Returns the one entry that is not in `known`.
#[track_caller]
fn new_entry(workspace: &Workspace, known: &[Entry]) -> Entry {
    let mut new = entries(workspace);
    new.retain(|entry| !known.contains(entry));
    assert_eq!(new.len(), 1, "{new:?}");
    new.remove(0)
}

/// Returns the content of an entry: scope, item, activity, name, and the changes as `field: [before, after]`.
fn told(entry: &Entry) -> Value {
    let shown = &entry.fields;
    let mut changes = json!({});
    for change in &shown.detail.changes {
        assert_eq!(change.r#type.as_str(), shown.scope.as_str());
        assert_eq!(change.action.as_str(), "changed");
        changes[&change.field] = json!([change.before, change.after]);
    }
    json!([shown.scope, shown.item_id, shown.activity, shown.detail.name, changes])
}

/// Sends a request and asserts the content of its entry, whose item is not compared if the expected one is null. Returns
/// the entry and the response body.
async fn take(
    workspace: &Workspace,
    caller: &TestClient,
    (method, path): (Method, &str),
    sent: Value,
    expected: Value,
) -> (Entry, Value) {
    let user = caller.get(ME).await.ok()["id"].clone();
    let known = entries(workspace);
    let body = caller.send(method, path, Some(sent)).await.ok();
    let entry = new_entry(workspace, &known);
    let mut said = told(&entry);
    if expected[1].is_null() {
        said[1] = Value::Null;
    }
    assert_eq!(said, expected, "{path}");
    assert_eq!(json!(entry.meta.user), user);
    (entry, body)
}

#[tokio::test]
async fn every_change_of_an_organization_creates_one_log_entry() {
    let workspace = Workspace::new().await;
    let (owner, path) = (&workspace.owner, workspace.organization(""));
    let id = workspace.made.organization_id;
    let to_list = (Method::POST, "/api/organizations/");
    let told = json!(["Organization", null, "created", "New", {}]);
    let (made, body) = take(&workspace, owner, to_list, json!({ "name": "New" }), told).await;
    let ids = json!([made.meta.organization, made.fields.item_id]);
    assert_eq!(ids, json!([body["id"], body["id"]]));
    assert_eq!(json!(made.meta.created_at), body["created_at"]);

    let sent = json!({ "name": "Corp 2", "members_can_invite": false, "enforce_2fa": null });
    let changes = json!({ "name": ["Corp", "Corp 2"], "members_can_invite": [true, false] });
    let told = json!(["Organization", id, "updated", "Corp 2", changes]);
    let (changed, body) = take(&workspace, owner, (Method::PATCH, &path), sent, told).await;
    assert_eq!((changed.meta.organization, changed.meta.project), (id, None));
    assert_eq!(json!(changed.meta.created_at), body["updated_at"]);

    let known = entries(&workspace);
    owner.patch(&path, json!({ "name": "Corp 2" })).await.ok();
    let blank = owner.patch(&path, json!({ "name": "" })).await;
    blank.assert_invalid("name", "blank", "This field may not be blank.");
    assert_eq!(entries(&workspace), known, "what changes nothing leaves no entry");
}

#[tokio::test]
async fn every_change_of_a_member_creates_one_log_entry() {
    let workspace = Workspace::new().await;
    let (owner, ann) = (&workspace.owner, workspace.member("ann", Level::Member).await);
    let id = workspace.membership(ANN).await;
    let path = workspace.organization(&format!("members/{}/", workspace.uuid(ANN).await));
    let told = json!(["OrganizationMembership", id, "updated", null, { "level": [1, 8] }]);
    let to_one = (Method::PATCH, path.as_str());
    let (entry, _) = take(&workspace, owner, to_one, json!({ "level": 8 }), told).await;
    assert_eq!(entry.meta.organization, workspace.made.organization_id);
    // The rule is deleted with the membership, but the entry is about the member.
    workspace.set_rule(&workspace.project(""), Some(ANN), "admin").await;
    let known = entries(&workspace);
    owner.patch(&path, json!({ "level": 8 })).await.ok();
    let refused = ann.patch(&path, json!({ "level": 1 })).await;
    refused.assert_denied("You can't change your own access level.");
    assert_eq!(entries(&workspace), known);
    let told = json!(["OrganizationMembership", id, "deleted", null, {}]);
    take(&workspace, owner, (Method::DELETE, &path), json!({}), told).await;
}

#[tokio::test]
async fn every_change_of_access_creates_one_log_entry_with_the_level() {
    let (workspace, owner) = Workspace::owned().await;
    workspace.member("ann", Level::Member).await;
    let (role, _) = add_role(&workspace, "Analysts").await;
    let role_id = role["id"].as_str().expect("an id");
    let (_, dashboard) =
        make(&workspace, &owner, json!({ "name": "A", "restriction_level": 37 })).await;
    let member = json!({ "organization_member": workspace.membership(ANN).await });
    let subjects = [(member, "2"), (json!({ "role": role_id }), role_id), (json!({}), "*")];
    let levels = ["viewer", "manager"];
    for (path, item, name, [low, high]) in [
        (workspace.access_controls(), "1", "Web", ["member", "admin"]),
        (format!("{dashboard}access_controls/"), "1:dashboard:1", "A", levels),
        (workspace.project("resource_access_controls/"), "1:dashboard:*", "Web", levels),
    ] {
        for (subject, of) in &subjects {
            for (level, activity, before) in [
                (json!(low), "created", json!(null)),
                (json!(high), "updated", json!(low)),
                (json!(null), "deleted", json!(high)),
            ] {
                let sent = with(
                    subject.clone(),
                    json!({ "access_level": level, "resource": "dashboard" }),
                );
                let changes = json!({ "access_level": [before, level] });
                let item = format!("{item}:{of}");
                let told = json!(["AccessControl", item, activity, name, changes]);
                let (entry, _) = take(&workspace, &owner, (Method::PUT, &path), sent, told).await;
                assert_eq!(entry.meta.organization, workspace.made.organization_id);
                assert_eq!(entry.meta.project, Some(workspace.made.project_id));
            }
        }
    }
    let collaborators = format!("{dashboard}collaborators/");
    let uuid = workspace.uuid(ANN).await;
    let sent = json!({ "user_uuid": uuid, "level": 37 });
    let one = format!("{collaborators}{uuid}/");
    for (method, path, sent, activity, levels) in [
        (Method::POST, &collaborators, sent, "created", json!([null, 37])),
        (Method::DELETE, &one, json!({}), "deleted", json!([37, null])),
    ] {
        let told = json!(["DashboardCollaborator", "1:2", activity, "A", { "level": levels }]);
        take(&workspace, &owner, (method, path), sent, told).await;
    }
    let project = workspace.access_controls();
    owner.put(&project, json!({ "access_level": "none" })).await.ok();
    // Opening a closed project is a change of the project.
    let told = json!(["Project", "1", "updated", "Web", { "access_control": [true, false] }]);
    take(&workspace, &owner, (Method::PUT, &project), json!({ "access_level": null }), told).await;
    workspace.set_rule(&workspace.project(""), Some(ANN), "admin").await;
    let known = entries(&workspace);
    workspace.set_rule(&workspace.project(""), Some(ANN), "admin").await;
    assert_eq!(entries(&workspace), known);
}

#[tokio::test]
async fn every_change_of_a_project_creates_one_log_entry_without_secrets() {
    let (workspace, owner) = Workspace::owned().await;
    let webhook = |number: u8| json!({ "slack_incoming_webhook": format!("https://h.example/SECRET-{number}") });
    let list = workspace.organization("projects/");
    let told = json!(["Project", null, "created", "New", {}]);
    let sent = with(webhook(1), json!({ "name": "New" }));
    let (made, body) = take(&workspace, &owner, (Method::POST, &list), sent, told).await;
    let id = body["id"].clone();
    assert_eq!(json!([made.meta.project, made.fields.item_id]), json!([id, id.to_string()]));
    assert_eq!(made.meta.organization, workspace.made.organization_id);

    let path = format!("/api/projects/{id}/");
    // The two records of a project change in one entry, which contains no secret.
    for [sent, changes] in rows(json!([
        [with(webhook(2), json!({ "name": "Newer", "week_start_day": 1 })),
         { "name": ["New", "Newer"], "slack_incoming_webhook": [null, null], "week_start_day": [null, 1] }],
        [webhook(3), { "slack_incoming_webhook": [null, null] }],
        [{ "access_control": true, "extra_settings": { "long": "x".repeat(4000) } },
         { "access_control": [false, true], "extra_settings": [null, "(1 member)"] }],
    ])) {
        let told = json!(["Project", id.to_string(), "updated", "Newer", changes]);
        take(&workspace, &owner, (Method::PATCH, &path), sent, told).await;
    }
    let reset = format!("{path}reset_token/");
    let told =
        json!(["Project", id.to_string(), "updated", "Newer", { "api_token": [null, null] }]);
    take(&workspace, &owner, (Method::PATCH, &reset), json!({}), told).await;
    let told = json!(["Project", id.to_string(), "deleted", "Newer", {}]);
    take(&workspace, &owner, (Method::DELETE, &path), json!({}), told).await;

    let token = body["api_token"].as_str().expect("a token");
    for entry in entries(&workspace) {
        let text = serde_json::to_string(&entry.fields).expect("JSON");
        for secret in ["SECRET", token, "phc_", "phx_", "argon2"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[tokio::test]
async fn changes_of_a_users_own_profile_are_in_no_organization_log() {
    let workspace = Workspace::new().await;
    for [sent, changes] in rows(json!([
        [{ "first_name": "Ola" }, { "first_name": ["Olga", "Ola"] }],
        [{ "theme_mode": "dark" }, { "theme_mode": [null, "dark"] }],
        [{ "last_name": "Nord", "anonymize_data": true },
         { "last_name": ["", "Nord"], "anonymize_data": [false, true] }],
    ])) {
        let told = json!(["User", "1", "updated", null, changes]);
        let (entry, _) = take(&workspace, &workspace.owner, (Method::PATCH, ME), sent, told).await;
        assert_eq!(entry.meta.organization, NO_ORGANIZATION);
    }
}

#[tokio::test]
async fn every_change_of_a_dashboard_creates_one_log_entry() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let template = json!({
        "template_name": "B", "dashboard_description": "", "dashboard_filters": { "date_from": "-7d" },
        "tiles": [{ "type": "TEXT" }, { "type": "INSIGHT", "name": "C" }],
    });
    for (rest, sent, name) in [
        ("", json!({ "name": "A", "filters": { "date_from": "-7d" } }), "A"),
        ("", json!({ "use_template": "DEFAULT_APP" }), "Product analytics"),
        ("create_from_template_json/", json!({ "template": template }), "B"),
    ] {
        let told = json!(["Dashboard", null, "created", name, {}]);
        let path = workspace.dashboards(rest);
        let (made, body) = take(&workspace, &ann, (Method::POST, &path), sent, told).await;
        assert_eq!(made.fields.item_id, body["id"].to_string());
        assert_eq!(made.meta.project, Some(workspace.made.project_id));
    }
    for (sent, activity, changes) in [
        (json!({ "pinned": true }), "updated", json!({ "pinned": [false, true] })),
        (json!({ "deleted": true }), "deleted", json!({ "deleted": [false, true] })),
        (json!({ "deleted": false }), "restored", json!({ "deleted": [true, false] })),
    ] {
        let told = json!(["Dashboard", "1", activity, "A", changes]);
        take(&workspace, &ann, (Method::PATCH, &workspace.dashboards("1/")), sent, told).await;
    }
}

#[tokio::test]
async fn tile_changes_create_one_log_entry_of_the_dashboard() {
    let (workspace, owner) = Workspace::owned().await;
    let (id, path) = make(&workspace, &owner, json!({ "name": "A" })).await;
    let item = id.to_string();
    let insight = put_insight(&workspace, id, json!("I"), json!({})).await;
    let takes = async |sent: Value, activity: &str, changes: Value| {
        let told = json!(["Dashboard", item, activity, "A", changes]);
        take(&workspace, &owner, (Method::PATCH, &path), sent, told).await.0
    };
    let (text, new) = (1, insight + 1);
    let field = |tile: u64, name: &str| format!("tiles__{tile}__{name}");
    let added = json!({
        field(new, "text"): [null, text],
        field(new, "layouts"): [null, {}],
        field(new, "color"): [null, "red"],
        field(new, "deleted"): [null, false],
        "texts__1__body": [null, "a"],
    });
    let sent = json!({ "tiles": [{ "text": { "body": "a" }, "color": "red" }] });
    assert_eq!(takes(sent, "updated", added).await.meta.project, Some(workspace.made.project_id));
    for [sent, activity, changes] in rows(json!([
        [{ "tiles": [{ "id": new, "text": { "id": text, "body": "b" } }], "name": "A" }, "updated",
         { "texts__1__body": ["a", "b"] }],
        [{ "tiles": [{ "text": { "id": text, "body": "c".repeat(2047) } }] }, "updated",
         { "texts__1__body": ["b", format!("{}… (2047 characters)", "c".repeat(100))] }],
        [{ "pinned": true,
           "tiles": [{ "id": insight, "layouts": { "sm": { "y": 1 } } }, { "id": new, "deleted": true }] },
         "updated",
         { "pinned": [false, true], field(insight, "layouts"): [{}, { "sm": { "y": 1 } }],
           field(new, "deleted"): [false, true] }],
        [{ "deleted": true, "delete_insights": true }, "deleted",
         { "deleted": [false, true], field(insight, "deleted"): [false, true],
           "insights__1__deleted": [false, true] }],
        [{ "deleted": false }, "restored",
         { "deleted": [true, false], field(insight, "deleted"): [true, false],
           field(new, "deleted"): [true, false], "insights__1__deleted": [true, false] }],
    ])) {
        takes(sent, activity.as_str().expect("a verb"), changes).await;
    }
    owner.patch(&workspace.project(""), json!({ "primary_dashboard": id })).await.ok();
    let changes = json!({
        "deleted": [false, true],
        field(insight, "deleted"): [false, true],
        field(new, "deleted"): [false, true],
    });
    takes(json!({ "deleted": true }), "deleted", changes).await;
    owner.patch(&path, json!({ "deleted": false })).await.ok();
    let known = entries(&workspace);
    for sent in [json!([]), json!([{ "id": insight, "color": "blue" }]), json!([{ "id": 1 }])] {
        owner.patch(&path, json!({ "tiles": sent })).await.ok();
    }
    assert_eq!(entries(&workspace), known, "what changes nothing leaves no entry");
}

#[tokio::test]
async fn copy_is_logged_as_created_and_move_on_both_dashboards() {
    let (workspace, owner) = Workspace::owned().await;
    let (id, path) = make(&workspace, &owner, json!({ "name": "A" })).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    put_texts(&owner, &path, &["t"]).await;
    for deep in [false, true] {
        let sent = json!({ "use_dashboard": id, "duplicate_tiles": deep, "name": "B" });
        let told = json!(["Dashboard", null, "created", "B", {}]);
        take(&workspace, &owner, (Method::POST, &workspace.dashboards("")), sent, told).await;
    }
    // A text that two dashboards show is recorded for the dashboard through which it was changed.
    let sent = json!({ "tiles": [{ "text": { "id": 1, "body": "u" } }] });
    let told_once = json!(["Dashboard", "2", "updated", "B", { "texts__1__body": ["t", "u"] }]);
    take(&workspace, &owner, (Method::PATCH, &workspace.dashboards("2/")), sent, told_once).await;
    let (other, _) = make(&workspace, &owner, json!({ "name": "C" })).await;
    let known = entries(&workspace);
    let sent = json!({ "tile": { "id": tile }, "toDashboard": other });
    owner.patch(&format!("{path}move_tile/"), sent).await.assert_empty(200);
    let mut new = entries(&workspace);
    new.retain(|entry| !known.contains(entry));
    let mut said: Vec<Value> = new.iter().map(told).collect();
    said.sort_by_key(|told| told[3].to_string());
    let side = |gone: bool| {
        let both = |value: Value| if gone { json!([value, null]) } else { json!([null, value]) };
        json!({
            format!("tiles__{tile}__insight"): both(json!(1)),
            format!("tiles__{tile}__layouts"): both(json!({})),
            format!("tiles__{tile}__color"): both(json!("blue")),
            format!("tiles__{tile}__deleted"): both(json!(false)),
        })
    };
    let expected = [
        json!(["Dashboard", id.to_string(), "updated", "A", side(true)]),
        json!(["Dashboard", other.to_string(), "updated", "C", side(false)]),
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn log_entry_size_is_limited_for_any_number_of_changed_tiles() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, path) = make(&workspace, &owner, json!({})).await;
    let known = entries(&workspace);
    let texts = vec![json!({ "text": { "body": "b".repeat(900) } }); 1000];
    owner.patch(&path, json!({ "tiles": texts })).await.ok();
    let entry = new_entry(&workspace, &known);
    assert_eq!(entry.fields.detail.changes.len(), 200);
    let size = json!(entry.fields).to_string().len();
    assert!((32 * 1024..64 * 1024).contains(&size), "{size}");
}

#[tokio::test]
async fn operator_log_entries_have_no_user_and_contain_no_key() {
    let workspace = Workspace::new().await;
    let known = entries(&workspace);
    let id = workspace.made.organization_id;
    let founded: Vec<_> = known.iter().map(told).collect();
    assert_eq!(founded, [json!(["Organization", id, "created", "Corp", {}])]);
    assert_eq!((known[0].meta.user, known[0].meta.organization), (None, id));
    let key = workspace.key(OWNER, &["*"]).await.key.expect("a key");
    let entry = new_entry(&workspace, &known);
    let id = entry.fields.item_id.clone();
    assert_eq!(told(&entry), json!(["PersonalAPIKey", id, "created", "test", {}]));
    assert_eq!((entry.meta.user, entry.meta.organization), (None, NO_ORGANIZATION));
    assert!(!serde_json::to_string(&entry.fields).expect("JSON").contains(&key[key.len() - 30..]));

    workspace.member("ann", Level::Member).await;
    let known = entries(&workspace);
    workspace.set_active(ANN, false).await;
    let entry = new_entry(&workspace, &known);
    assert_eq!(told(&entry)[4], json!({ "is_active": [true, false] }));
    assert_eq!(entry.meta.user, None);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn change_and_its_log_entry_are_in_the_same_commit() {
    let workspace = Workspace::new().await;
    let path = workspace.organization("");
    let owner = workspace.owner.clone();
    let looked = Arc::new(Notify::new());
    let has_looked = Arc::clone(&looked);
    let changing = tokio::spawn(async move {
        for number in 0..20 {
            owner.patch(&path, json!({ "name": format!("Name {number}") })).await.ok();
            has_looked.notified().await;
        }
    });
    // In every snapshot, the last entry contains the name that the organization has in that snapshot.
    let mut names = BTreeSet::new();
    loop {
        let done = changing.is_finished();
        let tx = workspace.app.store().snapshot().expect("a snapshot");
        let organization = workspace.made.organization_id;
        let found =
            tx.get::<steward::testing::resources::organizations::Organization>(&organization);
        let name = found.expect("the organization").fields.name;
        let last = Window { offset: 0, limit: 1, order: Order::Descending };
        let mut logged = None;
        let read = tx.scan::<Entry, _>(&organization, last, |row| {
            logged = row.into_record()?.fields.detail.name;
            Ok(())
        });
        read.expect("an entry");
        assert_eq!(logged.as_deref(), Some(name.as_str()));
        names.insert(name);
        if done {
            break;
        }
        looked.notify_one();
        tokio::task::yield_now().await;
    }
    changing.await.expect("changed");
    assert!(names.contains("Name 19") && names.len() > 2, "{names:?}");
}
