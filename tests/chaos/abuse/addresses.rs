//! Tests of accounts that were created by a link, and of users that prove their address later.

use futures_util::poll;
use steward::testing::operator::{KeyOptions, OrganizationOptions};
use steward::testing::resources::activity::Entry;
use steward::testing::resources::{cascade_delete, domains};

use super::mail::sending_to;
use crate::prelude::*;
use crate::support::activity::entries;
use crate::support::dry_run::DryRunOutcome;
use crate::support::invites::{invites, with_mail};
use crate::support::new_key;

const VICTIM: &str = "ceo@big.example";
const ME: &str = "/api/users/@me/";
const CURRENT_INVITES: &str = "/api/organizations/@current/invites/";

/// Returns the invite with the token of its mail.
pub fn mailed(workspace: &Workspace, invite: &Value) -> Offer {
    let id = invite["id"].as_str().expect("an id");
    let link = workspace.app.links().mail_link(id.parse().expect("an id"));
    Offer::of(&json!({ "id": id, "accept_url": link }))
}

/// Returns the invite with the token of the link that the operator prints.
pub async fn handed_over(workspace: &Workspace, invite: &Value) -> Offer {
    let id = invite["id"].as_str().expect("an id").parse().expect("an id");
    Offer::of(&workspace.run_operation(Operation::InviteLink { id }).await)
}

/// Returns the request that takes over an account.
fn taking_over(first_name: &str) -> Value {
    json!({ "first_name": first_name, "take_over": true })
}

/// An attacker with an organization, and the account that the attacker created with the victim's address by a link.
struct Squat {
    workspace: Workspace,
    attacker: TestClient,
    /// The output of `organization create` for the attacker's organization.
    own: Value,
    /// The response to accepting the invite by the link.
    joined: Value,
    /// The key of the attacker's account with the victim's address.
    key: TestClient,
}

impl Squat {
    async fn in_workspace(workspace: Workspace) -> Self {
        let (attacker, own) = workspace.outsider("mallory").await;
        let sent = json!({ "target_email": VICTIM, "level": 8, "send_email": false });
        let offer = Offer::of(&attacker.post(CURRENT_INVITES, sent).await.ok());
        let (joined, key) = offer.join(&workspace, json!({ "first_name": "M" })).await;
        Self { workspace, attacker, own, joined, key }
    }

    async fn new() -> Self {
        Self::in_workspace(Workspace::with(with_mail()).await).await
    }

    /// Invites the victim to the first organization by mail. Returns the invite.
    async fn invited(&self) -> Value {
        invite(&self.workspace.owner, &self.workspace, json!({ "target_email": VICTIM })).await
    }

    /// Creates this many organizations with the account.
    async fn found(&self, count: usize) {
        for number in 0..count {
            let sent = json!({ "name": format!("O{number}") });
            self.key.post("/api/organizations/", sent).await.ok();
        }
    }

    fn attackers(&self, rest: &str) -> String {
        in_organization(&self.own, rest)
    }
}

/// Returns the ids of all organizations.
async fn all_organizations(workspace: &Workspace) -> Vec<Value> {
    column(&workspace.run_operation(Operation::OrganizationList).await, "id")
}

/// Deletes what removals left to the background task.
async fn finish_removals(workspace: &Workspace) {
    while workspace.write(cascade_delete::delete_batch).await {}
}

/// Returns the log entries about memberships of an organization: the action, and the changes as `field: [before,
/// after]`.
fn memberships_told(workspace: &Workspace, organization: &Value) -> Vec<Value> {
    let mut told = Vec::new();
    for Entry { meta, fields } in entries(workspace) {
        if json!(meta.organization) == *organization && fields.scope == "OrganizationMembership" {
            let mut changes = json!({});
            for change in &fields.detail.changes {
                changes[&change.field] = json!([change.before, change.after]);
            }
            told.push(json!([fields.activity, changes]));
        }
    }
    told
}

