//! Insights: create, list, retrieve and update.

mod access;
mod activity;
mod dashboards;
mod fields;
mod lists;
mod removal;

use crate::support::bodies::insight;
use crate::support::prelude::*;

/// The fields of the basic form.
const BASIC: &str = "\
    id short_id name derived_name filters query dashboards dashboard_tiles description \
    last_refresh refreshing saved tags updated_at created_by created_at last_modified_at \
    favorited user_access_level last_viewed_at";

/// Returns a path of insights in the first project: `insights("")`, `insights("1/")`.
pub fn insights(workspace: &Workspace, rest: &str) -> String {
    workspace.project(&format!("insights/{rest}"))
}

/// Creates an insight, and returns its body and path.
pub async fn make_insight(
    workspace: &Workspace,
    maker: &TestClient,
    sent: Value,
) -> (Value, String) {
    maker.create(&insights(workspace, ""), sent).await
}

/// The expected full form of an insight that `maker` created with `{}`, with these changes. `made` has its IDs.
pub async fn expected(maker: &TestClient, made: &Value, changes: Value) -> Value {
    let ids = json!({ "id": made["id"], "short_id": made["short_id"] });
    changed(insight(&embedded(maker).await, ids), changes)
}

/// The basic form of the insight with this full form.
pub fn basic(full: &Value) -> Value {
    let shown = |name: &str| (name.to_owned(), full.get(name).cloned().unwrap_or_default());
    BASIC.split(' ').map(shown).collect::<serde_json::Map<_, _>>().into()
}

