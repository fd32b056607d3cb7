//! Tests of `/api/personal_api_keys/`: creating, showing, updating and revoking keys.

mod grantors;
mod idempotency;
mod issuing;
pub mod limits;
mod operations;
mod races;
mod rotation;
mod sequences;
mod upkeep;

use crate::support::prelude::*;

pub const CURRENT: &str = "/api/personal_api_keys/@current/";
const PLACES: &str = "scoped_organizations";
/// The initial time of a workspace with a manual clock.
pub const BEGAN: &str = "2023-11-14T22:13:20Z";

/// Returns a caller with the value of a key that was created or rolled.
pub fn holder(workspace: &Workspace, made: &Value) -> TestClient {
    workspace.with_key(made["value"].as_str().expect("a value"))
}

/// Rolls a key.
pub async fn roll(by: &TestClient, key: &Value, grace: i64) -> Value {
    by.post(&at(key, "roll/"), json!({"grace_seconds": grace})).await.ok()
}

#[tokio::test]
async fn api_key_is_created_shown_updated_and_revoked() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let sent =
        json!({"label": " laptop ", "scopes": ["user:read", "dashboard:write", "user:read"]});
    let made = make_key(owner, sent).await;
    let (id, value) = (made["id"].clone(), made["value"].as_str().expect("a value"));
    let mask = format!("phx_...{}", &value[value.len() - 4..]);
    let mut shown = json!({
        "id": id, "label": "laptop", "value": value, "mask_value": mask, "created_at": BEGAN,
        "last_used_at": null, "last_rolled_at": null, "user_id": 1,
        "scopes": ["dashboard:write", "user:read"], "scoped_teams": [], "scoped_organizations": [],
        "expires_at": null,
    });
    assert_eq!(made, shown);
    shown["value"] = json!(null);
    owner.get(&at(&made, "")).await.assert_is(200, shown.clone());
    owner.get(at(&made, "").trim_end_matches('/')).await.assert_is(200, shown.clone());

    clock.advance(Duration::from_mins(1));
    let sent = json!({
        "label": "desk", "scopes": ["*"], "scoped_teams": [workspace.made.project_id, "1"],
        "scoped_organizations": [workspace.made.organization_id.to_string().to_uppercase()],
        "expires_at": "2024-01-01", "id": 5, "value": "phx_mine", "user_id": 7,
    });
    shown["label"] = json!("desk");
    shown["scopes"] = json!(["*"]);
    shown["scoped_teams"] = json!([workspace.made.project_id]);
    shown["scoped_organizations"] = json!([workspace.made.organization_id]);
    shown["expires_at"] = json!("2024-01-01T00:00:00Z");
    owner.patch(&at(&made, ""), sent).await.assert_is(200, shown.clone());
    owner.patch(&at(&made, ""), json!({})).await.assert_is(200, shown.clone());
    shown["scoped_teams"] = json!([]);
    shown["scoped_organizations"] = json!([]);
    shown["expires_at"] = json!(null);
    let sent = json!({"scoped_teams": null, "scoped_organizations": [], "expires_at": null});
    owner.patch(&at(&made, ""), sent).await.assert_is(200, shown);

    let maker = holder(&workspace, &made);
    assert_eq!(maker.get(ME).await.status, 200);
    owner.delete(&at(&made, "")).await.assert_empty(204);
    owner.get(&at(&made, "")).await.assert_not_found("Not found.");
    owner.delete(&at(&made, "")).await.assert_not_found("Not found.");
    maker.get(ME).await.is_bad_key();
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn key_list_contains_only_own_keys_newest_first() {
    let (workspace, clock) = Workspace::timed().await;
    let member = workspace.member("max", Level::Member).await;
    for label in ["one", "two", "three"] {
        clock.advance(Duration::from_secs(1));
        make_key(&member, json!({"label": label, "scopes": ["user:read"]})).await;
    }
    let listed = member.get(KEYS.trim_end_matches('/')).await.ok();
    let listed = listed.as_array().expect("an array");
    let labels: Vec<_> = listed.iter().map(|key| key["label"].as_str()).collect();
    assert_eq!(labels, [Some("three"), Some("two"), Some("one"), Some("test")]);
    assert!(listed.iter().all(|key| key["value"].is_null() && key["user_id"] == 2));
    assert_eq!(workspace.owner.get(KEYS).await.ok().as_array().expect("an array").len(), 1);
}

