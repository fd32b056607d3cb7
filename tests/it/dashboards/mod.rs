//! Dashboards: create, list, retrieve and update.

pub mod access;
mod collaborators;
mod copies;
mod fields;
mod levels;
pub mod lists;
mod removal;
mod template_json;
mod templates;

use crate::support::bodies::MOMENT;
use crate::support::prelude::*;

/// The fields that only the detail view has.
const DETAILS: [&str; 6] =
    ["use_template", "use_dashboard", "delete_insights", "filters", "variables", "tiles"];

/// The fields of an embedded user.
const USER: &str = "\
    id uuid distinct_id first_name last_name email is_email_verified hedgehog_config \
    role_at_organization";

/// A workspace whose clock stands at [`MOMENT`], and its owner.
pub async fn at_the_moment() -> (Workspace, TestClient) {
    let workspace = Workspace::with(with_clock_at(1_700_000_000_250_000).0).await;
    (workspace.clone(), workspace.owner)
}

/// The caller as an embedded user.
pub async fn embedded(caller: &TestClient) -> Value {
    let me = caller.get(ME).await.ok();
    let user: Map<_, _> = USER.split(' ').map(|name| (name.to_owned(), me[name].clone())).collect();
    user.into()
}

/// The expected detail view of a dashboard that `maker` created with `{}`, with these changes.
pub async fn detail(maker: &TestClient, id: u64, changes: Value) -> Value {
    let new = json!({
        "id": id, "name": null, "description": "", "pinned": false, "tags": [], "tiles": [],
        "filters": {}, "variables": {}, "created_at": MOMENT,
        "created_by": embedded(maker).await, "is_shared": false, "deleted": false,
        "creation_mode": "default", "restriction_level": 21, "effective_restriction_level": 21,
        "effective_privilege_level": 37, "user_access_level": "manager",
        "access_control_version": "v2", "use_template": "", "use_dashboard": null,
        "delete_insights": false,
    });
    changed(new, changes)
}

/// The list item of the dashboard with this detail view.
pub fn item(mut detail: Value) -> Value {
    for name in DETAILS {
        detail.as_object_mut().expect("an object").remove(name).expect("a detail");
    }
    detail
}

#[tokio::test]
async fn new_dashboard_has_the_documented_fields_and_defaults() {
    let (workspace, owner) = at_the_moment().await;
    let list = workspace.dashboards("");
    owner.get(&list).await.assert_is(200, page(json!([])));
    let made = owner.post(&list, json!({})).await;
    let id = made.body["id"].as_u64().expect("an id");
    let expected = detail(&owner, id, json!({})).await;
    made.assert_is(201, expected.clone());
    owner.get(&workspace.dashboards(&format!("{id}/"))).await.assert_is(200, expected.clone());
    owner.get(&list).await.assert_is(200, page(json!([item(expected)])));
}

