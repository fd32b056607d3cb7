//! Tests of `/api/organizations/:organization_id/roles/`.

mod batches;
mod default_role;
mod deletion;
mod members;

use crate::support::prelude::*;

const TAKEN: &str = "There is already a role with this name.";

/// Returns the names of the fields, in their order.
fn fields(body: &Value) -> Vec<&str> {
    body.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[tokio::test]
async fn role_has_exactly_these_fields_everywhere() {
    let (workspace, _) = Workspace::timed().await;
    let ann = workspace.member("ann", Level::Member).await;
    let list = workspace.organization("roles/");
    let sent = json!({
        "name": "  Analysts ", "id": UNKNOWN, "created_at": "2001-01-01", "members": [1],
        "created_by": 1, "is_default": true,
    });
    let made = workspace.owner.post(&list, sent).await;
    let expected = json!({
        "id": made.body["id"], "name": "Analysts", "created_at": "2023-11-14T22:13:20Z",
        "created_by": null, "members": [], "is_default": false,
    });
    made.assert_is(201, expected.clone());
    assert_eq!(fields(&made.body), fields(&expected));
    assert_ne!(made.body["id"], UNKNOWN);

    let one = format!("{list}{}/", made.body["id"].as_str().expect("an id"));
    let current = one.replace(&workspace.made.organization_id.to_string(), "@current");
    let page = json!({ "count": 1, "next": null, "previous": null, "results": [expected] });
    for caller in [&workspace.owner, &ann] {
        for path in [&one, one.trim_end_matches('/'), &current] {
            caller.get(path).await.assert_is(200, expected.clone());
        }
        caller.get(&list).await.assert_is(200, page.clone());
        caller.send(Method::HEAD, &one, None).await.ok();
    }
    workspace.owner.patch(&one, json!({})).await.assert_is(200, expected.clone());
    let sent = json!({ "name": "Analysts", "id": UNKNOWN, "created_at": "2001-01-01" });
    workspace.owner.put(&one, sent).await.assert_is(200, expected);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn roles_are_listed_by_name_without_regard_to_case_and_paged() {
    let workspace = Workspace::new().await;
    for name in ["viewers", "Analysts", "Émigrés", "billing", "zoo"] {
        add_role(&workspace, name).await;
    }
    let list = workspace.organization("roles/");
    let all = ["Analysts", "billing", "viewers", "zoo", "Émigrés"];
    for (query, shown) in [("", &all[..]), ("?limit=2&offset=2", &all[2..4]), ("?offset=9", &[])] {
        let page = workspace.owner.get(&format!("{list}{query}")).await.ok();
        assert_eq!(column(&page, "name"), shown, "{query}");
        assert_eq!(page["count"], 5);
    }
}

#[tokio::test]
async fn role_is_renamed_by_patch_and_put() {
    let workspace = Workspace::new().await;
    let (role, path) = add_role(&workspace, "Analysts").await;
    for (method, name) in
        [(Method::PATCH, "Data"), (Method::PUT, "Science"), (Method::PATCH, "SCIENCE")]
    {
        let renamed = workspace.owner.send(method, &path, Some(json!({ "name": name }))).await;
        let mut expected = role.clone();
        expected["name"] = json!(name);
        renamed.assert_is(200, expected.clone());
        workspace.owner.get(&path).await.assert_is(200, expected);
    }
    // The old names are free again.
    for name in ["analysts", "data"] {
        add_role(&workspace, name).await;
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn role_name_is_unique_without_regard_to_case_also_when_it_is_created_four_times_at_once() {
    let (workspace, owner) = Workspace::owned().await;
    let list = workspace.organization("roles/");
    let names = ["Analysts", "analysts", "ANALYSTS", "Analysts"];
    let created = names.map(|name| owner.post(&list, json!({ "name": name })));
    let answers = join_all(created).await;
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!((made.len(), refused.len()), (1, 3));
    for answer in refused {
        answer.assert_invalid("name", "unique", TAKEN);
    }
    assert_eq!(owner.get(&list).await.ok()["results"], json!([made[0].body]));
    let path = format!("{list}{}/", made[0].body["id"].as_str().expect("an id"));
    let (_, other) = add_role(&workspace, "Élan").await;
    for name in ["Analysts", "ANALYSTS", " analysts ", "éLAN"] {
        owner.post(&list, json!({ "name": name })).await.assert_invalid("name", "unique", TAKEN);
    }
    for name in ["analysts", "ANALYSTS"] {
        let sent = json!({ "name": name });
        owner.patch(&other, sent.clone()).await.assert_invalid("name", "unique", TAKEN);
        owner.put(&other, sent).await.assert_invalid("name", "unique", TAKEN);
    }
    assert_eq!(owner.get(&list).await.ok()["count"], 2);
    let (eve, foreign) = workspace.outsider("eve").await;
    eve.create(&in_organization(&foreign, "roles/"), json!({ "name": "Analysts" })).await;
    owner.delete(&path).await.assert_empty(204);
    add_role(&workspace, "ANALYSTS").await;
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn whatever_shows_in_a_role_moves_its_version() {
    let (workspace, owner) = Workspace::owned().await;
    let (role, path) = add_role(&workspace, "Analysts").await;
    let mut known = owner.get(&path).await.tag();
    let mut added = Value::Null;
    for step in 0..4 {
        match step {
            0 => drop(owner.put(&path, json!({ "name": "Data" })).await.ok()),
            1 => added = add_to_role(&workspace, &path, OWNER).await,
            2 => {
                let default = json!({ "default_role_id": role["id"] });
                owner.patch(&workspace.organization(""), default).await.ok();
            }
            _ => {
                let one = format!("{path}role_memberships/{}/", added["id"].as_str().expect("id"));
                owner.delete(&one).await.assert_empty(204);
            }
        }
        for (method, sent) in [
            (Method::PATCH, json!({ "name": "Late" })),
            (Method::PUT, json!({ "name": "Late" })),
            (Method::DELETE, Value::Null),
        ] {
            owner.if_match(method, &path, &known, sent).await.assert_stale();
        }
        known = owner.get(&path).await.tag();
    }
    let renamed = owner.if_match(Method::PUT, &path, &known, json!({ "name": "Final" })).await;
    assert_eq!((renamed.status, &renamed.body["name"]), (200, &json!("Final")));
    owner.if_match(Method::DELETE, &path, &renamed.tag(), Value::Null).await.assert_empty(204);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn number_of_roles_of_an_organization_is_limited() {
    let workspace = Workspace::configured(|config| config.caps.max_roles = 2).await;
    let (_, path) = add_role(&workspace, "A").await;
    add_role(&workspace, "B").await;
    let list = workspace.organization("roles/");
    let third = workspace.owner.post(&list, json!({ "name": "C" })).await;
    third.assert_invalid_body("limit_reached", "An organization can have at most 2 roles.");
    workspace.owner.patch(&path, json!({ "name": "C" })).await.ok();
    workspace.owner.delete(&path).await.assert_empty(204);
    add_role(&workspace, "D").await;
    assert_eq!(column(&workspace.owner.get(&list).await.ok(), "name"), ["B", "D"]);
}

#[tokio::test]
async fn role_changes_are_in_the_activity_log_without_a_creator_in_the_role() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let step = || clock.advance(Duration::from_secs(1));
    step();
    let (role, path) = add_role(&workspace, "Analysts").await;
    step();
    owner.patch(&path, json!({ "name": "Data" })).await.ok();
    step();
    let member = add_to_role(&workspace, &path, OWNER).await;
    step();
    owner.patch(&workspace.organization(""), json!({ "default_role_id": role["id"] })).await.ok();
    step();
    owner.delete(&path).await.assert_empty(204);
    let log = owner.get(&workspace.organization("activity_log/?limit=6")).await.ok();
    let told = log["results"].as_array().expect("entries").iter().map(|entry| {
        assert_eq!(entry["user"]["email"], OWNER);
        let changes = entry["detail"]["changes"].as_array().expect("changes").iter();
        let change = |one: &Value| json!([one["field"], one["before"], one["after"]]);
        let changes: Vec<_> = changes.map(change).collect();
        let (kind, done, name) = (&entry["scope"], &entry["activity"], &entry["detail"]["name"]);
        json!([kind, done, entry["item_id"], name, changes])
    });
    let told: Value = told.collect();
    let organization = json!(workspace.made.organization_id);
    let default = json!([["default_role_id", null, role["id"]]]);
    let cleared = json!([["default_role_id", role["id"], null]]);
    let added = json!([["role_id", null, role["id"]], ["user", null, OWNER]]);
    let expected = json!([
        ["Role", "deleted", role["id"], "Data", []],
        ["Organization", "updated", organization, "Corp", cleared],
        ["Organization", "updated", organization, "Corp", default],
        ["RoleMembership", "created", member["id"], "Data", added],
        ["Role", "updated", role["id"], "Data", [["name", "Analysts", "Data"]]],
        ["Role", "created", role["id"], "Analysts", []],
    ]);
    assert_eq!(told, expected);
}

#[tokio::test]
async fn basic_form_has_the_number_of_members_in_place_of_the_members() {
    let (workspace, _) = Workspace::timed().await;
    for name in ["ann", "bob", "gone"] {
        workspace.member(name, Level::Member).await;
    }
    let (role, path) = add_role(&workspace, "Analysts").await;
    for name in ["ann", "bob", "gone"] {
        add_to_role(&workspace, &path, &format!("{name}@corp.example")).await;
    }
    workspace.set_active("gone@corp.example", false).await;
    let basic = json!({
        "id": role["id"], "name": "Analysts", "created_at": role["created_at"], "created_by": null,
        "member_count": 2, "is_default": false,
    });
    let owner = &workspace.owner;
    let list = workspace.organization("roles/");
    let one = owner.get(&format!("{path}?basic=true")).await;
    one.assert_is(200, basic.clone());
    for spelling in ["true", "1", "yes"] {
        let page = owner.get(&format!("{list}?basic={spelling}")).await;
        let expected = json!({ "count": 1, "next": null, "previous": null, "results": [basic] });
        page.assert_is(200, expected);
    }
    for other in ["", "?basic=", "?basic=false"] {
        let shown = &owner.get(&format!("{list}{other}")).await.ok()["results"][0];
        assert_eq!(shown["members"].as_array().map(Vec::len), Some(2), "{other}");
        assert!(shown.get("member_count").is_none(), "{other}");
    }
    // Both forms have the version of the role.
    let full = owner.get(&path).await;
    let version = |answer: &TestResponse| answer.tag().split('-').next().map(str::to_owned);
    assert_eq!(version(&one), version(&full));
    assert_ne!(one.tag(), full.tag());
    owner.if_match(Method::PATCH, &path, &one.tag(), json!({ "name": "Zoo" })).await.ok();
    owner.get(&format!("{list}{UNKNOWN}/?basic=true")).await.assert_not_found("Not found.");
}

#[tokio::test]
async fn roles_of_one_user_are_listed_by_name() {
    let (workspace, owner, ann) = Workspace::owned_with_member("ann", Level::Member).await;
    workspace.member("bob", Level::Member).await;
    for (name, members) in
        [("zoo", &["ann"][..]), ("Analysts", &["ann", "bob"]), ("Empty", &[]), ("lead", &["ann"])]
    {
        let (_, path) = add_role(&workspace, name).await;
        for member in members {
            add_to_role(&workspace, &path, &format!("{member}@corp.example")).await;
        }
    }
    let list = workspace.organization("roles/");
    let [of_ann, of_bob] = [workspace.uuid(ANN).await, workspace.uuid("bob@corp.example").await];
    for (query, count, expected) in [
        (format!("?user={of_ann}"), 3, &["Analysts", "lead", "zoo"][..]),
        (format!("?user={of_ann}&basic=true"), 3, &["Analysts", "lead", "zoo"]),
        (format!("?user={of_ann}&limit=1&offset=1"), 3, &["lead"]),
        (format!("?user={of_bob}"), 1, &["Analysts"]),
        ("?user=@me".to_owned(), 0, &[]),
        (format!("?user={UNKNOWN}"), 0, &[]),
        ("?user=".to_owned(), 4, &["Analysts", "Empty", "lead", "zoo"]),
    ] {
        let page = owner.get(&format!("{list}{query}")).await.ok();
        assert_eq!(column(&page, "name"), expected, "{query}");
        assert_eq!(page["count"], count, "{query}");
    }
    assert_eq!(ann.get(&format!("{list}?user=@me")).await.ok()["count"], 3);
    owner.get(&format!("{list}?user=bob")).await.assert_bad("user", BAD_UUID);
    workspace.set_active(ANN, false).await;
    assert_eq!(owner.get(&format!("{list}?user={of_ann}")).await.ok()["count"], 0);
}
