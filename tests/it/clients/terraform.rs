//! The requests of PostHog's Terraform provider, resource by resource: create, read, update, and destroy with the check
//! afterwards.

use crate::support::prelude::*;

const INSIGHTS: &str = "/api/projects/1/insights/";
const DASHBOARDS: &str = "/api/projects/1/dashboards/";
const ON_PROJECT: &str = "/api/projects/1/access_controls/";
const ON_KINDS: &str = "/api/projects/1/resource_access_controls/";

/// Asserts that the response has every member that was sent, with the same value.
#[track_caller]
fn reads_back(body: &Value, sent: &Value) {
    for (name, value) in sent.as_object().expect("an object") {
        assert_eq!(&body[name], value, "{name}");
    }
}

/// Sends the whole state of a resource and reads it back from the response and from the next GET.
async fn apply(caller: &TestClient, one: &str, sent: Value) -> Value {
    reads_back(&caller.patch(one, sent.clone()).await.ok(), &sent);
    let shown = caller.get(one).await.ok();
    reads_back(&shown, &sent);
    shown
}

/// Creates an object, reads it back, and returns its path.
async fn create(caller: &TestClient, list: &str, sent: Value) -> String {
    let (made, one) = caller.create(list, sent.clone()).await;
    reads_back(&made, &sent);
    reads_back(&caller.get(&one).await.ok(), &sent);
    one
}

/// Deletes an object as the provider does, and asserts that it is gone.
async fn destroy_softly(caller: &TestClient, one: &str) {
    caller.patch(one, json!({"deleted": true})).await.ok();
    caller.get(one).await.assert_not_found("Not found.");
}

