//! Tests that each change writes one activity entry in the same transaction, without secrets. The tests read the
//! entries from the data file; `log` reads them over HTTP.

pub mod log;
mod retention;
pub mod secrets;
mod visibility;

use std::sync::Arc;

use serde_json::{Value, json};
use steward::testing::operator::Operation;
use steward::testing::resources::activity::{Entry, NO_ORGANIZATION};
use steward::testing::resources::members::Level;
use steward::testing::store::{Order, Tx, Window};
use tokio::sync::Notify;

use crate::dashboards::make;
pub use crate::support::activity::entries;
use crate::support::{OWNER, TestClient, Workspace};
use crate::tiles::{put_insight, put_texts};

const ME: &str = "/api/users/@me/";

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
        assert_eq!(
            (change.r#type.as_str(), change.action.as_str()),
            (shown.scope.as_str(), "changed")
        );
        changes[&change.field] = json!([change.before, change.after]);
    }
    json!([shown.scope, shown.item_id, shown.activity, shown.detail.name, changes])
}

/// A request, and the expected content of its entry.
struct Step<'s> {
    caller: &'s TestClient,
    method: &'s str,
    path: String,
    sent: Value,
    told: Value,
}

/// Sends the request and asserts the content of its entry. Returns the entry and the response body.
async fn take(workspace: &Workspace, step: Step<'_>) -> (Entry, Value) {
    let Step { caller, method, path, sent, told: expected } = step;
    let user = caller.get(ME).await.ok()["id"].clone();
    let known = entries(workspace);
    let method = method.parse().expect("a method");
    let body = caller.send(method, &path, Some(sent)).await.ok();
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
    let owner = &workspace.owner;
    let id = workspace.made.organization_id;
    let (made, body) = take(
        &workspace,
        Step {
            caller: owner,
            method: "POST",
            path: "/api/organizations/".to_owned(),
            sent: json!({ "name": "New" }),
            told: json!(["Organization", null, "created", "New", {}]),
        },
    )
    .await;
    assert_eq!(
        (json!(made.meta.organization), json!(made.fields.item_id)),
        (body["id"].clone(), body["id"].clone())
    );
    assert_eq!(json!(made.meta.created_at), body["created_at"]);

    let (changed, body) = take(
        &workspace,
        Step {
            caller: owner,
            method: "PATCH",
            path: workspace.organization(""),
            sent: json!({ "name": "Corp 2", "members_can_invite": false, "enforce_2fa": null }),
            told: json!(["Organization", id, "updated", "Corp 2", {
                "name": ["Corp", "Corp 2"], "members_can_invite": [true, false],
            }]),
        },
    )
    .await;
    assert_eq!((changed.meta.organization, changed.meta.project), (id, None));
    assert_eq!(json!(changed.meta.created_at), body["updated_at"]);

    let known = entries(&workspace);
    owner.patch(&workspace.organization(""), json!({ "name": "Corp 2" })).await.ok();
    owner.patch(&workspace.organization(""), json!({ "name": "" })).await.assert_invalid(
        "name",
        "blank",
        "This field may not be blank.",
    );
    assert_eq!(entries(&workspace), known, "what changes nothing leaves no entry");
}

#[tokio::test]
async fn every_change_of_a_member_creates_one_log_entry() {
    let workspace = Workspace::new().await;
    let ann = workspace.member("ann", Level::Member).await;
    let list = workspace.owner.get(&workspace.organization("members/?search=ann")).await.ok();
    let (id, uuid) = (list["results"][0]["id"].clone(), list["results"][0]["user"]["uuid"].clone());
    let path = workspace.organization(&format!("members/{}/", uuid.as_str().expect("a uuid")));
    let step = |sent: Value, method, told| Step {
        caller: &workspace.owner,
        method,
        path: path.clone(),
        sent,
        told,
    };
    let raised = json!(["OrganizationMembership", id, "updated", null, { "level": [1, 8] }]);
    let (entry, _) = take(&workspace, step(json!({ "level": 8 }), "PATCH", raised)).await;
    assert_eq!(entry.meta.organization, workspace.made.organization_id);
    let known = entries(&workspace);
    workspace.owner.patch(&path, json!({ "level": 8 })).await.ok();
    ann.patch(&path, json!({ "level": 1 }))
        .await
        .assert_denied("You can't change your own access level.");
    assert_eq!(entries(&workspace), known);
    let removed = json!(["OrganizationMembership", id, "deleted", null, {}]);
    take(&workspace, step(json!({}), "DELETE", removed)).await;
}

