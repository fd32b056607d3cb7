//! Tests of invites: creating, listing and deleting them, and the permissions and errors.

mod access;
mod bulk;
pub mod mail;
mod mail_state;

use crate::support::prelude::*;

const TOO_HIGH: &str = "You cannot invite a user with a higher permission level than your own.";
const MEMBER_ALREADY: &str = "A user with this email address already belongs to the organization.";

#[tokio::test]
async fn invite_has_all_fields_and_is_listed_newest_first() {
    let workspace = Workspace::new().await;
    let sent = json!({
        "target_email": " Ann.Lee@Example.COM ", "first_name": " Ann ", "level": "8",
        "message": "Join us!\nSoon.", "private_project_access": [], "send_email": "false",
        "combine_pending_invites": true, "is_expired": true, "created_by": null, "id": "mine",
    });
    let made = invite(&workspace.owner, &workspace, sent).await;
    let me = workspace.owner.get(ME).await.ok();
    let owner =
        &workspace.owner.get(&workspace.organization("members/")).await.ok()["results"][0]["user"];
    let link = made["accept_url"].as_str().expect("a link").to_owned();
    let id = made["id"].as_str().expect("an id").to_owned();
    let expected = json!({
        "id": id, "target_email": "Ann.Lee@example.com", "first_name": "Ann", "emailing_attempt_made": false,
        "level": 8, "created_at": made["created_at"], "updated_at": made["created_at"],
        "message": "Join us!\nSoon.", "private_project_access": [], "send_email": false,
        "combine_pending_invites": true, "is_expired": false, "expires_at": made["expires_at"],
        "created_by": owner, "accept_url": link,
    });
    assert_eq!(made, expected);
    assert_eq!(owner["id"], me["id"]);
    assert!(link.starts_with(&format!("http://127.0.0.1:8000/signup/{id}?token=")), "{link}");

    let sent = json!({ "target_email": "bob@x.example" });
    let mut shown = invite(&workspace.owner, &workspace, sent).await;
    shown.as_object_mut().expect("an object").remove("accept_url");
    let list = workspace.owner.get(&invites(&workspace, "")).await.ok();
    assert_eq!(list["results"][0], shown, "a list contains no link");
    let expected = json!({
        "id": "[id]", "target_email": "bob@x.example", "first_name": "", "emailing_attempt_made": false,
        "level": 1, "created_at": "[created_at]", "updated_at": "[updated_at]", "message": null,
        "private_project_access": [], "send_email": true, "combine_pending_invites": false,
        "is_expired": false, "expires_at": shown["expires_at"], "created_by": redacted(owner.clone()),
    });
    assert_eq!(redacted(shown), expected);
    assert_eq!(listed(&workspace, "target_email").await, ["bob@x.example", "Ann.Lee@example.com"]);
    let page = workspace.owner.get(&invites(&workspace, "?limit=1&offset=1")).await.ok();
    assert_eq!((&page["count"], column(&page, "id")), (&json!(2), vec![json!(id)]));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn invite_mail_is_sent_only_if_configured_and_requested() {
    let workspace = Workspace::with(with_mail()).await;
    let sent = json!({ "target_email": "a@x.example" });
    let asked = invite(&workspace.owner, &workspace, sent).await;
    assert_eq!(asked["emailing_attempt_made"], true);
    assert!(asked["accept_url"].is_null());
    let sent = json!({ "target_email": "b@x.example", "send_email": false });
    let not = invite(&workspace.owner, &workspace, sent).await;
    assert_eq!(not["emailing_attempt_made"], false);
    assert!(not["accept_url"].is_string());
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn fields_are_checked_in_their_order() {
    let workspace = Workspace::new().await;
    let path = invites(&workspace, "");
    let address = "Enter a valid email address.";
    let null = "This field may not be null.";
    let boolean = "Must be a valid boolean.";
    let long = |limit: usize| format!("Ensure this field has no more than {limit} characters.");
    let endless = format!("a@{}.example", "x".repeat(10_000));
    for (attr, value, code, detail) in [
        ("target_email", json!(null), "null", null),
        ("target_email", json!("  "), "blank", "This field may not be blank."),
        ("target_email", json!("a@b"), "invalid_input", address),
        ("target_email", json!("a@x.example\r\nBcc: b@x.example"), "invalid_input", address),
        ("target_email", json!(endless), "max_length", &long(254)),
        ("first_name", json!("x".repeat(31)), "max_length", &long(30)),
        ("first_name", json!(null), "null", null),
        ("level", json!(2), "invalid_choice", "\"2\" is not a valid choice."),
        ("level", json!(null), "null", null),
        ("message", json!("x".repeat(1001)), "max_length", &long(1000)),
        ("message", json!("\0"), "null_characters_not_allowed", "Null characters are not allowed."),
        ("send_email", json!("maybe"), "invalid_input", boolean),
        ("combine_pending_invites", json!(3), "invalid_input", boolean),
    ] {
        let mut sent = json!({ "target_email": "a@x.example" });
        sent[attr] = value;
        workspace.owner.post(&path, sent).await.assert_invalid(attr, code, detail);
    }
    let first = workspace.owner.post(&path, json!({ "first_name": [] })).await;
    first.assert_invalid("target_email", "required", "This field is required.");
    assert_eq!(listed(&workspace, "id").await, [] as [Value; 0]);
}

#[tokio::test]
async fn inviting_above_the_own_level_is_rejected() {
    let workspace = Workspace::new().await;
    let path = invites(&workspace, "");
    let member = workspace.member("ann", Level::Member).await;
    let admin = workspace.member("adam", Level::Admin).await;
    for (caller, level) in [(&member, 8), (&member, 15), (&admin, 15)] {
        // The level is checked before the other fields.
        caller.post(&path, json!({ "level": level })).await.assert_denied(TOO_HIGH);
    }
    for (caller, level) in [(&member, 1), (&admin, 8), (&workspace.owner, 15)] {
        let sent = json!({ "target_email": format!("new{level}@x.example"), "level": level });
        assert_eq!(invite(caller, &workspace, sent).await["level"], level);
    }
}

#[tokio::test]
async fn members_invite_only_if_the_organization_allows_it() {
    let (workspace, owner, member) = Workspace::owned_with_member("ann", Level::Member).await;
    let admin = workspace.member("adam", Level::Admin).await;
    let sent = json!({ "target_email": "a@x.example" });
    let known = invite(&member, &workspace, sent.clone()).await;
    owner.patch(&workspace.organization(""), json!({ "members_can_invite": false })).await.ok();
    for rest in ["", "bulk/"] {
        // The request fails before its body is checked.
        member.post(&invites(&workspace, rest), json!({})).await.assert_denied(NOT_ALLOWED);
        let headers = [("content-type", "text/plain")];
        let text = member.fetch(Method::POST, &invites(&workspace, rest), &headers, "x").await;
        text.assert_denied(NOT_ALLOWED);
    }
    invite(&admin, &workspace, sent.clone()).await;
    admin.post(&invites(&workspace, "bulk/"), json!([sent])).await.assert_empty(200);
    assert_eq!(listed(&workspace, "target_email").await, ["a@x.example"]);
    // Members without permission to invite may still list and delete invites.
    let list = member.get(&invites(&workspace, "")).await.ok();
    let id = list["results"][0]["id"].as_str().expect("an id").to_owned();
    assert_ne!(json!(id), known["id"]);
    member.delete(&invites(&workspace, &format!("{id}/"))).await.assert_empty(204);
}

#[tokio::test]
async fn existing_members_and_bots_cannot_be_invited() {
    let (workspace, owner) = Workspace::owned().await;
    let path = invites(&workspace, "");
    for address in [OWNER, "Owner@corp.example"] {
        owner.post(&path, json!({ "target_email": address })).await.assert_bad_body(MEMBER_ALREADY);
    }
    // A user that belongs only to another organization can be invited.
    workspace.outsider("eve").await;
    invite(&owner, &workspace, json!({ "target_email": "eve@other.example" })).await;
    let sent = json!({ "target_email": "Ghost@PosthogBot.User" });
    let refused = owner.post(&invites(&workspace, ""), sent).await;
    refused.assert_bad("target_email", "Enter a valid email address.");
}

#[tokio::test]
async fn all_spellings_of_a_domain_are_one_address() {
    let workspace = Workspace::new().await;
    for address in
        ["a@bücher.example", "A@BÜCHER.example", "a@xn--bcher-kva.example", "a@ｂücher.example"]
    {
        invite(&workspace.owner, &workspace, json!({ "target_email": address })).await;
    }
    assert_eq!(listed(&workspace, "target_email").await, ["a@bücher.example"]);
}

#[tokio::test]
async fn new_invite_replaces_the_old_one() {
    let (workspace, clock) = Workspace::timed().await;
    let sent = |address: &str, level: i64| json!({ "target_email": address, "level": level });
    let first = invite(&workspace.owner, &workspace, sent("ann@x.example", 15)).await;
    invite(&workspace.owner, &workspace, sent("bob@x.example", 1)).await;
    clock.advance(Duration::from_hours(72));
    assert_eq!(listed(&workspace, "is_expired").await, [true, true]);
    invite(&workspace.owner, &workspace, sent("ANN@x.example", 8)).await;
    let last = invite(&workspace.owner, &workspace, sent("ann@x.example", 1)).await;
    assert_eq!(listed(&workspace, "target_email").await, ["ann@x.example", "bob@x.example"]);
    assert_eq!(listed(&workspace, "level").await, [json!(1), json!(1)]);
    assert_eq!(listed(&workspace, "is_expired").await, [false, true]);
    let gone = invites(&workspace, &format!("{}/", first["id"].as_str().expect("an id")));
    workspace.owner.delete(&gone).await.assert_not_found("Not found.");
    assert_eq!(listed(&workspace, "id").await[0], last["id"]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn invite_expires_after_its_time_to_live() {
    let (mut config, clock) = with_clock();
    config.invite_ttl = Duration::from_mins(1);
    let workspace = Workspace::with(config).await;
    invite(&workspace.owner, &workspace, json!({ "target_email": "ann@x.example" })).await;
    clock.advance(Duration::from_micros(59_999_999));
    assert_eq!(listed(&workspace, "is_expired").await, [false]);
    clock.advance(Duration::from_micros(1));
    assert_eq!(listed(&workspace, "is_expired").await, [true]);
}

#[tokio::test]
async fn combined_invite_keeps_the_level_of_a_pending_invite() {
    let (workspace, clock) = Workspace::timed().await;
    let member = workspace.member("ann", Level::Member).await;
    let admin = workspace.member("ben", Level::Admin).await;
    let sent = |level: i64| json!({ "target_email": "new@x.example", "level": level, "combine_pending_invites": true });
    // Without a pending invite, the new one gets its own values.
    assert_eq!(invite(&workspace.owner, &workspace, sent(8)).await["level"], 8);
    assert_eq!(invite(&workspace.owner, &workspace, sent(1)).await["level"], 8);
    // Nobody can grant more than the own level.
    assert_eq!(invite(&workspace.owner, &workspace, sent(15)).await["level"], 15);
    assert_eq!(invite(&admin, &workspace, sent(1)).await["level"], 8);
    assert_eq!(invite(&member, &workspace, sent(1)).await["level"], 1);
    // An expired invite is not combined.
    invite(&workspace.owner, &workspace, sent(15)).await;
    clock.advance(Duration::from_hours(72));
    assert_eq!(invite(&workspace.owner, &workspace, sent(1)).await["level"], 1);
    // Without the flag, nothing is combined.
    invite(&workspace.owner, &workspace, sent(15)).await;
    let mut plain = sent(8);
    plain["combine_pending_invites"] = json!(false);
    assert_eq!(invite(&workspace.owner, &workspace, plain).await["level"], 8);
    assert_eq!(listed(&workspace, "level").await, [8]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn any_member_can_delete_any_invite() {
    let (workspace, member) = Workspace::with_member("ann", Level::Member).await;
    let sent = json!({ "target_email": "new@x.example", "level": 15 });
    let made = invite(&workspace.owner, &workspace, sent).await;
    let one = invites(&workspace, &format!("{}/", made["id"].as_str().expect("an id")));
    member.delete(&one).await.assert_empty(204);
    assert_eq!(listed(&workspace, "id").await, [] as [Value; 0]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn invites_are_deleted_with_their_organization() {
    let (workspace, owner) = Workspace::owned().await;
    let made = invite(&owner, &workspace, json!({ "target_email": "new@x.example" })).await;
    let signup = format!("/api/signup/{}/", made["id"].as_str().expect("an id"));
    workspace.anonymous().get(&signup).await.ok();
    owner.delete(&workspace.organization("")).await.assert_empty(204);
    let gone = workspace.anonymous().get(&signup).await;
    gone.assert_bad_body("The provided invite ID is not valid.");
    workspace.assert_file_valid().await;
}
