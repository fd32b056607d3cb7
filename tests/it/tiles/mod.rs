//! Tiles of dashboards: list, update and duplicate them.

mod deleted;
mod layouts;
mod moves;
mod sequences;
mod texts;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steward::testing::auth::InProject;
use steward::testing::ids::{DashboardId, InsightId, TileId, UserId};
use steward::testing::resources::access_controls::levels::AccessLevel;
use steward::testing::resources::access_controls::rules::AccessRule;
use steward::testing::resources::access_objects::Kind;
use steward::testing::resources::access_subject::Subject;
use steward::testing::resources::dashboards::insights::{self, NewInsight};
use steward::testing::resources::dashboards::tiles::{self, TileStyle};
use steward::testing::resources::dashboards::{Dashboard, tiles::Tile};
use steward::testing::resources::members::{self, Level};
use steward::testing::resources::projects;
use steward::testing::secret::Seed;
use steward::testing::store::{Order, Tx, Window};

use crate::dashboards::{MOMENT, at_the_moment, detail, embedded, item, make};
use crate::support::{TestClient, TestResponse, Workspace};

/// The fields of an insight that are null.
const NULL: [&str; 16] = [
    "derived_name",
    "description",
    "order",
    "result",
    "columns",
    "hasMore",
    "timezone",
    "last_refresh",
    "next_allowed_client_refresh",
    "query_status",
    "filters_hash",
    "cache_target_age",
    "hogql",
    "types",
    "resolved_date_range",
    "last_viewed_at",
];

/// Adds an insight of the owner to a dashboard of the first project, and returns the ID of the tile.
pub async fn put_insight(
    workspace: &Workspace,
    dashboard: u64,
    name: Value,
    layouts: Value,
) -> u64 {
    let made = (workspace.made.organization_id, workspace.made.project_id, workspace.made.user_id);
    let seed = Seed::generate();
    let put = workspace.app.operate(move |tx, now| {
        let (organization, project, user) = made;
        let place = InProject {
            member: members::find(tx, organization, user)?.expect("the owner"),
            project: projects::find_by_id(tx, project)?.expect("the project"),
        };
        let new = NewInsight {
            name: name.as_str().map(str::to_owned),
            description: None,
            filters: serde_json::Map::new(),
            query: json!({"kind": "TrendsQuery", "b": 1, "a": 2}).as_object().cloned(),
            is_sample: true,
            tags: vec!["t".to_owned()],
        };
        let layouts = layouts.as_object().cloned().expect("an object");
        let look = TileStyle { layouts, color: Some("blue".to_owned()), ..TileStyle::default() };
        let dashboard = DashboardId(dashboard);
        tiles::add_insight(tx, &place, dashboard, new, look, &mut seed.rng(), now)
    });
    put.await.expect("a tile").0
}

/// Adds texts with these bodies to a dashboard, each below the previous one, and returns the tiles.
pub async fn put_texts(caller: &TestClient, one: &str, bodies: &[&str]) -> Vec<Value> {
    let known = caller.get(one).await.ok()["tiles"].as_array().expect("tiles").len();
    let sent = bodies.iter().enumerate().map(|(number, body)| {
        let layouts = json!({"sm": {"x": 0, "y": 200 + known + number, "w": 6, "h": 5}});
        json!({"text": {"body": body}, "layouts": layouts})
    });
    let sent: Vec<Value> = sent.collect();
    let tiles = caller.patch(one, json!({ "tiles": sent })).await.ok()["tiles"].clone();
    tiles.as_array().expect("tiles")[known..].to_vec()
}

/// Sets the level of a user, or of everyone, on a dashboard of the first project.
pub async fn put_rule(
    workspace: &Workspace,
    dashboard: u64,
    user: Option<UserId>,
    level: AccessLevel,
) {
    let now = workspace.app.now();
    let rule = AccessRule {
        organization: workspace.made.organization_id,
        project: workspace.made.project_id,
        kind: Kind::Dashboard,
        object: Some(dashboard),
        subject: user.map_or(Subject::Everyone, Subject::User),
        level,
        created_at: now,
        updated_at: now,
    };
    workspace.app.store().write(move |tx| tx.put(&rule)).await.expect("a rule");
}

/// The tiles of a dashboard.
pub async fn shown(caller: &TestClient, one: &str) -> Vec<Value> {
    caller.get(one).await.ok()["tiles"].as_array().expect("tiles").clone()
}