#[tokio::test]
async fn every_change_of_access_creates_one_log_entry_with_the_level() {
    let workspace = Workspace::new().await;
    workspace.member("ann", Level::Member).await;
    let member = workspace.membership("ann@corp.example").await;
    let step = |level: Value, activity, changes: Value| Step {
        caller: &workspace.owner,
        method: "PUT",
        path: workspace.access_controls(),
        sent: json!({ "organization_member": member, "access_level": level }),
        told: json!(["AccessControl", "1:2", activity, "Web", { "access_level": changes }]),
    };
    for (level, activity, changes) in [
        (json!("member"), "created", json!([null, "member"])),
        (json!("none"), "updated", json!(["member", "none"])),
        (json!(null), "deleted", json!(["none", null])),
        (json!("admin"), "created", json!([null, "admin"])),
    ] {
        let (entry, _) = take(&workspace, step(level, activity, changes)).await;
        assert_eq!(entry.meta.organization, workspace.made.organization_id);
        assert_eq!(entry.meta.project, Some(workspace.made.project_id));
    }
    let known = entries(&workspace);
    let same = step(json!("admin"), "", json!(null));
    workspace.owner.put(&same.path, same.sent).await.ok();
    assert_eq!(entries(&workspace), known);

    // Removing a member also deletes the member's access controls, but the entry is about the member.
    let list = workspace.owner.get(&workspace.organization("members/?search=ann")).await.ok();
    let uuid = list["results"][0]["user"]["uuid"].as_str().expect("a uuid");
    let removal = Step {
        caller: &workspace.owner,
        method: "DELETE",
        path: workspace.organization(&format!("members/{uuid}/")),
        sent: json!({}),
        told: json!(["OrganizationMembership", member, "deleted", null, {}]),
    };
    take(&workspace, removal).await;
}

#[tokio::test]
async fn dashboard_rules_and_collaborators_create_log_entries_with_their_level() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    workspace.member("ann", Level::Member).await;
    let member = workspace.membership("ann@corp.example").await;
    let sent = json!({ "name": "A", "restriction_level": 37 });
    owner.post(&workspace.dashboards(""), sent).await.ok();
    let list = owner.get(&workspace.organization("members/?search=ann")).await.ok();
    let uuid = list["results"][0]["user"]["uuid"].as_str().expect("a uuid");
    let (one, all) = (
        workspace.dashboards("1/access_controls/"),
        workspace.access_controls().replace("/access_", "/resource_access_"),
    );
    let collaborators = workspace.dashboards("1/collaborators/");
    let rule = |level: Option<&str>, member: &Value| json!({ "access_level": level, "organization_member": member, "resource": "dashboard" });
    let told = |item: &str, name: &str, activity: &str, change: Value| json!(["AccessControl", item, activity, name, { "access_level": change }]);
    let everyone = Value::Null;
    for (method, path, sent, told) in [
        (
            "PUT",
            one.clone(),
            rule(Some("viewer"), &member),
            told("1:dashboard:1:2", "A", "created", json!([null, "viewer"])),
        ),
        (
            "PUT",
            one.clone(),
            rule(Some("none"), &member),
            told("1:dashboard:1:2", "A", "updated", json!(["viewer", "none"])),
        ),
        (
            "PUT",
            one.clone(),
            rule(None, &member),
            told("1:dashboard:1:2", "A", "deleted", json!(["none", null])),
        ),
        (
            "PUT",
            one,
            rule(Some("none"), &everyone),
            told("1:dashboard:1:*", "A", "created", json!([null, "none"])),
        ),
        (
            "PUT",
            all.clone(),
            rule(Some("manager"), &member),
            told("1:dashboard:*:2", "Web", "created", json!([null, "manager"])),
        ),
        (
            "PUT",
            all,
            rule(Some("viewer"), &everyone),
            told("1:dashboard:*:*", "Web", "created", json!([null, "viewer"])),
        ),
        (
            "POST",
            collaborators.clone(),
            json!({ "user_uuid": uuid, "level": 37 }),
            json!(["DashboardCollaborator", "1:2", "created", "A", { "level": [null, 37] }]),
        ),
        (
            "DELETE",
            format!("{collaborators}{uuid}/"),
            json!({}),
            json!(["DashboardCollaborator", "1:2", "deleted", "A", { "level": [37, null] }]),
        ),
    ] {
        let step = Step { caller: owner, method, path, sent, told };
        let (entry, _) = take(&workspace, step).await;
        assert_eq!(entry.meta.organization, workspace.made.organization_id);
        assert_eq!(entry.meta.project, Some(workspace.made.project_id));
    }
}

