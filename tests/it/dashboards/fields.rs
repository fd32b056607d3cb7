//! Each request field of a dashboard, with every type of value.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::dashboards::make;
use crate::support::Workspace;

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

/// Sends each value as `field` in a POST and in a PATCH. Asserts that each is refused for `field` with this
/// error, and that nothing is created or changed.
async fn refuses(field: &str, cases: impl IntoIterator<Item = (Value, (&str, &str))>) {
    refuses_at(cases.into_iter().map(|(value, refusal)| (field, field, value, refusal))).await;
}

async fn refuses_at<'a>(
    cases: impl IntoIterator<Item = (&'a str, &'a str, Value, (&'a str, &'a str))>,
) {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, one) = make(&workspace, owner, json!({"name": "A", "tags": ["t"]})).await;
    let before = owner.get(&one).await.ok();
    for (field, attr, value, (code, detail)) in cases {
        // A valid field in the same request is not written either.
        let sent = json!({ "pinned": true, field: value });
        for answer in [
            owner.post(&workspace.dashboards(""), sent.clone()).await,
            owner.patch(&one, sent.clone()).await,
        ] {
            let told = json!({
                "type": "validation_error", "code": code, "detail": detail, "attr": attr,
            });
            let text = sent.to_string();
            let shown = text.chars().take(80).collect::<String>();
            assert_eq!((answer.status, &answer.body), (400, &told), "{shown}");
        }
    }
    owner.get(&one).await.assert_is(200, before);
    assert_eq!(owner.get(&workspace.dashboards("")).await.ok()["count"], 1);
}

/// Sends each value as `field` in a PATCH, and the first one in a POST too. Asserts what the response
/// shows.
async fn keeps(field: &str, cases: impl IntoIterator<Item = (Value, Value)>) {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let mut one: Option<String> = None;
    for (value, shown) in cases {
        let sent = json!({ field: value });
        let answer = match &one {
            Some(one) => owner.patch(one, sent.clone()).await,
            None => owner.post(&workspace.dashboards(""), sent.clone()).await,
        };
        let body = answer.ok();
        assert_eq!(body[field], shown, "{sent}");
        let path = one.get_or_insert_with(|| workspace.dashboards(&format!("{}/", body["id"])));
        assert_eq!(owner.get(path).await.ok(), body, "{sent}");
    }
}

#[tokio::test]
async fn names_are_null_or_trimmed_strings_of_at_most_400_characters() {
    keeps(
        "name",
        [
            (json!(" \t a b\n"), json!("a b")),
            (json!(""), json!("")),
            (json!("   "), json!("")),
            (json!(null), json!(null)),
            (json!(5), json!("5")),
            (json!(1.5), json!("1.5")),
            (json!("😀".repeat(400)), json!("😀".repeat(400))),
            (json!(format!("  {}  ", "a".repeat(400))), json!("a".repeat(400))),
            (json!("<b>\"\\ \u{1}\u{7f}\u{202e}"), json!("<b>\"\\ \u{1}\u{7f}\u{202e}")),
        ],
    )
    .await;
    let long = ("max_length", "Ensure this field has no more than 400 characters.");
    refuses(
        "name",
        [
            (json!(true), STRING),
            (json!(false), STRING),
            (json!([1]), STRING),
            (json!([]), STRING),
            (json!({}), STRING),
            (json!("a\u{0}b"), NUL),
            (json!("a".repeat(401)), long),
            (json!("😀".repeat(401)), long),
        ],
    )
    .await;
}

#[tokio::test]
async fn descriptions_are_strings_of_at_most_16384_characters() {
    keeps(
        "description",
        [
            (json!(" d "), json!("d")),
            (json!(12), json!("12")),
            (json!(""), json!("")),
            (json!("é".repeat(16_384)), json!("é".repeat(16_384))),
        ],
    )
    .await;
    let long = ("max_length", "Ensure this field has no more than 16384 characters.");
    refuses(
        "description",
        [
            (json!(null), NULL),
            (json!(true), STRING),
            (json!([]), STRING),
            (json!({"a": 1}), STRING),
            (json!("\u{0}"), NUL),
            (json!("a".repeat(16_385)), long),
        ],
    )
    .await;
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
    let values = || {
        [
            (json!(null), NULL),
            (json!("null"), BOOLEAN),
            (json!(""), BOOLEAN),
            (json!(" true"), BOOLEAN),
            (json!("tRUE"), BOOLEAN),
            (json!("maybe"), BOOLEAN),
            (json!(2), BOOLEAN),
            (json!(-1), BOOLEAN),
            (json!(0.5), BOOLEAN),
            (json!([]), BOOLEAN),
            (json!([true]), BOOLEAN),
            (json!({}), BOOLEAN),
        ]
    };
    for field in ["pinned", "deleted", "delete_insights"] {
        refuses(field, values()).await;
    }
}

#[tokio::test]
async fn dashboard_is_deleted_and_restored_with_any_boolean_spelling() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, one) = make(&workspace, owner, json!({})).await;
    for (yes, no) in [(json!("yes"), json!("no")), (json!(1), json!(0)), (json!("ON"), json!("F"))]
    {
        assert_eq!(owner.patch(&one, json!({ "deleted": yes })).await.ok()["deleted"], true);
        owner.get(&one).await.assert_not_found("Not found.");
        assert_eq!(owner.patch(&one, json!({ "deleted": no })).await.ok()["deleted"], false);
    }
    let echoed = owner.patch(&one, json!({"delete_insights": "t"})).await.ok();
    assert_eq!(echoed["delete_insights"], true);
}

