//! The filters and orders of lists of insights.

use crate::support::prelude::*;

/// The names in a list.
async fn names(caller: &TestClient, workspace: &Workspace, query: &str) -> Vec<String> {
    let listed = caller.get(&insights(workspace, query)).await.ok();
    let items = listed["results"].as_array().expect("a list");
    assert_eq!(listed["count"], items.len(), "{query}");
    let name = |item: &Value| item["name"].as_str().unwrap_or("-").to_owned();
    items.iter().map(name).collect()
}

async fn assert_names(workspace: &Workspace, cases: &[(String, &[&str])]) {
    for (query, expected) in cases {
        assert_eq!(names(&workspace.owner, workspace, query).await, *expected, "{query}");
        let basic = format!("{query}&basic=true");
        assert_eq!(names(&workspace.owner, workspace, &basic).await, *expected, "{basic}");
    }
}

#[tokio::test]
async fn insights_are_filtered_by_their_fields_and_all_criteria_apply() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    let (board, _) = make(&workspace, &owner, json!({})).await;
    let (second, _) = make(&workspace, &owner, json!({})).await;
    let mut made = Vec::new();
    for (maker, sent) in [
        (&owner, json!({"name": "A", "derived_name": "Größe", "tags": ["x"], "favorited": true})),
        (&ann, json!({"name": "B", "description": "50% off", "tags": ["y", "größer"]})),
        (&owner, json!({"name": "C", "saved": false})),
        (&owner, json!({"name": "D", "saved": false, "dashboards": [board, second]})),
        (&ann, json!({"name": "E", "dashboards": [board]})),
        (&owner, json!({"name": "F", "tags": ["x"], "favorited": true})),
    ] {
        made.push(make_insight(&workspace, maker, sent).await);
    }
    owner.patch(&made[5].1, json!({"deleted": true})).await.ok();
    let short = made[0].0["short_id"].as_str().expect("a text");
    let (me, she) = (embedded(&owner).await["id"].clone(), embedded(&ann).await["id"].clone());
    let all: &[&str] = &["A", "B", "C", "D", "E"];
    assert_names(
        &workspace,
        &[
            ("?x".replace('x', "limit=50"), all),
            (format!("?short_id={short}"), &["A"]),
            ("?short_id=zzzzzzzz".to_owned(), &[]),
            (format!("?short_id={short}&favorited=1"), &["A"]),
            (format!("?short_id={short}&created_by={she}"), &[]),
            ("?saved=true".to_owned(), &["A", "B", "D", "E"]),
            ("?saved=false".to_owned(), &["C", "D"]),
            ("?favorited=true".to_owned(), &["A"]),
            ("?favorited=false".to_owned(), &["A"]),
            ("?user=true".to_owned(), &["A", "C", "D"]),
            ("?user=false".to_owned(), &["A", "C", "D"]),
            (format!("?created_by={she}"), &["B", "E"]),
            (format!("?created_by=[{she}]"), &["B", "E"]),
            (format!("?created_by=[{me},{she}]"), all),
            ("?created_by=[]".to_owned(), &[]),
            ("?created_by=[99]".to_owned(), &[]),
            ("?tags=[\"x\",\"Y\"]".replace('"', "%22"), &["A", "B"]),
            ("?tags=x&tags=y".to_owned(), &["A", "B"]),
            ("?tags=[]".to_owned(), all),
            ("?tags=none".to_owned(), &[]),
            (format!("?dashboards=[{board}]"), &["D", "E"]),
            (format!("?dashboards=[{second},{board}]"), &["D"]),
            ("?dashboards=[99]".to_owned(), &[]),
            ("?dashboards=[]".to_owned(), all),
            ("?search=gr%C3%B6%C3%9Fe".to_owned(), &["A", "B"]),
            ("?search=GR%C3%96%C3%9FE".to_owned(), &["A", "B"]),
            ("?search=50%25".to_owned(), &["B"]),
            ("?search=%20".to_owned(), all),
            ("?search=zzz".to_owned(), &[]),
            (format!("?dashboards=[{board}]&user=@me&saved=true"), &["D"]),
            ("?favorited=1&tags=y".to_owned(), &[]),
        ],
    )
    .await;
    let page = owner.get(&insights(&workspace, "?saved=true&limit=2&offset=1")).await.ok();
    assert_eq!((&page["count"], &page["results"][0]["name"]), (&json!(4), &json!("B")));
    assert_eq!(page["results"].as_array().map(Vec::len), Some(2));
    for link in ["next", "previous"] {
        assert!(page[link].as_str().is_some_and(|link| link.contains("saved=true")), "{page}");
    }
}

