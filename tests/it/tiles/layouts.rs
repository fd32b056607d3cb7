//! `tiles` as a client that keeps the whole layout of a dashboard sends it: every tile, with each of its fields.

use crate::support::prelude::*;

use super::with_insight;

/// Sends the tiles and asserts that the response and the next GET show them. Returns them.
async fn put(caller: &TestClient, one: &str, tiles: Value) -> Vec<Value> {
    let answer = caller.patch(one, json!({ "tiles": tiles })).await.ok();
    let tiles = shown(caller, one).await;
    assert_eq!(answer["tiles"], json!(tiles));
    tiles
}

#[tokio::test]
async fn show_description_is_true_false_or_null() {
    let (workspace, owner, (_, one), tile) = with_insight().await;
    assert_eq!(shown(&owner, &one).await[0]["show_description"], Value::Null);
    for (sent, expected) in [
        (json!(true), json!(true)),
        (json!(null), json!(null)),
        (json!("false"), json!(false)),
        (json!(1), json!(true)),
    ] {
        let version = owner.get(&one).await.headers["etag"].clone();
        let tiles = put(&owner, &one, json!([{"id": tile, "show_description": sent}])).await;
        assert_eq!(tiles[0]["show_description"], expected);
        assert_ne!(owner.get(&one).await.headers["etag"], version);
    }
    let log = owner.get("/api/projects/@current/activity_log/?limit=1").await.ok();
    let field = format!("tiles__{tile}__show_description");
    let change = json!({
        "type": "Dashboard", "action": "changed", "field": field, "before": false, "after": true,
    });
    assert_eq!(log["results"][0]["detail"]["changes"], json!([change]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn whole_layout_is_stored_and_read_back_and_changes_nothing_when_sent_again() {
    let (workspace, owner) = Workspace::owned().await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    let mut insights = Vec::new();
    for name in ["A", "B"] {
        insights.push(put_insight(&workspace, id, json!(name), json!({"sm": {"x": 1}})).await);
    }
    let texts = put_texts(&owner, &one, &["Old", "Gone"]).await;
    let layouts = |y: u32| json!({"sm": {"x": 0, "y": y, "w": 6, "h": 5, "minW": 3}, "xs": {"x": 0, "y": y, "w": 1, "h": 5}});
    let sent = json!([
        {"id": insights[0], "layouts": layouts(0), "color": "", "show_description": true},
        {"id": texts[0]["id"], "text": {"body": "# New"}, "layouts": layouts(5), "color": "blue", "show_description": null},
        {"text": {"body": "Added"}, "layouts": layouts(10), "color": "", "show_description": false},
        {"id": insights[1], "layouts": {}},
        {"id": texts[1]["id"], "deleted": true},
    ]);
    let tiles = put(&owner, &one, sent).await;
    let added = tiles[2]["id"].clone();
    assert!(!texts.iter().any(|text| text["id"] == added), "{added}");
    let expected = [
        (json!(insights[0]), json!(null), layouts(0), json!(""), json!(true)),
        (texts[0]["id"].clone(), json!("# New"), layouts(5), json!("blue"), json!(null)),
        (added.clone(), json!("Added"), layouts(10), json!(""), json!(false)),
        (json!(insights[1]), json!(null), json!({}), json!("blue"), json!(null)),
    ];
    assert_eq!(tiles.len(), expected.len());
    for (tile, (id, body, layouts, color, show_description)) in tiles.iter().zip(expected) {
        assert_eq!((&tile["id"], &tile["text"]["body"], &tile["layouts"]), (&id, &body, &layouts));
        assert_eq!((&tile["color"], &tile["show_description"]), (&color, &show_description));
        assert!(tile.get("deleted").is_none() && tile["insight"].is_null() != body.is_null());
    }
    assert_eq!(tiles[1]["text"]["id"], texts[0]["text"]["id"]);
    let sent = json!([
        {"id": insights[0], "layouts": {"sm": {"x": 0, "y": 0, "w": 6, "h": 5}}, "color": "", "show_description": null},
    ]);
    let first = put(&owner, &one, sent.clone()).await;
    let entries = owner.get("/api/projects/@current/activity_log/").await.ok()["count"].clone();
    assert_eq!(put(&owner, &one, sent).await, first);
    let log = owner.get("/api/projects/@current/activity_log/").await.ok();
    assert_eq!(log["count"], entries, "{}", log["results"][0]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn every_setting_of_a_tile_is_stored_and_copied() {
    let (workspace, owner, (id, one), tile) = with_insight().await;
    let settings = json!({
        "layouts": {"sm": {"x": 1, "y": 0, "w": 1.50}}, "color": "red", "show_description": true,
        "transparent_background": true, "filters_overrides": {"date_from": "-7d", "a": [1]},
    });
    let of = |tile: &Value| {
        let names = settings.as_object().expect("an object").keys();
        names.map(|name| (name.clone(), tile[name].clone())).collect::<Value>()
    };
    let mut sent = settings.clone();
    sent["id"] = json!(tile);
    assert_eq!(of(&put(&owner, &one, json!([sent.clone()])).await[0]), settings);
    for copy in
        [json!({"use_dashboard": id}), json!({"use_dashboard": id, "duplicate_tiles": true})]
    {
        let (_, copied) = make(&workspace, &owner, copy).await;
        assert_eq!(of(&shown(&owner, &copied).await[0]), settings);
    }
    owner.patch(&one, json!({"duplicate_tiles": [{"id": tile}]})).await.ok();
    let mut expected = settings.clone();
    expected["layouts"] = json!({});
    assert_eq!(of(&shown(&owner, &one).await[1]), expected);
    let other = json!({
        "layouts": {"sm": {"x": 6, "y": 300}}, "color": null, "show_description": false,
        "transparent_background": false, "filters_overrides": {"b": 1},
    });
    sent = other.clone();
    sent["id"] = json!(tile);
    owner.patch(&one, json!({"duplicate_tiles": [sent.clone()]})).await.ok();
    assert_eq!(of(&shown(&owner, &one).await[2]), other);
    sent["filters_overrides"] = json!(null);
    sent["transparent_background"] = json!(null);
    let tiles = put(&owner, &one, json!([sent])).await;
    let cleared = tiles.iter().find(|shown| shown["id"] == tile).expect("the tile");
    let (filters, background) = (&cleared["filters_overrides"], &cleared["transparent_background"]);
    assert_eq!((filters, background), (&json!({}), &json!(null)));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn arrangement_is_saved_without_tiles_that_were_moved_away() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    let (other, _) = make(&workspace, &owner, json!({})).await;
    let mut ids = Vec::new();
    for name in ["A", "B", "C"] {
        ids.push(put_insight(&workspace, id, json!(name), json!({})).await);
    }
    let sent = json!({"tile": {"id": ids[1]}, "toDashboard": other});
    assert_eq!(ann.patch(&format!("{one}move_tile/"), sent).await.status, 200);
    let place = |id: u64, y: u64| json!({"id": id, "layouts": {"sm": {"x": 0, "y": y}}});
    let mut arranged = vec![place(ids[2], 0), place(ids[1], 1), place(ids[0], 2)];
    arranged[1]["color"] = json!("red");
    let tiles = put(&owner, &one, json!(arranged)).await;
    let shown: Vec<_> = tiles.iter().map(|tile| tile["id"].as_u64().expect("a number")).collect();
    assert_eq!(shown, [ids[2], ids[0]]);
    let gone = || Refusal::unknown("tiles__1__id", &ids[1].to_string());
    let no_dict = "Expected a dictionary of items but got type \"list\".";
    let cases = [
        ("deleted", json!(false), gone()),
        ("show_description", json!(null), gone()),
        ("transparent_background", json!(true), gone()),
        ("filters_overrides", json!({}), gone()),
        ("text", json!({"body": "x"}), gone()),
        ("layouts", json!([]), Refusal::new("tiles__1__layouts", "not_a_dict", no_dict)),
    ];
    let cases = cases.map(|(name, value, refusal)| {
        let mut sent = arranged.clone();
        sent[1][name] = value;
        (json!({ "tiles": sent }), refusal)
    });
    owner.assert_refusals(Method::PATCH, &one, cases).await;
    workspace.assert_file_valid().await;
}