#[tokio::test]
async fn restriction_levels_are_21_or_37() {
    keeps(
        "restriction_level",
        [
            (json!("37"), json!(37)),
            (json!(21), json!(21)),
            (json!(37), json!(37)),
            (json!("21"), json!(21)),
        ],
    )
    .await;
    let cases = [
        (json!(22), "22"),
        (json!(30), "30"),
        (json!(-21), "-21"),
        (json!("x"), "x"),
        (json!(""), ""),
        (json!(" 21"), " 21"),
        (json!("021"), "021"),
        (json!(true), "True"),
        (json!(37.5), "37.5"),
        (json!([1]), "[1]"),
        (json!({}), "{}"),
    ];
    let cases = cases.map(|(value, text)| (value, format!("\"{text}\" is not a valid choice.")));
    let refused =
        cases.iter().map(|(value, detail)| (value.clone(), ("invalid_choice", &**detail)));
    refuses("restriction_level", refused.chain([(json!(null), NULL)])).await;
}

#[tokio::test]
async fn tags_are_a_list_of_strings() {
    let long = ("max_length", "Ensure this field has no more than 255 characters.");
    let expected = |name| format!("Expected a list of items but got type \"{name}\".");
    let (str, dict, int) = (expected("str"), expected("dict"), expected("int"));
    refuses_at([
        ("tags", "tags", json!(null), NULL),
        ("tags", "tags", json!("x"), ("not_a_list", str.as_str())),
        ("tags", "tags", json!({}), ("not_a_list", &dict)),
        ("tags", "tags", json!(5), ("not_a_list", &int)),
        ("tags", "tags__0", json!([true]), STRING),
        ("tags", "tags__1", json!(["a", null]), NULL),
        ("tags", "tags__1", json!(["a", {}]), STRING),
        ("tags", "tags__0", json!([["a"]]), STRING),
        ("tags", "tags__0", json!(["a\u{0}"]), NUL),
        ("tags", "tags__2", json!(["a", "b", "c".repeat(256)]), long),
    ])
    .await;
    keeps(
        "tags",
        [
            (json!(["É", "a", 1.5]), json!(["1.5", "a", "é"])),
            (json!(["c".repeat(255)]), json!(["c".repeat(255)])),
            (json!(["", " "]), json!([])),
        ],
    )
    .await;
}

#[tokio::test]
async fn use_template_is_a_string_and_use_dashboard_an_integer() {
    refuses(
        "use_template",
        [
            (json!(null), NULL),
            (json!(true), STRING),
            (json!([]), STRING),
            (json!({}), STRING),
            (json!("a\u{0}"), NUL),
        ],
    )
    .await;
    refuses(
        "use_dashboard",
        [
            (json!(""), INTEGER),
            (json!("abc"), INTEGER),
            (json!("5.5"), INTEGER),
            (json!(5.5), INTEGER),
            (json!(true), INTEGER),
            (json!([1]), INTEGER),
            (json!({}), INTEGER),
            (json!("1".repeat(1001)), LONG_NUMBER),
        ],
    )
    .await;
    keeps(
        "use_dashboard",
        [json!(0), json!("0"), json!(" 0 "), json!("0.0"), json!(0.0), json!(null)]
            .map(|unset| (unset, json!(null))),
    )
    .await;
}

#[tokio::test]
async fn filters_and_variables_have_limited_size_and_depth() {
    let nested = |depth: usize| (1..depth).fold(json!({}), |inner, _| json!({ "a": inner }));
    let of_size = |bytes: usize| json!({"k": "a".repeat(bytes - r#"{"k":""}"#.len())});
    let bytes = ("max_length", "Ensure this field has no more than 32768 bytes of JSON.");
    let depth = ("max_length", "Ensure this field has no more than 32 nested containers.");
    refuses("filters", [(of_size(32_769), bytes), (nested(33), depth)]).await;
    keeps("filters", [of_size(32_768), nested(32)].map(|value| (value.clone(), value))).await;
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, one) = make(&workspace, owner, json!({})).await;
    let answer = owner.patch(&one, json!({"variables": of_size(32_769)})).await;
    answer.assert_invalid("variables", bytes.0, bytes.1);
    let answer = owner.patch(&one, json!({"variables": nested(33)})).await;
    answer.assert_invalid("variables", depth.0, depth.1);
}

#[tokio::test]
async fn first_invalid_field_in_documented_order_is_reported() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let (_, one) = make(&workspace, owner, json!({})).await;
    let order = [
        "name",
        "description",
        "pinned",
        "deleted",
        "use_template",
        "use_dashboard",
        "delete_insights",
        "tags",
        "restriction_level",
    ];
    for first in 0..order.len() {
        let bad = order[first..].iter().rev().map(|name| ((*name).to_owned(), json!([{}])));
        let sent = Value::Object(bad.collect());
        for answer in [
            owner.post(&workspace.dashboards(""), sent.clone()).await,
            owner.patch(&one, sent.clone()).await,
        ] {
            assert_eq!(answer.status, 400);
            let attr = answer.body["attr"].as_str().expect("a field");
            assert_eq!(attr.split("__").next(), Some(order[first]), "{}", answer.body);
        }
    }
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
    refused.assert_invalid(
        "tags",
        "max_length",
        "Ensure the tags have no more than 8192 bytes in total.",
    );
    assert_eq!(
        workspace.owner.post(&path, tags(32)).await.ok()["tags"].as_array().unwrap().len(),
        32
    );
}
