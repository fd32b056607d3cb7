//! Tests of creating several invites in one request: either all of them or none.

use crate::invites::MEMBER_ALREADY;
use crate::support::prelude::*;

const NO_ARRAY: &str = "This endpoint needs an array of data for bulk invite creation.";

fn addresses(count: usize) -> Value {
    (0..count).map(|number| json!({ "target_email": format!("new{number}@x.example") })).collect()
}

#[tokio::test]
async fn twenty_invites_are_created_at_once_and_listed_in_reverse() {
    let workspace = Workspace::new().await;
    let path = invites(&workspace, "bulk/");
    workspace.owner.post(&path, addresses(20)).await.assert_empty(200);
    let expected: Vec<_> = (0..20).rev().map(|number| format!("new{number}@x.example")).collect();
    assert_eq!(listed(&workspace, "target_email").await, expected);
    // A single object is the same as an array with one element.
    let one = json!({ "target_email": "one@x.example", "first_name": "One" });
    workspace.owner.post(path.trim_end_matches('/'), one).await.assert_empty(200);
    assert_eq!(listed(&workspace, "first_name").await[0], "One");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn bulk_elements_have_every_field_of_an_invite_and_the_later_of_two_remains() {
    let (workspace, owner) = Workspace::owned().await;
    let sent = json!({
        "target_email": "ann@x.example", "first_name": "Ann", "level": 8, "message": "Join us!",
        "private_project_access": [{ "id": workspace.made.project_id, "level": "member" }],
        "send_email": false, "combine_pending_invites": true,
    });
    let plain = json!({ "target_email": "bob@x.example" });
    owner.post(&invites(&workspace, "bulk/"), json!([plain, sent])).await.assert_empty(200);
    let list = owner.get(&invites(&workspace, "")).await.ok();
    assert_eq!(list["count"], 2);
    for (name, value) in sent.as_object().expect("fields") {
        assert_eq!(&list["results"][0][name], value, "{name}");
        assert_ne!(&list["results"][1][name], value, "{name}");
    }
    let sent = json!([
        { "target_email": "ann@x.example", "level": 8 },
        { "target_email": "bob@x.example" },
        { "target_email": "Ann@x.example", "first_name": "Ann" },
        { "target_email": "bob@x.example", "level": 15 },
        { "target_email": "bob@x.example", "combine_pending_invites": true },
    ]);
    owner.post(&invites(&workspace, "bulk/"), sent).await.assert_empty(200);
    assert_eq!(listed(&workspace, "target_email").await, ["bob@x.example", "Ann@x.example"]);
    assert_eq!(listed(&workspace, "level").await, [15, 1]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn bulk_body_of_another_type_or_length_is_rejected() {
    let (workspace, owner) = Workspace::owned().await;
    let path = invites(&workspace, "bulk/");
    for sent in [json!("x"), json!(null)] {
        owner.post(&path, sent).await.assert_bad_body(NO_ARRAY);
    }
    owner.post(&path, json!([])).await.assert_invalid_body("empty", "This list may not be empty.");
    let many = "A maximum of 20 invites can be sent in a single request.";
    owner.post(&path, addresses(21)).await.assert_invalid_body("max_length", many);
    // The number of elements is checked before their types.
    let numbers: Value = (0..21).collect();
    owner.post(&path, numbers).await.assert_invalid_body("max_length", many);
    for (sent, code, detail) in [
        (json!([{}, 1]), "invalid_input", "Invalid data. Expected a dictionary, but got int."),
        (json!([{}, []]), "invalid_input", "Invalid data. Expected a dictionary, but got list."),
        (json!([{}, null]), "null", "No data provided"),
    ] {
        owner.post(&path, sent).await.assert_invalid("1__non_field_errors", code, detail);
    }
    let nothing = owner.send(Method::POST, &path, None).await;
    nothing.assert_invalid("0__target_email", "required", "This field is required.");
    assert_eq!(listed(&workspace, "id").await, [] as [Value; 0]);
}

#[tokio::test]
async fn one_invalid_element_rejects_the_whole_bulk_request() {
    let (workspace, member) = Workspace::with_member("ann", Level::Member).await;
    let path = invites(&workspace, "bulk/");
    let good = json!({ "target_email": "good@x.example" });
    let three = "\"3\" is not a valid choice.";
    for (bad, attr, code, detail) in [
        (json!({}), "1__target_email", "required", "This field is required."),
        (json!({ "target_email": "b@x.example", "level": 3 }), "1__level", "invalid_choice", three),
        (json!({ "target_email": OWNER }), "1__non_field_errors", "invalid_input", MEMBER_ALREADY),
    ] {
        let sent = json!([good, bad, { "target_email": "last" }]);
        let sent = if attr.ends_with("errors") { json!([good, bad, good]) } else { sent };
        workspace.owner.post(&path, sent).await.assert_invalid(attr, code, detail);
    }
    // A level that is too high in any element precedes an invalid field in any element.
    let sent = json!([{}, { "target_email": "b@x.example", "level": 8 }]);
    let too_high = "You cannot invite a user with a higher permission level than your own.";
    member.post(&path, sent).await.assert_denied(too_high);
    assert_eq!(listed(&workspace, "id").await, [] as [Value; 0]);
    workspace.assert_file_valid().await;
}
