//! The sequences of requests that PostHog's clients send.

use axum::http::Method;
use serde_json::{Value, json};

use crate::dashboards::make;
use crate::support::Workspace;

use super::{insights, make_insight};

/// The query of an insight as the Terraform provider sends it.
fn trends() -> Value {
    json!({
        "kind": "InsightVizNode",
        "source": {
            "kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "$pageview", "math": "total"}],
            "dateRange": {"date_from": "-7d"}, "interval": "day", "version": 1, "samplingFactor": 1.0,
        },
    })
}

#[tokio::test]
async fn terraform_creates_updates_moves_imports_and_destroys_an_insight() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (a, _) = make(&workspace, owner, json!({})).await;
    let (b, _) = make(&workspace, owner, json!({})).await;
    let sent = json!({
        "name": "Visits", "derived_name": "Pageview count", "description": "All", "query": trends(),
        "tags": ["terraform"], "dashboards": [a], "_create_in_folder": "Shared/Folder",
    });
    let (made, one) = make_insight(&workspace, owner, sent.clone()).await;
    for name in ["name", "derived_name", "description", "query", "tags", "dashboards"] {
        assert_eq!(made[name], sent[name], "{name}");
    }
    assert_eq!(made["deleted"], false);
    // Each update sends the whole state, with `deleted` false, and leaves out empty lists.
    for (name, dashboards) in [("Visits", json!([a])), ("", json!([b])), ("Renamed", json!([a, b]))]
    {
        let state = json!({
            "name": name, "description": "", "query": trends(), "tags": ["terraform"],
            "dashboards": dashboards, "deleted": false,
        });
        let body = owner.patch(&one, state).await.ok();
        assert_eq!((&body["name"], &body["dashboards"]), (&json!(name), &dashboards));
        assert_eq!((&body["description"], &body["query"]), (&json!(""), &trends()));
        // A derived name stays what was sent last.
        assert_eq!(body["derived_name"], "Pageview count");
        owner.get(&one).await.assert_is(200, body);
    }
    let without = json!({"name": "Renamed", "query": trends(), "deleted": false});
    let kept = owner.patch(&one, without).await.ok();
    assert_eq!((&kept["tags"], &kept["dashboards"]), (&json!(["terraform"]), &json!([a, b])));
    for query in [
        json!({"kind": "InsightVizNode", "source": {"kind": "FunnelsQuery", "series": []}}),
        json!({"kind": "InsightVizNode", "source": {"kind": "RetentionQuery", "retentionFilter": {}}}),
        json!({"kind": "DataVisualizationNode", "source": {"kind": "HogQLQuery", "query": "SELECT 1"}}),
        json!({"kind": "DataTableNode", "source": {"kind": "EventsQuery", "select": ["*"]}}),
    ] {
        assert_eq!(owner.patch(&one, json!({"query": query})).await.ok()["query"], query);
    }
    let gone = owner.patch(&one, json!({"deleted": true})).await.ok();
    assert_eq!((&gone["deleted"], &gone["dashboards"]), (&json!(true), &json!([])));
    owner.get(&one).await.assert_not_found("Not found.");
    let (again, _) = make_insight(&workspace, owner, sent).await;
    assert_ne!(again["id"], made["id"]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn terraform_restores_an_insight_with_its_whole_state() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, one) = make_insight(&workspace, owner, json!({"name": "A", "query": trends()})).await;
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let state = json!({"name": "B", "query": trends(), "deleted": false});
    let back = owner.patch(&one, state).await.ok();
    assert_eq!((&back["name"], &back["deleted"]), (&json!("B"), &json!(false)));
}

