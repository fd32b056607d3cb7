//! Dashboards created from built-in templates.

use crate::support::bodies;
use crate::support::prelude::*;

const APP: &str =
    include_str!("../../../src/resources/dashboards/templates/product_analytics.json");
const WEBSITE: &str =
    include_str!("../../../src/resources/dashboards/templates/website_traffic.json");

fn parsed(template: &str) -> Value {
    serde_json::from_str(template).expect("JSON")
}

/// The expected tiles of a dashboard that `maker` created from a template at [`bodies::MOMENT`] as the first in its
/// data file. Short IDs are random, so they come from `shown`.
pub async fn tiles(maker: &TestClient, shown: &Value, template: &Value) -> Value {
    let user = &embedded(maker).await;
    let (mut insights, mut texts, mut placed) = (0, 0, Vec::new());
    for sent in template["tiles"].as_array().expect("tiles") {
        let id = insights + texts + 1;
        let content = match sent["type"].as_str() {
            Some("INSIGHT") => {
                insights += 1;
                let short_id = short_id(shown, insights);
                let given = json!({
                    "id": insights, "short_id": short_id, "dashboards": [shown["id"]],
                    "dashboard_tiles": [{"id": id, "dashboard_id": shown["id"], "deleted": null}],
                });
                json!({ "insight": changed(insight(sent, user), given) })
            }
            Some("TEXT") => {
                texts += 1;
                let text = json!({ "id": texts, "body": sent["body"] });
                json!({ "text": bodies::text(user, text) })
            }
            _ => continue,
        };
        let layouts = if sent["layouts"].is_object() { &sent["layouts"] } else { &json!({}) };
        let place = |axis: &str| {
            let place = &layouts["sm"][axis];
            place.as_u64().or_else(|| place.as_str()?.parse().ok()).unwrap_or(100)
        };
        let look = json!({ "id": id, "layouts": layouts, "color": sent["color"] });
        placed.push(((place("y"), place("x"), id), changed(bodies::tile(look), content)));
    }
    placed.sort_by_key(|(place, _)| *place);
    for (order, (_, tile)) in placed.iter_mut().enumerate() {
        tile["order"] = json!(order);
    }
    placed.into_iter().map(|(_, tile)| tile).collect()
}

/// The short ID of an insight: 8 characters.
fn short_id(shown: &Value, insight: u64) -> &Value {
    let mut tiles = shown["tiles"].as_array().expect("tiles").iter();
    let tile = tiles.find(|tile| tile["insight"]["id"] == insight).expect("the insight's tile");
    let short = &tile["insight"]["short_id"];
    let text = short.as_str().expect("a text");
    assert!(text.len() == 8 && text.chars().all(|c| c.is_ascii_alphanumeric()), "{text}");
    short
}

/// The expected insight of a template's tile, without its IDs.
fn insight(sent: &Value, user: &Value) -> Value {
    let query =
        Some(&sent["query"]).filter(|query| query.as_object().is_some_and(|q| !q.is_empty()));
    let mut filters = json!({});
    if query.is_none() {
        filters = if sent["filters"].is_object() { sent["filters"].clone() } else { filters };
        if filters.get("filter_test_accounts").is_none() {
            filters["filter_test_accounts"] = json!(true);
        }
    }
    let changes = json!({
        "name": sent["name"], "description": sent["description"], "filters": filters,
        "query": query, "is_sample": true,
    });
    bodies::insight(user, changes)
}

#[tokio::test]
async fn product_analytics_template_is_created_by_both_its_names() {
    for name in ["DEFAULT_APP", "Product analytics"] {
        let (workspace, owner) = at_the_moment().await;
        let made = owner.post(&workspace.dashboards(""), json!({ "use_template": name })).await;
        let id = made.body["id"].as_u64().expect("an id");
        let changes = json!({
            "name": "Product analytics", "creation_mode": "template", "use_template": name,
            "tiles": tiles(&owner, &made.body, &parsed(APP)).await,
        });
        let expected = detail(&owner, id, changes).await;
        made.assert_is(201, expected.clone());
        owner.get(&workspace.dashboards(&format!("{id}/"))).await.assert_is(200, expected.clone());
        owner.get(&workspace.dashboards("")).await.assert_is(200, page(json!([item(expected)])));
        workspace.assert_file_valid().await;
    }
}