/// The values of one member of each tile, in the order of the tiles.
pub async fn shown_of(caller: &TestClient, one: &str, pointer: &str) -> Vec<Value> {
    let tiles = shown(caller, one).await;
    tiles.iter().map(|tile| tile.pointer(pointer).cloned().unwrap_or_default()).collect()
}

/// The expected tile of an insight that [`put_insight`] created. `insight` holds the insight's own fields.
fn insight_tile(user: &Value, tile: u64, dashboard: u64, insight: &Value) -> Value {
    let mut shown = json!({
        "id": insight["id"],
        "short_id": insight["short_id"],
        "name": insight["name"],
        "filters": {},
        "query": {"kind": "TrendsQuery", "b": 1, "a": 2},
        "deleted": false,
        "favorited": false,
        "saved": true,
        "is_sample": true,
        "is_cached": false,
        "alerts": [],
        "dashboards": [dashboard],
        "dashboard_tiles": [{"id": tile, "dashboard_id": dashboard, "deleted": null}],
        "tags": ["t"],
        "created_by": user,
        "last_modified_by": user,
        "effective_restriction_level": 21,
        "effective_privilege_level": 37,
        "user_access_level": "manager",
    });
    for name in ["created_at", "updated_at", "last_modified_at"] {
        shown[name] = json!(MOMENT);
    }
    for name in NULL {
        shown[name] = Value::Null;
    }
    json!({
        "id": tile,
        "layouts": {},
        "color": "blue",
        "show_description": null,
        "transparent_background": null,
        "order": 0,
        "last_refresh": null,
        "is_cached": false,
        "filters_overrides": {},
        "text": null,
        "insight": shown,
    })
}