#[tokio::test]
async fn proving_an_address_takes_over_an_account_created_by_link() {
    let squat = Squat::new().await;
    let (workspace, anonymous) = (&squat.workspace, squat.workspace.anonymous());
    // The attacker adds everything to the account that it can have: keys, an organization, access, an invite, a
    // profile.
    let keys = "/api/personal_api_keys/";
    let sent = json!({ "label": "spare", "scopes": ["*"] });
    let spare = squat.key.post(keys, sent).await.ok();
    let rolled = format!("{keys}{}/roll/", spare["id"].as_str().expect("an id"));
    let rolled = squat.key.post(&rolled, json!({ "grace_seconds": 86_400 })).await.ok();
    let spares =
        [&spare, &rolled].map(|key| workspace.with_key(key["value"].as_str().expect("one")));
    let alone = squat.key.post("/api/organizations/", json!({ "name": "Alone" })).await.ok();
    let private = json!({ "name": "Secret", "access_control": true });
    let private = squat.attacker.post(&squat.attackers("projects/"), private).await.ok();
    let found = squat.attackers(&format!("members/?email={VICTIM}"));
    let member = squat.attacker.get(&found).await.ok()["results"][0].clone();
    let grant = json!({ "organization_member": member["id"], "access_level": "admin" });
    let controls = format!("/api/projects/{}/access_controls/", private["id"]);
    squat.attacker.put(&controls, grant).await.ok();
    let accomplice = json!({ "target_email": "x@evil.example", "send_email": false });
    squat.key.post(&squat.attackers("invites/"), accomplice).await.ok();
    let profile = json!({ "role_at_organization": "founder", "theme_mode": "dark" });
    squat.key.patch(ME, profile).await.ok();

    let made = squat.invited().await;
    let (by_mail, by_link) = (mailed(workspace, &made), handed_over(workspace, &made).await);
    let login = format!("/login?next=/signup/{}", made["id"].as_str().expect("an id"));
    let fields = || json!({ "first_name": "Cleo", "last_name": "Big", "take_over": true });
    anonymous.get(&by_mail.path).await.assert_invalid_body("account_exists", &login);
    by_link.accept(&anonymous, fields()).await.assert_invalid_body("account_exists", &login);
    by_link.open(&anonymous).await.assert_invalid_body("account_exists", &login);
    assert_eq!(by_mail.open(&anonymous).await.ok()["target_email"], VICTIM);
    let nameless = by_mail.accept(&anonymous, json!({ "take_over": true })).await;
    nameless.assert_invalid("first_name", "required", "This field is required.");
    assert_eq!(squat.key.get(ME).await.status, 200, "a failed request deletes nothing");

    let headers = [("idempotency-key", "once"), ("content-type", "application/json")];
    let mut sent = fields();
    sent["token"] = json!(by_mail.token);
    let post = || anonymous.fetch(Method::POST, &by_mail.path, &headers, sent.to_string());
    let answer = post().await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let body = answer.ok();
    for (name, value) in [
        ("id", &squat.joined["id"]),
        ("first_name", &json!("Cleo")),
        ("last_name", &json!("Big")),
        ("is_email_verified", &json!(true)),
        ("role_at_organization", &Value::Null),
    ] {
        assert_eq!(&body[name], value, "{name}");
    }
    let again = post().await.ok();
    assert_eq!((&again["id"], &again["personal_api_key"]), (&body["id"], &Value::Null));

    for key in [&squat.key, &spares[0], &spares[1]] {
        assert_eq!(key.get(ME).await.status, 401);
    }
    let key = workspace.with_key(body["personal_api_key"]["value"].as_str().expect("a key"));
    let me = key.get(ME).await.ok();
    assert_eq!(me["organization"]["id"], json!(workspace.made.organization_id));
    assert_eq!(me["organizations"].as_array().expect("a list").len(), 1);
    assert_eq!(me["theme_mode"], Value::Null);
    assert_eq!(key.get(keys).await.ok().as_array().expect("keys").len(), 1);
    // Everything in the attacker's organization is deleted, and so is the organization of which it was the only member.
    finish_removals(workspace).await;
    assert_eq!(squat.attacker.get(&found).await.ok()["count"], 0);
    assert_eq!(squat.attacker.get(&squat.attackers("invites/")).await.ok()["count"], 0);
    let ids = all_organizations(workspace).await;
    assert!(!ids.contains(&alone["id"]) && ids.contains(&squat.own["id"]), "{ids:?}");

    let here = memberships_told(workspace, &json!(workspace.made.organization_id));
    let joined = here.last().expect("an entry");
    assert_eq!(joined[0], "created");
    assert_eq!(joined[1]["invited_by"], json!([null, OWNER]));
    assert_eq!(joined[1]["joined_by"], json!([null, "mail"]));
    assert!(joined[1]["took_over_account_since"][1].is_string(), "{joined}");
    let there = memberships_told(workspace, &squat.own["id"]);
    let left = there.last().expect("an entry");
    let expected = json!({
        "invited_by": ["mallory@other.example", null], "joined_by": ["link", null],
    });
    assert_eq!(left, &json!(["deleted", expected]));
    finish_removals(workspace).await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn takeover_is_announced_by_mail_to_the_address_owner() {
    let mut server = MailServer::start();
    let (config, clock) = with_clock();
    let squat = Squat::in_workspace(Workspace::with(sending_to(config, &server)).await).await;
    assert_eq!(server.mail().await.subject(), "M has joined mallory's");
    clock.advance(Duration::from_hours(1));
    let made = squat.invited().await;
    assert_eq!(server.mail().await.subject(), "Olga invites you to Corp");
    let offer = mailed(&squat.workspace, &made);
    offer.accept(&squat.workspace.anonymous(), taking_over("Cleo")).await.ok();
    let joined = server.mail().await;
    assert_eq!((joined.to[0].as_str(), joined.subject().as_str()), (OWNER, "Cleo has joined Corp"));
    // An address receives at most one mail a minute.
    clock.advance(Duration::from_mins(2));
    let mail = server.mail().await;
    assert_eq!(mail.to, [VICTIM]);
    assert_eq!(mail.subject(), format!("You have taken over the account of {VICTIM}"));
    let text = mail.parsed().body_text(0).expect("text").replace("\r\n", "\n");
    let since = "An account with this address has existed since 2023-11-14 22:13 UTC.";
    assert!(text.contains(since), "{text}");
    assert!(!text.contains("phx_") && !text.contains("mallory"), "{text}");
    server.has_no_more();
    squat.workspace.assert_file_valid().await;
}

/// Asserts that accepting an invite to this address by mail requires the account's key.
async fn stays(workspace: &Workspace, email: &str) {
    let made = invite(&workspace.owner, workspace, json!({ "target_email": email })).await;
    let offer = mailed(workspace, &made);
    let answer = offer.accept(&workspace.anonymous(), taking_over("E")).await;
    assert_eq!((answer.status, &answer.body["code"]), (400, &json!("account_exists")), "{email}");
}

#[tokio::test]
async fn proven_and_operator_created_accounts_cannot_be_taken_over() {
    // An account that the operator created, with an unproven address.
    let squat = Squat::new().await;
    stays(&squat.workspace, "mallory@other.example").await;
    // Accounts whose address was proven by a mail: one when joining, one later with the account's key.
    let sent = json!({ "target_email": "eva@x.example" });
    let made = squat.attacker.post(CURRENT_INVITES, sent).await.ok();
    let fields = json!({ "first_name": "Eva" });
    mailed(&squat.workspace, &made).accept(&squat.workspace.anonymous(), fields).await.ok();
    stays(&squat.workspace, "eva@x.example").await;
    let by_mail = mailed(&squat.workspace, &squat.invited().await);
    assert_eq!(by_mail.accept(&squat.key, json!({})).await.ok()["is_email_verified"], true);
    squat.key.delete(&squat.workspace.organization("members/@me/")).await.assert_empty(204);
    stays(&squat.workspace, VICTIM).await;
    assert_eq!(squat.key.get(ME).await.status, 200);

    // An account that the operator deactivated: only the operator may reactivate it.
    let squat = Squat::new().await;
    squat.workspace.set_active(VICTIM, false).await;
    stays(&squat.workspace, VICTIM).await;
    squat.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn takeover_happens_only_if_the_request_asks_for_it() {
    let squat = Squat::new().await;
    let (workspace, anonymous) = (&squat.workspace, squat.workspace.anonymous());
    let alone = squat.key.post("/api/organizations/", json!({ "name": "Alone" })).await.ok();
    let made = squat.invited().await;
    let (by_mail, by_link) = (mailed(workspace, &made), handed_over(workspace, &made).await);
    let login = format!("/login?next=/signup/{}", made["id"].as_str().expect("an id"));

    let offered = by_mail.open(&anonymous).await.ok();
    let account = &offered["unproven_account"];
    assert!(account["created_at"].is_string(), "{account}");
    let counted = ["api_keys", "organizations", "organizations_deleted"].map(|name| &account[name]);
    assert_eq!(counted, [&json!(1), &json!(2), &json!(1)]);
    // The token of the link does not prove the address, so the response does not describe the account.
    by_link.open(&anonymous).await.assert_invalid_body("account_exists", &login);
    // An address without an account.
    let new = invite(&workspace.owner, workspace, json!({ "target_email": "new@x.example" })).await;
    let new = mailed(workspace, &new);
    assert_eq!(new.open(&anonymous).await.ok()["unproven_account"], Value::Null);
    new.accept(&anonymous, taking_over("New")).await.ok();

    for fields in [json!({ "first_name": "Cleo" }), json!({ "take_over": false }), json!({})] {
        by_mail.accept(&anonymous, fields).await.assert_invalid_body("account_exists", &login);
    }
    let invalid = json!({ "first_name": "Cleo", "take_over": "x" });
    let refused = by_mail.accept(&anonymous, invalid).await;
    refused.assert_invalid("take_over", "invalid_input", "Must be a valid boolean.");
    // With the account's own key, the user joins with the account, and nothing is deleted.
    let joined = by_mail.accept(&squat.key, json!({ "take_over": true })).await.ok();
    assert_eq!((&joined["id"], &joined["is_email_verified"]), (&squat.joined["id"], &json!(true)));
    assert_eq!(squat.key.get(ME).await.ok()["organizations"].as_array().expect("a list").len(), 3);
    let ids = all_organizations(workspace).await;
    assert!(ids.contains(&alone["id"]), "{ids:?}");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn takeover_with_several_writes_continues_after_its_client_disconnects() {
    let squat = Squat::new().await;
    squat.found(95).await;
    let offer = mailed(&squat.workspace, &squat.invited().await);
    let anonymous = squat.workspace.anonymous();
    let mut client = Box::pin(offer.accept(&anonymous, taking_over("Cleo")));
    eventually_async("the account's key is deleted", async || {
        if squat.key.get(ME).await.status == 401 {
            return Some(());
        }
        let _pending = poll!(client.as_mut());
        None
    })
    .await;
    drop(client);
    let members = squat.workspace.organization(&format!("members/?email={VICTIM}"));
    eventually_async("the account is a member", async || {
        (squat.workspace.owner.get(&members).await.ok()["count"] == 1).then_some(())
    })
    .await;
    assert_eq!(all_organizations(&squat.workspace).await.len(), 2);
}

#[tokio::test]
async fn dry_run_of_a_takeover_deletes_nothing_and_is_refused_if_it_needs_several_writes() {
    let squat = Squat::new().await;
    let (workspace, anonymous) = (&squat.workspace, squat.workspace.anonymous());
    let offer = mailed(workspace, &squat.invited().await);
    let mut sent = taking_over("Cleo");
    sent["token"] = json!(offer.token);
    let dry_run =
        || DryRunOutcome::of(workspace, &anonymous, Method::POST, &offer.path, Some(&sent));
    let tried = dry_run().await;
    assert_eq!((&tried.body()["status"], &tried.body()["activity"]), (&json!(201), &Value::Null));
    assert_eq!(squat.key.get(ME).await.status, 200);
    squat.found(25).await;
    let refused = dry_run().await;
    let detail = "The account has too many memberships for a dry run, because taking it over needs several transactions.";
    let expected = json!({
        "type": "validation_error", "code": "limit_reached", "detail": detail, "attr": null,
    });
    assert_eq!(refused.body(), &expected);
    assert_eq!(squat.key.get(ME).await.status, 200);
    assert_eq!(anonymous.post(&offer.path, sent).await.status, 201);
    assert_eq!(squat.key.get(ME).await.status, 401);
    assert_eq!(all_organizations(workspace).await.len(), 2);
    let told = memberships_told(workspace, &squat.own["id"]);
    assert_eq!(told.last().expect("an entry")[0], "deleted");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn account_that_is_already_a_member_can_be_taken_over_by_its_invite() {
    let squat = Squat::new().await;
    let offer = mailed(&squat.workspace, &squat.invited().await);
    let workspace = &squat.workspace;
    workspace.rejoin(VICTIM, Level::Admin).await;
    let sent = json!({ "target_email": "x@x.example" });
    let by_squatter = mailed(workspace, &invite(&squat.key, workspace, sent).await);
    let (_, victim) = offer.join(workspace, taking_over("Cleo")).await;
    assert_eq!(victim.get(ME).await.ok()["organization"]["membership_level"], 1);
    let answer = by_squatter.accept(&workspace.anonymous(), taking_over("X")).await;
    assert_eq!((answer.status, &answer.body["code"]), (400, &json!("invalid_input")));
}

/// Returns a user in the output of `steward user list`.
async fn listed_user(workspace: &Workspace, email: &str) -> Value {
    let list = workspace.run_operation(Operation::UserList).await;
    let mut users = list["results"].as_array().expect("a list").iter();
    users.find(|one| one["email"] == email).expect("a user").clone()
}

#[tokio::test]
async fn operator_commands_reject_an_account_with_an_unproven_address() {
    let squat = Squat::new().await;
    let workspace = &squat.workspace;
    let organization = |existing| {
        Operation::OrganizationCreate(OrganizationOptions {
            name: "Big".to_owned(),
            owner: VICTIM.to_uppercase(),
            existing,
        })
    };
    let user = |existing| {
        let new = new_user(VICTIM, Some(workspace.made.organization_id));
        Operation::UserCreate(UserOptions { level: Level::Owner, existing, ..new })
    };
    let key = |existing| Operation::KeyCreate(KeyOptions { existing, ..new_key(VICTIM, "laptop") });
    let before = entries(workspace).len();
    for (operation, attr) in
        [(organization(false), "owner"), (user(false), "email"), (key(false), "email")]
    {
        let refused = perform(&workspace.app, operation, Progress::silent()).await;
        let refused = refused.expect_err("refused");
        assert_eq!((refused.code(), refused.attr()), ("unverified", Some(attr)));
        let detail = refused.detail();
        for part in [VICTIM, "unverified", " UTC", "--existing"] {
            assert!(detail.contains(part), "{detail}");
        }
    }
    assert_eq!(entries(workspace).len(), before);
    let listed = listed_user(workspace, VICTIM).await;
    assert_eq!(listed["is_email_verified"], false);
    assert_eq!(listed["link_account"]["invited_by"], "mallory@other.example");
    assert_eq!(listed["link_account"]["organization"], squat.own["id"]);
    assert!(listed["link_account"]["created_at"].is_string());
    assert_eq!(listed_user(workspace, OWNER).await["link_account"], Value::Null);
    for operation in [organization(true), user(true), key(true)] {
        workspace.run_operation(operation).await;
    }
    // A user that the operator created needs no flag.
    workspace.key(OWNER, &["*"]).await;
    // An account with a proven address needs no flag either.
    let squat = Squat::new().await;
    let offer = mailed(&squat.workspace, &squat.invited().await);
    offer.join(&squat.workspace, taking_over("Cleo")).await;
    squat.workspace.key(VICTIM, &["*"]).await;
    let shown = listed_user(&squat.workspace, VICTIM).await;
    assert_eq!((&shown["is_email_verified"], &shown["link_account"]), (&json!(true), &Value::Null));
}

#[tokio::test]
async fn only_admins_see_the_accept_link_when_mail_is_configured() {
    let sent = || json!({ "target_email": "new@x.example", "send_email": false });
    for (config, member_is_shown) in [(with_mail(), false), (steward::Config::default(), true)] {
        let workspace = Workspace::with(config).await;
        for (name, level, is_shown) in [
            ("mia", Level::Member, member_is_shown),
            ("adam", Level::Admin, true),
            ("olaf", Level::Owner, true),
        ] {
            let caller = workspace.member(name, level).await;
            let made = invite(&caller, &workspace, sent()).await;
            assert_eq!(made["accept_url"].is_string(), is_shown, "{name}");
        }
    }
}

/// Creates a domain in the caller's organization and marks it as verified.
async fn verify_domain(workspace: &Workspace, caller: &TestClient, name: &str) {
    let path = "/api/organizations/@current/domains/";
    let made = caller.post(path, json!({ "domain": name })).await.ok();
    let me = caller.get(ME).await.ok();
    let id = |value: &Value| value.as_str().expect("an id").to_owned();
    let (of, id) = (id(&me["organization"]["id"]), id(&made["id"]));
    let now = workspace.app.now();
    let verify = move |tx: &mut WriteTx<'_>| {
        domains::verify(tx, of.parse().expect("an id"), id.parse().expect("an id"), now)
    };
    workspace.write(verify).await;
}

#[tokio::test]
async fn link_cannot_create_an_account_in_a_domain_verified_by_another_organization() {
    let workspace = Workspace::with(with_mail()).await;
    let (eve, _) = workspace.outsider("eve").await;
    verify_domain(&workspace, &workspace.owner, "big.example").await;
    verify_domain(&workspace, &eve, "eves.big.example").await;
    let refused = |answer: TestResponse| {
        let text = "Accept this invite with the link in the mail to its address.";
        answer.assert_invalid_body("mail_required", text);
    };
    let fields = || json!({ "first_name": "A" });
    let anonymous = workspace.anonymous();
    let from_eve = async |email: &str| {
        eve.post(CURRENT_INVITES, json!({ "target_email": email, "send_email": false })).await.ok()
    };
    for email in ["a@big.example", "A@BIG.example", "a@dept.big.example"] {
        let link = Offer::of(&from_eve(email).await);
        refused(link.accept(&anonymous, fields()).await);
        refused(link.open(&anonymous).await);
    }
    let made = from_eve("a@big.example").await;
    mailed(&workspace, &made).accept(&anonymous, fields()).await.ok();
    // The inviter's own verified domain, which is nearer than the other one, and names that only look similar.
    for email in ["b@eves.big.example", "c@notbig.example", "d@big.example.org"] {
        Offer::of(&from_eve(email).await).accept(&anonymous, fields()).await.ok();
    }
    let sent = json!({ "target_email": "e@big.example", "send_email": false });
    let own = Offer::of(&invite(&workspace.owner, &workspace, sent).await);
    own.accept(&anonymous, fields()).await.ok();
    // A user with an account can still join by a link.
    workspace.member("f", Level::Member).await;
    let sent = json!({ "target_email": "f@corp.example", "send_email": false });
    let (ann, _) = workspace.outsider("ann").await;
    verify_domain(&workspace, &ann, "corp.example").await;
    let f = workspace.key("f@corp.example", &["*"]).await;
    Offer::of(&eve.post(CURRENT_INVITES, sent).await.ok()).accept(&f, json!({})).await.ok();
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn members_and_activity_log_show_the_inviter_and_the_join_method() {
    let workspace = Workspace::with(with_mail()).await;
    let adam = workspace.member("adam", Level::Admin).await;
    let anonymous = workspace.anonymous();
    let by_link = json!({ "target_email": "link@x.example", "send_email": false });
    let by_link = Offer::of(&invite(&adam, &workspace, by_link).await);
    by_link.accept(&anonymous, json!({ "first_name": "L" })).await.ok();
    let by_mail = json!({ "target_email": "mail@x.example" });
    let by_mail = invite(&workspace.owner, &workspace, by_mail).await;
    let by_mail = mailed(&workspace, &by_mail);
    by_mail.accept(&anonymous, json!({ "first_name": "M" })).await.ok();
    let list = workspace.owner.get(&workspace.organization("members/?order=joined_at")).await.ok();
    let shown = list["results"].as_array().expect("a list").iter();
    let row =
        |one: &Value| json!([one["user"]["email"], one["invited_by"]["email"], one["joined_by"]]);
    let expected = json!([
        [OWNER, null, null],
        ["adam@corp.example", null, null],
        ["link@x.example", "adam@corp.example", "link"],
        ["mail@x.example", OWNER, "mail"],
    ]);
    assert_eq!(shown.map(row).collect::<Value>(), expected);
    let uuid = workspace.uuid("link@x.example").await;
    let one = workspace.organization(&format!("members/{uuid}/"));
    let patched = workspace.owner.patch(&one, json!({ "level": 8 })).await.ok();
    assert_eq!(patched["joined_by"], "link");
    assert_eq!(patched["invited_by"], list["results"][1]["user"]);
    workspace.owner.delete(&one).await.assert_empty(204);

    let told = memberships_told(&workspace, &json!(workspace.made.organization_id));
    let expected = [
        json!(["created", {}]),
        json!(["created", { "invited_by": [null, "adam@corp.example"], "joined_by": [null, "link"] }]),
        json!(["created", { "invited_by": [null, OWNER], "joined_by": [null, "mail"] }]),
        json!(["updated", { "level": [1, 8] }]),
        json!(["deleted", { "invited_by": ["adam@corp.example", null], "joined_by": ["link", null] }]),
    ];
    assert_eq!(told, expected);
    workspace.assert_file_valid().await;
    // A member that is added by the operator has no inviter.
    workspace.rejoin("link@x.example", Level::Member).await;
    let found = workspace.organization("members/?email=link@x.example");
    let found = workspace.owner.get(&found).await.ok()["results"][0].clone();
    assert_eq!((&found["invited_by"], &found["joined_by"]), (&Value::Null, &Value::Null));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn activity_log_shows_deleted_and_replaced_invites_with_address_and_user() {
    let workspace = Workspace::new().await;
    let adam = workspace.member("adam", Level::Admin).await;
    let mia = workspace.member("mia", Level::Member).await;
    let sent = |email: &str, level: i64| json!({ "target_email": email, "level": level });
    let first = invite(&adam, &workspace, sent("Ann@x.example", 8)).await;
    let second = invite(&mia, &workspace, sent("ann@X.example", 1)).await;
    let one =
        |made: &Value| invites(&workspace, &format!("{}/", made["id"].as_str().expect("an id")));
    workspace.owner.delete(&one(&second)).await.assert_empty(204);
    let bulk = json!([sent("ann@x.example", 1), sent("bob@x.example", 1)]);
    invite(&adam, &workspace, sent("bob@x.example", 8)).await;
    mia.post(&invites(&workspace, "bulk/"), bulk).await.assert_empty(200);

    let log = workspace.organization("activity_log/?scope=OrganizationInvite&limit=20");
    let log = workspace.owner.get(&log).await.ok();
    let row = |entry: &Value| {
        let changes = entry["detail"]["changes"].as_array().expect("changes").iter();
        let change = |name: &str| {
            let found = changes.clone().find(|change| change["field"] == name);
            found.map_or(Value::Null, |change| change["before"].clone())
        };
        json!([
            entry["user"]["first_name"],
            entry["activity"],
            entry["detail"]["name"],
            change("created_by"),
            change("replaced")["created_by"],
        ])
    };
    let log = log["results"].as_array().expect("a list").iter().rev();
    let mut seen: Vec<_> = log.map(row).collect();
    seen[4..].sort_by_key(Value::to_string);
    let (adams, mias) = ("adam@corp.example", "mia@corp.example");
    let expected = json!([
        ["adam", "created", "ann@x.example", null, null],
        ["mia", "created", "ann@x.example", null, adams],
        ["Olga", "deleted", "ann@x.example", mias, null],
        ["adam", "created", "bob@x.example", null, null],
        ["mia", "created", "ann@x.example", null, null],
        ["mia", "created", "bob@x.example", null, adams],
    ]);
    assert_eq!(json!(seen), expected);
    assert_ne!(first["id"], second["id"]);
    // Accepting an invite records only the new membership, not the deletion of the invite.
    let offer = Offer::of(&invite(&adam, &workspace, sent("eva@x.example", 1)).await);
    let before = entries(&workspace).len();
    offer.accept(&workspace.anonymous(), json!({ "first_name": "E" })).await.ok();
    assert_eq!(entries(&workspace).len(), before + 1);
}

#[tokio::test]
async fn pending_invites_of_an_organization_are_limited() {
    let (mut config, clock) = with_clock();
    config.caps.max_invites = 3;
    let workspace = Workspace::with(config).await;
    let path = invites(&workspace, "");
    let sent = |name: &str| json!({ "target_email": format!("{name}@x.example") });
    let refused = |answer: TestResponse, attr: Option<&str>| {
        let text = "An organization can have at most 3 pending invites. Delete one, or wait until one is accepted \
                    or expires.";
        answer.assert_error(400, "validation_error", "limit_reached", text, attr);
    };
    invite(&workspace.owner, &workspace, sent("a")).await;
    // Either all invites of a request are created or none.
    let bulk = json!([sent("b"), sent("c"), sent("d")]);
    let answer = workspace.owner.post(&invites(&workspace, "bulk/"), bulk).await;
    refused(answer, Some("2__non_field_errors"));
    assert_eq!(workspace.owner.get(&path).await.ok()["count"], 1);
    clock.advance(Duration::from_hours(1));
    for name in ["b", "c"] {
        invite(&workspace.owner, &workspace, sent(name)).await;
    }
    refused(workspace.owner.post(&path, sent("d")).await, None);
    // A replaced invite counts once. Another organization has its own limit.
    invite(&workspace.owner, &workspace, sent("b")).await;
    let (eve, _) = workspace.outsider("eve").await;
    eve.post(CURRENT_INVITES, sent("d")).await.ok();
    // Lists show an expired invite until its room is needed.
    clock.advance(Duration::from_hours(71) + Duration::from_mins(30));
    assert_eq!(workspace.owner.get(&path).await.ok()["count"], 3);
    invite(&workspace.owner, &workspace, sent("d")).await;
    let names = crate::support::invites::listed(&workspace, "target_email").await;
    assert_eq!(names, ["d@x.example", "b@x.example", "c@x.example"]);
    refused(workspace.owner.post(&path, sent("e")).await, None);
    workspace.assert_file_valid().await;
}
