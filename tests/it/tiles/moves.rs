//! Moving tiles between dashboards.

use crate::support::prelude::*;
use crate::tiles::kept;

const REQUIRED: (&str, &str) = ("required", "This field is required.");
const INTEGER: (&str, &str) = ("invalid_input", "A valid integer is required.");
const NULL: (&str, &str) = ("null", "This field may not be null.");

/// Two dashboards of the owner, with a tile on the first.
struct Scene {
    workspace: Workspace,
    from: (u64, String),
    to: (u64, String),
    tile: u64,
}

impl Scene {
    async fn new() -> Self {
        let workspace = Workspace::new().await;
        let from = make(&workspace, &workspace.owner, json!({"name": "From"})).await;
        let to = make(&workspace, &workspace.owner, json!({"name": "To"})).await;
        let layouts = json!({"sm": {"x": "0", "y": "3"}, "xs": "free"});
        let tile = put_insight(&workspace, from.0, json!("I"), layouts).await;
        Self { workspace, from, to, tile }
    }

    fn path(&self) -> String {
        format!("{}move_tile/", self.from.1)
    }

    fn sent(&self) -> Value {
        json!({"tile": {"id": self.tile}, "toDashboard": self.to.0})
    }

    /// Asserts that the tile did not move.
    async fn is_unmoved(&self) {
        assert_eq!(shown_of(&self.workspace.owner, &self.from.1, "/id").await, [json!(self.tile)]);
        self.workspace.assert_file_valid().await;
    }
}

