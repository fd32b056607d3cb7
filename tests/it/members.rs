//! Tests of `/api/organizations/:organization_id/members/`.

use crate::support::prelude::*;

const OWN_LEVEL: &str = "You can't change your own access level.";
const NOT_ADMIN: &str = "You can only edit others if you are an admin.";
const TOO_HIGH: &str = "You can only edit others with level lower or equal to you.";
const OWNER_ONLY: &str =
    "You can only make another member owner if you're this organization's owner.";
const LEAVING_OWNER: &str = "Cannot leave the organization as its owner!";

/// A workspace with an admin and a plain member, and the paths of its members.
struct Staff {
    workspace: Workspace,
    admin: TestClient,
    member: TestClient,
}

impl Staff {
    async fn new() -> Self {
        let (workspace, admin) = Workspace::with_member("adam", Level::Admin).await;
        let member = workspace.member("ann", Level::Member).await;
        Self { workspace, admin, member }
    }

    /// Returns the path of the list with this query.
    fn list(&self, query: &str) -> String {
        self.workspace.organization(&format!("members/{query}"))
    }

    /// Returns the path of the member with this address.
    async fn one(&self, email: &str) -> String {
        let found = self.workspace.owner.get(&self.list(&format!("?email={email}"))).await.ok();
        self.list(&format!("{}/", found["results"][0]["user"]["uuid"].as_str().expect("a member")))
    }
}

/// Returns the addresses of the members on a page.
pub fn emails(list: &Value) -> Vec<&str> {
    let results = list["results"].as_array().expect("results");
    results.iter().map(|item| item["user"]["email"].as_str().expect("an address")).collect()
}

const ADAM: &str = "adam@corp.example";

#[tokio::test]
async fn member_has_exactly_these_fields() {
    let staff = Staff::new().await;
    let list = staff.member.get(&staff.list("")).await.ok();
    let me = staff.member.get(ME).await.ok();
    assert_eq!(list["results"][0]["user"]["uuid"], me["uuid"]);
    assert_ne!(list["results"][0]["id"], me["uuid"]);
    assert_eq!(list["results"][0]["joined_at"], list["results"][0]["updated_at"]);
    let expected = json!({
        "id": "[id]",
        "user": {
            "id": 3, "uuid": "[uuid]", "distinct_id": "[distinct_id]",
            "first_name": "ann", "last_name": "", "email": ANN, "is_email_verified": false,
            "hedgehog_config": null, "role_at_organization": null,
        },
        "level": 1, "joined_at": "[joined_at]", "updated_at": "[updated_at]",
        "is_2fa_enabled": false, "has_social_auth": false, "last_login": null, "invited_by": null,
        "joined_by": null,
    });
    assert_eq!(redacted(list["results"][0].clone()), expected);
    let patched = staff.admin.patch(&staff.one(ANN).await, json!({})).await;
    patched.assert_is(200, list["results"][0].clone());
    let sent = json!({
        "id": Uuid::max(), "user": {}, "joined_at": "2001-01-01", "updated_at": "2001-01-01",
        "is_2fa_enabled": true, "has_social_auth": true, "last_login": "now",
    });
    staff.member.patch(&staff.list("@me/"), sent).await.assert_is(200, list["results"][0].clone());
}

#[tokio::test]
async fn members_are_listed_in_pages_newest_first_or_in_the_requested_order() {
    let staff = Staff::new().await;
    let newest = [ANN, ADAM, OWNER];
    let oldest = [OWNER, ADAM, ANN];
    for (query, expected) in [
        ("", newest),
        ("?order=-joined_at", newest),
        ("?order=joined_at", oldest),
        ("?order=level&order=joined_at", oldest),
        ("?order=", newest),
    ] {
        let list = staff.member.get(&staff.list(query)).await.ok();
        assert_eq!(emails(&list), expected, "{query}");
        assert_eq!((&list["count"], &list["next"]), (&json!(3), &Value::Null), "{query}");
    }
    let bare = staff.list("");
    let list = staff.member.get(&bare).await.ok();
    staff.member.get(bare.trim_end_matches('/')).await.assert_is(200, list);
    for query in ["", "search=corp&"] {
        let users = walked(&staff.member, &staff.list(&format!("?{query}limit=1")), "user").await;
        let seen: Vec<_> = users.iter().map(|user| user["email"].clone()).collect();
        assert_eq!(seen, [ANN, ADAM, OWNER], "{query}");
    }
}