#[tokio::test]
async fn every_change_of_a_project_creates_one_log_entry_without_secrets() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let sent = json!({ "name": "New", "slack_incoming_webhook": "https://hooks.example/SECRET-1" });
    let (made, body) = take(
        &workspace,
        Step {
            caller: owner,
            method: "POST",
            path: workspace.organization("projects/"),
            sent,
            told: json!(["Project", null, "created", "New", {}]),
        },
    )
    .await;
    let id = body["id"].clone();
    assert_eq!(
        (json!(made.meta.project), made.fields.item_id.clone()),
        (id.clone(), id.to_string())
    );
    assert_eq!(made.meta.organization, workspace.made.organization_id);

    let path = format!("/api/projects/{id}/");
    let step =
        |method, sent: Value, told| Step { caller: owner, method, path: path.clone(), sent, told };
    let item = id.to_string();
    // The two records of a project change in one entry, which contains no secret.
    for (sent, told) in [
        (
            json!({ "name": "Newer", "slack_incoming_webhook": "https://hooks.example/SECRET-2", "week_start_day": 1 }),
            json!(["Project", item, "updated", "Newer", {
                "name": ["New", "Newer"], "slack_incoming_webhook": [null, null], "week_start_day": [null, 1],
            }]),
        ),
        (
            json!({ "slack_incoming_webhook": "https://hooks.example/SECRET-3" }),
            json!(["Project", item, "updated", "Newer", { "slack_incoming_webhook": [null, null] }]),
        ),
        (
            json!({ "access_control": true, "extra_settings": { "long": "x".repeat(4000) } }),
            json!(["Project", item, "updated", "Newer", {
                "access_control": [false, true], "extra_settings": [null, "(1 member)"],
            }]),
        ),
    ] {
        take(&workspace, step("PATCH", sent, told)).await;
    }
    let gone = json!(["Project", item, "deleted", "Newer", {}]);
    take(&workspace, step("DELETE", json!({}), gone)).await;

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
    let id = json!("1");
    let step = |sent: Value, told| Step {
        caller: &workspace.owner,
        method: "PATCH",
        path: ME.to_owned(),
        sent,
        told,
    };
    for (sent, changes) in [
        (json!({ "first_name": "Ola" }), json!({ "first_name": ["Olga", "Ola"] })),
        (json!({ "theme_mode": "dark" }), json!({ "theme_mode": [null, "dark"] })),
        (
            json!({ "last_name": "Nord", "anonymize_data": true }),
            json!({ "last_name": ["", "Nord"], "anonymize_data": [false, true] }),
        ),
    ] {
        let told = json!(["User", id, "updated", null, changes]);
        let (entry, _) = take(&workspace, step(sent, told)).await;
        assert_eq!(entry.meta.organization, NO_ORGANIZATION);
    }
}

#[tokio::test]
async fn every_change_of_a_dashboard_creates_one_log_entry() {
    let workspace = Workspace::new().await;
    let ann = workspace.member("ann", Level::Member).await;
    let step =
        |method, path: String, sent: Value, told| Step { caller: &ann, method, path, sent, told };
    let told = json!(["Dashboard", null, "created", "A", {}]);
    let sent = json!({ "name": "A", "filters": { "date_from": "-7d" } });
    let (made, body) = take(&workspace, step("POST", workspace.dashboards(""), sent, told)).await;
    let item = body["id"].to_string();
    assert_eq!(
        (made.fields.item_id.as_str(), made.meta.project),
        (item.as_str(), Some(workspace.made.project_id))
    );
    let template = json!({
        "template_name": "B", "dashboard_description": "", "dashboard_filters": { "date_from": "-7d" },
        "tiles": [{ "type": "TEXT" }, { "type": "INSIGHT", "name": "C" }],
    });
    for (rest, sent, name) in [
        ("", json!({ "use_template": "DEFAULT_APP" }), "Product analytics"),
        ("create_from_template_json/", json!({ "template": template }), "B"),
    ] {
        let told = json!(["Dashboard", null, "created", name, {}]);
        take(&workspace, step("POST", workspace.dashboards(rest), sent, told)).await;
    }
    for (sent, activity, changes) in [
        (json!({ "pinned": true }), "updated", json!({ "pinned": [false, true] })),
        (json!({ "deleted": true }), "deleted", json!({ "deleted": [false, true] })),
        (json!({ "deleted": false }), "restored", json!({ "deleted": [true, false] })),
    ] {
        let path = workspace.dashboards(&format!("{item}/"));
        take(
            &workspace,
            step("PATCH", path, sent, json!(["Dashboard", item, activity, "A", changes])),
        )
        .await;
    }
}

