//! Tiles of dashboards: list, update and duplicate them.

mod deleted;
mod layouts;
mod moves;
mod sequences;
mod texts;

use steward::testing::auth::InProject;
use steward::testing::ids::TileId;
use steward::testing::resources::dashboards::insights;
use steward::testing::resources::dashboards::tiles;
use steward::testing::resources::dashboards::tiles::Tile;
use steward::testing::resources::members;
use steward::testing::resources::projects;
use steward::testing::secret::Seed;

use crate::support::bodies;
use crate::support::prelude::*;

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
        let new = insights::Fields {
            name: name.as_str().map(str::to_owned),
            query: json!({"kind": "TrendsQuery", "b": 1, "a": 2}).as_object().cloned(),
            is_sample: true,
            tags: vec!["t".to_owned()],
            saved: true,
            ..insights::Fields::default()
        };
        let layouts = layouts.as_object().cloned().expect("an object");
        let color = Some("blue".to_owned());
        let look = tiles::Fields { layouts, color, ..tiles::Fields::default() };
        tiles::add_insight(tx, &place, DashboardId(dashboard), new, look, &mut seed.rng(), now)
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

/// A workspace, its owner, a dashboard with its path, and the tile of an insight on it.
pub async fn with_insight() -> (Workspace, TestClient, (u64, String), u64) {
    let (workspace, owner) = Workspace::owned().await;
    let made = make(&workspace, &owner, json!({})).await;
    let tile = put_insight(&workspace, made.0, json!("I"), json!({})).await;
    (workspace, owner, made, tile)
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
    let changes = json!({
        "id": insight["id"], "short_id": insight["short_id"], "name": insight["name"],
        "query": {"kind": "TrendsQuery", "b": 1, "a": 2}, "is_sample": true, "tags": ["t"],
        "dashboards": [dashboard],
        "dashboard_tiles": [{"id": tile, "dashboard_id": dashboard, "deleted": null}],
    });
    bodies::tile(json!({"id": tile, "color": "blue", "insight": bodies::insight(user, changes)}))
}

