//! The checks of the fields of an insight.

use crate::support::prelude::*;

/// Asserts that POST and PATCH reject each body, and that nothing is created or changed.
async fn rejects(workspace: &Workspace, cases: impl IntoIterator<Item = (Value, Refusal)>) {
    let owner = &workspace.owner;
    let (made, one) = make_insight(workspace, owner, json!({})).await;
    let list = insights(workspace, "");
    let count = owner.get(&list).await.ok()["count"].clone();
    let cases: Vec<_> = cases.into_iter().collect();
    owner.assert_refusals(Method::POST, &list, cases.clone()).await;
    owner.assert_refusals(Method::PATCH, &one, cases).await;
    owner.get(&one).await.assert_is(200, made);
    assert_eq!(owner.get(&list).await.ok()["count"], count);
}

#[tokio::test]
async fn invalid_values_of_insight_fields_are_rejected() {
    let workspace = Workspace::new().await;
    let boolean = |name: &str| Refusal::invalid(name, "Must be a valid boolean.");
    let no_dict = "Expected a dictionary of items but got type \"list\".";
    let no_dict = Refusal::new("filters", "not_a_dict", no_dict);
    let no_list = |name: &str, what: &str| {
        let detail = format!("Expected a list of items but got type \"{what}\".");
        Refusal::new(name, "not_a_list", detail)
    };
    let no_pk = |what: &str| {
        let detail = format!("Incorrect type. Expected pk value, received {what}.");
        Refusal::new("dashboards", "incorrect_type", detail)
    };
    let gone = |id: &str| Refusal::unknown("dashboards", id);
    let most = "Ensure this value is less than or equal to 2147483647.";
    let least = "Ensure this value is greater than or equal to -2147483648.";
    let no_object = Refusal::invalid("query", "Query must be a valid JSON object");
    let mut cases = vec![
        ("filters", json!([[]]), no_dict),
        ("query", json!(["x", 1, [], true]), no_object),
        ("order", json!(["x"]), Refusal::invalid("order", "A valid integer is required.")),
        ("order", json!([2_147_483_648_u32]), Refusal::new("order", "max_value", most)),
        ("order", json!([-2_147_483_649_i64]), Refusal::new("order", "min_value", least)),
        ("deleted", json!(["maybe"]), boolean("deleted")),
        ("favorited", json!(["maybe"]), boolean("favorited")),
        ("saved", json!([2]), boolean("saved")),
        ("tags", json!(["a"]), no_list("tags", "str")),
        ("tags", json!([["a", true]]), Refusal::not_text("tags__1")),
        ("dashboards", json!(["1"]), no_list("dashboards", "str")),
        ("dashboards", json!([{}]), no_list("dashboards", "dict")),
        ("dashboards", json!([[null]]), Refusal::null("dashboards")),
        ("dashboards", json!([["abc"]]), no_pk("str")),
        ("dashboards", json!([[true]]), no_pk("bool")),
        ("dashboards", json!([[[1]]]), no_pk("list")),
        ("dashboards", json!([[1.5]]), no_pk("float")),
        ("dashboards", json!([[99], ["99"]]), gone("99")),
        ("dashboards", json!([[0]]), gone("0")),
        ("dashboards", json!([[-1], [" -1"]]), gone("-1")),
        ("dashboards", json!([vec![1; 1001]]), Refusal::at_most("dashboards", "1000 elements")),
    ];
    for name in ["filters", "deleted", "favorited", "saved", "tags", "dashboards"] {
        cases.push((name, json!([null]), Refusal::null(name)));
    }
    let cases = cases.into_iter().flat_map(|(name, values, refusal)| {
        each(values).into_iter().map(move |value| (json!({ name: value }), refusal.clone()))
    });
    rejects(&workspace, cases).await;
}

#[tokio::test]
async fn query_takes_precedence_over_legacy_filters() {
    let (workspace, owner) = Workspace::owned().await;
    let (filters, query) = (json!({"insight": "TRENDS"}), json!({"kind": "HogQuery"}));
    let (made, one) = make_insight(&workspace, &owner, json!({"filters": filters})).await;
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