#[tokio::test]
async fn terraform_lays_out_the_insights_and_texts_of_a_dashboard() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (board, at_board) = make(&workspace, owner, json!({})).await;
    let (made, one) = make_insight(&workspace, owner, json!({"query": trends()})).await;
    // The provider reads the dashboards of the insight, and sends the old ones and the new one.
    let mut dashboards =
        owner.get(&one).await.ok()["dashboards"].as_array().expect("a list").clone();
    dashboards.push(json!(board));
    let placed = owner.patch(&one, json!({"dashboards": dashboards})).await.ok();
    let tile = &placed["dashboard_tiles"][0]["id"];
    let layouts =
        json!({"sm": {"x": 0, "y": 0, "w": 6, "h": 5}, "xs": {"x": 0, "y": 0, "w": 1, "h": 5}});
    let sent = json!({"tiles": [
        {"id": tile, "layouts": layouts, "color": "", "show_description": null},
        {"text": {"body": "# Notes"}, "layouts": {"sm": {"x": 6, "y": 0, "w": 6, "h": 2}}, "color": "blue", "show_description": true},
    ]});
    let body = owner.patch(&at_board, sent).await.ok();
    let (insight, text) = (&body["tiles"][0], &body["tiles"][1]);
    assert_eq!((&insight["insight"]["id"], &insight["layouts"]), (&made["id"], &layouts));
    assert_eq!(insight["show_description"], json!(null));
    assert_eq!(
        (&text["text"]["body"], &text["show_description"]),
        (&json!("# Notes"), &json!(true))
    );
    let sent = json!({"tiles": [
        {"id": text["id"], "text": {"body": "# Better"}, "layouts": {}, "color": "", "show_description": false},
        {"id": tile, "layouts": {}},
    ]});
    let changed = owner.patch(&at_board, sent).await.ok();
    let again =
        changed["tiles"].as_array().expect("tiles").iter().find(|it| it["id"] == text["id"]);
    let again = again.expect("the same tile");
    assert_eq!(
        (&again["text"]["id"], &again["text"]["body"]),
        (&text["text"]["id"], &json!("# Better"))
    );
    let sent = json!({"tiles": [{"id": text["id"], "deleted": true}, {"id": tile, "layouts": {}}]});
    let left = owner.patch(&at_board, sent).await.ok();
    assert_eq!(left["tiles"].as_array().map(Vec::len), Some(1));
    assert_eq!((&left["tiles"][0]["id"], &left["tiles"][0]["layouts"]), (tile, &json!({})));
}

#[tokio::test]
async fn agent_toolkit_creates_finds_places_and_deletes_an_insight() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (board, at_board) = make(&workspace, owner, json!({})).await;
    let sent = json!({"name": "Visits", "query": trends(), "description": "All", "favorited": false, "tags": ["mcp"]});
    let (made, one) = make_insight(&workspace, owner, sent).await;
    let short = made["short_id"].as_str().expect("a short ID");
    assert!(short.len() == 8 && short.chars().all(|c| c.is_ascii_alphanumeric()));
    assert!(made["filters"].is_object() && made.get("query").is_some());
    let found = owner.get(&insights(&workspace, &format!("?short_id={short}"))).await.ok();
    assert_eq!((&found["count"], &found["results"][0]), (&json!(1), &made));
    owner.get(&one).await.assert_is(200, made.clone());
    let listed = owner.get(&insights(&workspace, "?limit=10&offset=0&search=visit")).await.ok();
    assert_eq!(listed["count"], 1);
    let placed = owner.patch(&one, json!({"dashboards": [board]})).await.ok();
    assert_eq!(placed["dashboards"], json!([board]));
    assert_eq!(owner.get(&at_board).await.ok()["tiles"][0]["insight"]["short_id"], short);
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let found = owner.get(&insights(&workspace, &format!("?short_id={short}"))).await.ok();
    assert_eq!(found["count"], 0);
}

#[tokio::test]
async fn generated_client_lists_replaces_and_is_refused_to_destroy_insights() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (made, one) = make_insight(&workspace, owner, json!({"name": "A"})).await;
    let creator = &made["created_by"]["id"];
    for query in ["?basic=true", "?refresh=force_cache", "?limit=1&offset=0"] {
        assert_eq!(owner.get(&insights(&workspace, query)).await.ok()["count"], 1, "{query}");
    }
    let by = insights(&workspace, &format!("?created_by={creator}"));
    assert_eq!(owner.get(&by).await.ok()["count"], 1);
    let put = owner.send(Method::PUT, &one, Some(json!({"name": "B"}))).await.ok();
    assert_eq!((&put["name"], &put["id"]), (&json!("B"), &made["id"]));
    owner.delete(&one).await.assert_empty(405);
}