fn is_short_id(value: &Value) -> bool {
    let text = value.as_str().expect("a text");
    text.len() == 8
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[tokio::test]
async fn insight_tile_has_all_documented_fields() {
    let (workspace, owner) = at_the_moment().await;
    let (id, one) = make(&workspace, &owner, json!({"filters": {"date_from": "-7d"}})).await;
    let tile = put_insight(&workspace, id, json!("Users"), json!({})).await;
    let got = owner.get(&one).await;
    let insight = &got.body["tiles"][0]["insight"];
    assert!(insight["id"].is_u64() && is_short_id(&insight["short_id"]), "{insight}");
    assert_eq!(insight["name"], "Users");
    let expected = insight_tile(&embedded(&owner).await, tile, id, insight);
    let changes = json!({"filters": {"date_from": "-7d"}, "tiles": [expected]});
    let whole = detail(&owner, id, changes).await;
    got.assert_is(200, whole.clone());
    owner.get(&workspace.dashboards("")).await.assert_is(200, bodies::page(json!([item(whole)])));
    let text = String::from_utf8(got.bytes).expect("UTF-8");
    assert!(text.contains(r#""query":{"kind":"TrendsQuery","b":1,"a":2}"#), "{text}");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn insight_shows_the_access_levels_of_the_requested_dashboard() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
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
async fn tiles_are_sorted_and_numbered_by_y_then_x_then_id_and_no_number_counts_as_100() {
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
    let (_, one) = make(&workspace, &workspace.owner, json!({})).await;
    let (mut expected, rest) = layouts_in_order();
    let sent = rest.iter().chain(expected.iter().rev());
    let tiles: Vec<Value> =
        sent.map(|layouts| json!({"text": {"body": "x"}, "layouts": layouts})).collect();
    workspace.owner.patch(&one, json!({ "tiles": tiles })).await.ok();
    expected.extend(rest);
    let numbers: Vec<Value> = (0..expected.len()).map(|number| json!(number)).collect();
    assert_eq!(shown_of(&workspace.owner, &one, "/layouts").await, expected);
    assert_eq!(shown_of(&workspace.owner, &one, "/order").await, numbers);
    workspace.assert_file_valid().await;
}

/// Layouts in the order in which tiles with them stand; the last ones all count as 100, 100.
fn layouts_in_order() -> (Vec<Value>, Vec<Value>) {
    let at = |place: Value| json!({"sm": {"y": place[0], "x": place[1]}});
    let placed = json!([
        ["-2", 0],
        [-1.5, "9"],
        ["0", "1"],
        [0, "1.5"],
        [-0.0, 2],
        [" 0 ", "2.5"],
        ["2", "10"],
        ["2", "11"],
        ["10", "0"],
        ["1e1", 1],
        [10, true],
    ]);
    let mut rest = each(json!([
        {}, {"sm": null}, {"sm": "1"}, {"sm": [0, 0]}, {"xs": {"y": "0", "x": "0"}},
    ]));
    let odd = json!([
        [null, true], ["", "one"], ["NaN", "inf"], ["1e999", "-infinity"], ["1,5", "0x1"],
        [[0], {"x": 0}], ["100", 100.0],
    ]);
    rest.extend(each(odd).into_iter().map(at));
    (each(placed).into_iter().map(at).collect(), rest)
}

#[tokio::test]
async fn layouts_are_returned_as_sent() {
    let (workspace, owner, (_, one), tile) = with_insight().await;
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
    let (workspace, owner, (_, one), tile) = with_insight().await;
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
async fn tile_elements_are_applied_in_order_and_without_changes_ignored() {
    let (workspace, owner, (_, one), tile) = with_insight().await;
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
    let sent = json!([
        {"id": tile, "color": "red", "deleted": true},
        {"id": tile, "layouts": {"sm": {"y": 1}}},
        {"id": tile, "color": "green"},
        {"id": tile, "deleted": false},
    ]);
    let tiles = owner.patch(&one, json!({"tiles": sent})).await.ok()["tiles"].clone();
    let shown = json!([tiles[0]["id"], tiles[0]["color"], tiles[0]["layouts"]]);
    assert_eq!(shown, json!([tile, "green", {"sm": {"y": 1}}]));
    assert_eq!(tiles.as_array().map(Vec::len), Some(1));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn invalid_tile_is_reported_and_the_whole_patch_rejected() {
    let (workspace, owner, (_, one), tile) = with_insight().await;
    let before = owner.get(&one).await.ok();
    let with = |name: &str, value: Value| json!({"id": tile, name: value});
    let nested = (0..32).fold(json!({}), |inner, _| json!({ "a": inner }));
    let large = json!({"a": {"b": "c".repeat(33_000)}});
    let invalid = |attr: &str, detail: &str| Refusal::invalid(&format!("tiles__1{attr}"), detail);
    let no_object = |of: &str, what: &str| {
        let detail = format!("Invalid data. Expected a dictionary, but got {what}.");
        invalid(&format!("{of}__non_field_errors"), &detail)
    };
    let no_boolean = |attr: &str| Refusal::invalid(attr, "Must be a valid boolean.");
    let no_dict = |attr: &str| {
        Refusal::new(attr, "not_a_dict", "Expected a dictionary of items but got type \"list\".")
    };
    let no_number = invalid("__id", "A valid integer is required.");
    let no_id = || Refusal::required("tiles__1__id");
    let nul = Refusal::new(
        "tiles__1__color",
        "null_characters_not_allowed",
        "Null characters are not allowed.",
    );
    let unknown = Refusal::unknown("tiles__1__id", "999999");
    let long = Refusal::at_most("tiles__1__color", "400 characters");
    let bare = "transparent_background";
    let cases = [
        (json!(5), no_object("", "int")),
        (json!(null), Refusal::null("tiles__1")),
        (json!({"color": "red"}), no_id()),
        (json!({"layouts": {}}), no_id()),
        (json!({"show_description": null}), no_id()),
        (json!({"id": null, "deleted": true}), no_id()),
        (json!({"id": "x", "color": "red"}), no_number),
        (json!({"id": 999_999, "color": "red", "show_description": null}), unknown),
        (json!({"id": 0, "deleted": true}), Refusal::unknown("tiles__1__id", "0")),
        (with("color", json!([1])), Refusal::not_text("tiles__1__color")),
        (with("color", json!("c".repeat(401))), long),
        (with("color", json!("a\u{0}")), nul),
        (with("deleted", json!("maybe")), no_boolean("tiles__1__deleted")),
        (with("show_description", json!("maybe")), no_boolean("tiles__1__show_description")),
        (with(bare, json!("maybe")), no_boolean(&format!("tiles__1__{bare}"))),
        (with("filters_overrides", json!([])), no_dict("tiles__1__filters_overrides")),
        (with("layouts", json!(null)), Refusal::null("tiles__1__layouts")),
        (with("layouts", json!([])), no_dict("tiles__1__layouts")),
        (with("layouts", nested), Refusal::at_most("tiles__1__layouts", "32 nested containers")),
        (with("layouts", large), Refusal::at_most("tiles__1__layouts", "32768 bytes of JSON")),
        (with("text", json!(true)), no_object("__text", "bool")),
    ];
    // A valid tile before the invalid one is not added either.
    let sent = |tile: Value| json!({"name": "x", "tiles": [{"text": {"body": "good"}}, tile]});
    let mut cases = Vec::from(cases.map(|(tile, refusal)| (sent(tile), refusal)));
    for field in ["tiles", "duplicate_tiles"] {
        let no_list = "Expected a list of items but got type \"dict\".";
        cases.push((json!({field: {}}), Refusal::new(field, "not_a_list", no_list)));
        cases.push((json!({field: null}), Refusal::null(field)));
        let many = json!({field: vec![json!({"id": 1}); 10_000]});
        cases.push((many, Refusal::at_most(field, "1000 elements")));
    }
    let copied = |name: &str, value: Value| json!({"duplicate_tiles": [with(name, value)]});
    let of_copy = |name: &str| format!("duplicate_tiles__0__{name}");
    cases.extend([
        (copied(bare, json!("maybe")), no_boolean(&of_copy(bare))),
        (copied("filters_overrides", json!([])), no_dict(&of_copy("filters_overrides"))),
    ]);
    owner.assert_refusals(Method::PATCH, &one, cases).await;
    owner.get(&one).await.assert_is(200, before);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn tile_is_inaccessible_from_other_dashboards_projects_and_organizations() {
    let (workspace, owner, (_, one), tile) = with_insight().await;
    let text = put_texts(&owner, &one, &["secret"]).await[0].clone();
    let before = owner.get(&one).await.ok();
    let (_, beside) = make(&workspace, &owner, json!({})).await;
    let project = workspace.add_project(json!({})).await;
    let (eve, hers) = workspace.outsider("eve").await;
    let mut places = vec![(owner.clone(), beside)];
    for (caller, project) in [(&owner, &project), (&eve, &hers["project_id"])] {
        let dashboards = format!("/api/projects/{project}/dashboards/");
        let made = caller.post(&dashboards, json!({})).await.ok();
        places.push((caller.clone(), format!("{dashboards}{}/", made["id"])));
    }
    for (caller, path) in &places {
        for id in [json!(tile), text["id"].clone()] {
            let gone = |list: &str| Refusal::unknown(&format!("{list}__0__id"), &id.to_string());
            let cases = [
                json!({"id": id, "color": "red", "filters_overrides": {}}),
                json!({"id": id, "deleted": true}),
                json!({"id": id, "layouts": {}, "transparent_background": true}),
                json!({"id": id, "text": {"body": "mine"}}),
            ];
            let cases = cases.map(|sent| (json!({"tiles": [sent]}), gone("tiles")));
            caller.assert_refusals(Method::PATCH, path, cases).await;
            let copied = (json!({"duplicate_tiles": [{"id": id}]}), gone("duplicate_tiles"));
            caller.assert_refusals(Method::PATCH, path, [copied]).await;
        }
        for id in [json!(tile), text["id"].clone()] {
            let place = json!({"tiles": [{"id": id, "layouts": {"a": 1}, "color": "red"}]});
            assert_eq!(caller.patch(path, place).await.ok()["tiles"], json!([]));
        }
        let stolen = json!({"tiles": [{"text": {"id": text["text"]["id"], "body": "mine"}}]});
        caller.patch(path, stolen).await.assert_bad("text", "Text tile not found.");
        assert_eq!(shown(caller, path).await, Vec::<Value>::new());
    }
    owner.get(&one).await.assert_is(200, before);
    workspace.assert_file_valid().await;
}

/// Asserts that a dashboard accepts no more tiles.
fn is_full(answer: &TestResponse) {
    let detail = "Ensure this field has no more than 1000 elements.";
    answer.assert_invalid("tiles", "max_length", detail);
}

#[tokio::test]
async fn dashboard_has_at_most_one_thousand_tiles_including_deleted_ones() {
    let (workspace, owner, (id, one), tile) = with_insight().await;
    let texts = vec![json!({"text": {"body": "t"}}); 999];
    let tiles = owner.patch(&one, json!({"tiles": texts})).await.ok()["tiles"].clone();
    assert_eq!(tiles.as_array().map(Vec::len), Some(1000));
    let more = json!({"tiles": [{"text": {"body": "t"}}]});
    is_full(&owner.patch(&one, more.clone()).await);
    is_full(&owner.patch(&one, json!({"duplicate_tiles": [{"id": tile}]})).await);
    owner.patch(&one, json!({"tiles": [{"id": tile, "deleted": true}]})).await.ok();
    is_full(&owner.patch(&one, more).await);
    owner.patch(&one, json!({"tiles": [{"id": tile, "deleted": false}]})).await.ok();
    let (other, beside) = make(&workspace, &owner, json!({})).await;
    let new = put_insight(&workspace, other, json!("I"), json!({})).await;
    let moved = json!({"tile": {"id": new}, "toDashboard": id});
    is_full(&owner.patch(&format!("{beside}move_tile/"), moved).await);
    assert_eq!(shown_of(&owner, &beside, "/id").await, [json!(new)]);
    assert_eq!(shown(&owner, &one).await.len(), 1000);
    // A thousand tiles are deleted, and then restored, in one transaction each.
    owner.patch(&one, json!({"deleted": true})).await.ok();
    let back = owner.patch(&one, json!({"deleted": false})).await.ok();
    assert_eq!(back["tiles"].as_array().map(Vec::len), Some(1000));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn duplicated_tile_has_copied_content_without_layout_and_a_name_of_at_most_400_characters() {
    let (workspace, owner) = at_the_moment().await;
    let ann = workspace.member("ann", Level::Member).await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("I"), json!({"sm": {"y": 0, "x": 0}})).await;
    let nameless = put_insight(&workspace, id, json!(null), json!({"sm": {"y": 1}})).await;
    let text = put_texts(&owner, &one, &["words"]).await[0].clone();
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
    assert_eq!(copied, &bodies::text(&user, json!({"id": copied["id"], "body": "words"})));
    for pointer in ["/insight/id", "/insight/short_id"] {
        let known = tiles.iter().filter_map(|tile| tile.pointer(pointer));
        let known: BTreeSet<_> = known.map(ToString::to_string).collect();
        assert_eq!(known.len(), 5);
    }
    owner.patch(&one, json!({"tiles": [{"id": tile, "deleted": true}]})).await.ok();
    let attr = "duplicate_tiles__0__id";
    let cases = [
        (json!({"duplicate_tiles": [{"id": tile}]}), Refusal::unknown(attr, &tile.to_string())),
        (json!({"duplicate_tiles": [{}]}), Refusal::required(attr)),
    ];
    owner.assert_refusals(Method::PATCH, &one, cases).await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    let tile = put_insight(&workspace, id, json!("é".repeat(399)), json!({})).await;
    owner.patch(&one, json!({"duplicate_tiles": [{"id": tile}]})).await.ok();
    let names = shown_of(&owner, &one, "/insight/name").await;
    assert_eq!(names[1], format!("{} (Copy)", "é".repeat(393)));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn tile_of_a_deleted_insight_is_hidden_and_not_numbered() {
    let (workspace, owner) = Workspace::owned().await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    for name in ["a", "b", "c"] {
        put_insight(&workspace, id, json!(name), json!({})).await;
    }
    let insight = shown_of(&owner, &one, "/insight/id").await[1].clone();
    let path = workspace.project(&format!("insights/{insight}/"));
    owner.patch(&path, json!({"deleted": true})).await.ok();
    assert_eq!(shown_of(&owner, &one, "/insight/name").await, ["a", "c"]);
    assert_eq!(shown_of(&owner, &one, "/order").await, [json!(0), json!(1)]);
}

/// The version of a dashboard.
fn version(workspace: &Workspace, dashboard: u64) -> u64 {
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let key = (workspace.made.project_id, DashboardId(dashboard));
    tx.view::<Dashboard, _>(&key, |row| Ok(row.version)).expect("read").expect("a dashboard")
}

#[tokio::test]
async fn only_effective_tile_changes_increment_the_version_of_every_dashboard_with_them() {
    let (workspace, owner) = Workspace::owned().await;
    let (id, one) = make(&workspace, &owner, json!({})).await;
    let (other, _) = make(&workspace, &owner, json!({})).await;
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
    let (id, one) = make(&workspace, &owner, json!({})).await;
    let tiles = put_texts(&owner, &one, &["a", "b"]).await;
    let copy = json!({"use_dashboard": id});
    let (shows, _) = make(&workspace, &owner, copy.clone()).await;
    let (keeps, hidden) = make(&workspace, &owner, copy.clone()).await;
    let gone: Vec<Value> = shown_of(&owner, &hidden, "/id").await;
    let gone: Vec<Value> = gone.iter().map(|id| json!({"id": id, "deleted": true})).collect();
    owner.patch(&hidden, json!({ "tiles": gone })).await.ok();
    let (deep, _) =
        make(&workspace, &owner, json!({"use_dashboard": id, "duplicate_tiles": true})).await;
    let all = [id, shows, keeps, deep];
    let before = all.map(|id| version(&workspace, id));
    let sent: Vec<Value> =
        tiles.iter().map(|tile| json!({"id": tile["id"], "text": {"body": "c"}})).collect();
    owner.patch(&one, json!({ "tiles": sent })).await.ok();
    let [id, shows, keeps, deep] = before;
    assert_eq!(all.map(|id| version(&workspace, id)), [id + 1, shows + 1, keeps + 1, deep]);
    workspace.assert_file_valid().await;
}

/// The dashboards and IDs of the tile records of the first project.
pub fn kept(workspace: &Workspace) -> Vec<(DashboardId, TileId)> {
    let tiles: Vec<Tile> = workspace.records(&workspace.made.project_id);
    tiles.iter().map(|tile| (tile.meta.dashboard, tile.meta.id)).collect()
}