#[tokio::test]
async fn current_key_endpoint_shows_the_presented_key() {
    let workspace = Workspace::new().await;
    let (organization, project) = (workspace.made.organization_id, workspace.made.project_id);
    for limits in [
        json!({}),
        json!({"organizations": [organization]}),
        json!({"projects": [project]}),
        json!({"organizations": [organization], "projects": [project], "expires_in": 60}),
    ] {
        let key = workspace.limited_key(OWNER, &["notebook:read"], limits.clone()).await;
        let shown = key.get(CURRENT).await.ok();
        assert_eq!(shown["scopes"], json!(["notebook:read"]));
        assert_eq!(shown["value"], json!(null));
        let none = json!([]);
        let limit = |name: &str| limits.get(name).cloned().unwrap_or_else(|| none.clone());
        assert_eq!(shown["scoped_organizations"], limit("organizations"));
        assert_eq!(shown["scoped_teams"], limit("projects"));
        assert_eq!(shown["expires_at"].is_null(), limits.get("expires_in").is_none());
        let text = "API key missing required scope 'personal_api_key:read'";
        key.get(&at(&shown, "")).await.assert_denied(text);
    }
}

#[tokio::test]
async fn keys_of_other_users_return_404() {
    let (workspace, max) = Workspace::with_member("max", Level::Owner).await;
    let theirs = max.get(CURRENT).await.ok();
    let nobodys = json!({"id": UNKNOWN});
    for key in [&theirs, &nobodys, &json!({"id": "7"}), &json!({"id": "@me"})] {
        let (one, roll) = (at(key, ""), at(key, "roll/"));
        workspace.owner.get(&one).await.assert_not_found("Not found.");
        workspace.owner.patch(&one, json!({"label": ""})).await.assert_not_found("Not found.");
        workspace.owner.delete(&one).await.assert_not_found("Not found.");
        let rolled = workspace.owner.post(&roll, json!({"grace_seconds": -1})).await;
        rolled.assert_not_found("Not found.");
    }
    let rolled = workspace.owner.post(&format!("{CURRENT}roll/"), json!({})).await;
    rolled.assert_not_found("Not found.");
    assert_eq!(max.get(ME).await.status, 200);
}