#[tokio::test]
async fn every_request_field_of_a_new_dashboard_is_stored() {
    let (workspace, owner) = at_the_moment().await;
    let sent = json!({
        "name": " Sales ", "description": "What we sold", "pinned": true, "tags": ["b", "a"],
        "restriction_level": 37, "use_template": "", "use_dashboard": null,
        "filters": {"date_from": "-7d"},
    });
    let made = owner.post(&workspace.dashboards(""), sent).await;
    let id = made.body["id"].as_u64().expect("an id");
    let changes = json!({
        "name": "Sales", "description": "What we sold", "pinned": true, "tags": ["a", "b"],
        "restriction_level": 37, "effective_restriction_level": 37, "access_control_version": "v1",
        "filters": {"date_from": "-7d"},
    });
    let expected = detail(&owner, id, changes).await;
    made.assert_is(201, expected.clone());
    owner.get(&workspace.dashboards(&format!("{id}/"))).await.assert_is(200, expected);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn read_only_and_unknown_dashboard_fields_are_ignored() {
    let (workspace, owner) = at_the_moment().await;
    let sent = json!({
        "id": 77, "created_at": "2001-01-01T00:00:00Z", "created_by": null, "is_shared": true,
        "creation_mode": "template", "effective_restriction_level": 37,
        "effective_privilege_level": 21, "user_access_level": "none",
        "access_control_version": "v1", "nonsense": [1],
    });
    let only_updated = json!({
        "deleted": true, "delete_insights": true, "variables": {"a": 1}, "tiles": [{"id": 1}],
    });
    let made = owner.post(&workspace.dashboards(""), with(sent.clone(), only_updated)).await;
    let id = made.body["id"].as_u64().expect("an id");
    assert_ne!(id, 77);
    let expected = detail(&owner, id, json!({})).await;
    made.assert_is(201, expected.clone());
    owner.patch(&workspace.dashboards(&format!("{id}/")), sent).await.assert_is(200, expected);
}

#[tokio::test]
async fn patch_changes_only_the_sent_fields() {
    let (workspace, owner) = at_the_moment().await;
    let (id, one) =
        make(&workspace, &owner, json!({"name": "A", "tags": ["x"], "filters": {"a": 1}})).await;
    let mut changes = json!({"name": "A", "tags": ["x"], "filters": {"a": 1}});
    owner.patch(&one, json!({})).await.assert_is(200, detail(&owner, id, changes.clone()).await);
    for (name, value) in [
        ("name", json!(null)),
        ("description", json!("d")),
        ("pinned", json!(true)),
        ("tags", json!(["y"])),
        ("filters", json!({"b": 2})),
        ("variables", json!({"v": {"id": 1}})),
        ("name", json!("B")),
    ] {
        changes[name] = value.clone();
        let expected = detail(&owner, id, changes.clone()).await;
        owner.patch(&one, json!({ name: value })).await.assert_is(200, expected.clone());
        owner.get(&one).await.assert_is(200, expected);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn lists_are_sorted_by_pinned_then_name_then_null_then_id() {
    let (workspace, owner) = Workspace::owned().await;
    let mut expected = Vec::new();
    // Each with its expected place in the list. The order of creation differs.
    for (place, name, pinned) in [
        (6, json!("a"), false),
        (12, json!(null), false),
        (1, json!("z"), true),
        (10, json!("\u{fffd}"), false),
        (4, json!("B"), false),
        (7, json!("a"), false),
        (2, json!(null), true),
        (13, json!(null), false),
        (8, json!("a b"), false),
        (3, json!(""), false),
        (11, json!("\u{10000}"), false),
        (0, json!("Y"), true),
        (9, json!("é"), false),
        (5, json!("Z"), false),
    ] {
        let (id, _) =
            make(&workspace, &owner, json!({"name": name.clone(), "pinned": pinned})).await;
        expected.push((place, json!([id, name, pinned])));
    }
    expected.sort_by_key(|(place, _)| *place);
    let expected: Vec<Value> = expected.into_iter().map(|(_, shown)| shown).collect();
    let listed = owner.get(&workspace.dashboards("")).await.ok();
    let shown = |item: &Value| json!([item["id"], item["name"], item["pinned"]]);
    let shown: Vec<Value> =
        listed["results"].as_array().expect("a list").iter().map(shown).collect();
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn renamed_or_pinned_dashboard_moves_in_the_list() {
    let (workspace, owner) = Workspace::owned().await;
    let (a, at_a) = make(&workspace, &owner, json!({"name": "a"})).await;
    let (b, at_b) = make(&workspace, &owner, json!({"name": "b"})).await;
    for (path, sent, order) in [
        (&at_a, json!({}), [a, b]),
        (&at_a, json!({"name": "c"}), [b, a]),
        (&at_a, json!({"pinned": true}), [a, b]),
        (&at_b, json!({"pinned": true, "name": null}), [a, b]),
    ] {
        owner.patch(path, sent).await.ok();
        assert_eq!(column(&owner.get(&workspace.dashboards("")).await.ok(), "id"), order);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn tags_are_normalized_sorted_replaced_and_cleared() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, one) = make(&workspace, &owner, json!({"tags": [" Mixed Case ", "b", "B", "a"]})).await;
    for (sent, shown) in [
        (json!({}), json!(["a", "b", "mixed case"])),
        (json!({"tags": ["C", "c ", 5]}), json!(["5", "c"])),
        (json!({"name": "x"}), json!(["5", "c"])),
        (json!({"tags": []}), json!([])),
    ] {
        assert_eq!(owner.patch(&one, sent.clone()).await.ok()["tags"], shown, "{sent}");
        assert_eq!(owner.get(&one).await.ok()["tags"], shown, "{sent}");
    }
}

#[tokio::test]
async fn filters_and_variables_are_replaced_and_keep_the_order_of_their_members() {
    let (workspace, owner) = Workspace::owned().await;
    for name in ["filters", "variables"] {
        let (_, one) = make(&workspace, &owner, json!({})).await;
        for (sent, shown) in [
            (json!({"b": {"c": [null, 1.5, "x"]}}), json!({"b": {"c": [null, 1.5, "x"]}})),
            (json!({"d": 2}), json!({"d": 2})),
            (json!({}), json!({"d": 2})),
            (json!(null), json!({"d": 2})),
        ] {
            assert_eq!(owner.patch(&one, json!({name: sent.clone()})).await.ok()[name], shown);
            assert_eq!(owner.get(&one).await.ok()[name], shown, "{name} {sent}");
        }
        for wrong in [json!([1]), json!("x"), json!(1), json!(true)] {
            let answer = owner.patch(&one, json!({ name: wrong })).await;
            answer.assert_bad_body("Filters must be a dictionary");
        }
        assert_eq!(owner.get(&one).await.ok()[name], json!({"d": 2}));
    }
    let (_, one) = make(&workspace, &workspace.owner, json!({"filters": {"b": 1, "a": 2}})).await;
    let text = String::from_utf8(workspace.owner.get(&one).await.bytes).expect("UTF-8");
    assert!(text.contains(r#""filters":{"b":1,"a":2}"#), "{text}");
}

#[tokio::test]
async fn patch_ignores_a_source_and_rejects_two() {
    let (workspace, owner) = at_the_moment().await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    let unchanged = detail(&owner, id, json!({})).await;
    for sent in [
        json!({"use_template": "No such"}),
        json!({"use_template": "DEFAULT_APP"}),
        json!({"use_dashboard": 999_999}),
        json!({"use_template": "No such", "use_dashboard": 0}),
        json!({"use_template": "", "use_dashboard": 7}),
    ] {
        owner.patch(&one, sent).await.assert_is(200, unchanged.clone());
    }
    let both = json!({"use_template": "A", "use_dashboard": 1, "name": "x"});
    let detail = "`use_dashboard` and `use_template` cannot be used together";
    owner.patch(&one, both).await.assert_bad_body(detail);
    owner.get(&one).await.assert_is(200, unchanged);
}

#[tokio::test]
async fn projects_share_dashboard_ids_but_not_dashboards() {
    let (workspace, owner) = Workspace::owned().await;
    let (first, one) = make(&workspace, &owner, json!({"name": "A"})).await;
    let other = workspace.add_project(json!({"name": "Two"})).await;
    let elsewhere = format!("/api/projects/{other}/dashboards/");
    let second = owner.post(&elsewhere, json!({"name": "B"})).await.ok();
    let (third, _) = make(&workspace, &owner, json!({"name": "C"})).await;
    let second_id = second["id"].as_u64().expect("an id");
    assert!(first < second_id && second_id < third, "{first} {second_id} {third}");
    owner.get(&format!("{elsewhere}{first}/")).await.assert_not_found("Not found.");
    let answer = owner.patch(&format!("{elsewhere}{first}/"), json!({"name": "x"})).await;
    answer.assert_not_found("Not found.");
    owner.get(&elsewhere).await.assert_is(200, page(json!([item(second)])));
    assert_eq!(owner.get(&one).await.ok()["name"], "A");
}
