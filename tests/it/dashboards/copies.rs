//! Dashboards created as copies of others.

use crate::support::prelude::*;

/// Creates a dashboard of the owner that uses every field.
async fn full(workspace: &Workspace) -> (u64, String) {
    let sent = json!({
        "name": "Source", "description": "d", "pinned": true, "tags": ["t"],
        "restriction_level": 37, "filters": {"date_from": "-7d"},
    });
    let (id, one) = make(workspace, &workspace.owner, sent).await;
    workspace.owner.patch(&one, json!({"variables": {"v": {"id": 1}}})).await.ok();
    put_insight(workspace, id, json!("I"), json!({"sm": {"x": "0", "y": "0"}})).await;
    put_insight(workspace, id, json!(null), json!({"sm": {"y": " 1", "x": []}, "a": 1})).await;
    put_texts(&workspace.owner, &one, &["words", "gone"]).await;
    let gone = shown(&workspace.owner, &one).await[3]["id"].clone();
    workspace.owner.patch(&one, json!({"tiles": [{"id": gone, "deleted": true}]})).await.ok();
    (id, one)
}

/// Removes the fields in which a copied tile differs from its source.
fn looks(mut tiles: Vec<Value>) -> Vec<Value> {
    const OF_INSIGHT: [&str; 5] = [
        "dashboards",
        "dashboard_tiles",
        "effective_restriction_level",
        "effective_privilege_level",
        "user_access_level",
    ];
    for tile in &mut tiles {
        tile["id"] = json!(null);
        if let Some(insight) = tile["insight"].as_object_mut() {
            insight.retain(|name, _| !OF_INSIGHT.contains(&name.as_str()));
        }
    }
    tiles
}