#[tokio::test]
async fn insight_with_all_fields_is_created_updated_imported_and_destroyed() {
    let (_workspace, owner) = Workspace::owned().await;
    let query = json!({"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "series": [
        {"kind": "EventsNode", "event": "$pageview", "math": "dau", "ratio": 1.0, "count": 1, "properties": {}},
    ], "dateRange": {"date_from": "-30d", "date_to": null}}});
    let state = json!({
        "name": "Visitors", "derived_name": "Pageviews", "description": "Daily", "query": query,
        "tags": ["growth", "weekly"], "deleted": false,
    });
    let one = create(&owner, INSIGHTS, state).await;
    let text = String::from_utf8(owner.get(&one).await.bytes).expect("text");
    assert!(text.contains(r#""ratio":1.0,"count":1"#), "{text}");
    // The name is removed; empty lists are left out.
    let cleared = json!({"name": "", "description": "", "query": query, "deleted": false});
    let shown = apply(&owner, &one, cleared).await;
    assert_eq!(shown["derived_name"], "Pageviews");
    assert_eq!(shown["tags"], json!(["growth", "weekly"]));
    // The name was changed elsewhere, and the next apply sets it again.
    owner.patch(&one, json!({"name": "Other"})).await.ok();
    apply(&owner, &one, json!({"name": "Visitors", "query": query, "deleted": false})).await;
    let folder = json!({"name": "Visitors", "query": query, "_create_in_folder": "Unfiled/x"});
    let other = owner.post(INSIGHTS, folder).await;
    assert_eq!((other.status, other.body.get("_create_in_folder")), (201, None));
    destroy_softly(&owner, &one).await;
}

#[tokio::test]
async fn insight_queries_of_five_kinds_are_read_back_as_sent() {
    let (_workspace, owner) = Workspace::owned().await;
    let viz =
        |source: &str| json!({"kind": "InsightVizNode", "source": {"kind": source, "series": []}});
    for query in [
        viz("TrendsQuery"),
        viz("FunnelsQuery"),
        viz("RetentionQuery"),
        json!({"kind": "DataVisualizationNode", "source": {"kind": "HogQLQuery", "query": "select 1"}}),
        json!({"kind": "DataTableNode", "source": {"kind": "EventsQuery", "select": ["*"]}}),
    ] {
        let one = create(&owner, INSIGHTS, json!({"name": "Q", "query": query})).await;
        destroy_softly(&owner, &one).await;
    }
}

#[tokio::test]
async fn insight_moves_between_dashboards() {
    let (_workspace, owner) = Workspace::owned().await;
    let mut boards = Vec::new();
    for name in ["A", "B"] {
        boards.push(owner.post(DASHBOARDS, json!({"name": name})).await.ok()["id"].clone());
    }
    let (a, b) = (&boards[0], &boards[1]);
    let query = json!({"kind": "InsightVizNode", "source": {"kind": "TrendsQuery"}});
    let state = |dashboards: Value| json!({"name": "I", "query": query, "dashboards": dashboards});
    let one = create(&owner, INSIGHTS, state(json!([a]))).await;
    let first = owner.get(&one).await.ok()["dashboard_tiles"][0]["id"].clone();
    apply(&owner, &one, state(json!([b]))).await;
    assert_eq!(owner.get(&format!("{DASHBOARDS}{a}/")).await.ok()["tiles"], json!([]));
    apply(&owner, &one, state(json!([a, b]))).await;
    let tiles = owner.get(&format!("{DASHBOARDS}{a}/")).await.ok()["tiles"].clone();
    assert_eq!((&tiles[0]["id"], tiles.as_array().map(Vec::len)), (&first, Some(1)));
    destroy_softly(&owner, &one).await;
    assert_eq!(owner.get(&format!("{DASHBOARDS}{b}/")).await.ok()["tiles"], json!([]));
}

#[tokio::test]
async fn dashboard_and_project_are_created_updated_and_destroyed() {
    let (workspace, owner) = Workspace::owned().await;
    let state = json!({"name": "Board", "description": "All", "pinned": true, "tags": ["a", "b"]});
    let one = create(&owner, DASHBOARDS, state).await;
    apply(&owner, &one, json!({"name": "Other", "description": "", "pinned": false})).await;
    destroy_softly(&owner, &one).await;
    let list = workspace.organization("projects/");
    let one = create(&owner, &list, json!({"name": "Shop", "timezone": "Europe/Berlin"})).await;
    apply(&owner, &one, json!({"name": "Shop 2", "timezone": "UTC"})).await;
    assert_eq!(owner.delete(&one).await.status, 204);
    owner.get(&one).await.assert_not_found("Not found.");
}

#[tokio::test]
async fn project_settings_are_set_below_environments_and_read_back() {
    let (_workspace, owner) = Workspace::owned().await;
    let one = "/api/environments/1/";
    assert!(owner.get(one).await.ok()["id"].is_u64());
    for (flag, mode) in [(true, 2), (false, 0)] {
        let sent = json!({
            "heatmaps_opt_in": flag, "autocapture_exceptions_opt_in": flag,
            "session_recording_opt_in": flag, "surveys_opt_in": flag,
            "autocapture_web_vitals_opt_in": flag, "cookieless_server_hash_mode": mode,
            "app_urls": ["https://b.example", "https://a.example"], "recording_domains": [],
        });
        apply(&owner, one, sent).await;
    }
    let before = owner.get(one).await.ok();
    apply(&owner, one, json!({"app_urls": []})).await;
    let after = owner.get("/api/projects/1/").await.ok();
    assert_eq!(after["recording_domains"], before["recording_domains"]);
}

#[tokio::test]
async fn role_and_its_membership_are_created_read_and_destroyed() {
    let (workspace, owner) = Workspace::owned().await;
    workspace.member("ann", Level::Member).await;
    let uuid = workspace.uuid(ANN).await;
    let roles = workspace.organization("roles/");
    let role = create(&owner, &roles, json!({"name": "Engineers"})).await;
    let shown = owner.get(&role).await.ok();
    assert_eq!(shown["created_by"], Value::Null);
    let listed = owner.get(&format!("{roles}?limit=100")).await.ok();
    assert_eq!((&listed["next"], &listed["results"][0]["id"]), (&Value::Null, &shown["id"]));
    let memberships = format!("{role}role_memberships/");
    let made = owner.post(&memberships, json!({"user_uuid": uuid})).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["role_id"], shown["id"]);
    assert_eq!(made.body["user"]["email"], ANN);
    assert!(made.body["joined_at"].is_string() && made.body["user"]["uuid"] == uuid);
    let membership = format!("{memberships}{}/", made.body["id"].as_str().expect("an id"));
    reads_back(&owner.get(&membership).await.ok(), &made.body);
    apply(&owner, &role, json!({"name": "Builders"})).await;
    for one in [&membership, &role] {
        assert_eq!(owner.delete(one).await.status, 204);
        owner.get(one).await.assert_not_found("Not found.");
    }
}

/// Sets a rule and reads it back from the list, where the provider picks it by its resource, role and member.
async fn put_rule(caller: &TestClient, path: &str, sent: &Value) {
    let rule = caller.put(path, sent.clone()).await;
    assert_eq!((rule.status, &rule.body["created_by"]), (200, &Value::Null), "{}", rule.body);
    reads_back(&rule.body, sent);
    let found = find_rule(caller, path, sent).await.expect("the rule is listed");
    assert_eq!(found["access_level"], sent["access_level"]);
}

async fn find_rule(caller: &TestClient, path: &str, sent: &Value) -> Option<Value> {
    let shown = caller.get(path).await.ok();
    let is_same = |rule: &&Value| {
        let subject = ["role", "organization_member"].iter().all(|name| rule[*name] == sent[*name]);
        subject && sent.get("resource").is_none_or(|kind| rule["resource"] == *kind)
    };
    shown["access_controls"].as_array().expect("rules").iter().find(is_same).cloned()
}

