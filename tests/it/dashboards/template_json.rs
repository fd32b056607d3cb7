//! Dashboards created from a template in the request.

use proptest::prelude::*;

use crate::dashboards::templates::tiles;
use crate::support::prelude::*;

/// A template with one text and these changes. A member that is changed to `"absent"` is removed.
fn template(changes: Value) -> Value {
    let mut template = json!({
        "template_name": "T", "dashboard_description": "", "dashboard_filters": {},
        "tiles": [{"type": "TEXT"}],
    });
    for (name, value) in changes.as_object().expect("an object") {
        if value == "absent" {
            template.as_object_mut().expect("an object").remove(name);
        } else {
            template[name] = value.clone();
        }
    }
    template
}

async fn send(workspace: &Workspace, template: Value) -> TestResponse {
    let path = workspace.dashboards("create_from_template_json/");
    workspace.owner.post(&path, json!({ "template": template })).await
}

/// Asserts that no dashboard was created, not even in part.
async fn assert_nothing_made(workspace: &Workspace) {
    workspace.owner.get(&workspace.dashboards("")).await.assert_is(200, page(json!([])));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn dashboard_is_created_from_a_complete_template() {
    let (workspace, owner) = at_the_moment().await;
    let sent = json!({
        "id": "0189", "team_id": 7, "created_at": "x", "image_url": null, "is_featured": true,
        "template_name": " Sign-ups ", "dashboard_description": "Who signs up",
        "dashboard_filters": {"date_from": "-7d", "nested": {"b": [1, 2.5]}},
        "tags": [" B", "a", "b"],
        "variables": [{
            "id": "V", "name": "v", "type": "event", "default": {}, "description": "", "required": true,
        }],
        "tiles": [
            {
                "type": "TEXT", "body": "# Hi\n<b>", "color": "blue", "unknown": 1,
                "layouts": {"sm": {"x": "0", "y": "8", "w": 6.5, "h": null}},
            },
            {"type": "BUTTON", "body": 5, "layouts": "passed over"},
            {
                "type": "INSIGHT", "name": "Asked", "description": "d",
                "query": {"kind": "DataTableNode", "a": null}, "filters": {"passed": "over"},
                "layouts": {"sm": {"x": "6", "y": 0}, "xs": "free"}, "color": "green",
            },
            {
                "type": "INSIGHT", "query": {}, "filters": {"insight": "TRENDS"},
                "layouts": {"sm": {"x": 0, "y": 0}}, "color": null,
            },
            {
                "type": "INSIGHT", "query": null, "name": null, "description": null, "layouts": null,
                "filters": {"filter_test_accounts": false},
            },
            {"type": "INSIGHT"},
            {"type": "TEXT", "body": null},
        ],
    });
    let made = send(&workspace, sent.clone()).await;
    let id = made.body["id"].as_u64().expect("an id");
    let changes = json!({
        "name": "Sign-ups", "description": "Who signs up",
        "filters": {"date_from": "-7d", "nested": {"b": [1, 2.5]}}, "tags": ["a", "b"],
        "tiles": tiles(&owner, &made.body, &sent).await,
    });
    let expected = detail(&owner, id, changes).await;
    made.assert_is(200, expected.clone());
    owner.get(&workspace.dashboards(&format!("{id}/"))).await.assert_is(200, expected);
    let order = made.body["tiles"].as_array().expect("tiles").iter().map(|tile| tile["id"].clone());
    assert_eq!(order.collect::<Value>(), json!([3, 2, 1, 4, 5, 6]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn request_body_needs_a_template_and_its_other_members_are_ignored() {
    let (workspace, owner) = at_the_moment().await;
    let path = workspace.dashboards("create_from_template_json");
    for sent in [json!({}), json!({"Template": {}, "name": "x"})] {
        let refused = owner.post(&format!("{path}/"), sent).await;
        refused.assert_invalid("template", "required", "This field is required.");
    }
    assert_nothing_made(&workspace).await;
    let sent = json!({
        "template": template(json!({})),
        "name": [], "description": null, "pinned": "maybe", "deleted": 5, "use_template": null,
        "use_dashboard": "", "delete_insights": {}, "tags": "x", "restriction_level": 22,
        "filters": 1, "creation_context": "onboarding", "_create_in_folder": "a/b",
    });
    let made = owner.post(&path, sent).await;
    let shown = tiles(&owner, &made.body, &template(json!({}))).await;
    made.assert_is(200, detail(&owner, 1, json!({"name": "T", "tiles": shown})).await);
}

/// Asserts that a template is refused with this sentence, rule, path and value.
async fn refuses(workspace: &Workspace, template: Value, told: [&str; 4]) {
    let [sentence, rule, place, value] = told;
    let detail = format!(
        "{sentence}\n\nFailed validating '{rule}' in schema\n\nOn instance{place}:\n    {value}"
    );
    send(workspace, template).await.assert_bad_body(&detail);
}

/// Asserts that a template is refused for a value of the wrong type.
async fn refuses_type(
    workspace: &Workspace,
    template: Value,
    types: &str,
    place: &str,
    value: &str,
) {
    let sentence = format!("{value} is not of type {types}");
    refuses(workspace, template, [&sentence, "type", place, value]).await;
}

#[tokio::test]
async fn missing_template_members_are_rejected_with_the_validators_text() {
    let workspace = Workspace::new().await;
    for (sent, value) in [
        (json!(null), "None"),
        (json!([1.5, true]), "[1.5, True]"),
        (json!("it's \"x\"\n"), r#"'it\'s "x"\n'"#),
    ] {
        refuses_type(&workspace, sent, "'object'", "", value).await;
    }
    let named = "{'template_name': '', 'dashboard_description': ''}";
    let whole = "{'template_name': 'T', 'dashboard_description': '', 'dashboard_filters': {}}";
    let unnamed = json!({"template_name": "", "dashboard_description": ""});
    for (sent, name, value) in [
        (json!({"not a": "template"}), "template_name", "{'not a': 'template'}"),
        // A missing member is reported before an error deeper in the template.
        (json!({"template_name": 5}), "dashboard_description", "{'template_name': 5}"),
        (unnamed, "dashboard_filters", named),
        (template(json!({"tiles": "absent"})), "tiles", whole),
    ] {
        let sentence = format!("'{name}' is a required property");
        refuses(&workspace, sent, [&sentence, "required", "", value]).await;
    }
    let empty = ["[] should be non-empty", "minItems", "['tiles']", "[]"];
    refuses(&workspace, template(json!({"tiles": []})), empty).await;
    assert_nothing_made(&workspace).await;
}

#[tokio::test]
async fn template_members_of_the_wrong_type_are_rejected_with_the_validators_text() {
    let workspace = Workspace::new().await;
    for (name, sent, types, value) in [
        ("template_name", json!(null), "'string'", "None"),
        ("dashboard_description", json!([]), "'string'", "[]"),
        ("dashboard_filters", json!("x"), "'object'", "'x'"),
        ("tiles", json!({}), "'array'", "{}"),
        ("tiles", json!(null), "'array'", "None"),
        ("tags", json!(null), "'array'", "None"),
        ("id", json!(5), "'string'", "5"),
        ("team_id", json!("5"), "'number', 'null'", "'5'"),
        ("team_id", json!(false), "'number', 'null'", "False"),
        ("created_at", json!(5), "'string'", "5"),
        ("image_url", json!(5), "'string', 'null'", "5"),
    ] {
        let place = format!("['{name}']");
        refuses_type(&workspace, template(json!({ name: sent })), types, &place, value).await;
    }
    for (changes, types, place) in [
        (json!({"tiles": [{}, 5, "x"]}), "'object'", "['tiles'][1]"),
        (json!({"tags": ["a", 5]}), "'string'", "['tags'][1]"),
        // The error with the shortest path is reported; of several, the first.
        (json!({"tiles": [6], "tags": 5}), "'array'", "['tags']"),
        (json!({"tiles": [], "template_name": 5}), "'string'", "['template_name']"),
    ] {
        refuses_type(&workspace, template(changes), types, place, "5").await;
    }
    assert_nothing_made(&workspace).await;
}

#[tokio::test]
async fn invalid_template_variables_are_rejected_with_the_validators_text() {
    let workspace = Workspace::new().await;
    let whole = json!({
        "id": "V", "name": "v", "type": "event", "default": {}, "description": "", "required": true,
    });
    let variables = |variable: &Value| template(json!({ "variables": [variable] }));
    let place = "['variables'][0]";
    for name in ["id", "name", "type", "default", "description", "required"] {
        let mut variable = whole.clone();
        variable.as_object_mut().expect("an object").shift_remove(name);
        let value = variable.to_string().replace('"', "'").replace(':', ": ").replace(',', ", ");
        let value = value.replace("true", "True");
        let sentence = format!("'{name}' is a required property");
        refuses(&workspace, variables(&variable), [&sentence, "required", place, &value]).await;
    }
    for (name, sent, types, value) in [
        ("id", json!(5), "'string'", "5"),
        ("name", json!([]), "'string'", "[]"),
        ("default", json!(null), "'object'", "None"),
        ("description", json!(5), "'string'", "5"),
        ("required", json!(1), "'boolean'", "1"),
    ] {
        let mut variable = whole.clone();
        variable[name] = sent;
        let place = format!("{place}['{name}']");
        refuses_type(&workspace, variables(&variable), types, &place, value).await;
    }
    let mut variable = whole;
    variable["type"] = json!("action");
    let told = ["'action' is not one of ['event']", "enum", "['variables'][0]['type']", "'action'"];
    refuses(&workspace, variables(&variable), told).await;
    refuses_type(&workspace, variables(&json!(5)), "'object'", place, "5").await;
    let told = ["5 is not valid under any of the given schemas", "anyOf", "['variables']", "5"];
    refuses(&workspace, template(json!({"variables": 5})), told).await;
    assert_nothing_made(&workspace).await;
    send(&workspace, template(json!({"variables": null, "team_id": null}))).await.ok();
}

#[tokio::test]
async fn long_values_are_truncated_in_error_details() {
    let workspace = Workspace::new().await;
    let refused = send(&workspace, template(json!({"tiles": "ä".repeat(300_000)}))).await;
    let told = |characters: usize| format!("'{}...", "ä".repeat(characters));
    let detail = format!(
        "{} is not of type 'array'\n\nFailed validating 'type' in schema\n\nOn instance['tiles']:\n    {}",
        told(99),
        told(499)
    );
    refused.assert_bad_body(&detail);
    let refused = send(&workspace, json!(vec![json!({"a": [0]}); 50_000])).await;
    assert!(refused.body["detail"].as_str().expect("a text").len() < 1500);
    assert_nothing_made(&workspace).await;
}

#[tokio::test]
async fn template_limit_errors_name_the_path() {
    let workspace = Workspace::new().await;
    let tile = |name: &str, value: Value| {
        let mut tile = json!({"type": "INSIGHT"});
        tile[name] = value;
        json!({"tiles": [{"type": "TEXT"}, tile]})
    };
    let text = |name: &str, value: Value| {
        let mut tile = json!({"type": "TEXT"});
        tile[name] = value;
        json!({"tiles": [tile]})
    };
    let large = || json!({"k": "a".repeat(32 * 1024)});
    let long = |length: usize| json!("x".repeat(length));
    let most = |attr: &str, most: &str| Refusal::at_most(&format!("template__{attr}"), most);
    let bytes = "32768 bytes of JSON";
    let no_dict = |attr: &str| {
        let detail = "Expected a dictionary of items but got type \"str\".";
        Refusal::new(&format!("template__{attr}"), "not_a_dict", detail)
    };
    let other = json!({"type": "OTHER"});
    let described = most("dashboard_description", "16384 characters");
    let untyped = Refusal::required("template__tiles__1__type");
    let cases = [
        (json!({"template_name": long(401)}), most("template_name", "400 characters")),
        (json!({"dashboard_description": long(16_385)}), described),
        (json!({"dashboard_filters": large()}), most("dashboard_filters", bytes)),
        (json!({"tags": [long(256)]}), most("tags__0", "255 characters")),
        (json!({"tags": vec!["a"; 201]}), most("tags", "200 elements")),
        (json!({"tiles": vec![other; 1001]}), most("tiles", "1000 elements")),
        (json!({"tiles": [{"type": "TEXT"}, {"body": "x"}]}), untyped),
        (json!({"tiles": [{"type": null}]}), Refusal::null("template__tiles__0__type")),
        (tile("name", long(401)), most("tiles__1__name", "400 characters")),
        (tile("description", long(16_385)), most("tiles__1__description", "16384 characters")),
        (tile("query", large()), most("tiles__1__query", bytes)),
        (tile("query", json!("x")), no_dict("tiles__1__query")),
        (tile("filters", large()), most("tiles__1__filters", bytes)),
        (tile("filters", json!("x")), no_dict("tiles__1__filters")),
        (tile("layouts", large()), most("tiles__1__layouts", bytes)),
        (tile("layouts", json!("x")), no_dict("tiles__1__layouts")),
        (tile("color", long(401)), most("tiles__1__color", "400 characters")),
        (text("body", long(4001)), most("tiles__0__body", "4000 characters")),
        (text("body", json!([])), Refusal::not_text("template__tiles__0__body")),
        (text("layouts", json!("x")), no_dict("tiles__0__layouts")),
        (text("color", long(401)), most("tiles__0__color", "400 characters")),
    ];
    let cases = cases.map(|(changes, refusal)| (json!({ "template": template(changes) }), refusal));
    let path = workspace.dashboards("create_from_template_json/");
    workspace.owner.assert_refusals(Method::POST, &path, cases).await;
    assert_nothing_made(&workspace).await;
}

#[tokio::test]
async fn template_may_reach_every_limit() {
    let workspace = Workspace::new().await;
    let of_size = json!({"k": "a".repeat(32_768 - r#"{"k":""}"#.len())});
    let mut full =
        vec![json!({"type": "TEXT", "body": "ä".repeat(4000), "color": "x".repeat(400)})];
    full.push(json!({
        "type": "INSIGHT", "name": "n".repeat(400), "description": "d".repeat(16_384),
        "query": of_size, "layouts": {"k": {"k": "a".repeat(32_768 - r#"{"k":{"k":""}}"#.len())}}, "color": "c".repeat(400),
    }));
    full.resize(1000, json!({"type": "INSIGHT"}));
    let sent = template(json!({
        "template_name": "n".repeat(400), "dashboard_description": "d".repeat(16_384),
        "dashboard_filters": of_size, "tiles": full,
    }));
    let made = send(&workspace, sent).await.ok();
    assert_eq!(made["tiles"].as_array().expect("tiles").len(), 1000);
    assert_eq!(made["filters"], of_size);
    assert_eq!(made["tiles"][1]["insight"]["query"], of_size);
    workspace.assert_file_valid().await;
}

/// Any JSON, often with the member names and words of templates.
fn any_json() -> impl Strategy<Value = Value> {
    const NAMES: &str = "(template_name|dashboard_description|dashboard_filters|tiles|tags|variables|\
         type|name|description|query|filters|layouts|sm|x|y|color|body|id|team_id|default|required|\\PC{0,3})";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(INSIGHT|TEXT|event|\\PC{0,5})".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((NAMES, inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A template in which some members, also of tiles, are any JSON.
fn any_template() -> impl Strategy<Value = Value> {
    const MEMBERS: &str =
        "(template_name|dashboard_description|dashboard_filters|tiles|tags|variables)";
    const PARTS: &str = "(type|name|description|query|filters|layouts|color|body)";
    let tile = ("(INSIGHT|TEXT|OTHER)", prop::collection::vec((PARTS, any_json()), 0..4));
    let tile = tile.prop_map(|(sort, parts)| {
        let mut tile = json!({ "type": sort });
        tile.as_object_mut().expect("an object").extend(parts);
        tile
    });
    let changes = prop::collection::vec((MEMBERS, any_json()), 0..2);
    let tiles = prop::collection::vec(tile, 1..4);
    (tiles, changes).prop_map(|(tiles, changes)| {
        let mut template = template(json!({ "tiles": tiles }));
        template.as_object_mut().expect("an object").extend(changes);
        template
    })
}

#[test]
fn any_json_template_creates_a_dashboard_or_is_rejected_without_effect() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let workspace = runtime.block_on(Workspace::new());
    let mut runner =
        TestRunner::new(Cases { cases: 300, failure_persistence: None, ..Cases::default() });
    let sent = prop_oneof![any_template(), any_template(), any_json()];
    let (made, refused) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let run = runner.run(&sent, |sent| {
        let answer = runtime.block_on(send(&workspace, sent));
        match answer.status {
            200 => made.set(made.get() + 1),
            400 => {
                refused.set(refused.get() + 1);
                prop_assert_eq!(&answer.body["type"], "validation_error");
            }
            status => prop_assert!(false, "{} {}", status, answer.body),
        }
        let listed = runtime.block_on(workspace.owner.get(&workspace.dashboards("?limit=1"))).ok();
        prop_assert_eq!(&listed["count"], made.get());
        Ok::<(), TestCaseError>(())
    });
    run.expect("every template is accepted or refused with 400");
    assert!(made.get() > 10 && refused.get() > 10, "{} {}", made.get(), refused.get());
    runtime.block_on(workspace.assert_file_valid());
}