#[tokio::test]
async fn moved_tile_keeps_its_id_layout_and_color() {
    let scene = Scene::new().await;
    let owner = &scene.workspace.owner;
    let sent = json!({"tiles": [{"id": scene.tile, "show_description": true}]});
    owner.patch(&scene.from.1, sent).await.ok();
    let before = shown(owner, &scene.from.1).await[0].clone();
    let body = json!({"tile": before, "toDashboard": scene.to.0, "name": "ignored", "pinned": 7});
    owner.patch(&scene.path(), body).await.assert_empty(200);
    assert_eq!(shown(owner, &scene.from.1).await, Vec::<Value>::new());
    let mut after = before;
    after["insight"]["dashboards"] = json!([scene.to.0]);
    after["insight"]["dashboard_tiles"][0]["dashboard_id"] = json!(scene.to.0);
    assert_eq!(shown(owner, &scene.to.1).await, [after]);
    assert_eq!(owner.get(&scene.to.1).await.ok()["name"], "To");
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn text_tile_is_moved_with_either_field_spelling_and_slash() {
    let scene = Scene::new().await;
    let owner = &scene.workspace.owner;
    let text = put_texts(owner, &scene.from.1, &["words"]).await[0].clone();
    let (from, to) = (scene.from.0, scene.to.0);
    let at =
        |dashboard: u64, rest: &str| scene.workspace.dashboards(&format!("{dashboard}/{rest}"));
    let as_texts = json!({"tile": {"id": text["id"].to_string()}, "toDashboard": from.to_string()});
    let twice = json!({"tile": {"id": text["id"]}, "toDashboard": to, "to_dashboard": 0});
    for (path, sent) in [
        (at(from, "move_tile"), json!({"tile": {"id": text["id"]}, "to_dashboard": to})),
        (at(to, "move_tile/"), as_texts),
        (at(from, "move_tile/"), twice),
    ] {
        owner.patch(&path, sent).await.assert_empty(200);
    }
    let mut moved = text;
    moved["order"] = json!(0);
    assert_eq!(shown(owner, &scene.to.1).await, [moved]);
    assert_eq!(shown_of(owner, &scene.from.1, "/id").await, [json!(scene.tile)]);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn missing_or_invalid_move_fields_are_reported() {
    let scene = Scene::new().await;
    let (tile, to) = (json!({"id": scene.tile}), scene.to.0);
    let dictionary = ("invalid_input", "Invalid data. Expected a dictionary, but got int.");
    for (sent, attr, (code, detail)) in [
        (json!({}), "tile", REQUIRED),
        (json!({"toDashboard": to}), "tile", REQUIRED),
        (json!({"tile": null, "toDashboard": to}), "tile", NULL),
        (json!({"tile": scene.tile, "toDashboard": to}), "tile__non_field_errors", dictionary),
        (json!({"tile": {}, "toDashboard": to}), "tile__id", REQUIRED),
        (json!({"tile": {"id": null}, "toDashboard": to}), "tile__id", NULL),
        (json!({"tile": {"id": "x"}, "toDashboard": to}), "tile__id", INTEGER),
        (json!({"tile": tile}), "toDashboard", REQUIRED),
        (json!({"tile": tile, "toDashboard": null}), "toDashboard", NULL),
        (json!({"tile": tile, "toDashboard": [to]}), "toDashboard", INTEGER),
        (json!({"tile": tile, "toDashboard": ""}), "toDashboard", INTEGER),
        (json!({"tile": tile, "to_dashboard": true}), "to_dashboard", INTEGER),
        (json!({"tile": tile, "to_dashboard": null}), "to_dashboard", NULL),
    ] {
        scene.workspace.owner.patch(&scene.path(), sent).await.assert_invalid(attr, code, detail);
    }
    scene.is_unmoved().await;
}

#[tokio::test]
async fn moving_a_missing_tile_or_to_a_missing_dashboard_returns_404() {
    let scene = Scene::new().await;
    let (workspace, owner) = (&scene.workspace, &scene.workspace.owner);
    let other = put_insight(workspace, scene.to.0, json!("I"), json!({})).await;
    let (removed, at) = make(workspace, owner, json!({})).await;
    owner.patch(&at, json!({"deleted": true})).await.ok();
    let project = workspace.add_project(json!({})).await;
    let elsewhere = format!("/api/projects/{project}/dashboards/");
    let far = owner.post(&elsewhere, json!({})).await.ok()["id"].clone();
    let gone = put_texts(owner, &scene.from.1, &["gone"]).await[0]["id"].clone();
    owner.patch(&scene.from.1, json!({"tiles": [{"id": gone, "deleted": true}]})).await.ok();
    let to = json!(scene.to.0);
    for (tile, to) in [
        (json!(other), to.clone()),
        (json!(999_999), to.clone()),
        (json!(-1), to.clone()),
        (gone, to.clone()),
        (json!(scene.tile), json!(999_999)),
        (json!(scene.tile), json!(removed)),
        (json!(scene.tile), far.clone()),
        (json!(scene.tile), json!(0)),
    ] {
        let sent = json!({"tile": {"id": tile}, "toDashboard": to});
        owner.patch(&scene.path(), sent).await.assert_not_found("Not found.");
    }
    scene.is_unmoved().await;
}

#[tokio::test]
async fn moving_a_tile_requires_edit_access_to_both_dashboards() {
    let scene = Scene::new().await;
    let ann = scene.workspace.member("ann", Level::Member).await;
    scene.workspace.owner.patch(&scene.to.1, json!({"restriction_level": 37})).await.ok();
    let text = "You don't have edit permissions for the destination dashboard.";
    ann.patch(&scene.path(), scene.sent()).await.assert_denied(text);
    scene.workspace.owner.patch(&scene.from.1, json!({"restriction_level": 37})).await.ok();
    ann.patch(&scene.path(), scene.sent()).await.assert_denied(NO_EDIT);
    ann.patch(&scene.path(), json!({})).await.assert_denied(NO_EDIT);
    scene.is_unmoved().await;
    scene.workspace.owner.patch(&scene.path(), scene.sent()).await.assert_empty(200);
}

#[tokio::test]
async fn access_rules_on_either_dashboard_prevent_a_move() {
    let scene = Scene::new().await;
    let (workspace, owner) = (&scene.workspace, &scene.workspace.owner);
    let ann = workspace.member("ann", Level::Member).await;
    for dashboard in [&scene.from.1, &scene.to.1] {
        for level in ["none", "viewer"] {
            workspace.set_rule(dashboard, Some(ANN), level).await;
            ann.patch(&scene.path(), scene.sent()).await.assert_denied(EDITOR);
        }
        workspace.set_rule(dashboard, Some(ANN), "editor").await;
    }
    assert_eq!(shown_of(owner, &scene.from.1, "/id").await, [json!(scene.tile)]);
    ann.patch(&scene.path(), scene.sent()).await.assert_empty(200);
}

#[tokio::test]
async fn content_already_on_the_destination_is_not_moved_there() {
    let scene = Scene::new().await;
    let (workspace, owner) = (&scene.workspace, &scene.workspace.owner);
    let invalid = "Invalid request data for moving tile.";
    let itself = json!({"tile": {"id": scene.tile}, "toDashboard": scene.from.0});
    owner.patch(&scene.path(), itself).await.assert_bad_body(invalid);
    put_texts(owner, &scene.from.1, &["words"]).await;
    let (id, copy) = make(workspace, owner, json!({"use_dashboard": scene.from.0})).await;
    let twins = shown_of(owner, &copy, "/id").await;
    assert_eq!(twins.len(), 2);
    for tile in shown_of(owner, &scene.from.1, "/id").await {
        let sent = json!({"tile": {"id": tile}, "toDashboard": id});
        owner.patch(&scene.path(), sent).await.assert_bad_body(invalid);
    }
    // A deleted tile with the same content on the destination is removed for good.
    let gone: Vec<Value> = twins.iter().map(|twin| json!({"id": twin, "deleted": true})).collect();
    owner.patch(&copy, json!({ "tiles": gone })).await.ok();
    let moved = shown_of(owner, &scene.from.1, "/id").await;
    for tile in &moved {
        let sent = json!({"tile": {"id": tile}, "toDashboard": id});
        owner.patch(&scene.path(), sent).await.assert_empty(200);
    }
    assert_eq!(shown_of(owner, &copy, "/id").await, moved);
    assert_eq!(kept(workspace).len(), 2);
    workspace.assert_file_valid().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_move_and_deletion_leave_a_valid_file() {
    for round in 0..8 {
        let scene = Scene::new().await;
        let removed = if round % 2 == 0 { &scene.from.1 } else { &scene.to.1 };
        let (one, other) = (scene.workspace.owner.clone(), scene.workspace.owner.clone());
        let (path, sent, removed) = (scene.path(), scene.sent(), removed.clone());
        let moving = tokio::spawn(async move { one.patch(&path, sent).await });
        let removing = tokio::spawn(async move {
            other.patch(&removed, json!({"deleted": true, "delete_insights": true})).await
        });
        let (moved, removed) = (moving.await.expect("no panic"), removing.await.expect("no panic"));
        removed.ok();
        if moved.status != 200 {
            moved.assert_not_found("Not found.");
        }
        let tiles = kept(&scene.workspace);
        let (dashboard, _) = tiles[0];
        let lies = if moved.status == 200 { scene.to.0 } else { scene.from.0 };
        assert_eq!((tiles.len(), dashboard.0), (1, lies));
        scene.workspace.assert_file_valid().await;
    }
}
