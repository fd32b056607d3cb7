//! The checks of the fields of an insight.

use serde_json::{Value, json};

use crate::support::Workspace;

use super::{insights, make_insight};

/// Asserts that POST and PATCH reject a body.
async fn rejected(
    workspace: &Workspace,
    one: &str,
    sent: Value,
    (attr, code, detail): (&str, &str, &str),
) {
    let owner = &workspace.owner;
    owner.post(&insights(workspace, ""), sent.clone()).await.assert_invalid(attr, code, detail);
    owner.patch(one, sent).await.assert_invalid(attr, code, detail);
}

#[tokio::test]
async fn insight_texts_are_null_or_trimmed_strings_of_at_most_400_characters() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, one) = make_insight(&workspace, owner, json!({})).await;
    for name in ["name", "derived_name", "description"] {
        for (sent, shown) in [
            (json!("x".repeat(400)), json!("x".repeat(400))),
            (json!("  é  "), json!("é")),
            (json!(" "), json!("")),
            (json!(5), json!("5")),
            (json!(null), json!(null)),
        ] {
            assert_eq!(owner.patch(&one, json!({ name: sent })).await.ok()[name], shown);
        }
        let long = ("max_length", "Ensure this field has no more than 400 characters.");
        let nul = ("null_characters_not_allowed", "Null characters are not allowed.");
        for (sent, (code, detail)) in [
            (json!("x".repeat(401)), long),
            (json!("a\u{0}b"), nul),
            (json!({}), ("invalid_input", "Not a valid string.")),
            (json!([1]), ("invalid_input", "Not a valid string.")),
            (json!(true), ("invalid_input", "Not a valid string.")),
        ] {
            rejected(&workspace, &one, json!({ name: sent }), (name, code, detail)).await;
        }
    }
    assert_eq!(owner.get(&insights(&workspace, "")).await.ok()["count"], 1);
}

#[tokio::test]
async fn invalid_values_of_insight_fields_are_rejected() {
    let workspace = Workspace::new().await;
    let (made, one) = make_insight(&workspace, &workspace.owner, json!({})).await;
    let null = ("null", "This field may not be null.");
    let boolean = ("invalid_input", "Must be a valid boolean.");
    let integer = ("invalid_input", "A valid integer is required.");
    let query = ("invalid_input", "Query must be a valid JSON object");
    for (name, value, (code, detail)) in [
        ("filters", json!(null), null),
        (
            "filters",
            json!([]),
            ("not_a_dict", "Expected a dictionary of items but got type \"list\"."),
        ),
        (
            "filters",
            json!("x"),
            ("not_a_dict", "Expected a dictionary of items but got type \"str\"."),
        ),
        ("query", json!("x"), query),
        ("query", json!(1), query),
        ("query", json!([]), query),
        ("query", json!(true), query),
        ("order", json!("x"), integer),
        ("order", json!(true), integer),
        (
            "order",
            json!(2_147_483_648_u32),
            ("max_value", "Ensure this value is less than or equal to 2147483647."),
        ),
        (
            "order",
            json!(-2_147_483_649_i64),
            ("min_value", "Ensure this value is greater than or equal to -2147483648."),
        ),
        ("deleted", json!(null), null),
        ("deleted", json!("maybe"), boolean),
        ("favorited", json!(null), null),
        ("favorited", json!("maybe"), boolean),
        ("saved", json!(null), null),
        ("saved", json!(2), boolean),
        ("tags", json!(null), null),
        ("tags", json!("a"), ("not_a_list", "Expected a list of items but got type \"str\".")),
        ("dashboards", json!(null), null),
        (
            "dashboards",
            json!("1"),
            ("not_a_list", "Expected a list of items but got type \"str\"."),
        ),
        (
            "dashboards",
            json!({}),
            ("not_a_list", "Expected a list of items but got type \"dict\"."),
        ),
        ("dashboards", json!([null]), null),
        (
            "dashboards",
            json!(["abc"]),
            ("incorrect_type", "Incorrect type. Expected pk value, received str."),
        ),
        (
            "dashboards",
            json!([true]),
            ("incorrect_type", "Incorrect type. Expected pk value, received bool."),
        ),
        (
            "dashboards",
            json!([[1]]),
            ("incorrect_type", "Incorrect type. Expected pk value, received list."),
        ),
        (
            "dashboards",
            json!([1.5]),
            ("incorrect_type", "Incorrect type. Expected pk value, received float."),
        ),
        (
            "dashboards",
            json!([99]),
            ("does_not_exist", "Invalid pk \"99\" - object does not exist."),
        ),
        (
            "dashboards",
            json!(["99"]),
            ("does_not_exist", "Invalid pk \"99\" - object does not exist."),
        ),
        ("dashboards", json!([0]), ("does_not_exist", "Invalid pk \"0\" - object does not exist.")),
        (
            "dashboards",
            json!([-1]),
            ("does_not_exist", "Invalid pk \"-1\" - object does not exist."),
        ),
        (
            "dashboards",
            json!([" -1"]),
            ("does_not_exist", "Invalid pk \"-1\" - object does not exist."),
        ),
        (
            "dashboards",
            json!(vec![1; 1001]),
            ("max_length", "Ensure this field has no more than 1000 elements."),
        ),
    ] {
        rejected(&workspace, &one, json!({ name: value }), (name, code, detail)).await;
    }
    let item = workspace.owner.patch(&one, json!({"tags": ["a", true]})).await;
    item.assert_invalid("tags__1", "invalid_input", "Not a valid string.");
    workspace.owner.get(&one).await.assert_is(200, made);
    assert_eq!(workspace.owner.get(&insights(&workspace, "")).await.ok()["count"], 1);
}