/// The tiles of product analytics in order: ID, name, color, `x,y,w,h` on wide screens, `y` on narrow ones,
/// kind, interval, date range, display, breakdown.
const SIX: [&str; 6] = [
    "1|Daily active users (DAUs)|blue|0,0,6,5|0|TrendsQuery|day|-30d|ActionsLineGraph|",
    "2|Weekly active users (WAUs)|green|6,0,6,5|5|TrendsQuery|week|-90d|ActionsLineGraph|",
    "4|Growth accounting|purple|0,5,6,5|15|LifecycleQuery|week|-30d||",
    "3|Retention|blue|6,5,6,5|10|RetentionQuery|Week|||",
    "5|Referring domain (last 14 days)|black|0,10,6,5|20|TrendsQuery|day|-14d|ActionsBarValue|$referring_domain",
    "6|Pageview funnel, by browser|green|6,10,6,5|25|FunnelsQuery|day||steps|$browser",
];

#[tokio::test]
async fn product_analytics_has_the_six_documented_tiles_in_order() {
    let workspace = Workspace::new().await;
    let sent = json!({"use_template": "DEFAULT_APP"});
    let made = workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
    let text = |tile: &Value, place: &str| match tile.pointer(place) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let row = |tile: &Value| {
        let source = &tile["insight"]["query"]["source"];
        let sm = ["x", "y", "w", "h"].map(|side| text(tile, &format!("/layouts/sm/{side}")));
        let interval = text(source, "/interval") + &text(source, "/retentionFilter/period");
        let drawn =
            text(source, "/trendsFilter/display") + &text(source, "/funnelsFilter/funnelVizType");
        [
            text(tile, "/id"),
            text(tile, "/insight/name"),
            text(tile, "/color"),
            sm.join(","),
            text(tile, "/layouts/xs/y"),
            text(source, "/kind"),
            interval,
            text(source, "/dateRange/date_from"),
            drawn,
            text(source, "/breakdownFilter/breakdown"),
        ]
        .join("|")
    };
    let tiles = made["tiles"].as_array().expect("tiles");
    assert_eq!(tiles.iter().map(row).collect::<Vec<_>>(), SIX);
    for tile in tiles {
        let insight = &tile["insight"];
        let told = (&insight["is_sample"], &insight["query"]["source"]["filterTestAccounts"]);
        assert_eq!(told, (&json!(true), &json!(true)));
    }
    let steps = made["tiles"][5]["insight"]["query"]["source"]["series"].as_array();
    let events = steps.expect("steps").iter().map(|step| step["event"].clone());
    assert_eq!(events.collect::<Value>(), json!(["$pageview", "$pageview", "$pageview"]));
}

