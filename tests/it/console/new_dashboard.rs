//! Creating a dashboard: empty, from a template, as a copy and from JSON; editing it.

use crate::support::prelude::*;

const LIST: &str = "/console/projects/1/dashboards/";
const NEW: &str = "/console/projects/1/dashboards/new/";

#[tokio::test]
async fn empty_dashboard_is_created_with_what_was_typed() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let list = owner.get(LIST).await;
    let empty = "This project has no dashboards that you may view.";
    list.assert_has(&[&format!("href=\"{NEW}\">"), empty]);
    let page = owner.open(NEW, "New dashboard").await;
    page.assert_has(&["aria-current=\"page\">Empty</a>"]);
    let form = page.form("form").with("name", "Growth").with("description", "Who\r\nstays");
    let form = form.with("tags", "Weekly\r\n\r\n sales ").with("restriction_level", "37");
    let form = form.with("pinned", "true");
    let made = owner.submit(&form).await;
    assert_eq!(made.location(), "/console/projects/1/dashboards/1/?done=dashboard-created");
    let board = workspace.owner.get(&workspace.dashboards("1/")).await.ok();
    let fields = ["name", "description", "tags", "pinned", "restriction_level"];
    let shown: Vec<_> = fields.iter().map(|name| board[*name].clone()).collect();
    assert_eq!(json!(shown), json!(["Growth", "Who\nstays", ["sales", "weekly"], true, 37]));
    // The same form again creates nothing.
    assert_eq!(owner.submit(&form).await.location(), made.location());
    assert_eq!(workspace.owner.get(&workspace.dashboards("")).await.ok()["count"], 1);
    let page = owner.submit(&form.with("name", &"n".repeat(401)).with("_once", "other")).await;
    page.assert_shows(400, "New dashboard");
    page.assert_field_error("name", "Ensure this field has no more than 400 characters.");
}

#[tokio::test]
async fn templates_are_shown_with_their_tiles_and_create_dashboards() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let page = owner.get(&format!("{NEW}?from=template")).await;
    page.assert_has(&["Product analytics", "Website traffic", "<li>Growth accounting</li>"]);
    page.assert_has(&["9 tiles"]);
    let form = page.form("form").with("use_template", "WEBSITE_TRAFFIC").with("tags", "mine");
    assert_eq!(owner.submit(&form).await.location(), format!("{LIST}1/?done=dashboard-created"));
    let board = workspace.owner.get(&workspace.dashboards("1/")).await.ok();
    assert_eq!(board["name"], "Website traffic");
    assert_eq!(board["tags"], json!(["marketing", "mine"]));
    let tiles: Vec<_> = board["tiles"].as_array().expect("tiles").iter().collect();
    assert_eq!(tiles.len(), 9);
    for tile in tiles {
        let name = tile["insight"]["name"].as_str().expect("a name");
        page.assert_has(&[&format!("<li>{name}</li>")]);
    }
}

#[tokio::test]
async fn dashboard_is_copied_with_its_tiles() {
    let workspace = Workspace::new().await;
    let sent = json!({ "name": "Growth", "tags": ["weekly"], "description": "Who stays" });
    workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
    let tiles = json!({ "tiles": [{ "text": { "body": "Read this" } }] });
    workspace.owner.patch(&workspace.dashboards("1/"), tiles).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let page = owner.get(&format!("{LIST}1/")).await;
    page.assert_has(&[&format!("{NEW}?from=dashboard&amp;dashboard=1")]);
    let form = owner.get(&format!("{NEW}?from=dashboard&dashboard=1")).await.form("form");
    let values = ["use_dashboard", "name", "description", "tags"].map(|name| form.value(name));
    assert_eq!(values, ["1", "Growth (copy)", "Who stays", "weekly"]);
    let made = owner.submit(&form.clone().with("duplicate_tiles", "true")).await;
    assert_eq!(made.location(), format!("{LIST}2/?done=dashboard-created"));
    let copy = workspace.owner.get(&workspace.dashboards("2/")).await.ok();
    assert_eq!(json!([copy["name"], copy["creation_mode"]]), json!(["Growth (copy)", "duplicate"]));
    assert_eq!(copy["tiles"][0]["text"]["body"], "Read this");
    assert_eq!(copy["tiles"][0]["text"]["id"], 2, "the text is a copy");
    let page = owner.submit(&form.with("use_dashboard", "77").with("_once", "other")).await;
    page.assert_shows(400, "New dashboard").assert_has(&["Invalid value provided"]);
}