#[tokio::test]
async fn tile_changes_create_one_log_entry_of_the_dashboard() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, path) = make(&workspace, owner, json!({ "name": "A" })).await;
    let item = id.to_string();
    let insight = put_insight(&workspace, id, json!("I"), json!({})).await;
    let step = |sent: Value, activity: &str, changes: Value| Step {
        caller: owner,
        method: "PATCH",
        path: path.clone(),
        sent,
        told: json!(["Dashboard", item, activity, "A", changes]),
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
    let (entry, _) = take(&workspace, step(sent, "updated", added)).await;
    assert_eq!(entry.meta.project, Some(workspace.made.project_id));
    for (sent, activity, changes) in [
        (
            json!({ "tiles": [{ "id": new, "text": { "id": text, "body": "b" } }], "name": "A" }),
            "updated",
            json!({ "texts__1__body": ["a", "b"] }),
        ),
        (
            json!({ "tiles": [{ "text": { "id": text, "body": "c".repeat(2047) } }] }),
            "updated",
            json!({ "texts__1__body": ["b", format!("{}… (2047 characters)", "c".repeat(100))] }),
        ),
        (
            json!({ "pinned": true, "tiles": [
                { "id": insight, "layouts": { "sm": { "y": 1 } } }, { "id": new, "deleted": true },
            ] }),
            "updated",
            json!({
                "pinned": [false, true],
                field(insight, "layouts"): [{}, { "sm": { "y": 1 } }],
                field(new, "deleted"): [false, true],
            }),
        ),
        (
            json!({ "deleted": true, "delete_insights": true }),
            "deleted",
            json!({
                "deleted": [false, true],
                field(insight, "deleted"): [false, true],
                "insights__1__deleted": [false, true],
            }),
        ),
        (
            json!({ "deleted": false }),
            "restored",
            json!({
                "deleted": [true, false],
                field(insight, "deleted"): [true, false],
                field(new, "deleted"): [true, false],
                "insights__1__deleted": [true, false],
            }),
        ),
    ] {
        take(&workspace, step(sent, activity, changes)).await;
    }
    let primary = json!({ "primary_dashboard": id });
    owner.patch(&format!("/api/projects/{}/", workspace.made.project_id), primary).await.ok();
    let changes = json!({
        "deleted": [false, true],
        field(insight, "deleted"): [false, true],
        field(new, "deleted"): [false, true],
    });
    take(&workspace, step(json!({ "deleted": true }), "deleted", changes)).await;
    owner.patch(&path, json!({ "deleted": false })).await.ok();
    let known = entries(&workspace);
    for sent in [json!([]), json!([{ "id": insight, "color": "blue" }]), json!([{ "id": 1 }])] {
        owner.patch(&path, json!({ "tiles": sent })).await.ok();
    }
    assert_eq!(entries(&workspace), known, "what changes nothing leaves no entry");
}

#[tokio::test]
async fn copy_is_logged_as_created_and_move_on_both_dashboards() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, path) = make(&workspace, owner, json!({ "name": "A" })).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    put_texts(owner, &path, &["t"]).await;
    for deep in [false, true] {
        let sent = json!({ "use_dashboard": id, "duplicate_tiles": deep, "name": "B" });
        let told = json!(["Dashboard", null, "created", "B", {}]);
        let path = workspace.dashboards("");
        take(&workspace, Step { caller: owner, method: "POST", path, sent, told }).await;
    }
    // A text that two dashboards show is recorded for the dashboard through which it was changed.
    let sent = json!({ "tiles": [{ "text": { "id": 1, "body": "u" } }] });
    let told_once = json!(["Dashboard", "2", "updated", "B", { "texts__1__body": ["t", "u"] }]);
    let beside = workspace.dashboards("2/");
    let step = Step { caller: owner, method: "PATCH", path: beside, sent, told: told_once };
    take(&workspace, step).await;
    let (other, _) = make(&workspace, owner, json!({ "name": "C" })).await;
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
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, path) = make(&workspace, owner, json!({})).await;
    let known = entries(&workspace);
    let body = "b".repeat(900);
    let texts = vec![json!({ "text": { "body": body } }); 1000];
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
    assert_eq!(
        known.iter().map(told).collect::<Vec<_>>(),
        [json!(["Organization", id, "created", "Corp", {}])]
    );
    assert_eq!((known[0].meta.user, known[0].meta.organization), (None, id));
    let key = workspace.key(OWNER, &["*"]).await.key.expect("a key");
    let entry = new_entry(&workspace, &known);
    let id = entry.fields.item_id.clone();
    assert_eq!(told(&entry), json!(["PersonalAPIKey", id, "created", "test", {}]));
    assert_eq!((entry.meta.user, entry.meta.organization), (None, NO_ORGANIZATION));
    let secret = &key[key.len() - 30..];
    assert!(!serde_json::to_string(&entry.fields).expect("JSON").contains(secret));

    workspace.member("ann", Level::Member).await;
    let known = entries(&workspace);
    let email = "ann@corp.example".to_owned();
    workspace.run_operation(Operation::UserSetActive { email, active: false }).await;
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
    let mut names = std::collections::BTreeSet::new();
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
