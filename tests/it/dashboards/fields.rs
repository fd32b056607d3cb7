//! The values that each request field of a dashboard accepts and refuses. `src/input` tests those of each type.

use crate::support::prelude::*;

/// Returns this number of tags, each of 255 bytes.
fn tags(count: usize) -> Value {
    (0..count).map(|at| format!("{at:0>3}{}", "x".repeat(252))).collect()
}

#[tokio::test]
async fn invalid_fields_are_refused_and_nothing_is_written() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, one) = make(&workspace, &owner, json!({"name": "A", "tags": ["t"]})).await;
    let before = owner.get(&one).await.ok();
    let no_choice = |word: &str| {
        let detail = format!("\"{word}\" is not a valid choice.");
        Refusal::new("restriction_level", "invalid_choice", detail)
    };
    let no_list =
        Refusal::new("tags", "not_a_list", "Expected a list of items but got type \"str\".");
    let large = "Ensure the tags have no more than 8192 bytes in total.";
    let no_integer = Refusal::invalid("use_dashboard", "A valid integer is required.");
    let long = Refusal::new("use_dashboard", "max_string_length", "String value too large.");
    let mut cases = vec![
        ("restriction_level", json!(22), no_choice("22")),
        ("restriction_level", json!("021"), no_choice("021")),
        ("restriction_level", json!(true), no_choice("True")),
        ("restriction_level", json!(null), Refusal::null("restriction_level")),
        ("tags", json!(null), Refusal::null("tags")),
        ("tags", json!("x"), no_list),
        ("tags", json!(["a", {}]), Refusal::not_text("tags__1")),
        ("tags", json!(["a", null]), Refusal::null("tags__1")),
        ("tags", json!(["a", "b", "c".repeat(256)]), Refusal::at_most("tags__2", "255 characters")),
        ("tags", tags(33), Refusal::new("tags", "max_length", large)),
        ("use_template", json!(null), Refusal::null("use_template")),
        ("use_template", json!(true), Refusal::not_text("use_template")),
        ("use_dashboard", json!("5.5"), no_integer.clone()),
        ("use_dashboard", json!(true), no_integer),
        ("use_dashboard", json!("1".repeat(1001)), long),
    ];
    for field in ["pinned", "deleted", "delete_insights"] {
        cases.push((field, json!(null), Refusal::null(field)));
        for value in [json!("maybe"), json!(2)] {
            cases.push((field, value, Refusal::invalid(field, "Must be a valid boolean.")));
        }
    }
    // A valid field in the same request is not written either.
    let cases = cases.into_iter();
    let cases = cases.map(|(field, value, refusal)| (json!({"name": "B", field: value}), refusal));
    let cases: Vec<_> = cases.collect();
    owner.assert_refusals(Method::POST, &workspace.dashboards(""), cases.clone()).await;
    owner.assert_refusals(Method::PATCH, &one, cases).await;
    owner.get(&one).await.assert_is(200, before);
    assert_eq!(owner.get(&workspace.dashboards("")).await.ok()["count"], 1);
}

#[tokio::test]
async fn values_are_accepted_in_several_spellings() {
    let (workspace, owner) = Workspace::owned().await;
    let list = workspace.dashboards("");
    let longest = ["c".repeat(255)];
    for (field, sent, shown) in [
        ("pinned", json!("On"), json!(true)),
        ("pinned", json!(1), json!(true)),
        ("pinned", json!("n"), json!(false)),
        ("restriction_level", json!("37"), json!(37)),
        ("restriction_level", json!(21), json!(21)),
        ("tags", json!(["É", "a", 1.5]), json!(["1.5", "a", "é"])),
        ("tags", json!(longest), json!(longest)),
        ("tags", json!(["", " "]), json!([])),
        ("tags", tags(32), tags(32)),
        ("use_dashboard", json!(" 0 "), json!(null)),
        ("use_dashboard", json!(null), json!(null)),
    ] {
        let (made, _) = owner.create(&list, json!({ field: sent })).await;
        let (_, one) = owner.create(&list, json!({})).await;
        let changed = owner.patch(&one, json!({ field: sent })).await.ok();
        assert_eq!([&made[field], &changed[field]], [&shown; 2], "{field} {sent}");
        owner.get(&one).await.assert_is(200, changed);
    }
}
