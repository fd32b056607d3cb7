//! Each request field of a dashboard, with every type of value.

use axum::http::Method;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::dashboards::make;
use crate::support::Workspace;
use crate::support::refusals::{Refusal, each};

const STRING: (&str, &str) = ("invalid_input", "Not a valid string.");
const BOOLEAN: (&str, &str) = ("invalid_input", "Must be a valid boolean.");
const INTEGER: (&str, &str) = ("invalid_input", "A valid integer is required.");
const NULL: (&str, &str) = ("null", "This field may not be null.");
const NUL: (&str, &str) = ("null_characters_not_allowed", "Null characters are not allowed.");
const LONG_NUMBER: (&str, &str) = ("max_string_length", "String value too large.");

const TRUE: [&str; 14] =
    ["t", "T", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "1"];
const FALSE: [&str; 14] =
    ["f", "F", "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "0"];

/// Sends each value of the arrays as `field` in a POST and in a PATCH. Asserts that each is refused for `field` with the
/// code and detail beside its array, and that nothing is created or changed.
async fn refuses(
    field: &str,
    cases: impl IntoIterator<Item = (Value, (&'static str, &'static str))>,
) {
    let cases = cases.into_iter().flat_map(|(values, (code, detail))| {
        let refusal = Refusal::new(field, code, detail);
        each(values).into_iter().map(move |value| (value, refusal.clone()))
    });
    refuses_at(field, cases).await;
}

/// Like [`refuses`], with one value and its whole error in each case.
async fn refuses_at(field: &str, cases: impl IntoIterator<Item = (Value, Refusal)>) {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, one) = make(&workspace, owner, json!({"name": "A", "tags": ["t"]})).await;
    let before = owner.get(&one).await.ok();
    // A valid field in the same request is not written either.
    let sent =
        |(value, refusal): (Value, Refusal)| (json!({ "pinned": true, field: value }), refusal);
    let cases: Vec<_> = cases.into_iter().map(sent).collect();
    owner.assert_refusals(Method::POST, &workspace.dashboards(""), cases.clone()).await;
    owner.assert_refusals(Method::PATCH, &one, cases).await;
    owner.get(&one).await.assert_is(200, before);
    assert_eq!(owner.get(&workspace.dashboards("")).await.ok()["count"], 1);
}

/// Sends the first value of each pair as `field` in a PATCH, and the first one in a POST too. Asserts that the response
/// shows the second value.
async fn keeps(field: &str, pairs: Value) {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let mut one: Option<String> = None;
    for pair in each(pairs) {
        let sent = json!({ field: pair[0] });
        let answer = match &one {
            Some(one) => owner.patch(one, sent.clone()).await,
            None => owner.post(&workspace.dashboards(""), sent.clone()).await,
        };
        let body = answer.ok();
        assert_eq!(body[field], pair[1], "{sent}");
        let path = one.get_or_insert_with(|| workspace.dashboards(&format!("{}/", body["id"])));
        assert_eq!(owner.get(path).await.ok(), body, "{sent}");
    }
}

#[tokio::test]
async fn pinned_accepts_every_boolean_spelling() {
    let numbers = |number: i32| [json!(number != 0), json!(number), json!(f64::from(number))];
    let truths = TRUE.map(|word| json!(word)).into_iter().chain(numbers(1));
    let lies = FALSE.map(|word| json!(word)).into_iter().chain(numbers(0));
    let truths = truths.map(|sent| (sent, true));
    let lies = lies.map(|sent| (sent, false));
    let workspace = Workspace::new().await;
    let list = workspace.dashboards("");
    let made = truths.chain(lies).map(async |(sent, shown)| {
        let body = workspace.owner.post(&list, json!({ "pinned": sent })).await.ok();
        assert_eq!(body["pinned"], shown, "{sent}");
    });
    assert_eq!(join_all(made).await.len(), 34);
}

#[tokio::test]
async fn invalid_booleans_are_rejected_in_every_boolean_field() {
    let wrong = json!(["null", "", " true", "tRUE", "maybe", 2, -1, 0.5, [], [true], {}]);
    for field in ["pinned", "deleted", "delete_insights"] {
        refuses(field, [(json!([null]), NULL), (wrong.clone(), BOOLEAN)]).await;
    }
}

#[tokio::test]
async fn restriction_levels_are_21_or_37() {
    keeps("restriction_level", json!([["37", 37], [21, 21], [37, 37], ["21", 21]])).await;
    let wrong = json!([
        [22, "22"],
        [30, "30"],
        [-21, "-21"],
        ["x", "x"],
        ["", ""],
        [" 21", " 21"],
        ["021", "021"],
        [true, "True"],
        [37.5, "37.5"],
        [[1], "[1]"],
        [{}, "{}"],
    ]);
    let refused = each(wrong).into_iter().map(|pair| {
        let word = pair[1].as_str().expect("a word");
        let detail = format!("\"{word}\" is not a valid choice.");
        (pair[0].clone(), Refusal::new("restriction_level", "invalid_choice", detail))
    });
    let null = (json!(null), Refusal::null("restriction_level"));
    refuses_at("restriction_level", refused.chain([null])).await;
}

#[tokio::test]
async fn tags_are_a_list_of_strings() {
    let no_list = |name: &str| {
        let detail = format!("Expected a list of items but got type \"{name}\".");
        Refusal::new("tags", "not_a_list", detail)
    };
    refuses_at(
        "tags",
        [
            (json!(null), Refusal::null("tags")),
            (json!("x"), no_list("str")),
            (json!({}), no_list("dict")),
            (json!(5), no_list("int")),
            (json!([true]), Refusal::not_text("tags__0")),
            (json!(["a", null]), Refusal::null("tags__1")),
            (json!(["a", {}]), Refusal::not_text("tags__1")),
            (json!([["a"]]), Refusal::not_text("tags__0")),
            (json!(["a\u{0}"]), Refusal::new("tags__0", NUL.0, NUL.1)),
            (json!(["a", "b", "c".repeat(256)]), Refusal::at_most("tags__2", "255 characters")),
        ],
    )
    .await;
    let longest = ["c".repeat(255)];
    keeps(
        "tags",
        json!([[["É", "a", 1.5], ["1.5", "a", "é"]], [longest, longest], [["", " "], []]]),
    )
    .await;
}

#[tokio::test]
async fn use_template_is_a_string_and_use_dashboard_an_integer() {
    let cases = [(json!([null]), NULL), (json!([true, [], {}]), STRING), (json!(["a\u{0}"]), NUL)];
    refuses("use_template", cases).await;
    let wrong = json!(["", "abc", "5.5", 5.5, true, [1], {}]);
    let long = json!(["1".repeat(1001)]);
    refuses("use_dashboard", [(wrong, INTEGER), (long, LONG_NUMBER)]).await;
    let unset =
        json!([[0, null], ["0", null], [" 0 ", null], ["0.0", null], [0.0, null], [null, null]]);
    keeps("use_dashboard", unset).await;
}

#[tokio::test]
async fn total_size_of_tags_is_limited() {
    let workspace = Workspace::new().await;
    let tags = |count: usize| {
        let tags: Vec<_> = (0..count).map(|at| format!("{at:0>3}{}", "x".repeat(252))).collect();
        json!({ "tags": tags })
    };
    let path = workspace.dashboards("");
    let refused = workspace.owner.post(&path, tags(33)).await;
    let detail = "Ensure the tags have no more than 8192 bytes in total.";
    refused.assert_invalid("tags", "max_length", detail);
    let made = workspace.owner.post(&path, tags(32)).await.ok();
    assert_eq!(made["tags"].as_array().map(Vec::len), Some(32));
}