#[tokio::test]
async fn copy_has_tiles_and_filters_of_its_source_and_other_fields_from_the_request() {
    let (workspace, owner) = at_the_moment().await;
    let ann = workspace.member("ann", Level::Member).await;
    let (source, one) = full(&workspace).await;
    let before = owner.get(&one).await.ok();
    for (sent, name) in [
        (json!({"use_dashboard": source}), json!(null)),
        (json!({"use_dashboard": source, "name": "Copy", "duplicate_tiles": false}), json!("Copy")),
    ] {
        let made = ann.post(&workspace.dashboards(""), sent).await;
        assert_eq!(made.status, 201);
        let id = made.body["id"].as_u64().expect("an id");
        let changes = json!({
            "name": name, "creation_mode": "duplicate", "use_dashboard": source,
            "filters": {"date_from": "-7d"}, "variables": {"v": {"id": 1}},
            "tiles": made.body["tiles"],
        });
        let expected = detail(&ann, id, changes).await;
        made.assert_is(201, expected.clone());
        ann.get(&workspace.dashboards(&format!("{id}/"))).await.assert_is(200, expected.clone());
        let tiles = expected["tiles"].as_array().expect("tiles").clone();
        let known = shown(&owner, &one).await;
        for (tile, known) in tiles.iter().zip(&known) {
            assert_ne!(tile["id"], known["id"]);
        }
        assert_eq!(looks(tiles), looks(known));
    }
    let insight = &shown(&owner, &one).await[0]["insight"];
    assert_eq!(insight["dashboards"], json!([source, source + 1, source + 2]));
    assert_eq!(insight["dashboard_tiles"].as_array().map(Vec::len), Some(3));
    for name in ["name", "filters", "variables", "tags", "restriction_level"] {
        assert_eq!(owner.get(&one).await.ok()[name], before[name]);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deep_copy_has_its_own_insights_and_texts() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (source, one) = full(&workspace).await;
    let before = shown(&owner, &one).await;
    let sent = json!({"use_dashboard": source, "duplicate_tiles": true});
    let (_, copy) = make(&workspace, &ann, sent).await;
    let after = shown(&ann, &copy).await;
    let names = shown_of(&ann, &copy, "/insight/name").await;
    assert_eq!(names, [json!("I (Copy)"), json!(null), json!(null)]);
    assert_eq!(shown_of(&ann, &copy, "/text/body").await[2], "words");
    for (old, new) in before.iter().zip(&after) {
        assert_eq!((&old["layouts"], &old["color"]), (&new["layouts"], &new["color"]));
        for content in ["insight", "text"] {
            assert_eq!(old[content].is_null(), new[content].is_null());
            if new[content].is_object() {
                assert_ne!(old[content]["id"], new[content]["id"]);
                assert_eq!(new[content]["created_by"]["first_name"], "ann");
                assert_eq!(old[content]["tags"], new[content]["tags"]);
                assert_eq!(old[content]["query"], new[content]["query"]);
            }
        }
    }
    // A change of the copy does not change the source.
    let sent = json!({"tiles": [{"id": after[2]["id"], "text": {"body": "mine"}}]});
    ann.patch(&copy, sent).await.ok();
    assert_eq!(shown(&owner, &one).await, before);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn filters_in_the_request_override_those_of_the_source() {
    let (workspace, owner) = Workspace::owned().await;
    let (source, _) = full(&workspace).await;
    for (filters, shown) in [
        (json!({"a": 1}), json!([{"a": 1}, {}])),
        (json!({}), json!([{"date_from": "-7d"}, {"v": {"id": 1}}])),
        (json!(null), json!([{"date_from": "-7d"}, {"v": {"id": 1}}])),
    ] {
        let sent = json!({"use_dashboard": source, "filters": filters, "variables": {"x": 1}});
        let made = owner.post(&workspace.dashboards(""), sent).await.ok();
        assert_eq!(json!([made["filters"], made["variables"]]), shown);
    }
}

/// Asserts that a copy is refused, and that no dashboard was created.
async fn refuses_source(workspace: &Workspace, caller: &TestClient, list: &str, source: &Value) {
    let before = caller.get(list).await.ok()["count"].clone();
    let answer = caller.post(list, json!({"use_dashboard": source, "name": "Copy"})).await;
    answer.assert_bad("use_dashboard", "Invalid value provided");
    assert_eq!(caller.get(list).await.ok()["count"], before);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn copy_source_is_a_live_dashboard_of_the_same_project_also_a_copy_or_an_empty_one() {
    let (workspace, owner) = Workspace::owned().await;
    let (source, one) = full(&workspace).await;
    let project = workspace.add_project(json!({})).await;
    let (eve, hers) = workspace.outsider("eve").await;
    for (caller, project) in [(&owner, &project), (&eve, &hers["project_id"])] {
        let list = format!("/api/projects/{project}/dashboards/");
        refuses_source(&workspace, caller, &list, &json!(source)).await;
    }
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let list = workspace.dashboards("");
    refuses_source(&workspace, &owner, &list, &json!(source)).await;
    refuses_source(&workspace, &owner, &list, &json!(999_999)).await;
    let wrong = owner.post(&list, json!({"use_dashboard": 0, "duplicate_tiles": "maybe"})).await;
    wrong.assert_bad("duplicate_tiles", "Must be a valid boolean.");
    let none = owner.post(&list, json!({"use_dashboard": 0, "duplicate_tiles": true})).await.ok();
    assert_eq!(json!([none["creation_mode"], none["tiles"]]), json!(["default", []]));
    let (empty, _) = make(&workspace, &owner, json!({})).await;
    let (copy, _) = make(&workspace, &owner, json!({"use_dashboard": empty})).await;
    let (_, again) = make(&workspace, &owner, json!({"use_dashboard": copy.to_string()})).await;
    let shown = owner.get(&again).await.ok();
    let shown = json!([shown["use_dashboard"], shown["creation_mode"], shown["tiles"]]);
    assert_eq!(shown, json!([copy, "duplicate", []]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn copy_source_must_be_visible_to_the_caller() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let (source, one) = full(&workspace).await;
    let sent = json!({"use_dashboard": source});
    workspace.set_rule(&one, None, "none").await;
    ann.post(&workspace.dashboards(""), sent.clone()).await.assert_denied(VIEWER);
    assert_eq!(workspace.owner.get(&workspace.dashboards("")).await.ok()["count"], 1);
    workspace.owner.post(&workspace.dashboards(""), sent.clone()).await.ok();
    workspace.set_rule(&one, None, "viewer").await;
    let made = ann.post(&workspace.dashboards(""), sent).await.ok();
    assert_eq!(made["tiles"].as_array().map(Vec::len), Some(3));
    // The caller manages the copy, whatever their rights on the source. The insight is the same.
    assert_eq!(made["user_access_level"], "manager");
    assert_eq!(made["tiles"][0]["insight"]["user_access_level"], "editor");
    workspace.assert_file_valid().await;
}

/// Limits apply to what one request writes, and to what one response shows.
#[tokio::test]
async fn total_size_of_copied_tiles_is_limited() {
    let (workspace, owner) = Workspace::owned().await;
    let query = json!({ "kind": "HogQLQuery", "query": "x".repeat(30_000) });
    let template = json!({
        "template_name": "Heavy", "dashboard_description": "", "dashboard_filters": {},
        "tiles": vec![json!({ "type": "INSIGHT", "name": "Heavy", "query": query, "layouts": {} }); 30],
    });
    let path = workspace.dashboards("create_from_template_json/");
    let heavy = owner.post(&path, json!({ "template": template })).await.ok();
    let (id, tiles) = (&heavy["id"], heavy["tiles"].as_array().expect("tiles"));
    let one = workspace.dashboards(&format!("{id}/"));
    let copies = |count: usize| -> Value {
        (0..count).map(|at| json!({ "id": tiles[at % tiles.len()]["id"] })).collect()
    };
    let too_heavy = "Ensure the tiles have no more than 1048576 bytes of JSON in total.";
    let many = owner.patch(&one, json!({ "duplicate_tiles": copies(40) })).await;
    many.assert_invalid("duplicate_tiles", "max_length", too_heavy);
    for _ in 0..8 {
        owner.patch(&one, json!({ "duplicate_tiles": copies(30) })).await.ok();
    }
    let shown = owner.get(&one).await.ok();
    assert_eq!(shown["tiles"].as_array().expect("tiles").len(), 270);
    let heaviest = "Ensure the tiles have no more than 8388608 bytes of JSON in total.";
    let full = owner.patch(&one, json!({ "duplicate_tiles": copies(30) })).await;
    full.assert_invalid("tiles", "max_length", heaviest);
    let wide = json!({ "sm": { "note": "x".repeat(30_000) } });
    let laid_out: Value =
        (0..20).map(|at| json!({ "id": shown["tiles"][at]["id"], "layouts": wide })).collect();
    let grown = owner.patch(&one, json!({ "tiles": laid_out })).await;
    grown.assert_invalid("tiles", "max_length", heaviest);
    let one_of_them = json!([{ "id": shown["tiles"][0]["id"], "color": "red" }]);
    owner.patch(&one, json!({ "tiles": one_of_them })).await.ok();
    let deep = json!({ "use_dashboard": id, "duplicate_tiles": true });
    let deep = owner.post(&workspace.dashboards(""), deep).await;
    deep.assert_invalid("duplicate_tiles", "max_length", too_heavy);
    owner.post(&workspace.dashboards(""), json!({ "use_dashboard": id })).await.ok();
    workspace.assert_file_valid().await;
}
