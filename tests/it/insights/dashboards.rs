//! The dashboards that show an insight, and their tiles.

use crate::support::prelude::*;

#[tokio::test]
async fn dashboards_of_an_insight_are_the_sent_set_and_old_tiles_are_restored() {
    let (workspace, owner) = Workspace::owned().await;
    let (a, at_a) = make(&workspace, &owner, json!({})).await;
    let (b, at_b) = make(&workspace, &owner, json!({})).await;
    let (made, one) = make_insight(&workspace, &owner, json!({"dashboards": [b, a, b]})).await;
    assert_eq!(made["dashboards"], json!([a, b]));
    let (on_a, on_b) = (&made["dashboard_tiles"][0]["id"], &made["dashboard_tiles"][1]["id"]);
    let listed = |id: &Value, dashboard: u64, deleted: Value| json!({"id": id, "dashboard_id": dashboard, "deleted": deleted});
    let (never, again) = (json!(null), json!(false));
    let layouts = json!({"sm": {"x": 1, "y": 2, "w": 3, "h": 4}});
    let look = json!({"tiles": [{"id": on_a, "color": "red", "layouts": layouts}]});
    owner.patch(&at_a, look).await.ok();
    for (sent, shown) in [
        (json!([a, b]), json!([listed(on_a, a, never.clone()), listed(on_b, b, never.clone())])),
        (json!([b, a, a]), json!([listed(on_a, a, never.clone()), listed(on_b, b, never.clone())])),
        (json!([b]), json!([listed(on_b, b, never.clone())])),
        (json!([a.to_string()]), json!([listed(on_a, a, again.clone())])),
        (json!([a, b]), json!([listed(on_a, a, again.clone()), listed(on_b, b, again.clone())])),
        (json!([]), json!([])),
        (json!([a]), json!([listed(on_a, a, again)])),
    ] {
        let body = owner.patch(&one, json!({"dashboards": sent.clone()})).await.ok();
        assert_eq!(body["dashboard_tiles"], shown, "{sent}");
        let ids: Vec<_> =
            shown.as_array().expect("tiles").iter().map(|tile| &tile["dashboard_id"]).collect();
        assert_eq!(body["dashboards"], json!(ids), "{sent}");
        assert_eq!(owner.get(&one).await.ok()["dashboard_tiles"], shown, "{sent}");
        let unchanged = owner.patch(&one, json!({"name": "x"})).await.ok();
        assert_eq!(unchanged["dashboards"], json!(ids), "{sent}");
        for (dashboard, path) in [(a, &at_a), (b, &at_b)] {
            let tiles = owner.get(path).await.ok()["tiles"].clone();
            let count = usize::from(ids.contains(&&json!(dashboard)));
            assert_eq!(tiles.as_array().map(Vec::len), Some(count), "{sent}");
        }
    }
    let tile = &owner.get(&at_a).await.ok()["tiles"][0];
    assert_eq!((&tile["id"], &tile["color"], &tile["layouts"]), (on_a, &json!("red"), &layouts));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn new_tile_of_an_insight_has_no_layout_and_a_retrieve_from_its_dashboard_shows_its_look() {
    let (workspace, owner) = Workspace::owned().await;
    let (a, at_a) = make(&workspace, &owner, json!({})).await;
    put_texts(&owner, &at_a, &["first"]).await;
    let sent = json!({"tiles": [{"id": 1, "layouts": {"sm": {"x": 0, "y": 0}}}]});
    owner.patch(&at_a, sent).await.ok();
    let (made, _) = make_insight(&workspace, &owner, json!({"name": "I", "dashboards": [a]})).await;
    let tile = &owner.get(&at_a).await.ok()["tiles"][1];
    assert_eq!((&tile["layouts"], &tile["color"]), (&json!({}), &json!(null)));
    let mut shown = made.clone();
    shown["dashboard_tiles"][0]["id"] = tile["id"].clone();
    assert_eq!(tile["insight"], shown);
    let (a, at_a) = make(&workspace, &owner, json!({})).await;
    let (b, _) = make(&workspace, &owner, json!({})).await;
    let (made, one) = make_insight(&workspace, &owner, json!({"dashboards": [a]})).await;
    let tile = &made["dashboard_tiles"][0]["id"];
    let layouts = json!({"sm": {"x": 0, "y": 1}});
    let look = json!({"tiles": [{"id": tile, "color": "blue", "layouts": layouts}]});
    owner.patch(&at_a, look).await.ok();
    let mut expected = made.clone();
    owner.get(&format!("{one}?from_dashboard={b}")).await.assert_is(200, made);
    expected["color"] = json!("blue");
    expected["layouts"] = layouts;
    owner.get(&format!("{one}?from_dashboard={a}")).await.assert_is(200, expected);
}

#[tokio::test]
async fn rejected_dashboards_create_and_change_nothing() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (open, at_open) = make(&workspace, &owner, json!({})).await;
    let (closed, at_closed) = make(&workspace, &owner, json!({"restriction_level": 37})).await;
    let (gone, at_gone) = make(&workspace, &owner, json!({})).await;
    owner.patch(&at_gone, json!({"deleted": true})).await.ok();
    let other = workspace.add_project(json!({"name": "Two"})).await;
    let elsewhere = format!("/api/projects/{other}/dashboards/");
    let foreign = owner.post(&elsewhere, json!({})).await.ok()["id"].clone();
    let (_, one) = make_insight(&workspace, &owner, json!({"dashboards": [open, closed]})).await;
    let (_, free) = make_insight(&workspace, &owner, json!({"dashboards": [open]})).await;
    let list = insights(&workspace, "");
    for bad in [json!(gone), foreign] {
        let detail = format!("Invalid pk \"{bad}\" - object does not exist.");
        let sent = json!({"name": "new", "dashboards": [open, bad]});
        for answer in [owner.post(&list, sent.clone()).await, owner.patch(&one, sent).await] {
            answer.assert_invalid("dashboards", "does_not_exist", &detail);
        }
    }
    let before = (owner.get(&one).await, owner.get(&free).await, owner.get(&at_open).await);
    let add = format!("You don't have permission to add insights to dashboard: {closed}");
    let sent = json!({"name": "new", "dashboards": [open, closed]});
    ann.post(&list, sent.clone()).await.assert_denied(&add);
    ann.patch(&free, sent).await.assert_denied(&add);
    let remove = format!("You don't have permission to remove insights from dashboard: {closed}");
    ann.patch(&one, json!({"name": "new", "dashboards": [open]})).await.assert_denied(&remove);
    let after = (owner.get(&one).await, owner.get(&free).await, owner.get(&at_open).await);
    for (before, after) in [(before.0, after.0), (before.1, after.1), (before.2, after.2)] {
        assert_eq!((before.body, &before.headers["etag"]), (after.body, &after.headers["etag"]));
    }
    assert_eq!(owner.get(&list).await.ok()["count"], 2);
    // A dashboard that stays in the set needs no right.
    let kept = ann.patch(&one, json!({"name": "by ann", "dashboards": [closed]})).await.ok();
    assert_eq!(kept["dashboards"], json!([closed]));
    assert_eq!(owner.get(&at_closed).await.ok()["tiles"][0]["insight"]["name"], "by ann");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn changes_of_an_insight_and_of_its_tiles_move_each_others_versions() {
    let (workspace, owner) = Workspace::owned().await;
    let (a, at_a) = make(&workspace, &owner, json!({})).await;
    let (b, at_b) = make(&workspace, &owner, json!({})).await;
    let (made, one) = make_insight(&workspace, &owner, json!({"dashboards": [a]})).await;
    let tile = &made["dashboard_tiles"][0]["id"];
    let versions = async || {
        let [one, a, b] = [&one, &at_a, &at_b].map(|path| owner.get(path));
        [one.await.version(), a.await.version(), b.await.version()]
    };
    let moved = async |path: &str, sent: Value| {
        let before = versions().await;
        let answer = owner.patch(path, sent.clone()).await;
        assert_eq!(answer.status, 200, "{sent} {}", answer.body);
        let after = versions().await;
        [0, 1, 2].map(|at| after[at] > before[at])
    };
    for (sent, expected) in [
        (json!({"name": "x"}), [true, true, false]),
        (json!({"name": "x"}), [false; 3]),
        (json!({"dashboards": [a, b]}), [true; 3]),
        (json!({"dashboards": [a, b]}), [false; 3]),
        (json!({"dashboards": [a]}), [true; 3]),
    ] {
        assert_eq!(moved(&one, sent).await, expected);
    }
    let deleted = |deleted: bool| json!({"tiles": [{"id": tile, "deleted": deleted}]});
    assert_eq!(moved(&at_a, deleted(true)).await, [true, true, false]);
    assert_eq!(owner.get(&one).await.ok()["dashboards"], json!([]));
    assert_eq!(moved(&at_a, deleted(false)).await, [true, true, false]);
    let to_b = json!({"tile": {"id": tile}, "toDashboard": b});
    assert_eq!(moved(&format!("{at_a}move_tile/"), to_b).await, [true; 3]);
    assert_eq!(owner.get(&one).await.ok()["dashboards"], json!([b]));
    let before = owner.get(&one).await.version();
    let copy = owner.post(&workspace.dashboards(""), json!({"use_dashboard": b})).await.ok();
    assert!(owner.get(&one).await.version() > before);
    assert_eq!(owner.get(&one).await.ok()["dashboards"], json!([b, copy["id"]]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn copies_of_tiles_make_insights_of_the_caller_that_the_list_shows() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (a, _) = make(&workspace, &owner, json!({})).await;
    let sent =
        json!({"name": "I", "dashboards": [a], "favorited": true, "derived_name": "d", "order": 3});
    let (made, _) = make_insight(&workspace, &owner, sent).await;
    let sent = json!({"use_dashboard": a, "duplicate_tiles": true});
    let copy = ann.post(&workspace.dashboards(""), sent).await.ok();
    let shown = &copy["tiles"][0]["insight"];
    let listed = ann.get(&insights(&workspace, "")).await.ok();
    assert_eq!((&listed["count"], &listed["results"][1]), (&json!(2), shown));
    assert_ne!(shown["short_id"], made["short_id"]);
    let names = ["name", "derived_name", "order", "favorited", "user_access_level", "dashboards"];
    let expected = json!(["I (Copy)", "d", 3, false, "manager", [copy["id"]]]);
    assert_eq!(json!(names.map(|name| &shown[name])), expected);
}

#[tokio::test]
async fn hidden_dashboards_are_left_out_and_stay_unchanged() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (hidden, at_hidden) = make(&workspace, &owner, json!({})).await;
    let (open, _) = make(&workspace, &owner, json!({})).await;
    let (made, one) = make_insight(&workspace, &owner, json!({"dashboards": [hidden, open]})).await;
    workspace.set_rule(&at_hidden, None, "none").await;
    let listed = json!([made["dashboard_tiles"][1]]);
    for path in [one.clone(), format!("{one}?basic=true")] {
        let body = ann.get(&path).await.ok();
        assert_eq!((&body["dashboards"], &body["dashboard_tiles"]), (&json!([open]), &listed));
    }
    let list = insights(&workspace, "");
    assert_eq!(ann.get(&list).await.ok()["results"][0]["dashboards"], json!([open]));
    for (query, count) in [
        (format!("?dashboards=[{hidden}]"), 0),
        (format!("?dashboards=[{open},{hidden}]"), 0),
        (format!("?dashboards=[{open}]"), 1),
    ] {
        assert_eq!(ann.get(&format!("{list}{query}")).await.ok()["count"], count, "{query}");
    }
    assert!(ann.get(&format!("{one}?from_dashboard={hidden}")).await.ok().get("layouts").is_none());
    let detail = format!("Invalid pk \"{hidden}\" - object does not exist.");
    let named = ann.patch(&one, json!({"dashboards": [hidden]})).await;
    named.assert_invalid("dashboards", "does_not_exist", &detail);
    assert_eq!(ann.patch(&one, json!({"dashboards": []})).await.ok()["dashboards"], json!([]));
    assert_eq!(owner.get(&one).await.ok()["dashboards"], json!([hidden]));
    workspace.assert_file_valid().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn insight_has_at_most_a_thousand_tiles() {
    let (workspace, owner) = Workspace::owned().await;
    let made = join_all((0..1001).map(|_| {
        let (owner, list) = (owner.clone(), workspace.dashboards(""));
        tokio::spawn(async move { owner.post(&list, json!({})).await.ok()["id"].clone() })
    }));
    let ids: Vec<Value> = made.await.into_iter().map(|id| id.expect("no panic")).collect();
    let (_, one) = make_insight(&workspace, &owner, json!({})).await;
    let all = owner.patch(&one, json!({"dashboards": ids[..1000]})).await.ok();
    assert_eq!(all["dashboards"].as_array().map(Vec::len), Some(1000));
    let listed = owner.get(&insights(&workspace, "")).await.ok();
    let shown = listed["results"][0]["dashboards"].as_array().expect("dashboards");
    assert_eq!(*shown, all["dashboards"].as_array().expect("dashboards")[..100]);
    // Deleted tiles count, because they can be restored.
    owner.patch(&one, json!({"dashboards": [ids[0]]})).await.ok();
    let detail = "Ensure an insight has no more than 1000 tiles.";
    let more = owner.patch(&one, json!({"dashboards": [ids[0], ids[1000]]})).await;
    more.assert_invalid("dashboards", "max_length", detail);
    let copy = owner.post(&workspace.dashboards(""), json!({"use_dashboard": ids[0]})).await;
    copy.assert_invalid("use_dashboard", "max_length", detail);
    let back = owner.patch(&one, json!({"dashboards": ids[..1000]})).await.ok();
    assert_eq!(back["dashboards"], all["dashboards"]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn tiles_of_dashboards_and_insights_have_limits() {
    let (workspace, owner) = Workspace::owned().await;
    let (full, at_full) = make(&workspace, &owner, json!({})).await;
    owner.patch(&at_full, json!({"tiles": vec![json!({"text": {"body": "x"}}); 1000]})).await.ok();
    let (made, one) = make_insight(&workspace, &owner, json!({})).await;
    let answer = owner.patch(&one, json!({"dashboards": [full]})).await;
    let many = "Ensure this field has no more than 1000 elements.";
    answer.assert_invalid("tiles", "max_length", many);
    owner.get(&one).await.assert_is(200, made);
    // An insight that grows must fit into each dashboard that shows it.
    let (heavy, at_heavy) = make(&workspace, &owner, json!({})).await;
    let query = json!({"a": "x".repeat(32_000)});
    for _ in 0..255 {
        make_insight(&workspace, &owner, json!({"query": query, "dashboards": [heavy]})).await;
    }
    let detail = "Ensure the tiles have no more than 8388608 bytes of JSON in total.";
    let (_, small) = make_insight(&workspace, &owner, json!({"dashboards": [heavy]})).await;
    let (_, tiny) = make_insight(&workspace, &owner, json!({"dashboards": [heavy]})).await;
    let grown = json!({"query": {"a": "x".repeat(32_760)}, "description": "x".repeat(400)});
    let mut answer = owner.patch(&small, grown.clone()).await;
    while answer.status == 200 {
        let more = json!({"query": query, "dashboards": [heavy]});
        answer = owner.post(&insights(&workspace, ""), more).await;
        if answer.status == 201 {
            answer.status = 200;
        }
    }
    answer.assert_invalid("dashboards", "max_length", detail);
    // A caller who may not see the dashboard is not held up by it.
    let ann = workspace.member("ann", Level::Member).await;
    for caller in [&owner, &ann] {
        caller.patch(&tiny, grown.clone()).await.assert_invalid("dashboards", "max_length", detail);
    }
    workspace.set_rule(&at_heavy, None, "none").await;
    let patched = ann.patch(&tiny, grown.clone()).await.ok();
    assert_eq!((&patched["query"], &patched["dashboards"]), (&grown["query"], &json!([])));
    workspace.assert_file_valid().await;
}
