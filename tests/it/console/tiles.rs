//! Tiles of a dashboard: texts, colors, moving, arranging.

use crate::support::prelude::*;

const ONE: &str = "/console/projects/1/dashboards/1/";

async fn with_tiles(tiles: Value) -> (Workspace, Visitor) {
    let workspace = Workspace::new().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    workspace.owner.patch(&workspace.dashboards("1/"), json!({ "tiles": tiles })).await.ok();
    let owner = Visitor::owner(&workspace).await;
    (workspace, owner)
}

async fn tiles(workspace: &Workspace) -> Value {
    workspace.owner.get(&workspace.dashboards("1/")).await.ok()["tiles"].clone()
}

#[tokio::test]
async fn text_is_previewed_and_added() {
    let (workspace, mut owner) = with_tiles(json!([])).await;
    let path = format!("{ONE}tiles/new/");
    assert!(owner.get(ONE).await.html.contains(&path));
    let form = owner.get(&path).await.form("form");
    let form =
        form.with("tiles.0.text.body", "# Hi\r\n\r\n**there** <b>").with("tiles.0.color", "blue");
    let page = owner.submit(&form.clone().with("_show", "preview")).await;
    page.assert_shows(200, "Add a text");
    let preview = page.between("data-result>", "</div>");
    assert_eq!(preview.trim(), "<h2>Hi</h2>\n<p><strong>there</strong> &lt;b&gt;</p>");
    assert_eq!(tiles(&workspace).await, json!([]), "a preview changes nothing");
    let command = owner.submit(&form.clone().with("_show", "command")).await.command();
    assert!(command.contains(r#""color":"blue""#), "{command}");
    let empty = owner.submit(&form.clone().with("tiles.0.text.body", " ")).await;
    empty.assert_shows(400, "Add a text").assert_field_error("tiles-0-text-body", "Enter a text.");
    let long = owner.submit(&form.clone().with("tiles.0.text.body", &"é".repeat(4001))).await;
    long.assert_field_error("tiles-0-text-body", "Text body cannot exceed 4000 characters");
    assert_eq!(owner.submit(&form).await.location(), format!("{ONE}?done=text-added"));
    let shown = tiles(&workspace).await;
    assert_eq!(shown[0]["text"]["body"], "# Hi\n\n**there** <b>");
    assert_eq!(shown[0]["color"], "blue");
    owner.submit(&form).await.assert_leads_to(&format!("{ONE}?done=text-added"));
    assert_eq!(tiles(&workspace).await.as_array().expect("tiles").len(), 1);
    let stale = owner.submit(&form.with("tiles.0.text.body", "Bye")).await;
    stale.assert_shows(412, "Add a text");
    assert_eq!(stale.form("form").value("tiles.0.color"), "blue");
    owner.submit(&stale.form("form")).await.assert_leads_to(&format!("{ONE}?done=text-added"));
    assert_eq!(tiles(&workspace).await[1]["text"]["body"], "Bye");
    // What was typed is kept if the dashboard was deleted meanwhile.
    workspace.owner.patch(&workspace.dashboards("1/"), json!({ "deleted": true })).await.ok();
    let kept = owner.submit(&stale.form("form").with("tiles.0.text.body", "Still here")).await;
    kept.assert_shows(404, "Add a text");
    assert_eq!(kept.form("form").value("tiles.0.text.body"), "Still here");
}

#[tokio::test]
async fn session_that_may_not_edit_is_told_why_and_offered_no_form() {
    let (workspace, _) = with_tiles(json!([{ "text": { "body": "A" }, "color": "blue" }])).await;
    let ben = Visitor::member(&workspace, "ben", Level::Member).await;
    let read = ["dashboard:read", "project:read"];
    let reader = Visitor::with_scopes(&workspace, OWNER, &read).await;
    let pages = ["edit/", "delete/", "arrange/", "tiles/new/", "tiles/1/", "tiles/1/move/"];
    for page in pages {
        let shown = ben.get(&format!("{ONE}{page}")).await;
        assert_eq!(shown.status, 200, "{page}");
        shown.assert_lacks(&["You may view this dashboard."]);
    }
    let closed = json!({ "restriction_level": 37 });
    workspace.owner.patch(&workspace.dashboards("1/"), closed).await.ok();
    let restricted = "You may view this dashboard. Only its collaborators edit it.";
    let scope = "This session may not change dashboards.";
    for (visitor, reason) in [(&ben, restricted), (&reader, scope)] {
        for page in pages {
            let shown = visitor.get(&format!("{ONE}{page}")).await;
            assert_eq!(shown.status, 200, "{page}");
            shown.assert_has(&[reason]).assert_lacks(&["id=\"form\"", "id=\"arrange\""]);
        }
    }
}

#[tokio::test]
async fn text_is_edited_under_the_version_that_the_form_was_filled_from() {
    let sent = json!([{ "text": { "body": "A" }, "color": "blue" }, { "text": { "body": "B" } }]);
    let (workspace, mut owner) = with_tiles(sent).await;
    let form = owner.get(&format!("{ONE}tiles/2/")).await.form("form");
    assert_eq!([form.value("tiles.0.text.body"), form.value("tiles.0.color")], ["B", ""]);
    let changed = form.clone().with("tiles.0.text.body", "B2").with("tiles.0.color", "green");
    assert_eq!(owner.submit(&changed).await.location(), format!("{ONE}?done=tile-saved"));
    let shown = tiles(&workspace).await;
    let bodies: Vec<_> = (0..2).map(|at| shown[at]["text"]["body"].clone()).collect();
    assert_eq!(bodies, ["A", "B2"]);
    assert_eq!([&shown[0]["color"], &shown[1]["color"]], ["blue", "green"]);
    let page = owner.submit(&form.with("tiles.0.text.body", "B3")).await;
    page.assert_shows(412, "Edit the tile");
    let table = page.between("aria-label=\"Changes since you opened the page\">", "</table>");
    assert!(table.contains("<td dir=\"auto\">B2</td><td dir=\"auto\">B3</td>"), "{table}");
    let merged = page.form("form");
    assert_eq!([merged.value("tiles.0.text.body"), merged.value("tiles.0.color")], ["B3", "green"]);
    assert_eq!(owner.submit(&merged).await.location(), format!("{ONE}?done=tile-saved"));
    assert_eq!(tiles(&workspace).await[1]["text"]["body"], "B3");
    owner.get(&format!("{ONE}tiles/77/")).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn tile_of_an_insight_has_a_color_and_a_description() {
    let (workspace, mut owner) = with_tiles(json!([])).await;
    let sent = json!({ "name": "Visitors", "dashboards": [1], "query": { "kind": "TrendsQuery" } });
    workspace.owner.post("/api/projects/1/insights/", sent).await.ok();
    let form = owner.get(&format!("{ONE}tiles/1/")).await.form("form");
    let form = form.with("tiles.0.color", "purple").with("tiles.0.show_description", "true");
    owner.submit(&form).await.assert_leads_to(&format!("{ONE}?done=tile-saved"));
    let tile = tiles(&workspace).await[0].clone();
    assert_eq!((&tile["color"], &tile["show_description"]), (&json!("purple"), &json!(true)));
}

#[tokio::test]
async fn tile_leads_to_its_insight_and_pages_say_that_there_are_no_results() {
    let (workspace, owner) = with_tiles(json!([{ "text": { "body": "A" } }])).await;
    let no_results = "It does not run them, so there are no results here.";
    assert!(!owner.get(ONE).await.html.contains(no_results), "there is no insight");
    let insights = workspace.project("insights/");
    let sent = json!({ "name": "Visitors", "dashboards": [1], "query": { "kind": "TrendsQuery" } });
    let made = workspace.owner.post(&insights, sent).await.ok();
    let insight = format!("/console/projects/1/insights/{}/", made["id"]);
    let link = format!("<h2 dir=\"auto\"><a href=\"{insight}\">Visitors</a></h2>");
    owner.get(ONE).await.assert_has(&[&link, no_results]);
    for path in ["/console/projects/1/insights/", &insight] {
        assert!(owner.get(path).await.html.contains(no_results), "{path}");
    }
    // The insight names the dashboards that show it, and the pages below a dashboard name it.
    let named = "<a href=\"/console/projects/1/dashboards/1/\"><bdi>Growth</bdi></a>";
    assert!(owner.get(&insight).await.html.contains(named));
    let below = "edit/ arrange/ tiles/new/ tiles/1/ tiles/1/move/ tiles/trash/ sharing/ access/";
    for rest in below.split(' ') {
        owner.get(&format!("{ONE}{rest}")).await.assert_has(&[named]);
    }
    let reader = Visitor::with_scopes(&workspace, OWNER, &["dashboard:read", "project:read"]).await;
    reader.get(ONE).await.assert_has(&["<h2 dir=\"auto\">Visitors</h2>"]);
}

#[tokio::test]
async fn tiles_are_duplicated_removed_and_restored() {
    let (workspace, mut owner) = with_tiles(json!([{ "text": { "body": "A" } }])).await;
    let path = format!("{ONE}tiles/");
    let done = owner.post(&path, &[("only", "duplicate 1")]).await;
    assert_eq!(done.location(), format!("{ONE}?done=tile-duplicated"));
    assert_eq!(tiles(&workspace).await.as_array().expect("tiles").len(), 2);
    let page = owner.get(ONE).await;
    let version = page.between("name=\"_version\" value=\"", "\"").replace("&#34;", "\"");
    let sent = [("only", "duplicate 1"), ("_version", version.as_str())];
    assert_eq!(owner.post(&path, &sent).await.location(), format!("{ONE}?done=tile-duplicated"));
    let again = owner.post(&path, &sent).await.showing(412, "Growth");
    again.assert_has(&["The dashboard has changed since you opened the page."]);
    assert_eq!(tiles(&workspace).await.as_array().expect("tiles").len(), 3);
    owner.post(&path, &[("only", "remove 3")]).await.location();
    let done = owner.post(&path, &[("only", "remove 1")]).await;
    assert_eq!(done.location(), format!("{ONE}?done=tile-removed&undo=1"));
    let page = owner.get(done.location()).await;
    let undo = page.between(&format!("<form method=\"post\" action=\"{path}\">"), "</form>");
    assert!(undo.contains("name=\"only\" value=\"restore 1\"") && undo.contains("Undo"), "{undo}");
    assert_eq!(tiles(&workspace).await[0]["id"], 2);
    let done = owner.post(&path, &[("only", "restore 1")]).await;
    assert_eq!(done.location(), format!("{ONE}?done=tile-restored"));
    assert_eq!(tiles(&workspace).await.as_array().expect("tiles").len(), 2);
    for only in ["", "remove", "remove x", "evil 1"] {
        owner.post(&path, &[("only", only)]).await.assert_shows(404, "Not found");
    }
}

#[tokio::test]
async fn tile_moves_to_a_dashboard_that_may_be_edited() {
    let (workspace, mut owner) = with_tiles(json!([{ "text": { "body": "A" } }])).await;
    let path = format!("{ONE}tiles/1/move/");
    owner.get(&path).await.assert_has(&["You may edit no other dashboard of this project."]);
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Sales" })).await.ok();
    let page = owner.get(&path).await;
    page.assert_has(&["<option value=\"2\">Sales</option>"]);
    page.assert_lacks(&["<option value=\"1\">"]);
    let form = page.form("form").with("toDashboard", "2");
    assert_eq!(owner.submit(&form).await.location(), format!("{ONE}?done=tile-moved"));
    assert_eq!(workspace.owner.get(&workspace.dashboards("2/")).await.ok()["tiles"][0]["id"], 1);
    owner.submit(&form).await.assert_leads_to(&format!("{ONE}?done=tile-moved"));
    let mut elsewhere = form.clone();
    elsewhere.action = format!("{ONE}tiles/9/move/");
    owner.submit(&elsewhere).await.assert_shows(404, "Move the tile");
    let unnamed = owner.submit(&form.with("toDashboard", "")).await.showing(400, "Move the tile");
    unnamed.assert_has(&["This field is required."]);
}

#[tokio::test]
async fn places_of_tiles_are_saved_as_one_change_and_keep_other_layouts() {
    let sent = json!([
        { "text": { "body": "# First" }, "layouts": { "sm": { "x": 0, "y": 0, "w": 6, "h": 4, "minW": 3 }, "xs": { "y": 7 } } },
        { "text": { "body": "Second" } },
    ]);
    let (workspace, mut owner) = with_tiles(sent).await;
    let page = owner.open(&format!("{ONE}arrange/"), "Arrange the tiles").await;
    page.assert_has(&["aria-label=\"Column of First\""]);
    let form = page.form("arrange");
    let names = ["x-1", "y-1", "w-1", "h-1", "x-2", "y-2", "w-2", "h-2"];
    assert_eq!(names.map(|name| form.value(name)), ["1", "1", "6", "4", "7", "1", "6", "5"]);
    let form = form.with("x-1", "7").with("x-2", "1").with("y-2", "1").with("h-2", "2");
    let shown = owner.submit(&form.clone().with("_show", "command")).await;
    let command = shown.command();
    assert!(command.contains("If-Match") && command.contains(r#""minW":3"#), "{command}");
    assert_eq!(shown.form("form").value("x-1"), "7");
    assert_eq!(owner.submit(&form).await.location(), format!("{ONE}?done=arrangement-saved"));
    let stored = tiles(&workspace).await;
    let refused = owner.submit(&form.clone().with("h-1", "0")).await;
    refused.assert_shows(400, "Arrange the tiles");
    assert_eq!(refused.form("arrange").value("_version"), form.value("_version"));
    let stale = refused.form("arrange").with("h-1", "6");
    owner.submit(&stale).await.assert_shows(412, "Arrange the tiles");
    let layouts = |id: u64| {
        let all = stored.as_array().expect("tiles");
        all.iter().find(|tile| tile["id"] == id).expect("a tile")["layouts"].clone()
    };
    let first = json!({ "sm": { "x": 6, "y": 0, "w": 6, "h": 4, "minW": 3 }, "xs": { "y": 7 } });
    assert_eq!(layouts(1), first);
    assert_eq!(layouts(2), json!({ "sm": { "x": 0, "y": 0, "w": 6, "h": 2 } }));

    // The version of the form is no longer the stored one.
    let page = owner.submit(&form.clone().with("h-2", "9")).await.showing(412, "Arrange the tiles");
    let again = page.form("arrange");
    assert_eq!(again.value("h-2"), "9");
    assert_eq!(owner.submit(&again).await.location(), format!("{ONE}?done=arrangement-saved"));
    for (name, text, error) in [
        ("x-1", "13", "Enter a number from 1 to 12."),
        ("h-1", "0", "Enter a number from 1 to 50."),
        ("y-2", "x", "Enter a number from 1 to 10000."),
        ("w-1", "7", "At this column, the tile is at most 6 wide."),
    ] {
        let page = owner.submit(&again.clone().with(name, text)).await;
        page.assert_shows(400, "Arrange the tiles");
        assert_eq!(page.form("arrange").value(name), text);
        assert_eq!(page.between(&format!("id=\"{name}-error\">"), "</span>"), error);
    }
}

#[tokio::test]
async fn all_tiles_of_a_full_dashboard_are_arranged() {
    let (workspace, mut owner) = with_tiles(json!([])).await;
    let at = |y: usize| json!({ "sm": { "x": 0, "y": y, "w": 12, "h": 1 } });
    let tiles: Vec<_> = (0..1000)
        .map(|y| json!({ "text": { "body": format!("Tile {y}") }, "layouts": at(y) }))
        .collect();
    let path = workspace.dashboards("1/");
    workspace.owner.patch(&path, json!({ "tiles": tiles })).await.ok();
    let form = owner.open(&format!("{ONE}arrange/"), "Arrange the tiles").await.form("arrange");
    assert_eq!(form.fields.iter().filter(|(name, _)| name.starts_with("x-")).count(), 1000);
    let last = workspace.owner.get(&path).await.ok()["tiles"][999]["id"].clone();
    let form = form.with(&format!("x-{last}"), "7").with(&format!("w-{last}"), "6");
    assert_eq!(owner.submit(&form).await.location(), format!("{ONE}?done=arrangement-saved"));
    let stored = workspace.owner.get(&path).await.ok();
    let expected = json!({ "x": 6, "y": 999, "w": 6, "h": 1 });
    let tile = &stored["tiles"][999];
    assert_eq!((&tile["id"], &tile["layouts"]["sm"]), (&last, &expected));
}

#[tokio::test]
async fn places_that_are_not_changed_are_not_stored() {
    let sent = json!([
        { "text": { "body": "A" }, "layouts": { "sm": { "x": 0, "y": 70, "w": 6, "h": 4 } } },
        { "text": { "body": "B" } },
    ]);
    let (workspace, mut owner) = with_tiles(sent).await;
    let before = workspace.owner.get(&workspace.dashboards("1/")).await;
    let form = owner.get(&format!("{ONE}arrange/")).await.form("arrange");
    let shown = owner.submit(&form.clone().with("_show", "command")).await;
    assert_eq!(shown.commands(), [] as [&str; 0]);
    assert_eq!(owner.submit(&form).await.location(), format!("{ONE}?done=arrangement-saved"));
    assert_eq!(before.ok(), workspace.owner.get(&workspace.dashboards("1/")).await.ok());
    // A change of one tile stores the places of both, as the page has shown them.
    let answer = owner.submit(&form.with("h-1", "6")).await;
    answer.assert_leads_to(&format!("{ONE}?done=arrangement-saved"));
    let stored = tiles(&workspace).await;
    assert_eq!(stored[0]["layouts"]["sm"], json!({ "x": 0, "y": 0, "w": 6, "h": 6 }));
    assert_eq!(stored[1]["layouts"]["sm"], json!({ "x": 6, "y": 0, "w": 6, "h": 5 }));
}

#[tokio::test]
async fn deleted_tiles_have_a_page_that_restores_them() {
    let sent = json!([{ "text": { "body": "# <b>A</b>\n\nlong" } }, { "text": { "body": "B" } }]);
    let (workspace, mut owner) = with_tiles(sent).await;
    let trash = format!("{ONE}tiles/trash/");
    assert!(owner.get(ONE).await.html.contains(&format!("href=\"{trash}\"")));
    let page = owner.open(&trash, "Deleted tiles").await;
    page.assert_has(&["No tile of this dashboard is deleted."]);
    for id in 1..=2 {
        owner.post(&format!("{ONE}tiles/"), &[("only", &format!("remove {id}"))]).await.location();
    }
    let page = owner.get(&trash).await;
    let rows = page.between("<tbody>", "</tbody>");
    let row = "<td><bdi>&#60;b&#62;A&#60;/b</bdi></td>\n<td data-label=\"Shows\">Text</td>";
    assert!(rows.contains(row), "{rows}");
    assert!(rows.contains("form=\"tiles\" name=\"only\" value=\"restore 2\""), "{rows}");
    page.assert_has(&["<span>1 to 2 of 2</span>"]);
    let restore = page.buttons().into_iter().find(|form| form.value("only") == "restore 1");
    let done = owner.submit(&restore.expect("a button")).await;
    assert_eq!(done.location(), format!("{ONE}?done=tile-restored"));
    assert_eq!(tiles(&workspace).await[0]["id"], 1);
}

#[tokio::test]
async fn description_and_tags_are_edited_on_the_page_of_the_dashboard() {
    let (workspace, mut owner) = with_tiles(json!([])).await;
    let page = owner.get(ONE).await;
    let form = page.form("description").with("description", "Who stays");
    assert_eq!(form.action, format!("{ONE}description/"));
    let shown = owner.submit(&form.clone().with("_show", "command")).await;
    assert!(shown.command().contains(r#"'{"description":"Who stays"}'"#), "{}", shown.html);
    assert_eq!(owner.submit(&form).await.location(), format!("{ONE}?done=dashboard-saved"));
    let form = owner.get(ONE).await.form("tags").with("tags", "Weekly\r\nsales");
    assert_eq!(owner.submit(&form).await.location(), format!("{ONE}?done=dashboard-saved"));
    let stored = workspace.owner.get(&workspace.dashboards("1/")).await.ok();
    assert_eq!(stored["description"], "Who stays");
    assert_eq!(stored["tags"], json!(["sales", "weekly"]));

    let stale = owner.submit(&page.form("description").with("description", "Mine")).await;
    stale.assert_shows(412, "Growth");
    let details = stale.part("<details class=\"command\" open>", "</form>");
    details.assert_has(&["<td dir=\"auto\">Who stays</td><td dir=\"auto\">Mine</td>"]);
    assert_eq!(stale.form("description").value("description"), "Mine");
    assert_eq!(stale.html.matches("class=\"command\" open").count(), 1);
    let long = stale.form("tags").with("tags", &"x".repeat(256));
    owner.submit(&long).await.showing(400, "Growth").assert_has(&["id=\"tags-tags-error\""]);
}
