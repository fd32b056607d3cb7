//! The members of a role.

use crate::support::prelude::*;

use super::fields;

const BOB: &str = "bob@corp.example";
const NO_ROLE: &str = "Role does not exist.";
const NO_USER: &str = "User does not exist.";
const ALREADY: &str = "User is already part of the role.";

/// A workspace with a role and two members.
async fn scene() -> (Workspace, Value, String) {
    let workspace = Workspace::new().await;
    for name in ["ann", "bob"] {
        workspace.member(name, Level::Member).await;
    }
    let (role, path) = add_role(&workspace, "Analysts").await;
    (workspace, role, path)
}

fn emails(list: &Value) -> Vec<&str> {
    let users = list.as_array().expect("a list").iter();
    users.map(|item| item["user"]["email"].as_str().expect("an address")).collect()
}

#[tokio::test]
async fn role_membership_has_exactly_these_fields_everywhere() {
    let (workspace, _) = Workspace::timed().await;
    let ann = workspace.member("ann", Level::Member).await;
    let (role, path) = add_role(&workspace, "Analysts").await;
    let list = workspace.organization("members/");
    let member = &ann.get(&format!("{list}?email={ANN}")).await.ok()["results"][0];
    let sent = json!({
        "user_uuid": member["user"]["uuid"], "id": UNKNOWN, "role_id": UNKNOWN, "user": 1,
        "joined_at": "2001-01-01",
    });
    let list = format!("{path}role_memberships/");
    let added = workspace.owner.post(&list, sent).await;
    let expected = json!({
        "id": added.body["id"], "role_id": role["id"], "organization_member": member,
        "user": member["user"], "joined_at": "2023-11-14T22:13:20Z",
        "updated_at": "2023-11-14T22:13:20Z",
    });
    added.assert_is(201, expected.clone());
    assert_eq!(fields(&added.body), fields(&expected));
    assert!(added.body["id"] != UNKNOWN && added.body["id"] != member["id"]);

    let one = format!("{list}{}/", added.body["id"].as_str().expect("an id"));
    ann.get(&one).await.assert_is(200, expected.clone());
    let page = json!({ "count": 1, "next": null, "previous": null, "results": [expected] });
    ann.get(&list).await.assert_is(200, page);
    let mut shown = role;
    shown["members"] = json!([expected]);
    ann.get(&path).await.assert_is(200, shown.clone());
    assert_eq!(ann.get(&workspace.organization("roles/")).await.ok()["results"], json!([shown]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn adding_a_member_fails_with_the_first_applicable_error() {
    let (workspace, role, path) = scene().await;
    let (eve, _) = workspace.outsider("eve").await;
    let eve = eve.get(ME).await.ok()["uuid"].clone();
    let list = format!("{path}role_memberships/");
    for (sent, code, detail) in [
        (json!({}), "required", "This field is required."),
        (json!({ "user_uuid": null }), "null", "This field may not be null."),
        (json!({ "user_uuid": "ann" }), "invalid_input", BAD_UUID),
        (json!({ "user_uuid": [UNKNOWN] }), "invalid_input", BAD_UUID),
    ] {
        for role in [role["id"].as_str().expect("an id"), UNKNOWN] {
            let list = workspace.organization(&format!("roles/{role}/role_memberships/"));
            let refused = workspace.owner.post(&list, sent.clone()).await;
            refused.assert_invalid("user_uuid", code, detail);
        }
    }
    for role in [UNKNOWN, "x"] {
        let list = workspace.organization(&format!("roles/{role}/role_memberships/"));
        for user in [json!(UNKNOWN), json!(workspace.uuid(ANN).await)] {
            let refused = workspace.owner.post(&list, json!({ "user_uuid": user })).await;
            refused.assert_bad_body(NO_ROLE);
        }
    }
    for user in [json!(UNKNOWN), eve] {
        workspace.owner.post(&list, json!({ "user_uuid": user })).await.assert_bad_body(NO_USER);
    }
    let ann = json!({ "user_uuid": workspace.uuid(ANN).await });
    workspace.set_active(ANN, false).await;
    workspace.owner.post(&list, ann.clone()).await.assert_bad_body(NO_USER);
    workspace.set_active(ANN, true).await;
    assert_eq!(workspace.owner.post(&list, ann.clone()).await.status, 201);
    workspace.owner.post(&list, ann).await.assert_bad_body(ALREADY);
    assert_eq!(workspace.owner.get(&list).await.ok()["count"], 1);
}

#[tokio::test]
async fn role_of_another_organization_takes_no_members() {
    let (workspace, _, _) = scene().await;
    let (eve, foreign) = workspace.outsider("eve").await;
    let theirs = in_organization(&foreign, "roles/");
    let (role, _) = eve.create(&theirs, json!({ "name": "Theirs" })).await;
    let role = role["id"].as_str().expect("an id");
    let list = workspace.organization(&format!("roles/{role}/role_memberships/"));
    let sent = json!({ "user_uuid": workspace.uuid(ANN).await });
    workspace.owner.post(&list, sent).await.assert_bad_body(NO_ROLE);
    let member = eve.get(ME).await.ok()["uuid"].clone();
    let members = format!("{theirs}{role}/role_memberships/");
    let added = eve.post(&members, json!({ "user_uuid": member })).await.ok();
    let one = format!("{list}{}/", added["id"].as_str().expect("an id"));
    workspace.owner.get(&one).await.assert_not_found("Not found.");
    workspace.owner.delete(&one).await.assert_not_found("Not found.");
}

#[tokio::test]
async fn members_of_a_role_are_listed_in_the_order_of_joining_and_paged() {
    let (workspace, _, path) = scene().await;
    for email in [BOB, OWNER, ANN] {
        add_to_role(&workspace, &path, email).await;
    }
    let list = format!("{path}role_memberships/");
    let all = workspace.owner.get(&list).await.ok();
    assert_eq!((emails(&all["results"]), &all["count"]), (vec![BOB, OWNER, ANN], &json!(3)));
    assert_eq!(workspace.owner.get(&path).await.ok()["members"], all["results"]);
    let page = workspace.owner.get(&format!("{list}?limit=1&offset=1")).await.ok();
    assert_eq!((emails(&page["results"]), &page["count"]), (vec![OWNER], &json!(3)));
    assert!(page["next"].as_str().expect("a link").ends_with("?limit=1&offset=2"));
}

#[tokio::test]
async fn member_is_in_any_number_of_roles_and_is_removed_from_one() {
    let (workspace, _, path) = scene().await;
    let (_, second) = add_role(&workspace, "Billing").await;
    let added = add_to_role(&workspace, &path, ANN).await;
    let kept = add_to_role(&workspace, &second, ANN).await;
    let id = added["id"].as_str().expect("an id");
    // The role and the membership must belong together.
    let crossed = format!("{second}role_memberships/{id}/");
    workspace.owner.get(&crossed).await.assert_not_found("Not found.");
    workspace.owner.delete(&crossed).await.assert_not_found("Not found.");
    for unknown in [UNKNOWN, "7", "x"] {
        let one = format!("{path}role_memberships/{unknown}/");
        workspace.owner.get(&one).await.assert_not_found("Not found.");
        workspace.owner.delete(&one).await.assert_not_found("Not found.");
    }
    let one = format!("{path}role_memberships/{id}/");
    workspace.owner.delete(&one).await.assert_empty(204);
    workspace.owner.delete(&one).await.assert_not_found("Not found.");
    workspace.owner.get(&one).await.assert_not_found("Not found.");
    assert_eq!(workspace.owner.get(&path).await.ok()["members"], json!([]));
    assert_eq!(workspace.owner.get(&second).await.ok()["members"], json!([kept]));
    assert_ne!(add_to_role(&workspace, &path, ANN).await["id"], added["id"]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn admin_adds_any_member_even_themselves_once() {
    let (workspace, _, path) = scene().await;
    let adam = workspace.member("adam", Level::Admin).await;
    let list = format!("{path}role_memberships/");
    let sent = json!({ "user_uuid": workspace.uuid("adam@corp.example").await });
    let answers = join_all([0; 4].map(|_| adam.post(&list, sent.clone()))).await;
    let (added, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|one| one.status == 201);
    assert_eq!((added.len(), refused.len()), (1, 3));
    for answer in refused {
        answer.assert_bad_body(ALREADY);
    }
    assert_eq!(added[0].body["user"]["email"], "adam@corp.example");
    assert_eq!(adam.get(&list).await.ok()["count"], 1);
}

#[tokio::test]
async fn deactivated_member_is_hidden_and_stays_in_the_role() {
    let (workspace, _, path) = scene().await;
    let added = add_to_role(&workspace, &path, ANN).await;
    add_to_role(&workspace, &path, BOB).await;
    let list = format!("{path}role_memberships/");
    let one = format!("{list}{}/", added["id"].as_str().expect("an id"));
    let known = workspace.owner.get(&path).await.tag();
    workspace.set_active(ANN, false).await;
    let shown = workspace.owner.get(&list).await.ok();
    assert_eq!((emails(&shown["results"]), &shown["count"]), (vec![BOB], &json!(1)));
    let role = workspace.owner.get(&path).await;
    assert_eq!(emails(&role.body["members"]), [BOB]);
    assert_ne!(role.tag().split('-').next(), known.split('-').next());
    workspace.owner.get(&one).await.assert_not_found("Not found.");
    workspace.owner.delete(&one).await.assert_not_found("Not found.");
    workspace.assert_file_valid().await;
    workspace.set_active(ANN, true).await;
    assert_eq!(emails(&workspace.owner.get(&list).await.ok()["results"]), [ANN, BOB]);
    workspace.owner.get(&one).await.assert_is(200, added);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn leaving_the_organization_ends_all_role_memberships() {
    let (workspace, _, path) = scene().await;
    let (_, second) = add_role(&workspace, "Billing").await;
    let ann = workspace.key(ANN, &["*"]).await;
    for role in [&path, &second] {
        add_to_role(&workspace, role, ANN).await;
        add_to_role(&workspace, role, BOB).await;
    }
    let known = workspace.owner.get(&path).await.tag();
    ann.delete(&workspace.organization("members/@me/")).await.assert_empty(204);
    let bob = workspace.organization(&format!("members/{}/", workspace.uuid(BOB).await));
    workspace.owner.delete(&bob).await.assert_empty(204);
    for role in [&path, &second] {
        let list = workspace.owner.get(&format!("{role}role_memberships/")).await.ok();
        assert_eq!((&list["count"], &list["results"]), (&json!(0), &json!([])));
        assert_eq!(workspace.owner.get(role).await.ok()["members"], json!([]));
    }
    workspace.owner.if_match(Method::PATCH, &path, &known, json!({})).await.assert_stale();
    workspace.assert_file_valid().await;
}