fn is_short_id(value: &Value) -> bool {
    let text = value.as_str().expect("a text");
    text.len() == 8
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[tokio::test]
async fn insight_tile_has_all_documented_fields() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({"filters": {"date_from": "-7d"}})).await;
    let tile = put_insight(&workspace, id, json!("Users"), json!({})).await;
    let got = owner.get(&one).await;
    let insight = &got.body["tiles"][0]["insight"];
    assert!(insight["id"].is_u64() && is_short_id(&insight["short_id"]), "{insight}");
    assert_eq!(insight["name"], "Users");
    let user = embedded(owner).await;
    let expected = insight_tile(&user, tile, id, insight);
    let changes = json!({"filters": {"date_from": "-7d"}, "tiles": [expected]});
    let whole = detail(owner, id, changes).await;
    got.assert_is(200, whole.clone());
    let listed = json!({"count": 1, "next": null, "previous": null, "results": [item(whole)]});
    owner.get(&workspace.dashboards("")).await.assert_is(200, listed);
    let text = String::from_utf8(got.bytes).expect("UTF-8");
    assert!(text.contains(r#""query":{"kind":"TrendsQuery","b":1,"a":2}"#), "{text}");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn insight_shows_the_access_levels_of_the_requested_dashboard() {
    let workspace = Workspace::new().await;
    let ann = workspace.member("ann", Level::Member).await;
    let (id, one) = make(&workspace, &workspace.owner, json!({"restriction_level": 37})).await;
    put_insight(&workspace, id, json!(null), json!({})).await;
    for (caller, levels) in
        [(&workspace.owner, json!([37, 37, "manager"])), (&ann, json!([37, 21, "editor"]))]
    {
        let insight = &shown(caller, &one).await[0]["insight"];
        let names =
            ["effective_restriction_level", "effective_privilege_level", "user_access_level"];
        assert_eq!(json!(names.map(|name| &insight[name])), levels);
    }
}

#[tokio::test]
async fn tiles_are_sorted_and_numbered_by_y_then_x_then_id() {
    let workspace = Workspace::new().await;
    let (id, one) = make(&workspace, &workspace.owner, json!({})).await;
    let mut expected = Vec::new();
    for (place, layouts) in [
        (7, json!({"sm": {"y": 101, "x": 0}})),
        (4, json!({"sm": {"y": 5, "x": 6}})),
        (6, json!({})),
        (3, json!({"sm": {"y": 5, "x": 0}, "xs": {"y": 99, "x": 99}})),
        (2, json!({"sm": {"y": 0, "x": 9}})),
        (5, json!({"sm": {"y": 6}})),
        (0, json!({"sm": {"y": 0, "x": 0.0}})),
        (8, json!({"sm": {"y": 101, "x": 0}})),
        (1, json!({"sm": {"y": 0, "x": 1}})),
    ] {
        expected.push((place, put_insight(&workspace, id, json!("I"), layouts).await));
    }
    expected.sort_unstable();
    let mut expected: Vec<Value> = expected.iter().map(|(_, id)| json!(id)).collect();
    assert_eq!(shown_of(&workspace.owner, &one, "/id").await, expected);
    let numbers: Vec<Value> = (0..9).map(|number| json!(number)).collect();
    assert_eq!(shown_of(&workspace.owner, &one, "/order").await, numbers);
    // A tile with new layouts moves in the order.
    let sent = json!([{"id": expected[8], "layouts": {"sm": {"y": 0, "x": 0}}}]);
    workspace.owner.patch(&one, json!({ "tiles": sent })).await.ok();
    let last = expected.remove(8);
    expected.insert(1, last);
    assert_eq!(shown_of(&workspace.owner, &one, "/id").await, expected);
    assert_eq!(shown_of(&workspace.owner, &one, "/order").await, numbers);
}

/// Layouts in the order in which tiles with them stand; the last ones all count as 100, 100.
fn layouts_in_order() -> (Vec<Value>, Vec<Value>) {
    let at = |y: Value, x: Value| json!({"sm": {"y": y, "x": x}});
    let placed = vec![
        at(json!("-2"), json!(0)),
        at(json!(-1.5), json!("9")),
        at(json!("0"), json!("1")),
        at(json!(0), json!("1.5")),
        at(json!(-0.0), json!(2)),
        at(json!(" 0 "), json!("2.5")),
        at(json!("2"), json!("10")),
        at(json!("2"), json!("11")),
        at(json!("10"), json!("0")),
        at(json!("1e1"), json!(1)),
        at(json!(10), json!(true)),
    ];
    let rest = vec![
        json!({}),
        json!({"sm": null}),
        json!({"sm": "1"}),
        json!({"sm": [0, 0]}),
        json!({"xs": {"y": "0", "x": "0"}}),
        at(json!(null), json!(true)),
        at(json!(""), json!("one")),
        at(json!("NaN"), json!("inf")),
        at(json!("1e999"), json!("-infinity")),
        at(json!("1,5"), json!("0x1")),
        at(json!([0]), json!({"x": 0})),
        at(json!("100"), json!(100.0)),
    ];
    (placed, rest)
}

#[tokio::test]
async fn numeric_strings_in_layouts_sort_like_numbers_and_other_values_as_100() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, one) = make(&workspace, owner, json!({})).await;
    let (mut expected, rest) = layouts_in_order();
    let sent = rest.iter().chain(expected.iter().rev());
    let tiles: Vec<Value> =
        sent.map(|layouts| json!({"text": {"body": "x"}, "layouts": layouts})).collect();
    owner.patch(&one, json!({ "tiles": tiles })).await.ok();
    expected.extend(rest);
    let numbers: Vec<Value> = (0..expected.len()).map(|number| json!(number)).collect();
    assert_eq!(shown_of(owner, &one, "/layouts").await, expected);
    assert_eq!(shown_of(owner, &one, "/order").await, numbers);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn layouts_are_returned_as_sent() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    let mut body = owner.get(&one).await.ok();
    let deep = (0..30).fold(json!({}), |inner, _| json!({ "a": inner }));
    for layouts in [
        json!({"sm": {"y": "1", "x": " 01 ", "w": "6.50", "h": null, "minW": 3}, "b": 1, "a": 2}),
        json!({"sm": {"x": -1, "y": 1.5, "w": 1e300, "h": u64::MAX}}),
        json!({"sm": [], "xs": null, "": "\u{e9}\u{1f600}\n", "md": [{"z": 1, "y": [true, -0.5]}]}),
        json!({"sm": "x"}),
        json!({"sm": deep}),
        json!({"sm": "a".repeat(32_768 - r#"{"sm":""}"#.len())}),
    ] {
        body["tiles"][0]["layouts"] = layouts.clone();
        let sent = json!({"tiles": [{"id": tile, "layouts": layouts}]});
        owner.patch(&one, sent).await.assert_is(200, body.clone());
        let answer = owner.get(&one).await;
        answer.assert_is(200, body.clone());
        // The order of members counts too.
        let text = String::from_utf8(answer.bytes).expect("UTF-8");
        assert!(text.contains(&format!("\"layouts\":{layouts},")), "{layouts}");
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn tile_layout_and_color_are_updated_and_the_tile_deleted_and_restored() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    let mut body = owner.get(&one).await.ok();
    let layouts = json!({"sm": {"h": 5, "w": 6, "x": 0, "y": 100_000, "minW": 3}, "xs": {}});
    for (sent, name, value) in [
        (json!({"color": "  red "}), "color", json!("red")),
        (json!({"layouts": layouts}), "layouts", layouts.clone()),
        (json!({"color": null, "deleted": false}), "color", json!(null)),
        (json!({"color": "", "deleted": null}), "color", json!("")),
        (json!({"color": 5}), "color", json!("5")),
        (json!({"layouts": {}}), "layouts", json!({})),
    ] {
        let mut sent = sent;
        sent["id"] = json!(tile);
        body["tiles"][0][name] = value;
        owner.patch(&one, json!({"tiles": [sent]})).await.assert_is(200, body.clone());
        owner.get(&one).await.assert_is(200, body.clone());
    }
    let mut without = body.clone();
    without["tiles"] = json!([]);
    body["tiles"][0]["insight"]["dashboard_tiles"][0]["deleted"] = json!(false);
    for deleted in [json!(true), json!("yes"), json!(1)] {
        let gone = json!({"tiles": [{"id": tile, "deleted": deleted}]});
        owner.patch(&one, gone).await.assert_is(200, without.clone());
        let back = json!({"tiles": [{"id": tile.to_string(), "deleted": false}]});
        owner.patch(&one, back).await.assert_is(200, body.clone());
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn tile_elements_without_changes_are_ignored() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    let before = owner.get(&one).await.ok();
    for sent in [
        json!([]),
        json!([{}]),
        json!([{"id": tile}]),
        json!([{"id": 999_999, "insight": {"id": 1}}]),
        json!([{"id": null, "text": {}}]),
        json!([{"id": tile, "text": null, "order": 7, "is_cached": true, "filters_overrides": {}}]),
        json!([{"id": tile, "insight": {"name": "Other"}, "order": 7, "color": "blue", "is_cached": true}]),
        json!([{"id": tile, "layouts": {}, "dashboard": 7, "dashboard_id": 7, "last_refresh": "x"}]),
    ] {
        owner.patch(&one, json!({"tiles": sent.clone()})).await.assert_is(200, before.clone());
        owner.get(&one).await.assert_is(200, before.clone());
    }
    // A tile as the API returned it can be sent back, and changes nothing.
    owner.patch(&one, json!({"tiles": before["tiles"]})).await.assert_is(200, before.clone());
    let made = owner.post(&workspace.dashboards(""), json!({"tiles": before["tiles"]})).await;
    assert_eq!(made.ok()["tiles"], json!([]));
}

/// Asserts that `sent` as the dashboard's tiles, after a valid one, is refused, and that nothing changes.
async fn refuses_tiles(caller: &TestClient, one: &str, cases: Vec<(Value, &str, &str, &str)>) {
    let before = caller.get(one).await.ok();
    let good = json!({"text": {"body": "good"}});
    for (sent, attr, code, detail) in cases {
        let sent = json!({"name": "x", "tiles": [good, sent]});
        let answer = caller.patch(one, sent.clone()).await;
        let told =
            json!({"type": "validation_error", "code": code, "detail": detail, "attr": attr});
        let text: String = sent.to_string().chars().take(200).collect();
        assert_eq!((answer.status, &answer.body), (400, &told), "{text}");
    }
    caller.get(one).await.assert_is(200, before);
}

#[tokio::test]
async fn invalid_tile_is_reported_and_the_whole_patch_rejected() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    let with = |name: &str, value: Value| json!({"id": tile, name: value});
    let nested = (0..32).fold(json!({}), |inner, _| json!({ "a": inner }));
    let (dictionary, integer, string) = (
        "Invalid data. Expected a dictionary, but got",
        "A valid integer is required.",
        "Not a valid string.",
    );
    let expected = |what: &str| format!("Expected a dictionary of items but got type \"{what}\".");
    let (a_list, a_str) = (expected("list"), expected("str"));
    let an_int = format!("{dictionary} int.");
    let got_list = format!("{dictionary} list.");
    let got_str = format!("{dictionary} str.");
    let got_bool = format!("{dictionary} bool.");
    let unknown = |id: &str| format!("Invalid pk \"{id}\" - object does not exist.");
    let (unknown_one, unknown_zero) = (unknown("999999"), unknown("0"));
    let long = "Ensure this field has no more than 400 characters.";
    let bytes = "Ensure this field has no more than 32768 bytes of JSON.";
    let depth = "Ensure this field has no more than 32 nested containers.";
    let object = "tiles__1__non_field_errors";
    let cases = vec![
        (json!(5), object, "invalid_input", an_int.as_str()),
        (json!([]), object, "invalid_input", &got_list),
        (json!("x"), object, "invalid_input", &got_str),
        (json!(null), "tiles__1", "null", "This field may not be null."),
        (json!({"color": "red"}), "tiles__1__id", "required", "This field is required."),
        (json!({"layouts": {}}), "tiles__1__id", "required", "This field is required."),
        (
            json!({"id": null, "deleted": true}),
            "tiles__1__id",
            "required",
            "This field is required.",
        ),
        (json!({"id": "x", "color": "red"}), "tiles__1__id", "invalid_input", integer),
        (json!({"id": [1], "color": "red"}), "tiles__1__id", "invalid_input", integer),
        (
            json!({"id": 999_999, "color": "red", "show_description": null}),
            "tiles__1__id",
            "does_not_exist",
            &unknown_one,
        ),
        (json!({"id": 0, "deleted": true}), "tiles__1__id", "does_not_exist", &unknown_zero),
        (with("color", json!([1])), "tiles__1__color", "invalid_input", string),
        (with("color", json!(true)), "tiles__1__color", "invalid_input", string),
        (with("color", json!("c".repeat(401))), "tiles__1__color", "max_length", long),
        (
            with("color", json!("a\u{0}")),
            "tiles__1__color",
            "null_characters_not_allowed",
            "Null characters are not allowed.",
        ),
        (
            with("deleted", json!("maybe")),
            "tiles__1__deleted",
            "invalid_input",
            "Must be a valid boolean.",
        ),
        (with("layouts", json!(null)), "tiles__1__layouts", "null", "This field may not be null."),
        (with("layouts", json!([])), "tiles__1__layouts", "not_a_dict", &a_list),
        (with("layouts", json!("x")), "tiles__1__layouts", "not_a_dict", &a_str),
        (with("layouts", nested), "tiles__1__layouts", "max_length", depth),
        (
            with("layouts", json!({"a": {"b": "c".repeat(33_000)}})),
            "tiles__1__layouts",
            "max_length",
            bytes,
        ),
        (with("text", json!(true)), "tiles__1__text__non_field_errors", "invalid_input", &got_bool),
        (with("text", json!("x")), "tiles__1__text__non_field_errors", "invalid_input", &got_str),
        (with("text", json!([1])), "tiles__1__text__non_field_errors", "invalid_input", &got_list),
    ];
    refuses_tiles(owner, &one, cases).await;
    let lists = "Expected a list of items but got type";
    for (sent, what) in [(json!({}), "dict"), (json!("x"), "str"), (json!(1), "int")] {
        let detail = format!("{lists} \"{what}\".");
        let answer = owner.patch(&one, json!({"tiles": sent.clone()})).await;
        answer.assert_invalid("tiles", "not_a_list", &detail);
        let answer = owner.patch(&one, json!({"duplicate_tiles": sent})).await;
        answer.assert_invalid("duplicate_tiles", "not_a_list", &detail);
    }
    for field in ["tiles", "duplicate_tiles"] {
        let null = owner.patch(&one, json!({field: null})).await;
        null.assert_invalid(field, "null", "This field may not be null.");
        let many = owner.patch(&one, json!({field: vec![json!({"id": 1}); 10_000]})).await;
        let detail = "Ensure this field has no more than 1000 elements.";
        many.assert_invalid(field, "max_length", detail);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn request_body_of_five_megabytes_returns_413() {
    let workspace = Workspace::new().await;
    let (_, one) = make(&workspace, &workspace.owner, json!({})).await;
    let sent = json!({"filters": {"a": "x".repeat(5 * 1024 * 1024)}});
    let answer = workspace.owner.patch(&one, sent).await;
    let detail = "The request body is larger than 1048576 bytes.";
    answer.assert_error(413, "invalid_request", "payload_too_large", detail, None);
}

#[tokio::test]
async fn tile_is_inaccessible_from_other_dashboards_projects_and_organizations() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    let text = put_texts(owner, &one, &["secret"]).await[0].clone();
    let before = owner.get(&one).await.ok();
    let (_, beside) = make(&workspace, owner, json!({})).await;
    let project = owner.post(&workspace.organization("projects/"), json!({})).await.ok();
    let (eve, hers) = workspace.outsider("eve").await;
    let mut places = vec![(owner.clone(), beside)];
    for (caller, project) in [(owner, &project["id"]), (&eve, &hers["project_id"])] {
        let dashboards = format!("/api/projects/{project}/dashboards/");
        let made = caller.post(&dashboards, json!({})).await.ok();
        places.push((caller.clone(), format!("{dashboards}{}/", made["id"])));
    }
    for (caller, path) in &places {
        for id in [json!(tile), text["id"].clone()] {
            let detail = format!("Invalid pk \"{id}\" - object does not exist.");
            for sent in [
                json!({"id": id, "color": "red", "filters_overrides": {}}),
                json!({"id": id, "deleted": true}),
                json!({"id": id, "layouts": {}, "transparent_background": true}),
                json!({"id": id, "text": {"body": "mine"}}),
            ] {
                let answer = caller.patch(path, json!({"tiles": [sent]})).await;
                answer.assert_invalid("tiles__0__id", "does_not_exist", &detail);
            }
            let answer = caller.patch(path, json!({"duplicate_tiles": [{"id": id}]})).await;
            answer.assert_invalid("duplicate_tiles__0__id", "does_not_exist", &detail);
        }
        for id in [json!(tile), text["id"].clone()] {
            let place = json!({"tiles": [{"id": id, "layouts": {"a": 1}, "color": "red"}]});
            assert_eq!(caller.patch(path, place).await.ok()["tiles"], json!([]));
        }
        let stolen = json!({"tiles": [{"text": {"id": text["text"]["id"], "body": "mine"}}]});
        let answer = caller.patch(path, stolen).await;
        answer.assert_invalid("text", "invalid_input", "Text tile not found.");
        assert_eq!(shown(caller, path).await, Vec::<Value>::new());
    }
    owner.get(&one).await.assert_is(200, before);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn tile_changes_require_edit_access_to_the_dashboard() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    let (id, one) = make(&workspace, owner, json!({"restriction_level": 37})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    for sent in [
        json!({"tiles": [{"id": tile, "color": "red"}]}),
        json!({"tiles": [{"text": {"body": "x"}}]}),
        json!({"tiles": "nonsense"}),
        json!({"duplicate_tiles": [{"id": tile}]}),
    ] {
        let answer = ann.patch(&one, sent).await;
        answer.assert_denied("You don't have edit permissions for this dashboard.");
    }
    let tiles = shown(owner, &one).await;
    assert_eq!((tiles.len(), &tiles[0]["color"]), (1, &json!("blue")));
}

#[tokio::test]
async fn tile_elements_are_applied_in_order() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    let sent = json!([
        {"id": tile, "color": "red", "deleted": true},
        {"id": tile, "layouts": {"sm": {"y": 1}}},
        {"id": tile, "color": "green"},
        {"id": tile, "deleted": false},
    ]);
    let tiles = owner.patch(&one, json!({"tiles": sent})).await.ok()["tiles"].clone();
    assert_eq!(
        json!([tiles[0]["id"], tiles[0]["color"], tiles[0]["layouts"]]),
        json!([tile, "green", {"sm": {"y": 1}}])
    );
    assert_eq!(tiles.as_array().map(Vec::len), Some(1));
    workspace.assert_file_valid().await;
}

/// Asserts that a dashboard accepts no more tiles.
fn is_full(answer: &TestResponse) {
    let detail = "Ensure this field has no more than 1000 elements.";
    answer.assert_invalid("tiles", "max_length", detail);
}

#[tokio::test]
async fn dashboard_has_at_most_one_thousand_tiles_including_deleted_ones() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    let texts = vec![json!({"text": {"body": "t"}}); 999];
    let tiles = owner.patch(&one, json!({"tiles": texts})).await.ok()["tiles"].clone();
    assert_eq!(tiles.as_array().map(Vec::len), Some(1000));
    let more = json!({"tiles": [{"text": {"body": "t"}}]});
    is_full(&owner.patch(&one, more.clone()).await);
    is_full(&owner.patch(&one, json!({"duplicate_tiles": [{"id": tile}]})).await);
    owner.patch(&one, json!({"tiles": [{"id": tile, "deleted": true}]})).await.ok();
    is_full(&owner.patch(&one, more).await);
    owner.patch(&one, json!({"tiles": [{"id": tile, "deleted": false}]})).await.ok();
    let (other, beside) = make(&workspace, owner, json!({})).await;
    let new = put_insight(&workspace, other, json!("I"), json!({})).await;
    let moved = json!({"tile": {"id": new}, "toDashboard": id});
    is_full(&owner.patch(&format!("{beside}move_tile/"), moved).await);
    assert_eq!(shown_of(owner, &beside, "/id").await, [json!(new)]);
    assert_eq!(shown(owner, &one).await.len(), 1000);
    // A thousand tiles are deleted, and then restored, in one transaction each.
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let back = owner.patch(&one, json!({"deleted": false})).await.ok();
    assert_eq!(back["tiles"].as_array().map(Vec::len), Some(1000));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn duplicated_tile_has_copied_content_and_no_layout() {
    let workspace = at_the_moment().await;
    let owner = &workspace.owner;
    let ann = workspace.member("ann", Level::Member).await;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({"sm": {"y": 0, "x": 0}})).await;
    let nameless = put_insight(&workspace, id, json!(null), json!({"sm": {"y": 1}})).await;
    let text = put_texts(owner, &one, &["words"]).await[0].clone();
    let sent = json!([{"id": tile}, {"id": nameless}, {"id": text["id"]}, {"id": tile}]);
    let tiles = ann.patch(&one, json!({"duplicate_tiles": sent})).await.ok()["tiles"].clone();
    let tiles = tiles.as_array().expect("tiles");
    assert_eq!(tiles.len(), 7);
    let (old, new) = (&tiles[..3], {
        let mut new: Vec<_> = tiles.iter().filter(|tile| tile["layouts"] == json!({})).collect();
        new.sort_by_key(|tile| tile["id"].as_u64());
        new
    });
    assert_eq!(old[0]["id"], tile);
    let user = embedded(&ann).await;
    let (first, second) = (new[0], new[1]);
    let number = |tile: &Value| tile["id"].as_u64().expect("a number");
    for (copy, name) in
        [(first, json!("I (Copy)")), (second, json!(null)), (new[3], json!("I (Copy)"))]
    {
        let mut expected = insight_tile(&user, number(copy), id, &copy["insight"]);
        expected["order"] = copy["order"].clone();
        assert_eq!((copy, &copy["insight"]["name"]), (&expected, &name));
    }
    let copied = &new[2]["text"];
    assert_ne!(copied["id"], text["text"]["id"]);
    let expected = json!({
        "id": copied["id"], "body": "words", "created_by": user, "last_modified_at": MOMENT,
        "last_modified_by": null, "team": workspace.made.project_id,
    });
    assert_eq!(copied, &expected);
    for pointer in ["/insight/id", "/insight/short_id"] {
        let known = tiles.iter().filter_map(|tile| tile.pointer(pointer));
        let known: BTreeSet<_> = known.map(ToString::to_string).collect();
        assert_eq!(known.len(), 5);
    }
    owner.patch(&one, json!({"tiles": [{"id": tile, "deleted": true}]})).await.ok();
    let gone = owner.patch(&one, json!({"duplicate_tiles": [{"id": tile}]})).await;
    let detail = format!("Invalid pk \"{tile}\" - object does not exist.");
    gone.assert_invalid("duplicate_tiles__0__id", "does_not_exist", &detail);
    let absent = owner.patch(&one, json!({"duplicate_tiles": [{}]})).await;
    absent.assert_invalid("duplicate_tiles__0__id", "required", "This field is required.");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn copied_insight_name_is_truncated_to_400_characters() {
    let workspace = Workspace::new().await;
    let (id, one) = make(&workspace, &workspace.owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("é".repeat(399)), json!({})).await;
    let copies = json!({"duplicate_tiles": [{"id": tile}]});
    workspace.owner.patch(&one, copies).await.ok();
    let names = shown_of(&workspace.owner, &one, "/insight/name").await;
    assert_eq!(names[1], format!("{} (Copy)", "é".repeat(393)));
}

#[tokio::test]
async fn tile_of_a_deleted_insight_is_hidden_and_not_numbered() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    for name in ["a", "b", "c"] {
        put_insight(&workspace, id, json!(name), json!({})).await;
    }
    let insight = shown_of(owner, &one, "/insight/id").await[1].as_u64().expect("a number");
    let key = (workspace.made.project_id, InsightId(insight));
    let user = workspace.made.user_id;
    let removed = workspace.app.operate(move |tx, now| insights::delete(tx, key, user, now));
    removed.await.expect("removed");
    assert_eq!(shown_of(owner, &one, "/insight/name").await, ["a", "c"]);
    assert_eq!(shown_of(owner, &one, "/order").await, [json!(0), json!(1)]);
}

/// The version of a dashboard.
fn version(workspace: &Workspace, dashboard: u64) -> u64 {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let key = (workspace.made.project_id, DashboardId(dashboard));
    tx.view::<Dashboard, _>(&key, |row| Ok(row.version)).expect("read").expect("a dashboard")
}

#[tokio::test]
async fn only_effective_tile_changes_increment_the_dashboard_version() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let (other, _) = make(&workspace, owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({})).await;
    let mut known = version(&workspace, id);
    for (sent, moves) in [
        (json!({"tiles": []}), 0),
        (json!({"tiles": [{"id": tile, "color": "blue"}]}), 0),
        (json!({"tiles": [{"id": tile, "color": "red"}]}), 1),
        (json!({"tiles": [{"text": {"body": "x"}}]}), 1),
        (json!({"duplicate_tiles": []}), 0),
        (json!({"duplicate_tiles": [{"id": tile}]}), 1),
        (json!({"tiles": [{"id": tile, "deleted": true}]}), 1),
    ] {
        owner.patch(&one, sent.clone()).await.ok();
        known += moves;
        assert_eq!(version(&workspace, id), known, "{sent}");
    }
    owner.patch(&one, json!({"tiles": [{"id": tile, "deleted": false}]})).await.ok();
    let beside = version(&workspace, other);
    let moved = json!({"tile": {"id": tile}, "toDashboard": other});
    owner.patch(&format!("{one}move_tile/"), moved).await.assert_empty(200);
    assert_eq!((version(&workspace, id), version(&workspace, other)), (known + 2, beside + 1));
}

#[tokio::test]
async fn changing_a_shared_text_increments_the_version_of_every_dashboard_with_it() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (id, one) = make(&workspace, owner, json!({})).await;
    let tiles = put_texts(owner, &one, &["a", "b"]).await;
    let copy = json!({"use_dashboard": id});
    let (shows, _) = make(&workspace, owner, copy.clone()).await;
    let (keeps, hidden) = make(&workspace, owner, copy.clone()).await;
    let gone: Vec<Value> = shown_of(owner, &hidden, "/id").await;
    let gone: Vec<Value> = gone.iter().map(|id| json!({"id": id, "deleted": true})).collect();
    owner.patch(&hidden, json!({ "tiles": gone })).await.ok();
    let (deep, _) =
        make(&workspace, owner, json!({"use_dashboard": id, "duplicate_tiles": true})).await;
    let all = [id, shows, keeps, deep];
    let before = all.map(|id| version(&workspace, id));
    let sent: Vec<Value> =
        tiles.iter().map(|tile| json!({"id": tile["id"], "text": {"body": "c"}})).collect();
    owner.patch(&one, json!({ "tiles": sent })).await.ok();
    let [id, shows, keeps, deep] = before;
    assert_eq!(all.map(|id| version(&workspace, id)), [id + 1, shows + 1, keeps + 1, deep]);
    workspace.assert_file_valid().await;
}

/// The number of tile records of a project.
pub fn kept(workspace: &Workspace) -> Vec<(DashboardId, TileId)> {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let mut tiles = Vec::new();
    let all = Window::all(Order::Ascending);
    let read = tx.scan::<Tile, _>(&workspace.made.project_id, all, |row| {
        tiles.push((row.meta.dashboard, row.meta.id));
        Ok(())
    });
    read.expect("tiles");
    tiles
}