/// Removes a rule by a null level.
async fn remove_rule(caller: &TestClient, path: &str, mut sent: Value) {
    sent["access_level"] = Value::Null;
    for _ in 0..2 {
        assert_eq!(caller.put(path, sent.clone()).await.status, 204);
    }
    assert_eq!(find_rule(caller, path, &sent).await, None);
}

#[tokio::test]
async fn access_to_a_project_is_set_and_removed_and_ends_as_none_for_everyone() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let member = workspace.membership(ANN).await;
    let role = add_role(&workspace, "Engineers").await.0["id"].clone();
    for subject in [json!({"organization_member": member}), json!({"role": role})] {
        for level in ["member", "admin"] {
            let mut sent = subject.clone();
            sent["access_level"] = json!(level);
            put_rule(&owner, ON_PROJECT, &sent).await;
        }
        remove_rule(&owner, ON_PROJECT, subject).await;
    }
    for level in ["member", "admin", "none"] {
        put_rule(&owner, ON_PROJECT, &json!({"access_level": level})).await;
    }
    ann.get("/api/projects/1/").await.assert_not_found("Not found.");
}

#[tokio::test]
async fn rules_on_kinds_and_on_a_dashboard_are_set_and_removed() {
    let (workspace, owner) = Workspace::owned().await;
    workspace.member("ann", Level::Member).await;
    let member = workspace.membership(ANN).await;
    let role = add_role(&workspace, "Engineers").await.0["id"].clone();
    let board = owner.post(DASHBOARDS, json!({"name": "A"})).await.ok()["id"].to_string();
    let on_one = format!("{DASHBOARDS}{board}/access_controls/");
    for subject in [json!({}), json!({"role": role}), json!({"organization_member": member})] {
        for kind in ["feature_flag", "dashboard", "survey", "experiment", "session_recording"] {
            let mut sent = subject.clone();
            sent["resource"] = json!(kind);
            for level in ["none", "viewer", "editor"] {
                sent["access_level"] = json!(level);
                put_rule(&owner, ON_KINDS, &sent).await;
            }
            remove_rule(&owner, ON_KINDS, sent).await;
        }
        let mut sent = subject.clone();
        sent["resource"] = json!("dashboard");
        sent["resource_id"] = json!(board);
        sent["access_level"] = json!("viewer");
        put_rule(&owner, &on_one, &sent).await;
        remove_rule(&owner, &on_one, sent).await;
    }
}

#[tokio::test]
async fn workflow_of_roles_projects_and_rules_runs_and_is_destroyed_in_order() {
    let (workspace, owner) = Workspace::owned().await;
    let projects = workspace.organization("projects/");
    let project = create(&owner, &projects, json!({"name": "RBAC"})).await;
    let id = owner.get(&project).await.ok()["id"].to_string();
    let on_project = format!("/api/projects/{id}/access_controls/");
    let on_kinds = format!("/api/projects/{id}/resource_access_controls/");
    let mut roles = Vec::new();
    for name in ["Admins", "Engineers", "Analysts"] {
        roles.push(add_role(&workspace, name).await);
    }
    let kinds = ["feature_flag", "dashboard", "experiment", "session_recording"];
    for (levels, on_kind) in
        [(["admin", "member", "member"], "editor"), (["member", "admin", "member"], "viewer")]
    {
        put_rule(&owner, &on_project, &json!({"access_level": "none"})).await;
        for ((role, _), level) in roles.iter().zip(levels) {
            let sent = json!({"role": role["id"], "access_level": level});
            put_rule(&owner, &on_project, &sent).await;
        }
        for (at, kind) in kinds.iter().cycle().take(6).enumerate() {
            let role = &roles[at % 3].0["id"];
            let sent = json!({"resource": kind, "role": role, "access_level": on_kind});
            put_rule(&owner, &on_kinds, &sent).await;
        }
    }
    for (at, kind) in kinds.iter().cycle().take(6).enumerate() {
        remove_rule(&owner, &on_kinds, json!({"resource": kind, "role": roles[at % 3].0["id"]}))
            .await;
    }
    for (role, _) in &roles {
        remove_rule(&owner, &on_project, json!({ "role": role["id"] })).await;
    }
    put_rule(&owner, &on_project, &json!({"access_level": "none"})).await;
    for (_, one) in &roles {
        assert_eq!(owner.delete(one).await.status, 204);
    }
    assert_eq!(owner.delete(&project).await.status, 204);
    owner.get(&project).await.assert_not_found("Not found.");
    workspace.assert_file_valid().await;
}