#[tokio::test]
async fn members_are_filtered_by_email_and_search() {
    let staff = Staff::new().await;
    for (query, expected) in [
        ("?email=ann@corp.example", vec![ANN]),
        ("?email=ANN@corp.example", vec![]),
        ("?email=ann@CORP.Example", vec![ANN]),
        ("?email=+ann@corp%E3%80%82example+", vec![ANN]),
        ("?email=nobody@corp.example", vec![]),
        ("?email=", vec![ANN, ADAM, OWNER]),
        ("?search=", vec![ANN, ADAM, OWNER]),
        ("?search=OLGA", vec![OWNER]),
        ("?search=corp.EXAMPLE", vec![ANN, ADAM, OWNER]),
        ("?search=a&order=joined_at", vec![OWNER, ADAM, ANN]),
        ("?search=zzz", vec![]),
        ("?email=ann@corp.example&search=ann", vec![ANN]),
        ("?email=ann@corp.example&search=adam", vec![]),
        ("?email=ann@corp.example&offset=1", vec![]),
    ] {
        let list = staff.member.get(&staff.list(query)).await.ok();
        assert_eq!(emails(&list), expected, "{query}");
        let count = if query.contains("offset") { 1 } else { expected.len() };
        assert_eq!(list["count"], json!(count), "{query}");
    }
}