#[tokio::test]
async fn query_and_filters_have_limited_size_and_depth() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, one) = make_insight(&workspace, owner, json!({})).await;
    let mut deep = json!({});
    for _ in 0..32 {
        deep = json!({ "a": deep });
    }
    for name in ["filters", "query"] {
        let bytes = "Ensure this field has no more than 32768 bytes of JSON.";
        let long = json!({"a": "x".repeat(32 * 1024)});
        rejected(&workspace, &one, json!({ name: long }), (name, "max_length", bytes)).await;
        let depth = "Ensure this field has no more than 32 nested containers.";
        rejected(&workspace, &one, json!({ name: deep }), (name, "max_length", depth)).await;
        let fits = json!({"a": "x".repeat(32 * 1024 - 8)});
        assert_eq!(owner.patch(&one, json!({ name: fits })).await.ok()[name], fits);
    }
}

#[tokio::test]
async fn query_takes_precedence_over_legacy_filters() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (filters, query) = (json!({"insight": "TRENDS"}), json!({"kind": "HogQuery"}));
    let (made, one) = make_insight(&workspace, owner, json!({"filters": filters})).await;
    assert_eq!((&made["filters"], &made["query"]), (&filters, &json!(null)));
    for (sent, shown) in [
        (json!({"query": query}), json!([{}, query])),
        (json!({"filters": filters}), json!([{}, query])),
        (json!({"query": null}), json!([{}, null])),
        (json!({"query": null, "filters": filters}), json!([filters, null])),
        (json!({"query": query, "filters": filters}), json!([{}, query])),
        (json!({"query": {}}), json!([{}, {}])),
    ] {
        let body = owner.patch(&one, sent.clone()).await.ok();
        assert_eq!(json!([body["filters"], body["query"]]), shown, "{sent}");
        let body = owner.get(&one).await.ok();
        assert_eq!(json!([body["filters"], body["query"]]), shown, "{sent}");
    }
}

#[tokio::test]
async fn first_invalid_insight_field_in_documented_order_is_reported() {
    let workspace = Workspace::new().await;
    let (_, one) = make_insight(&workspace, &workspace.owner, json!({})).await;
    let order = [
        "name",
        "derived_name",
        "filters",
        "query",
        "order",
        "deleted",
        "dashboards",
        "description",
        "tags",
        "favorited",
        "saved",
    ];
    let mut sent = serde_json::Map::new();
    for name in order.iter().rev() {
        sent.insert((*name).to_owned(), json!([[{}]]));
    }
    for name in order {
        let answer = workspace.owner.patch(&one, sent.clone().into()).await;
        assert_eq!(answer.status, 400);
        let attr = answer.body["attr"].as_str().expect("a field").split("__").next();
        assert_eq!(attr, Some(name), "{}", answer.body);
        sent.remove(name);
    }
}
