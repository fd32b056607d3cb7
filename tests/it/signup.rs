//! Tests of accepting invites: new and existing users, invalid tokens, and the access of a new member.

use crate::support::prelude::*;

const UNKNOWN: &str = "The provided invite ID is not valid.";
const EXPIRED: &str = "This invite has expired. Please ask your admin for a new one.";
const OTHER: &str = "This invite is intended for another email address.";

/// Invites an address to the first organization.
pub async fn offer(workspace: &Workspace, email: &str, level: i64) -> Offer {
    let sent = json!({ "target_email": email, "first_name": "Ann", "level": level });
    Offer::of(&invite(&workspace.owner, workspace, sent).await)
}

/// Asserts the error for an unknown invite.
#[track_caller]
fn is_unknown(answer: &TestResponse) {
    answer.assert_bad_body(UNKNOWN);
}

async fn member_emails(workspace: &Workspace) -> Vec<String> {
    let list = workspace.owner.get(&workspace.organization("members/")).await.ok();
    let email = |user: Value| user["email"].as_str().expect("an address").to_owned();
    column(&list, "user").into_iter().map(email).collect()
}

#[tokio::test]
async fn new_user_joins_with_the_token_and_gets_a_key() {
    let (workspace, owner) = Workspace::owned().await;
    let anonymous = workspace.anonymous();
    let offer = offer(&workspace, "Ann@x.example", 8).await;
    let shown = anonymous.get(&offer.path).await.ok();
    let expected = json!({
        "id": shown["id"], "target_email": "Ann@x.example", "first_name": "Ann", "organization_name": "Corp",
        "unproven_account": null,
    });
    assert_eq!(shown, expected);
    offer.open(&anonymous).await.assert_is(200, expected);

    let fields = json!({
        "first_name": "Anna", "last_name": "Lee", "role_at_organization": "gardener", "password": "secret",
        "email": "mallory@x.example", "level": 15,
    });
    let answer = offer.accept(&anonymous, fields).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.headers["cache-control"], "no-store");
    let body = answer.ok();
    let key = workspace.with_key(body["personal_api_key"]["value"].as_str().expect("a key"));
    let member = owner.get(&workspace.organization("members/?email=Ann@x.example")).await.ok();
    let member = member["results"][0].clone();
    let mut expected = member["user"].clone();
    expected["organization"] = json!({ "id": workspace.made.organization_id, "name": "Corp" });
    expected["redirect_url"] = json!("/");
    expected["personal_api_key"] = json!({
        "id": body["personal_api_key"]["id"], "value": key.key, "label": "Default", "scopes": ["*"],
    });
    assert_eq!(body, expected);
    assert_eq!(
        redacted(member["user"].clone()),
        json!({
            "id": 2, "uuid": "[uuid]", "distinct_id": "[distinct_id]", "first_name": "Anna", "last_name": "Lee",
            "email": "Ann@x.example", "is_email_verified": false, "hedgehog_config": null,
            "role_at_organization": "gardener",
        })
    );
    assert_eq!(member["level"], 8);
    let me = key.get(ME).await.ok();
    assert_eq!(me["organization"]["id"], json!(workspace.made.organization_id));
    assert_eq!(me["team"]["id"], json!(workspace.made.project_id));
    // The account takes its own role back, and no other that a PATCH may not set.
    key.patch(ME, me.clone()).await.assert_is(200, me);
    let other = key.patch(ME, json!({ "role_at_organization": "farmer" })).await;
    let detail = "\"farmer\" is not a valid choice.";
    other.assert_invalid("role_at_organization", "invalid_choice", detail);
    key.post(&workspace.organization("projects/"), json!({})).await.ok();

    // The invite is deleted.
    is_unknown(&anonymous.get(&offer.path).await);
    is_unknown(&offer.accept(&anonymous, json!({ "first_name": "Again" })).await);
    assert_eq!(listed(&workspace, "id").await, [] as [Value; 0]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn wrong_used_and_foreign_tokens_return_the_same_error() {
    let workspace = Workspace::new().await;
    let other = Workspace::new().await;
    let anonymous = workspace.anonymous();
    let ann = offer(&workspace, "ann@x.example", 1).await;
    let bob = offer(&workspace, "bob@x.example", 1).await;
    let foreign = offer(&other, "ann@x.example", 1).await;
    let fields = json!({ "first_name": "Ann" });
    let nowhere = "/api/signup/01890000-0000-7000-8000-000000000000/";
    let mut wrong = ann.token.clone();
    wrong.replace_range(..1, if wrong.starts_with('0') { "1" } else { "0" });
    let uppercase = ann.token.to_uppercase();
    for (path, token) in [
        (ann.path.as_str(), wrong.as_str()),
        (ann.path.as_str(), &bob.token),
        (ann.path.as_str(), &foreign.token),
        (ann.path.as_str(), &ann.token[1..]),
        (ann.path.as_str(), &uppercase),
        (ann.path.as_str(), "x"),
        (nowhere, &ann.token),
        ("/api/signup/abc/", &ann.token),
        ("/api/signup/1/", &ann.token),
        (foreign.path.as_str(), &foreign.token),
    ] {
        let offer = Offer { path: path.to_owned(), token: token.to_owned() };
        is_unknown(&offer.accept(&anonymous, fields.clone()).await);
        is_unknown(&offer.accept(&anonymous, json!({})).await);
        is_unknown(&offer.accept(&workspace.owner, fields.clone()).await);
        is_unknown(&anonymous.get(&format!("{path}?token={token}")).await);
    }
    let long = "Ensure this field has no more than 200 characters.";
    for (sent, code, detail) in [
        (json!({ "first_name": "A" }), "required", "This field is required."),
        (json!({ "token": null }), "null", "This field may not be null."),
        (json!({ "token": "" }), "blank", "This field may not be blank."),
        (json!({ "token": [] }), "invalid_input", "Not a valid string."),
        (json!({ "token": "x".repeat(201) }), "max_length", long),
    ] {
        for path in [&ann.path, nowhere] {
            anonymous.post(path, sent.clone()).await.assert_invalid("token", code, detail);
        }
    }
    // The tokens of a replaced and of a deleted invite are invalid.
    let again = offer(&workspace, "ann@x.example", 1).await;
    is_unknown(&ann.accept(&anonymous, fields.clone()).await);
    let id = again.path.trim_start_matches("/api/signup/");
    workspace.owner.delete(&invites(&workspace, id)).await.assert_empty(204);
    is_unknown(&again.accept(&anonymous, fields).await);
    assert_eq!(member_emails(&workspace).await.len(), 1);
}

#[tokio::test]
async fn expired_invite_cannot_be_accepted() {
    let (workspace, clock) = Workspace::timed().await;
    let anonymous = workspace.anonymous();
    let offer = offer(&workspace, "ann@x.example", 1).await;
    clock.advance(Duration::from_hours(72) - Duration::from_micros(1));
    anonymous.get(&offer.path).await.ok();
    clock.advance(Duration::from_micros(1));
    anonymous.get(&offer.path).await.assert_invalid_body("expired", EXPIRED);
    let late = offer.accept(&anonymous, json!({ "first_name": "A" })).await;
    late.assert_invalid_body("expired", EXPIRED);
    // On accepting, a caller needs the right token to learn that the invite has expired.
    let wrong = Offer { token: "x".to_owned(), ..offer };
    is_unknown(&wrong.accept(&anonymous, json!({ "first_name": "A" })).await);
}

#[tokio::test]
async fn signup_fields_of_a_new_user_are_validated() {
    let workspace = Workspace::new().await;
    let anonymous = workspace.anonymous();
    let offer = offer(&workspace, "ann@x.example", 1).await;
    offer.accept(&anonymous, json!({})).await.assert_invalid(
        "first_name",
        "required",
        "This field is required.",
    );
    let long = "Ensure this field has no more than 128 characters.";
    for (attr, value, code, detail) in [
        ("first_name", json!(" "), "blank", "This field may not be blank."),
        ("first_name", json!("x".repeat(129)), "max_length", long),
        ("last_name", json!({}), "invalid_input", "Not a valid string."),
        ("role_at_organization", json!("x".repeat(129)), "max_length", long),
    ] {
        let mut fields = json!({ "first_name": "A" });
        fields[attr] = value;
        offer.accept(&anonymous, fields).await.assert_invalid(attr, code, detail);
    }
    let array = anonymous.post(&offer.path, json!([])).await;
    array.assert_bad_body("Invalid data. Expected a dictionary, but got list.");
    let fields = json!({ "first_name": "A", "role_at_organization": "" });
    let body = offer.accept(&anonymous, fields).await.ok();
    assert_eq!((&body["last_name"], &body["role_at_organization"]), (&json!(""), &Value::Null));
}

#[tokio::test]
async fn existing_user_accepts_an_invite_only_with_their_own_key() {
    let workspace = Workspace::new().await;
    let (eve, own) = workspace.outsider("eve").await;
    let offer = offer(&workspace, "EVE@other.example", 1).await;
    let id = offer.path.trim_start_matches("/api/signup/").trim_end_matches('/');
    let anonymous = workspace.anonymous();
    let login = format!("/login?next=/signup/{id}");
    anonymous.get(&offer.path).await.assert_invalid_body("account_exists", &login);
    let accepted = offer.accept(&anonymous, json!({ "first_name": "E" })).await;
    accepted.assert_invalid_body("account_exists", &login);
    let (mallory, _) = workspace.outsider("mallory").await;
    for caller in [&mallory, &workspace.owner] {
        caller.get(&offer.path).await.assert_invalid_body("invalid_recipient", OTHER);
        offer.accept(caller, json!({})).await.assert_invalid_body("invalid_recipient", OTHER);
    }
    // Keys of the invited user without sufficient permissions.
    let email = "eve@other.example";
    let reads = workspace.key(email, &["user:read", "organization:write"]).await;
    let refused = offer.accept(&reads, json!({})).await;
    refused.assert_denied("API key missing required scope 'user:write'");
    reads.get(&offer.path).await.ok();
    let limited = "API keys limited to organizations or projects cannot join an organization.";
    for limits in
        [json!({ "organizations": [own["id"]] }), json!({ "projects": [own["project_id"]] })]
    {
        let key = workspace.limited_key(email, &["*"], limits).await;
        offer.accept(&key, json!({})).await.assert_denied(limited);
        // Its body is not read.
        key.fetch(Method::POST, &offer.path, &JSON, "{").await.assert_denied(limited);
    }
    let dead = workspace.with_key("phx_no_such_key");
    assert_eq!(offer.accept(&dead, json!({})).await.status, 401);
    assert_eq!(dead.get(&offer.path).await.status, 401);

    assert_eq!(eve.get(&offer.path).await.ok()["organization_name"], "Corp");
    let key = workspace.key(email, &["user:write"]).await;
    // The fields of a new user are ignored.
    let answer = offer.accept(&key, json!({ "first_name": [], "password": 1 })).await;
    let expected = json!({
        "id": 2, "uuid": "[uuid]", "distinct_id": "[distinct_id]", "first_name": "", "last_name": "",
        "email": email, "is_email_verified": false, "hedgehog_config": null, "role_at_organization": null,
        "organization": { "id": "[id]", "name": "Corp" }, "redirect_url": "/", "personal_api_key": null,
    });
    assert_eq!((answer.status, redacted(answer.body)), (201, expected));
    let me = eve.get(ME).await.ok();
    assert_eq!(me["organization"]["id"], json!(workspace.made.organization_id));
    assert_eq!(me["organizations"].as_array().expect("a list").len(), 2);
    is_unknown(&offer.accept(&eve, json!({})).await);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn existing_member_cannot_accept_an_invite() {
    let workspace = Workspace::new().await;
    let (eve, _) = workspace.outsider("eve").await;
    let offer = offer(&workspace, "eve@other.example", 15).await;
    workspace.rejoin("eve@other.example", Level::Member).await;
    let text = "You already are a member of this organization.";
    eve.get(&offer.path).await.assert_invalid_body("user_already_member", text);
    offer.accept(&eve, json!({})).await.assert_invalid_body("user_already_member", text);
    assert_eq!(eve.get(&workspace.organization("")).await.ok()["membership_level"], 1);
}

#[tokio::test]
async fn concurrent_accepts_of_an_invite_succeed_once() {
    let workspace = Workspace::new().await;
    let anonymous = workspace.anonymous();
    let ann = offer(&workspace, "ann@x.example", 1).await;
    let fields = || json!({ "first_name": "Ann" });
    let (one, two) =
        tokio::join!(ann.accept(&anonymous, fields()), ann.accept(&anonymous, fields()));
    let (joined, refused) = if one.status == 201 { (one, two) } else { (two, one) };
    assert_eq!(joined.status, 201);
    is_unknown(&refused);
    assert_eq!(member_emails(&workspace).await, ["ann@x.example", OWNER]);

    // Invites for one address to two organizations, accepted at the same time, create one account.
    let (eve, _) = workspace.outsider("eve").await;
    let bob = offer(&workspace, "bob@x.example", 1).await;
    let sent = json!({ "target_email": "Bob@x.example" });
    let other = Offer::of(&eve.post("/api/organizations/@current/invites/", sent).await.ok());
    let (one, two) =
        tokio::join!(bob.accept(&anonymous, fields()), other.accept(&anonymous, fields()));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 400]);
    let refused = if one.status == 400 { one } else { two };
    assert_eq!(refused.body["code"], "account_exists");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn private_project_grants_take_effect_on_joining() {
    let (workspace, owner) = Workspace::owned().await;
    let anonymous = workspace.anonymous();
    let mut ids = Vec::new();
    for name in ["One", "Two", "Three", "Gone"] {
        let sent = json!({ "name": name, "access_control": true });
        ids.push(owner.post(&workspace.organization("projects/"), sent).await.ok()["id"].clone());
    }
    let sent = json!({
        "target_email": "ann@x.example",
        "private_project_access": [
            { "id": ids[0], "level": 1 }, { "id": ids[1], "level": "none" }, { "id": ids[3], "level": "admin" },
            { "id": ids[0], "level": "admin" }, { "id": ids[0], "level": "member" },
        ],
    });
    let offer = Offer::of(&invite(&owner, &workspace, sent).await);
    owner.delete(&format!("/api/projects/{}/", ids[3])).await.assert_empty(204);
    let body = offer.accept(&anonymous, json!({ "first_name": "Ann" })).await.ok();
    let ann = workspace.with_key(body["personal_api_key"]["value"].as_str().expect("a key"));
    let list = ann.get(&workspace.organization("projects/")).await.ok();
    assert_eq!(column(&list, "name"), ["Web", "One"]);
    assert_eq!(list["count"], 2);
    let one = ann.get(&format!("/api/projects/{}/", ids[0])).await.ok();
    assert_eq!(one["effective_membership_level"], 8);
    ann.get(&format!("/api/projects/{}/", ids[1])).await.assert_not_found("Not found.");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn operator_prints_the_link_of_an_invite() {
    let workspace = Workspace::with(with_mail()).await;
    let made =
        invite(&workspace.owner, &workspace, json!({ "target_email": "ann@x.example" })).await;
    assert_eq!(made["accept_url"], Value::Null);
    let id = serde_json::from_value(made["id"].clone()).expect("an id");
    let link = workspace.run_operation(Operation::InviteLink { id }).await;
    let expected = json!({ "id": made["id"], "target_email": "ann@x.example", "accept_url": link["accept_url"] });
    assert_eq!(link, expected);
    let offer = Offer::of(&link);
    let body = offer.accept(&workspace.anonymous(), json!({ "first_name": "Ann" })).await.ok();
    assert_eq!(body["is_email_verified"], false, "a link does not prove the address");
    let gone = perform(&workspace.app, Operation::InviteLink { id }, Progress::silent()).await;
    let gone = gone.expect_err("it was used");
    assert_eq!((gone.status(), gone.detail()), (404, format!("There is no invite {id}.").as_str()));
}

#[tokio::test]
async fn invite_links_use_the_configured_host_and_never_a_request_header() {
    let mut public = Config::default();
    public.public_url = Some("https://admin.corp.example/".to_owned());
    let mut trusting = Config::default();
    trusting.trusted_proxies = vec!["0.0.0.0/0".parse().expect("a network")];
    for (config, begins) in [
        (public, "https://admin.corp.example/signup/"),
        (trusting, "http://127.0.0.1:8000/signup/"),
    ] {
        let workspace = Workspace::with(config).await;
        let headers = [JSON[0], ("host", "evil.example"), ("x-forwarded-host", "evil.example")];
        let body = json!({ "target_email": "ann@x.example" }).to_string();
        let path = invites(&workspace, "");
        let made = workspace.owner.fetch(Method::POST, &path, &headers, body).await.ok();
        let link = made["accept_url"].as_str().expect("a link");
        assert!(link.starts_with(begins), "{link}");
    }
}

#[tokio::test]
async fn removed_or_demoted_member_gains_nothing_by_their_own_invites() {
    let (workspace, owner) = Workspace::owned().await;
    let anonymous = workspace.anonymous();
    let adam = workspace.member("adam", Level::Admin).await;
    let sent = json!({ "name": "Secret", "access_control": true });
    let secret = owner.post(&workspace.organization("projects/"), sent).await.ok()["id"].clone();
    let from_adam = async |email: &str, more: Value| {
        let mut sent = json!({ "target_email": email });
        sent.as_object_mut().expect("an object").extend(more.as_object().expect("fields").clone());
        Offer::of(&invite(&adam, &workspace, sent).await)
    };
    let high = from_adam("high@x.example", json!({ "level": 8 })).await;
    let access = json!({ "private_project_access": [{ "id": secret, "level": 1 }] });
    let inside = from_adam("inside@x.example", access).await;
    let plain = from_adam("plain@x.example", json!({})).await;
    let adam = workspace.uuid("adam@corp.example").await;
    let path = workspace.organization(&format!("members/{adam}/"));
    owner.patch(&path, json!({ "level": 1 })).await.ok();
    let fields = || json!({ "first_name": "A" });
    for offer in [&high, &inside] {
        is_unknown(&offer.accept(&anonymous, fields()).await);
        is_unknown(&anonymous.get(&offer.path).await);
    }
    anonymous.get(&plain.path).await.ok();
    // With the former level restored, the invite is valid again.
    owner.patch(&path, json!({ "level": 8 })).await.ok();
    high.accept(&anonymous, fields()).await.ok();
    owner.delete(&path).await.assert_empty(204);
    // The invites were deleted, so a later membership makes none valid again.
    workspace.rejoin("adam@corp.example", Level::Admin).await;
    for offer in [&inside, &plain] {
        is_unknown(&offer.accept(&anonymous, fields()).await);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn signup_is_logged_without_tokens() {
    let workspace = Workspace::new().await;
    let told = || {
        let entries = entries(&workspace);
        let told = entries.iter().map(|entry| {
            let shown = &entry.fields;
            let is_own = entry.meta.organization == workspace.made.organization_id;
            assert!(is_own || shown.scope == "User");
            let name = shown.detail.name.clone().unwrap_or_default();
            format!("{} {} {name}", shown.scope, shown.activity)
        });
        told.collect::<Vec<_>>()
    };
    let before = told().len();
    let twice = json!([{ "target_email": "a@x.example" }, { "target_email": "b@x.example" }, { "target_email": "A@x.example" }]);
    workspace.owner.post(&invites(&workspace, "bulk/"), twice).await.assert_empty(200);
    let offer = offer(&workspace, "b@x.example", 1).await;
    let gone = self::offer(&workspace, "c@x.example", 1).await;
    let id = gone.path.trim_start_matches("/api/signup/");
    workspace.owner.delete(&invites(&workspace, id)).await.assert_empty(204);
    offer.accept(&workspace.anonymous(), json!({ "first_name": "B" })).await.ok();
    let mut told = told().split_off(before);
    told[..2].sort_unstable();
    assert_eq!(
        told,
        [
            "OrganizationInvite created a@x.example",
            "OrganizationInvite created b@x.example",
            "OrganizationInvite created b@x.example",
            "OrganizationInvite created c@x.example",
            "OrganizationInvite deleted c@x.example",
            "OrganizationMembership created ",
        ]
    );
    let entries = entries(&workspace);
    let text: String =
        entries.iter().map(|entry| serde_json::to_string(&entry.fields).expect("JSON")).collect();
    assert!(!text.contains(&offer.token) && !text.contains(&gone.token));
}