#[tokio::test]
async fn new_insight_has_the_documented_fields_and_defaults() {
    let (workspace, owner) = at_the_moment().await;
    let list = insights(&workspace, "");
    owner.get(&list).await.assert_is(200, page(json!([])));
    let made = owner.post(&list, json!({})).await;
    let whole = expected(&owner, &made.body, json!({})).await;
    made.assert_is(201, whole.clone());
    let short_id = made.body["short_id"].as_str().expect("a text");
    assert!(short_id.len() == 8 && short_id.chars().all(|c| c.is_ascii_alphanumeric()));
    assert!(short_id.chars().any(char::is_alphabetic), "{short_id}");
    for name in [made.body["id"].to_string(), short_id.to_owned()] {
        let one = insights(&workspace, &format!("{name}/"));
        owner.get(&one).await.assert_is(200, whole.clone());
        owner.get(&format!("{one}?basic=true")).await.assert_is(200, basic(&whole));
    }
    owner.get(&list).await.assert_is(200, page(json!([whole])));
    for yes in ["true", "1"] {
        let listed = owner.get(&format!("{list}?basic={yes}")).await;
        listed.assert_is(200, page(json!([basic(&whole)])));
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn every_request_field_of_a_new_insight_is_stored() {
    let (workspace, owner) = at_the_moment().await;
    let query = json!({"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "x": 1.0, "y": 1, "z": {}, "n": null}});
    let sent = json!({
        "name": " Visitors ", "derived_name": "Count of visits", "description": "Who came",
        "query": query, "filters": {"insight": "TRENDS"}, "order": "7", "tags": ["b", "A"],
        "favorited": true, "saved": false, "_create_in_folder": "Shared",
    });
    let made = owner.post(&insights(&workspace, ""), sent).await;
    let changes = json!({
        "name": "Visitors", "derived_name": "Count of visits", "description": "Who came",
        "query": query, "order": 7, "tags": ["a", "b"], "favorited": true, "saved": false,
    });
    let whole = expected(&owner, &made.body, changes).await;
    made.assert_is(201, whole.clone());
    let got = owner.get(&insights(&workspace, &format!("{}/", made.body["id"]))).await;
    got.assert_is(200, whole);
    let text = String::from_utf8(got.bytes).expect("UTF-8");
    assert!(text.contains(&query.to_string()), "the query keeps its numbers and order: {text}");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn read_only_and_unknown_insight_fields_are_ignored() {
    let (workspace, owner) = at_the_moment().await;
    let sent = json!({
        "id": 77, "short_id": "abcdefgh", "created_by": null, "created_at": "2001-01-01",
        "result": [1], "refreshing": true, "dashboard": 1, "layouts": {}, "color": "red",
        "is_sample": true, "user_access_level": "none", "nonsense": [1], "dashboard_tiles": [1],
        "last_modified_by": null, "timezone": "UTC", "alerts": [1],
    });
    let mut on_create = sent.clone();
    on_create["deleted"] = json!(true);
    let (made, one) = make_insight(&workspace, &owner, on_create).await;
    assert_ne!(made["id"], 77);
    assert_ne!(made["short_id"], "abcdefgh");
    let whole = expected(&owner, &made, json!({})).await;
    assert_eq!(made, whole);
    owner.patch(&one, sent).await.assert_is(200, whole);
}

#[tokio::test]
async fn patch_and_put_change_only_the_sent_fields_of_an_insight() {
    let (workspace, owner) = at_the_moment().await;
    let mut changes = json!({"name": "A", "tags": ["x"], "query": {"a": 1}});
    let (made, one) = make_insight(&workspace, &owner, changes.clone()).await;
    let unchanged = expected(&owner, &made, changes.clone()).await;
    owner.patch(&one, json!({})).await.assert_is(200, unchanged);
    let short = insights(&workspace, &format!("{}/", made["short_id"].as_str().expect("a text")));
    for (name, value) in [
        ("name", json!("")),
        ("name", json!(null)),
        ("derived_name", json!("d")),
        ("description", json!("d")),
        ("description", json!("")),
        ("query", json!({"b": [2, {"c": 2.50}]})),
        ("order", json!(-3)),
        ("tags", json!([])),
        ("favorited", json!(true)),
        ("saved", json!(false)),
        ("saved", json!(true)),
    ] {
        changes[name] = value.clone();
        let whole = expected(&owner, &made, changes.clone()).await;
        owner.patch(&one, json!({ name: value.clone() })).await.assert_is(200, whole.clone());
        owner.get(&one).await.assert_is(200, whole.clone());
        owner.send(Method::PUT, &short, Some(json!({ name: value }))).await.assert_is(200, whole);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn patch_without_saved_sets_it_and_a_change_clears_is_sample() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, one) = make_insight(&workspace, &owner, json!({"saved": false})).await;
    assert_eq!(owner.patch(&one, json!({"favorited": true})).await.ok()["saved"], true);
    let template = json!({"use_template": "DEFAULT_APP"});
    let dashboard = owner.post(&workspace.dashboards(""), template).await.ok();
    let insight = &dashboard["tiles"][0]["insight"];
    assert_eq!((&insight["is_sample"], &insight["saved"]), (&json!(true), &json!(true)));
    let one = insights(&workspace, &format!("{}/", insight["id"]));
    assert_eq!(owner.get(&one).await.ok()["is_sample"], true);
    assert_eq!(owner.patch(&one, json!({})).await.ok()["is_sample"], true);
    assert_eq!(owner.patch(&one, json!({"name": "n"})).await.ok()["is_sample"], false);
}

#[tokio::test]
async fn every_visible_change_moves_the_modification_and_equal_values_change_nothing() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    let (made, one) = make_insight(&workspace, owner, json!({})).await;
    let (mut last, ann_id) = (made, embedded(&ann).await["id"].clone());
    for sent in [
        json!({"name": "n"}),
        json!({"derived_name": "n"}),
        json!({"query": {"a": 1}}),
        json!({"description": "d"}),
        json!({"tags": ["t"]}),
        json!({"favorited": true}),
        json!({"order": 1}),
        json!({"query": null, "filters": {"insight": "TRENDS"}}),
    ] {
        clock.advance(Duration::from_secs(1));
        let before = owner.get(&one).await;
        let changed = ann.patch(&one, sent.clone()).await.ok();
        for name in ["updated_at", "last_modified_at"] {
            assert_ne!(changed[name], last[name], "{sent}");
        }
        assert_eq!(changed["last_modified_by"]["id"], ann_id, "{sent}");
        assert_eq!(changed["created_at"], last["created_at"]);
        clock.advance(Duration::from_secs(1));
        let again = owner.patch(&one, sent.clone()).await;
        assert_eq!(again.body["updated_at"], changed["updated_at"], "{sent}");
        assert_eq!(again.body["last_modified_by"]["id"], ann_id, "{sent}");
        assert_ne!(again.version(), before.version(), "{sent}");
        assert_eq!(again.version(), owner.get(&one).await.version(), "{sent}");
        last = changed;
    }
}

#[tokio::test]
async fn insights_are_found_by_number_before_short_id_and_only_in_their_project() {
    let (workspace, owner) = Workspace::owned().await;
    let (made, one) = make_insight(&workspace, &owner, json!({})).await;
    let other = workspace.add_project(json!({"name": "Two"})).await;
    let elsewhere = format!("/api/projects/{other}/insights/");
    assert_eq!(owner.get(&elsewhere).await.ok()["count"], 0);
    for name in [made["id"].to_string(), made["short_id"].as_str().expect("a text").to_owned()] {
        owner.get(&insights(&workspace, &format!("{name}/"))).await.ok();
        let path = format!("{elsewhere}{name}/");
        owner.get(&path).await.assert_not_found("Not found.");
        owner.patch(&path, json!({"name": "x"})).await.assert_not_found("Not found.");
    }
    let plus = format!("+{}", made["id"]);
    for unknown in ["999999", "-1", &plus, "abcdefgh", "%00", "99999999999999999999999", "é", "@me"]
    {
        let path = insights(&workspace, &format!("{unknown}/"));
        owner.get(&path).await.assert_not_found("Not found.");
        owner.patch(&path, json!({"name": 5})).await.assert_not_found("Not found.");
    }
    assert_eq!(owner.get(&one).await.ok()["name"], json!(null));
}

#[tokio::test]
async fn overrides_in_a_retrieve_must_be_json_and_have_no_effect() {
    let (workspace, owner) = Workspace::owned().await;
    let (made, one) = make_insight(&workspace, &owner, json!({})).await;
    for name in ["filters_override", "variables_override"] {
        let bad = owner.get(&format!("{one}?{name}=%7B")).await;
        bad.assert_bad(name, &format!("Invalid JSON passed in {name} parameter"));
        owner.get(&format!("{one}?{name}=%7B%7D")).await.assert_is(200, made.clone());
    }
    for ignored in ["refresh=force_blocking", "from_dashboard=9", "unknown=x"] {
        owner.get(&format!("{one}?{ignored}")).await.assert_is(200, made.clone());
    }
}