#[tokio::test]
async fn invalid_field_errors_have_the_documented_texts() {
    let (workspace, _) = Workspace::timed().await;
    let owner = &workspace.owner;
    let made = make_key(owner, json!({"label": "x", "scopes": ["*"]})).await;
    let moment = "Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
    let past = "The time must be in the future. To revoke a key now, delete it.";
    let no_list = "Expected a list of items but got type \"str\".";
    let invalid = Refusal::invalid;
    let too_long = Refusal::at_most;
    let mut on_create = Vec::new();
    let mut on_update = Vec::new();
    for (field, value, refusal) in [
        ("scopes", json!(null), Refusal::null("scopes")),
        ("scopes", json!("*"), Refusal::new("scopes", "not_a_list", no_list)),
        ("scopes", json!([]), Refusal::new("scopes", "empty", "This list may not be empty.")),
        ("scopes", json!(["user:read", "xyz"]), invalid("scopes", "Invalid scope: xyz")),
        ("scopes", json!(["user:admin"]), invalid("scopes", "Invalid scope: user:admin")),
        ("scopes", json!(["llm_\n:read"]), invalid("scopes", "Invalid scope: llm_\n:read")),
        ("scopes", json!([{}]), Refusal::not_text("scopes__0")),
        ("scopes", json!(["*".repeat(101)]), too_long("scopes__0", "100 characters")),
        ("scopes", json!(vec!["*"; 201]), too_long("scopes", "200 elements")),
        ("scoped_teams", json!("1"), Refusal::new("scoped_teams", "not_a_list", no_list)),
        ("scoped_teams", json!(["x"]), invalid("scoped_teams__0", "A valid integer is required.")),
        ("scoped_teams", json!(vec![1; 101]), too_long("scoped_teams", "100 elements")),
        (PLACES, json!(["x"]), invalid(PLACES, "Invalid organization UUID")),
        (PLACES, json!([7]), invalid(PLACES, "Invalid organization UUID")),
        (PLACES, json!([null]), Refusal::null("scoped_organizations__0")),
        (PLACES, json!(vec!["x"; 101]), too_long(PLACES, "100 elements")),
        ("expires_at", json!("soon"), invalid("expires_at", moment)),
        ("expires_at", json!(5), invalid("expires_at", moment)),
        ("expires_at", json!("2024-01-01T00:00+24:00"), invalid("expires_at", moment)),
        ("expires_at", json!(BEGAN), invalid("expires_at", past)),
        ("expires_at", json!("0000-01-01"), invalid("expires_at", past)),
    ] {
        let mut sent = json!({"label": "x", "scopes": ["*"]});
        sent[field] = value.clone();
        on_create.push((sent, refusal.clone()));
        on_update.push((json!({field: value}), refusal));
    }
    let no_object = "Invalid data. Expected a dictionary, but got list.";
    on_create.extend([
        (json!({"label": "x"}), Refusal::required("scopes")),
        (json!([]), Refusal::of_body("invalid_input", no_object)),
    ]);
    owner.assert_refusals(Method::POST, KEYS, on_create).await;
    owner.assert_refusals(Method::PATCH, &at(&made, ""), on_update).await;
    let far =
        json!({"label": "x".repeat(40), "scopes": ["*"], "expires_at": "9999-12-31T23:59-12:00"});
    assert_eq!(make_key(owner, far).await["expires_at"], "9999-12-31T23:59:59.999999Z");
    assert_eq!(owner.get(KEYS).await.ok().as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn key_field_of_any_json_type_is_accepted_or_rejected_by_name() {
    let (workspace, _) = Workspace::timed().await;
    let made = make_key(&workspace.owner, json!({"label": "x", "scopes": ["*"]})).await;
    let shapes = each(json!([
        true, 0, -1, 1.5, u64::MAX, 1e300, "", "\u{0}", "x", [], [null], [true], [[]], [{}],
        ["\u{0}"], [u64::MAX], {}, {"0": 1},
    ]));
    let fields = ["label", "scopes", "scoped_teams", "scoped_organizations", "expires_at"];
    let (one, roll) = (at(&made, ""), at(&made, "roll/"));
    let mut refused = 0;
    for shape in shapes {
        for field in fields.into_iter().chain(["grace_seconds"]) {
            let mut sent = json!({"label": "x", "scopes": ["user:read"]});
            sent[field] = shape.clone();
            let answer = match field {
                "grace_seconds" => workspace.owner.post(&roll, sent).await,
                _ => workspace.owner.post(KEYS, sent).await,
            };
            for answer in [answer, workspace.owner.patch(&one, json!({field: shape})).await] {
                let attr = answer.body["attr"].as_str().unwrap_or_default();
                let is_named = answer.status == 400 && attr.starts_with(field);
                let case = format!("{field} {shape}: {} {}", answer.status, answer.body);
                assert!(is_named || [200, 201].contains(&answer.status), "{case}");
                refused += u32::from(is_named);
            }
        }
    }
    assert!(refused > 120, "{refused}");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn limits_of_a_key_may_be_sent_back_in_the_order_of_its_command() {
    let (workspace, owner) = Workspace::owned().await;
    let second = workspace.add_project(json!({})).await;
    let limits = json!({"projects": [second, workspace.made.project_id]});
    workspace.limited_key(OWNER, &["*"], limits.clone()).await;
    let keys = owner.get(KEYS).await.ok();
    let mut keys = keys.as_array().expect("a list").iter();
    let key = keys.find(|key| key["scoped_teams"] == limits["projects"]).expect("the key");
    let shown = owner.get(&at(key, "")).await.ok();
    owner.patch(&at(key, ""), shown.clone()).await.assert_is(200, shown.clone());
    owner.get(&at(key, "")).await.assert_is(200, shown);
}

#[tokio::test]
async fn key_can_only_be_limited_to_accessible_organizations_and_projects() {
    let workspace = Workspace::new().await;
    let (_, other) = workspace.outsider("eve").await;
    let member = workspace.member("max", Level::Member).await;
    let hidden = workspace.add_project(json!({"access_control": true})).await;
    let made = make_key(&member, json!({"label": "x", "scopes": ["user:read"]})).await;
    let teams = "You must be a member of all teams that you are scoping the key to.";
    let organizations =
        "You must be a member of all organizations that you are scoping the key to.";
    let (mine, nowhere) = (workspace.made.project_id, UNKNOWN);
    for (field, named, detail) in [
        ("scoped_teams", json!([mine, other["project_id"]]), teams),
        ("scoped_teams", json!([hidden]), teams),
        ("scoped_teams", json!([999_999]), teams),
        ("scoped_teams", json!([-1]), teams),
        (PLACES, json!([workspace.made.organization_id, other["id"]]), organizations),
        (PLACES, json!([nowhere]), organizations),
    ] {
        // `expires_at` is also invalid, but it comes later in the order of fields.
        let sent =
            json!({"label": "x", "scopes": ["user:read"], field: named, "expires_at": BEGAN});
        member.post(KEYS, sent).await.assert_bad(field, detail);
        let sent = json!({field: named, "expires_at": BEGAN});
        member.patch(&at(&made, ""), sent).await.assert_bad(field, detail);
    }
    // An admin can access the project that the member cannot.
    let sent = json!({"label": "x", "scopes": ["user:read"], "scoped_teams": [hidden]});
    make_key(&workspace.owner, sent).await;
}