#[tokio::test]
async fn website_traffic_template_is_created_completely() {
    let (workspace, owner) = at_the_moment().await;
    let sent = json!({"use_template": "WEBSITE_TRAFFIC"});
    let made = owner.post(&workspace.dashboards(""), sent).await;
    let id = made.body["id"].as_u64().expect("an id");
    let changes = json!({
        "name": "Website traffic", "creation_mode": "template", "use_template": "WEBSITE_TRAFFIC",
        "filters": {"date_from": "-30d"}, "tags": ["marketing"],
        "tiles": tiles(&owner, &made.body, &parsed(WEBSITE)).await,
    });
    let expected = detail(&owner, id, changes).await;
    made.assert_is(201, expected.clone());
    owner.get(&workspace.dashboards(&format!("{id}/"))).await.assert_is(200, expected);
    let tiles = made.body["tiles"].as_array().expect("tiles").iter();
    let names = tiles.map(|tile| tile["insight"]["name"].clone());
    let expected = json!([
        "Website Unique Users (Total)",
        "Organic SEO Unique Users (Total)",
        "Website Unique Users (Breakdown)",
        "Organic SEO Unique Users (Breakdown)",
        "Sessions Per User",
        "Pages Per User",
        "Top Website Pages (Overall)",
        "Top Website Pages (via Google)",
        "Website Users by Location",
    ]);
    assert_eq!(names.collect::<Value>(), expected);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn template_name_is_used_only_if_the_request_has_no_name() {
    let workspace = Workspace::new().await;
    for (name, expected) in [
        (json!("Mine"), "Mine"),
        (json!(""), "Product analytics"),
        (json!("  "), "Product analytics"),
        (json!(null), "Product analytics"),
    ] {
        let sent = json!({"use_template": " DEFAULT_APP ", "name": name});
        let made = workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
        assert_eq!([&made["name"], &made["use_template"]], [expected, "DEFAULT_APP"]);
    }
}

#[tokio::test]
async fn template_replaces_filters_and_description_and_adds_its_tags() {
    let (workspace, owner) = at_the_moment().await;
    for (template, filters, tags) in [
        ("DEFAULT_APP", json!({}), json!(["a", "z"])),
        ("WEBSITE_TRAFFIC", json!({"date_from": "-30d"}), json!(["a", "marketing", "z"])),
    ] {
        let sent = json!({
            "use_template": template, "name": "Mine", "description": "What I say",
            "filters": {"date_from": "-1d", "mine": true}, "tags": ["z", "A"], "pinned": true,
            "restriction_level": 37,
        });
        let mut made = owner.post(&workspace.dashboards(""), sent).await.ok();
        let id = made["id"].as_u64().expect("an id");
        made["tiles"] = json!([]);
        let changes = json!({
            "name": "Mine", "creation_mode": "template", "use_template": template,
            "filters": filters, "tags": tags, "pinned": true, "restriction_level": 37,
            "effective_restriction_level": 37, "access_control_version": "v1",
        });
        assert_eq!(made, detail(&owner, id, changes).await);
    }
    let sent = json!({"use_template": "WEBSITE_TRAFFIC", "tags": ["Marketing "]});
    let made = owner.post(&workspace.dashboards(""), sent).await.ok();
    assert_eq!(made["tags"], json!(["marketing"]));
    let tags: Vec<String> = (0..200).map(|number| format!("t{number}")).collect();
    let many = json!({"use_template": "WEBSITE_TRAFFIC", "tags": tags});
    let text = "Ensure this field has no more than 200 elements.";
    owner.post(&workspace.dashboards(""), many).await.assert_invalid("tags", "max_length", text);
}

#[tokio::test]
async fn unknown_template_or_source_is_rejected_and_creates_nothing() {
    let (workspace, owner) = at_the_moment().await;
    let list = workspace.dashboards("");
    let names = ["No such", "default_app", "Website traffic", "DEFAULT_APP2", "<b>", "%s"];
    let mut cases = Vec::from(names.map(|name| {
        let detail = format!("Invalid template provided: {name}");
        (json!({"use_template": name, "name": "x"}), Refusal::invalid("use_template", detail))
    }));
    let both = "`use_dashboard` and `use_template` cannot be used together";
    let both = Refusal::of_body("invalid_input", both);
    let no_number = Refusal::invalid("use_dashboard", "A valid integer is required.");
    let long = Refusal::at_most("use_template", "400 characters");
    cases.extend([
        (json!({"use_template": "x".repeat(401)}), long),
        (json!({"use_template": "DEFAULT_APP", "use_dashboard": 1}), both),
        (json!({"use_template": "DEFAULT_APP", "use_dashboard": ""}), no_number),
        (json!({"use_template": "No such", "name": true}), Refusal::not_text("name")),
    ]);
    for id in [json!(999_999), json!("999999"), json!(-1), json!(1e30)] {
        let unknown = Refusal::invalid("use_dashboard", "Invalid value provided");
        cases.push((json!({ "use_dashboard": id }), unknown));
    }
    owner.assert_refusals(Method::POST, &list, cases).await;
    owner.get(&list).await.assert_is(200, page(json!([])));
    workspace.assert_file_valid().await;
    // The refused requests did not even use up an ID.
    for (id, unset) in
        [(1, json!({"use_template": "", "use_dashboard": 0})), (2, json!({"use_template": " "}))]
    {
        owner.post(&list, unset).await.assert_is(201, detail(&owner, id, json!({})).await);
    }
}

#[tokio::test]
async fn creating_dashboards_requires_editor_access_in_every_way() {
    let (workspace, member) = Workspace::with_member("mia", Level::Member).await;
    let admin = workspace.member("ada", Level::Admin).await;
    let list = workspace.dashboards("");
    let from_json = workspace.dashboards("create_from_template_json/");
    let template = json!({ "template": parsed(APP) });
    let ways = [
        (&list, json!({})),
        (&list, json!({"use_template": "DEFAULT_APP"})),
        // Rights are checked before fields.
        (&list, json!({"name": []})),
        (&list, json!({"use_template": "No such"})),
        (&from_json, template.clone()),
        (&from_json, json!({})),
    ];
    for level in ["none", "viewer"] {
        workspace.set_rule_on_all("dashboard", None, level).await;
        for (path, sent) in &ways {
            member.post(path, sent.clone()).await.assert_denied(EDITOR);
        }
    }
    // Rules do not apply to admins.
    admin.post(&list, json!({})).await.ok();
    admin.post(&from_json, template).await.ok();
    workspace.assert_file_valid().await;
}