#[tokio::test]
async fn deactivated_users_are_left_out() {
    let staff = Staff::new().await;
    let ann = staff.one(ANN).await;
    staff.workspace.set_active(ANN, false).await;
    let list = staff.admin.get(&staff.list("")).await.ok();
    assert_eq!((emails(&list), &list["count"]), (vec![ADAM, OWNER], &json!(2)));
    for query in ["?email=ann@corp.example", "?search=ann"] {
        assert_eq!(staff.admin.get(&staff.list(query)).await.ok()["count"], 0, "{query}");
    }
    assert_eq!(staff.admin.get(&staff.workspace.organization("")).await.ok()["member_count"], 2);
    staff.workspace.set_active(ANN, true).await;
    let list = staff.admin.get(&staff.list("")).await.ok();
    assert_eq!((emails(&list), &list["count"]), (vec![ANN, ADAM, OWNER], &json!(3)));
    // A member that lists do not show can still be updated and removed.
    staff.workspace.set_active(ANN, false).await;
    assert_eq!(staff.admin.patch(&ann, json!({ "level": 8 })).await.ok()["level"], 8);
    staff.admin.delete(&ann).await.assert_empty(204);
    staff.workspace.set_active(ANN, true).await;
    assert_eq!(staff.admin.get(&staff.list("")).await.ok()["count"], 2);
    staff.member.get(&staff.list("")).await.assert_denied(NOT_ALLOWED);
    staff.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn members_are_filtered_by_the_time_of_their_last_update() {
    let (config, clock) = with_clock_at(1_735_787_045_000_000);
    let workspace = Workspace::with(config).await;
    clock.advance(Duration::from_hours(1));
    let admin = workspace.member("adam", Level::Admin).await;
    clock.advance(Duration::from_micros(3_600_000_001));
    let member = workspace.member("ann", Level::Member).await;
    let staff = Staff { workspace, admin, member };
    // Olga joined at 03:04:05, Adam an hour later, and Ann an hour and a microsecond after Adam.
    let all = vec![ANN, ADAM, OWNER];
    for (query, expected) in [
        ("2025-01-02T05:04:05.000001Z", vec![ANN]),
        ("2025-01-02T05:04:05.000002Z", vec![]),
        ("2025-01-02T04:04:05Z", vec![ANN, ADAM]),
        ("2025-01-02", all.clone()),
        ("2025-01-03", vec![]),
        ("", all.clone()),
        ("2025-01-02T04:04:05Z&updated_after=2025-01-02T05:04:05Z", vec![ANN]),
        ("2025-01-02T04:04:05Z&order=joined_at", vec![ADAM, ANN]),
        ("2025-01-02T04:04:05Z&search=adam", vec![ADAM]),
        ("2025-01-02T04:04:05Z&email=adam@corp.example", vec![ADAM]),
        ("&email=owner@corp.example", vec![OWNER]),
    ] {
        let list = staff.member.get(&staff.list(&format!("?updated_after={query}"))).await.ok();
        assert_eq!(emails(&list), expected, "{query}");
        assert_eq!(list["count"], json!(expected.len()), "{query}");
    }
    let page = staff.list("?limit=1&offset=1&updated_after=2025-01-02T04:04:05Z");
    let page = staff.member.get(&page).await.ok();
    assert_eq!((emails(&page), &page["count"]), (vec![ADAM], &json!(2)));
    let previous = page["previous"].as_str().expect("a link");
    assert!(previous.ends_with("?limit=1&updated_after=2025-01-02T04%3A04%3A05Z"), "{previous}");

    // A new level updates the membership; the same level does not.
    clock.advance(Duration::from_hours(1));
    let since = staff.list("?updated_after=2025-01-02T06:00:00Z");
    let adam = staff.one(ADAM).await;
    for (level, expected) in [(8, vec![]), (1, vec![ADAM])] {
        staff.workspace.owner.patch(&adam, json!({ "level": level })).await.ok();
        assert_eq!(emails(&staff.member.get(&since).await.ok()), expected);
    }
}

#[tokio::test]
async fn bots_are_left_out() {
    let staff = Staff::new().await;
    let bot = |email: &str| {
        let new = new_user(email, Some(staff.workspace.made.organization_id));
        Operation::UserCreate(UserOptions { level: Level::Admin, ..new })
    };
    let made = staff.workspace.run_operation(bot("max@posthogbot.user")).await;
    staff.workspace.run_operation(bot("max@notposthogbot.user")).await;
    let shown = vec!["max@notposthogbot.user", ANN, ADAM, OWNER];
    let path = staff.list(&format!("{}/", made["uuid"].as_str().expect("a uuid")));
    for _ in 0..2 {
        let list = staff.admin.get(&staff.list("")).await.ok();
        assert_eq!((emails(&list), &list["count"]), (shown.clone(), &json!(4)));
        for query in
            ["?email=max@posthogbot.user", "?search=@posthogbot", "?updated_after=2025-01-01"]
        {
            let list = staff.admin.get(&staff.list(query)).await.ok();
            assert!(!emails(&list).contains(&"max@posthogbot.user"), "{query}");
        }
        let organization = staff.admin.get(&staff.workspace.organization("")).await.ok();
        assert_eq!(organization["member_count"], 4);
        // The bot can still be updated.
        assert_eq!(staff.admin.patch(&path, json!({ "level": 1 })).await.ok()["level"], 1);
        // Lists do not show the bot, whether it is active or not.
        staff.workspace.set_active("max@posthogbot.user", false).await;
        staff.workspace.set_active("max@posthogbot.user", true).await;
    }
    // The bot has the permissions of a member.
    let key = staff.workspace.key("max@posthogbot.user", &["*"]).await;
    assert_eq!(emails(&key.get(&staff.list("")).await.ok()), shown);
    staff.admin.delete(&path).await.assert_empty(204);
    key.get(&staff.list("")).await.assert_denied(NOT_ALLOWED);
    staff.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn single_member_is_the_member_of_the_list_and_has_an_etag() {
    let staff = Staff::new().await;
    let list = staff.member.get(&staff.list("")).await.ok();
    for (at, email) in [ANN, ADAM, OWNER].into_iter().enumerate() {
        let path = staff.one(email).await;
        let one = staff.member.get(&path).await;
        one.assert_is(200, list["results"][at].clone());
        let tag = one.tag();
        let known = [("if-none-match", tag.as_str())];
        staff.member.fetch(Method::GET, &path, &known, "").await.assert_empty(304);
    }
    let me = staff.member.get(&staff.list("@me/")).await;
    me.assert_is(200, list["results"][0].clone());
    let path = staff.one(ANN).await;
    let write = async |level| {
        staff.admin.if_match(Method::PATCH, &path, &me.tag(), json!({ "level": level })).await
    };
    let raised = write(8).await.ok();
    staff.member.get(&staff.list("@me/")).await.assert_is(200, raised);
    write(1).await.assert_stale();
}

#[tokio::test]
async fn member_that_lists_do_not_show_is_404() {
    let staff = Staff::new().await;
    let (eve, _) = staff.workspace.outsider("eve").await;
    let foreign = eve.get(ME).await.ok()["uuid"].clone();
    let foreign = staff.list(&format!("{}/", foreign.as_str().expect("a uuid")));
    let ann = staff.one(ANN).await;
    let unknown = staff.list("01890000-0000-7000-8000-000000000000/");
    for path in [&foreign, &unknown, &staff.list("nobody/"), &staff.list("1/")] {
        staff.admin.get(path).await.assert_not_found("Not found.");
        for caller in [&staff.workspace.owner, &staff.member] {
            caller.patch(path, json!({ "level": 99 })).await.assert_not_found("Not found.");
        }
        staff.workspace.owner.delete(path).await.assert_not_found("Not found.");
    }
    staff.workspace.set_active(ANN, false).await;
    staff.admin.get(&ann).await.assert_not_found("Not found.");
    staff.workspace.set_active(ANN, true).await;
    assert_eq!(staff.admin.get(&ann).await.ok()["user"]["email"], ANN);
    staff.admin.delete(&ann).await.assert_empty(204);
    staff.admin.get(&ann).await.assert_not_found("Not found.");
}

#[tokio::test]
async fn level_changes_are_checked_in_the_documented_order() {
    let staff = Staff::new().await;
    staff.workspace.member("otto", Level::Owner).await;
    let otto = staff.one("otto@corp.example").await;
    let (adam, ann) = (staff.one(ADAM).await, staff.one(ANN).await);
    let me = staff.list("@me/");
    let owner = &staff.workspace.owner;
    let member = &staff.member;
    let admin = &staff.admin;
    let bad = json!({ "level": 99 });
    // The permission to edit the member is checked before the body.
    for (caller, path, sent, detail) in [
        (member, &adam, &bad, NOT_ADMIN),
        (member, &otto, &json!({}), NOT_ADMIN),
        (admin, &otto, &bad, TOO_HIGH),
        (admin, &otto, &json!({ "level": 15 }), TOO_HIGH),
        (member, &me, &json!({ "level": 8 }), OWN_LEVEL),
        (member, &ann, &json!({ "level": 15 }), OWN_LEVEL),
        (admin, &me, &json!({ "level": 15 }), OWN_LEVEL),
        (owner, &me, &json!({ "level": 1 }), OWN_LEVEL),
        (admin, &ann, &json!({ "level": 15 }), OWNER_ONLY),
    ] {
        caller.patch(path, sent.clone()).await.assert_denied(detail);
    }
    for (sent, code, detail) in [
        (json!(2), "invalid_choice", "\"2\" is not a valid choice."),
        (json!(8.5), "invalid_choice", "\"8.5\" is not a valid choice."),
        (json!(null), "null", "This field may not be null."),
    ] {
        let sent = json!({ "level": sent });
        admin.patch(&ann, sent.clone()).await.assert_invalid("level", code, detail);
        // For the caller's own level, the body is checked first.
        admin.patch(&me, sent).await.assert_invalid("level", code, detail);
    }
    let list = owner.get(&staff.list("?order=joined_at")).await.ok();
    assert_eq!(column(&list, "level"), [json!(15), json!(8), json!(1), json!(15)]);
}

#[tokio::test]
async fn admins_change_levels_of_others_and_owners_create_owners() {
    let staff = Staff::new().await;
    let (adam, ann) = (staff.one(ADAM).await, staff.one(ANN).await);
    let before = staff.admin.patch(&ann, json!({})).await.ok();
    let raised = staff.admin.patch(&ann, json!({ "level": "8" })).await.ok();
    let mut expected = before.clone();
    expected["level"] = json!(8);
    expected["updated_at"] = raised["updated_at"].clone();
    assert_ne!(raised["updated_at"], before["updated_at"]);
    assert_eq!(raised, expected);
    staff.admin.patch(&ann, json!({ "level": 8 })).await.assert_is(200, raised.clone());
    let shown = staff.admin.get(&staff.list("?email=ann@corp.example")).await.ok();
    assert_eq!(shown["results"], json!([raised]));

    // Ann is now an admin and lowers the other admin, who can then no longer lower her.
    assert_eq!(staff.member.patch(&adam, json!({ "level": 1 })).await.ok()["level"], 1);
    staff.admin.patch(&ann, json!({ "level": 1 })).await.assert_denied(NOT_ADMIN);

    // Making a member owner adds an owner; the caller remains one.
    let owner = &staff.workspace.owner;
    assert_eq!(owner.patch(&ann, json!({ "level": 15 })).await.ok()["level"], 15);
    for caller in [owner, &staff.member] {
        let organization = caller.get(&staff.workspace.organization("")).await.ok();
        assert_eq!(organization["membership_level"], 15);
    }
    let first = staff.one(OWNER).await;
    assert_eq!(staff.member.patch(&first, json!({ "level": 8 })).await.ok()["level"], 8);
    // The last owner can neither step down nor be lowered.
    staff.member.patch(&ann, json!({ "level": 8 })).await.assert_denied(OWN_LEVEL);
    owner.patch(&ann, json!({ "level": 8 })).await.assert_denied(TOO_HIGH);
    staff.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn two_owners_demoting_each_other_concurrently_leave_one_owner() {
    let staff = Staff::new().await;
    let otto = staff.workspace.member("otto", Level::Owner).await;
    let (olga, other) = (staff.one(OWNER).await, staff.one("otto@corp.example").await);
    let lower = || json!({ "level": 1 });
    let (one, two) =
        tokio::join!(staff.workspace.owner.patch(&other, lower()), otto.patch(&olga, lower()));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 403]);
    let list = staff.member.get(&staff.list("")).await.ok();
    assert_eq!(column(&list, "level").iter().filter(|level| **level == 15).count(), 1);
}

#[tokio::test]
async fn member_removal_is_checked_in_the_documented_order() {
    let staff = Staff::new().await;
    let second = staff.workspace.member("otto", Level::Owner).await;
    let (olga, adam, ann) = (staff.one(OWNER).await, staff.one(ADAM).await, staff.one(ANN).await);
    staff.member.delete(&adam).await.assert_denied(NOT_ADMIN);
    staff.member.delete(&olga).await.assert_denied(NOT_ADMIN);
    staff.admin.delete(&olga).await.assert_denied(TOO_HIGH);
    second.delete(&olga).await.assert_bad_body(LEAVING_OWNER);
    second.delete(&staff.list("@me/")).await.assert_bad_body(LEAVING_OWNER);
    assert_eq!(staff.member.get(&staff.list("")).await.ok()["count"], 4);

    staff.admin.delete(&ann).await.assert_empty(204);
    staff.admin.delete(&ann).await.assert_not_found("Not found.");
    staff.member.get(&staff.list("")).await.assert_denied(NOT_ALLOWED);
    staff.member.get(&staff.workspace.dashboards("")).await.assert_denied(NO_ACCESS);
    let me = staff.member.get(ME).await.ok();
    assert_eq!((&me["organization"], &me["team"]), (&Value::Null, &Value::Null));
    staff.admin.delete(&staff.list("@me/")).await.assert_empty(204);
    staff.admin.get(&staff.list("")).await.assert_denied(NOT_ALLOWED);

    // A former owner can be removed.
    second.patch(&olga, json!({ "level": 8 })).await.ok();
    second.send(Method::DELETE, olga.trim_end_matches('/'), None).await.assert_empty(204);
    let list = second.get(&staff.list("")).await.ok();
    assert_eq!((emails(&list), &list["count"]), (vec!["otto@corp.example"], &json!(1)));
    staff.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn leaving_member_switches_to_another_organization() {
    let staff = Staff::new().await;
    let own = staff.member.post("/api/organizations/", json!({ "name": "Own" })).await.ok();
    let back = json!({ "set_current_organization": staff.workspace.made.organization_id });
    staff.member.patch(ME, back).await.ok();
    staff.member.delete("/api/organizations/@current/members/@me/").await.assert_empty(204);
    let me = staff.member.get(ME).await.ok();
    assert_eq!(me["organization"]["id"], own["id"]);
    assert_eq!(me["team"]["id"], own["teams"][0]["id"]);
}

#[tokio::test]
async fn rights_on_a_member_are_what_changes_and_removals_obey() {
    let staff = Staff::new().await;
    let second = staff.workspace.member("olga", Level::Owner).await;
    let dry = [("dry-run", "true"), ("content-type", "application/json")];
    let outcome = async |caller: &TestClient, method: Method, path: &str, body: &str| {
        let answer = caller.fetch(method, path, &dry, body.to_owned()).await;
        (!matches!(answer.status, 200 | 204)).then(|| answer.body["detail"].clone())
    };
    for caller in [&staff.workspace.owner, &second, &staff.admin, &staff.member] {
        for email in [OWNER, "olga@corp.example", ADAM, ANN] {
            let one = staff.one(email).await;
            let (mut levels, mut reason) = (Vec::new(), Value::Null);
            let now = staff.workspace.owner.get(&one).await.ok()["level"].clone();
            // A caller who may PATCH the member may send the level that the member has.
            for level in [1, 8, 15].into_iter().filter(|level| now != *level) {
                let body = format!("{{\"level\": {level}}}");
                match outcome(caller, Method::PATCH, &one, &body).await {
                    None => levels.push(level),
                    Some(detail) if reason.is_null() => reason = detail,
                    Some(_) => {}
                }
            }
            let removal = outcome(caller, Method::DELETE, &one, "").await;
            let expected = json!({
                "levels": levels, "level_reason": reason, "can_remove": removal.is_none(),
                "removal_reason": removal,
            });
            let mut rights = caller.get(&format!("{one}rights/")).await;
            rights.body["levels"].as_array_mut().expect("levels").retain(|level| *level != now);
            rights.assert_is(200, expected);
            assert!(!rights.headers.contains_key("etag"), "{:?}", rights.headers);
        }
    }
    let own = staff.member.get(&staff.list("@me/rights/")).await.ok();
    assert_eq!((&own["level_reason"], &own["can_remove"]), (&json!(OWN_LEVEL), &json!(true)));
}

#[tokio::test]
async fn rights_on_a_member_are_shown_only_within_the_organization() {
    let staff = Staff::new().await;
    let one = format!("{}rights/", staff.one(ANN).await);
    let (eve, own) = staff.workspace.outsider("eve").await;
    eve.get(&one).await.assert_denied(NOT_ALLOWED);
    let uuid = staff.workspace.uuid(ANN).await;
    let under_own = in_organization(&own, &format!("members/{uuid}/rights/"));
    eve.get(&under_own).await.assert_not_found("Not found.");
    staff.workspace.set_active(ANN, false).await;
    staff.workspace.owner.get(&one).await.assert_not_found("Not found.");
}