#[tokio::test]
async fn dashboard_is_created_from_json() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let form = owner.get(&format!("{NEW}?from=json")).await.form("form");
    assert!(form.value("template").contains("Read this first"));
    let page = owner.submit(&form.clone().with("template", "{\"tiles\": []}")).await;
    page.assert_shows(400, "New dashboard").assert_has(&["is a required property"]);
    let page = owner.submit(&form.clone().with("template", "{")).await;
    page.assert_field_error("template", "not valid JSON");
    assert_eq!(owner.submit(&form).await.location(), format!("{LIST}1/?done=dashboard-created"));
    let board = workspace.owner.get(&workspace.dashboards("1/")).await.ok();
    assert_eq!(board["tiles"][0]["text"]["body"], "# Read this first");
}

#[tokio::test]
async fn dashboard_is_edited() {
    let workspace = Workspace::new().await;
    let sent = json!({ "name": "Growth", "tags": ["weekly"] });
    workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let form = owner.get(&format!("{LIST}1/edit/")).await.form("form");
    assert_eq!([form.value("name"), form.value("tags")], ["Growth", "weekly"]);
    let form =
        form.with("name", "Sales").with("tags", "").with("filters", "{\"date_from\": \"-7d\"}");
    assert_eq!(owner.submit(&form).await.location(), format!("{LIST}1/?done=dashboard-saved"));
    let board = workspace.owner.get(&workspace.dashboards("1/")).await.ok();
    assert_eq!((&board["name"], &board["tags"]), (&json!("Sales"), &json!([])));
    assert_eq!(board["filters"], json!({ "date_from": "-7d" }));
    // Another version: both changes are kept.
    let stale = form.with("description", "Mine").with("name", "Sales");
    workspace.owner.patch(&workspace.dashboards("1/"), json!({ "pinned": true })).await.ok();
    owner.submit(&stale).await.assert_shows(412, "Edit the dashboard");
}

#[tokio::test]
async fn nothing_is_created_without_a_name() {
    let workspace = Workspace::new().await;
    workspace.owner.post(&workspace.dashboards(""), json!({})).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let organization = workspace.page("");
    let export = "/console/projects/1/batch_exports/new/?destination=NoOp";
    for (path, field) in [
        (format!("{NEW}?from=empty"), "name"),
        (format!("{NEW}?from=dashboard&dashboard=1"), "name"),
        ("/console/projects/1/insights/new/".to_owned(), "name"),
        (format!("{organization}projects/new/"), "name"),
        ("/console/organizations/new/".to_owned(), "name"),
        (format!("{organization}roles/"), "name"),
        (format!("{organization}domains/"), "domain"),
        ("/console/keys/new/".to_owned(), "label"),
        (export.to_owned(), "name"),
    ] {
        let page = owner.get(&path).await;
        page.part(&format!("id=\"form-{field}\""), ">").assert_has(&[" required"]);
        let refused = owner.submit(&page.form("form").with(field, " ")).await;
        assert_eq!(refused.status, 400, "{path}: {}", refused.html);
        refused.assert_has(&[&format!("id=\"form-{field}-error\"")]);
    }
    assert_eq!(workspace.owner.get(&workspace.organization("projects/")).await.ok()["count"], 1);
    assert_eq!(workspace.owner.get(&workspace.dashboards("")).await.ok()["count"], 1);
    assert_eq!(workspace.owner.get("/api/projects/1/insights/").await.ok()["count"], 0);
    // A change may empty the name, as the API lets it.
    let form = owner.get(&format!("{LIST}1/edit/")).await.form("form");
    assert_eq!(owner.submit(&form.with("name", "")).await.status, 303);
}