#[tokio::test]
async fn insights_are_filtered_by_the_type_of_their_query() {
    let (workspace, owner) = Workspace::owned().await;
    let viz = |kind: &str| json!({"kind": "InsightVizNode", "source": {"kind": kind}});
    let table = |node: &str, kind: &str| json!({"query": {"kind": node, "source": {"kind": kind}}});
    for (name, sent) in [
        ("trends", json!({"query": viz("TrendsQuery")})),
        ("bare", json!({"query": {"kind": "TrendsQuery"}})),
        ("legacy", json!({"filters": {"insight": "TRENDS"}})),
        ("funnels", json!({"query": viz("FunnelsQuery")})),
        ("retention", json!({"query": viz("RetentionQuery")})),
        ("paths", json!({"query": viz("PathsQuery")})),
        ("stickiness", json!({"query": viz("StickinessQuery")})),
        ("lifecycle", json!({"query": viz("LifecycleQuery")})),
        ("sql", table("DataVisualizationNode", "HogQLQuery")),
        ("events", table("DataTableNode", "EventsQuery")),
        ("odd", json!({"query": {"kind": 5, "source": [1]}})),
        ("nothing", json!({})),
    ] {
        let mut sent = sent;
        sent["name"] = json!(name);
        make_insight(&workspace, &owner, sent).await;
    }
    let cases: [(&str, &[&str]); 9] = [
        ("TRENDS", &["trends", "bare", "legacy"]),
        ("FUNNELS", &["funnels"]),
        ("RETENTION", &["retention"]),
        ("PATHS", &["paths"]),
        ("STICKINESS", &["stickiness"]),
        ("LIFECYCLE", &["lifecycle"]),
        ("SQL", &["sql"]),
        ("JSON", &["events", "odd"]),
        ("JSON&search=odd", &["odd"]),
    ];
    for (kind, expected) in cases {
        assert_names(&workspace, &[(format!("?insight={kind}"), expected)]).await;
    }
    let answer = owner.get(&insights(&workspace, "?insight=NONE")).await;
    answer.assert_invalid("insight", "invalid_choice", "\"NONE\" is not a valid choice.");
}

#[tokio::test]
async fn insights_are_filtered_by_absolute_and_relative_times() {
    let (workspace, clock) = Workspace::timed().await;
    // The clock begins at 2023-11-14T22:13:20Z.
    let (_, old) = make_insight(&workspace, &workspace.owner, json!({"name": "old"})).await;
    clock.advance(Duration::from_hours(40 * 24));
    make_insight(&workspace, &workspace.owner, json!({"name": "new"})).await;
    clock.advance(Duration::from_hours(1));
    workspace.owner.patch(&old, json!({"favorited": true})).await.ok();
    clock.advance(Duration::from_hours(1));
    for (query, expected) in [
        ("date_from=-90m", json!(["old", "new"])),
        ("date_from=-1h", json!([])),
        ("date_from=-2h", json!(["old"])),
        ("date_from=-3h", json!(["old", "new"])),
        ("date_to=-90m", json!([])),
        ("date_from=dStart", json!([])),
        ("date_to=dStart", json!(["old", "new"])),
        ("created_date_from=-7d", json!(["new"])),
        ("created_date_from=-1m", json!(["new"])),
        ("created_date_from=-2m", json!(["old", "new"])),
        ("created_date_from=-1w", json!(["new"])),
        ("created_date_from=-1y", json!(["old", "new"])),
        ("created_date_to=2023-12-01", json!(["old"])),
        ("created_date_from=2023-11-14T22:13:20Z", json!(["new"])),
        ("created_date_from=2023-11-14T22:13:19Z&created_date_to=2023-11-15", json!(["old"])),
    ] {
        let found = names(&workspace.owner, &workspace, &format!("?{query}")).await;
        assert_eq!(json!(found), expected, "{query}");
    }
}

#[tokio::test]
async fn insights_are_sorted_by_the_requested_column_and_by_id_otherwise() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    let mut paths = Vec::new();
    for (maker, name) in [
        (&ann, json!("b")),
        (owner, json!("B")),
        (&ann, json!(null)),
        (owner, json!("a")),
        (owner, json!("b")),
    ] {
        clock.advance(Duration::from_secs(1));
        paths.push(make_insight(&workspace, maker, json!({"name": name})).await.1);
    }
    for at in [3, 0] {
        clock.advance(Duration::from_secs(1));
        owner.patch(&paths[at], json!({"favorited": true})).await.ok();
    }
    for (order, expected) in [
        ("", [1, 2, 3, 4, 5]),
        ("created_at", [1, 2, 3, 4, 5]),
        ("-created_at", [5, 4, 3, 2, 1]),
        ("name", [2, 4, 1, 5, 3]),
        ("-name", [3, 5, 1, 4, 2]),
        ("last_modified_at", [2, 3, 5, 4, 1]),
        ("-last_modified_at", [1, 4, 5, 3, 2]),
        ("updated_at", [2, 3, 5, 4, 1]),
        ("created_by", [2, 4, 5, 1, 3]),
        ("-last_viewed_at", [1, 2, 3, 4, 5]),
        ("last_viewed_at", [1, 2, 3, 4, 5]),
    ] {
        let ids = |body: Value| column(&body, "id");
        let list = insights(&workspace, &format!("?order={order}"));
        assert_eq!(ids(owner.get(&list).await.ok()), expected, "{order}");
        let mut paged = Vec::new();
        for offset in [0, 2, 4] {
            let page = owner.get(&format!("{list}&limit=2&offset={offset}")).await.ok();
            assert_eq!(page["count"], 5);
            paged.extend(ids(page));
        }
        assert_eq!(paged, expected, "{order}");
        let past = owner.get(&format!("{list}&offset=5")).await.ok();
        assert_eq!((&past["count"], &past["results"]), (&json!(5), &json!([])));
    }
}

#[tokio::test]
async fn invalid_list_parameters_of_insights_are_rejected() {
    let (workspace, owner) = Workspace::owned().await;
    for name in ["created_by", "dashboards"] {
        for bad in ["abc", "[1", "%7B%7D", "[%22a%22]", "[1.5]", "[-1]", "true", "null"] {
            let answer = owner.get(&insights(&workspace, &format!("?{name}={bad}"))).await;
            answer.assert_bad(name, "Must be a JSON array of numbers.");
        }
    }
    let long = "é".repeat(200);
    owner.get(&insights(&workspace, &format!("?search={long}"))).await.ok();
    let answer = owner.get(&insights(&workspace, &format!("?search={long}x"))).await;
    answer.assert_bad("search", "Search query must be 200 characters or fewer.");
}
