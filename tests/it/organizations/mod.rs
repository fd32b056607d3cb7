//! Tests of `/api/organizations/`.

mod removal;

use crate::support::prelude::*;

/// Returns the full form of a new organization, as its owner sees it.
fn fresh(name: &str, project: &Value, project_name: &str) -> Value {
    json!({
        "id": "[id]", "name": name, "slug": "[slug]", "logo_media_id": null,
        "created_at": "[created_at]", "updated_at": "[updated_at]",
        "is_member_join_email_enabled": true, "enforce_2fa": null, "members_can_invite": true,
        "members_can_use_personal_api_keys": true, "is_ai_data_processing_approved": null,
        "default_role_id": null, "plugins_access_level": 9, "available_product_features": [],
        "customer_id": null, "membership_level": 15,
        "teams": [{
            "id": project, "project_id": project, "uuid": "[uuid]",
            "organization": "[organization]", "api_token": "[api_token]",
            "name": project_name, "completed_snippet_onboarding": false,
            "has_completed_onboarding_for": null, "ingested_event": false, "is_demo": false,
            "timezone": "UTC", "access_control": false,
        }],
        "projects": [{
            "id": project, "organization_id": "[organization_id]", "name": project_name,
        }],
        "metadata": { "instance_tag": "none" }, "member_count": 1,
    })
}

#[tokio::test]
async fn organization_has_exactly_these_fields_everywhere() {
    let (workspace, owner) = Workspace::owned().await;
    let one = owner.get(&workspace.organization("")).await.ok();
    assert_eq!(one["id"], json!(workspace.made.organization_id));
    assert_eq!(one["slug"], "corp");
    assert_eq!(redacted(one.clone()), fresh("Corp", &json!(workspace.made.project_id), "Web"));
    owner.get("/api/organizations/@current/").await.assert_is(200, one.clone());
    owner.get(workspace.organization("").trim_end_matches('/')).await.assert_is(200, one.clone());
    let list = json!({ "count": 1, "next": null, "previous": null, "results": [one] });
    owner.get("/api/organizations/").await.assert_is(200, list.clone());
    owner.get("/api/organizations").await.assert_is(200, list);
}

#[tokio::test]
async fn organization_list_shows_the_callers_own_oldest_first() {
    let (workspace, owner) = Workspace::owned().await;
    let (eve, _) = workspace.outsider("eve").await;
    let member = workspace.member("ann", Level::Member).await;
    for name in ["B", "A"] {
        owner.post("/api/organizations/", json!({ "name": name })).await.ok();
    }
    assert_eq!(column(&owner.get("/api/organizations/").await.ok(), "name"), ["Corp", "B", "A"]);
    let hers = member.get("/api/organizations/").await.ok();
    assert_eq!(column(&hers, "name"), ["Corp"]);
    assert_eq!(column(&hers, "membership_level"), [1]);
    assert_eq!(column(&eve.get("/api/organizations/").await.ok(), "name"), ["eve's"]);
    let page = owner.get("/api/organizations/?limit=1&offset=1").await.ok();
    assert_eq!(column(&page, "name"), ["B"]);
    assert_eq!(page["count"], 3);
}

#[tokio::test]
async fn creating_an_organization_makes_the_caller_owner_and_selects_it() {
    let (workspace, member) = Workspace::with_member("ann", Level::Member).await;
    let sent = json!({ "name": "  Ann & Co. ", "slug": "mine", "id": "x", "member_count": 9 });
    let made = member.post("/api/organizations/", sent).await;
    assert_eq!(made.status, 201);
    let made = made.body;
    let project = made["teams"][0]["id"].clone();
    assert_ne!(project, json!(workspace.made.project_id));
    assert_eq!(made["slug"], "ann-co");
    assert_eq!(redacted(made.clone()), fresh("Ann & Co.", &project, "Default project"));

    let me = member.get(ME).await.ok();
    assert_eq!((&me["organization"], &me["team"]["id"]), (&made, &project));
    member.get("/api/organizations/@current/").await.assert_is(200, made);
    let members = member.get("/api/organizations/@current/members/").await.ok();
    assert_eq!(column(&members, "level"), [15]);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn slugs_are_derived_from_the_name_unique_and_have_at_most_48_characters() {
    let workspace = Workspace::new().await;
    let mut slugs = Vec::new();
    for name in ["Corp", "Corp", "🦔", "🦔"] {
        let made = workspace.owner.post("/api/organizations/", json!({ "name": name })).await.ok();
        slugs.push(made["slug"].as_str().expect("a slug").to_owned());
    }
    assert!(slugs[0].starts_with("corp-") && slugs[1].starts_with("corp-"), "{slugs:?}");
    slugs.push("corp".to_owned());
    slugs.sort();
    slugs.dedup();
    assert_eq!(slugs.len(), 5, "{slugs:?}");
    assert!(slugs.iter().all(|slug| !slug.is_empty()));
    let (long, hedgehogs) = ("a".repeat(64), "🦔".repeat(64));
    for (name, kept) in [(&long, 48), (&long, 39), (&hedgehogs, 48), (&hedgehogs, 39)] {
        let made = workspace.owner.post("/api/organizations/", json!({ "name": name })).await.ok();
        let slug = made["slug"].as_str().expect("a slug");
        assert_eq!(made["name"], *name);
        assert!(slug.len() <= 48 && slug.is_ascii(), "{slug}");
        if *name == long {
            assert_eq!((&slug[..kept], slug.len()), (&long[..kept], 48));
        }
    }
    let name = format!("{} {}", "b".repeat(38), "b".repeat(25));
    let mut slugs = Vec::new();
    for _ in 0..2 {
        let made = workspace.owner.post("/api/organizations/", json!({ "name": name })).await.ok();
        slugs.push(made["slug"].as_str().expect("a slug").to_owned());
    }
    assert_eq!(slugs[0], format!("{}-{}", "b".repeat(38), "b".repeat(9)));
    assert_eq!((&slugs[1][..39], slugs[1].len()), (&slugs[0][..39], 47));
}

#[tokio::test]
async fn admins_update_the_writable_organization_fields() {
    let workspace = Workspace::new().await;
    let path = workspace.organization("");
    let admin = workspace.member("adam", Level::Admin).await;
    let before = admin.get(&path).await.ok();
    let logo = "018f3b9e-0000-7000-8000-000000000001";
    let changed = json!({
        "name": "Corp 2", "logo_media_id": logo, "is_member_join_email_enabled": false,
        "enforce_2fa": true, "members_can_invite": false,
        "members_can_use_personal_api_keys": false, "is_ai_data_processing_approved": true,
    });
    let mut sent = changed.clone();
    let mut expected = before.clone();
    for (name, value) in changed.as_object().expect("fields") {
        expected[name] = value.clone();
    }
    for read_only in
        ["id", "slug", "created_at", "updated_at", "membership_level", "teams", "unknown"]
    {
        sent[read_only] = json!("x");
    }
    sent["enforce_2fa"] = json!("true");
    let after = admin.patch(&path, sent).await.ok();
    assert_ne!(after["updated_at"], before["updated_at"]);
    expected["updated_at"] = after["updated_at"].clone();
    assert_eq!(after, expected);
    admin.get(&path).await.assert_is(200, after.clone());

    admin.patch(&path, json!({})).await.assert_is(200, after.clone());
    let cleared = json!({ "logo_media_id": null, "enforce_2fa": null, "is_ai_data_processing_approved": null });
    let cleared = admin.patch(&path, cleared).await.ok();
    for name in ["logo_media_id", "enforce_2fa", "is_ai_data_processing_approved"] {
        expected[name] = Value::Null;
    }
    expected["updated_at"] = cleared["updated_at"].clone();
    assert_eq!(cleared, expected);
}

#[tokio::test]
async fn invalid_organization_field_is_rejected_and_nothing_is_changed() {
    let workspace = Workspace::new().await;
    let path = workspace.organization("");
    let before = workspace.owner.get(&path).await.ok();
    let boolean = "Must be a valid boolean.";
    let null = "This field may not be null.";
    for (attr, value, code, detail) in [
        ("logo_media_id", json!("x"), "invalid_input", BAD_UUID),
        ("is_member_join_email_enabled", json!(null), "null", null),
        ("enforce_2fa", json!(2), "invalid_input", boolean),
        ("members_can_invite", json!([]), "invalid_input", boolean),
        ("members_can_use_personal_api_keys", json!(null), "null", null),
        ("is_ai_data_processing_approved", json!("x"), "invalid_input", boolean),
    ] {
        let mut sent = json!({ "name": "Changed" });
        sent[attr] = value;
        workspace.owner.patch(&path, sent).await.assert_invalid(attr, code, detail);
    }
    let first = workspace.owner.patch(&path, json!({ "members_can_invite": 7, "name": "" })).await;
    first.assert_invalid("name", "blank", "This field may not be blank.");
    workspace.owner.get(&path).await.assert_is(200, before);
}

#[tokio::test]
async fn members_cannot_update_the_organization_and_only_owners_delete_it() {
    let workspace = Workspace::new().await;
    let path = workspace.organization("");
    let member = workspace.member("ann", Level::Member).await;
    let admin = workspace.member("adam", Level::Admin).await;
    member.patch(&path, json!({ "name": "" })).await.assert_denied(TOO_LOW);
    member.delete(&path).await.assert_denied(TOO_LOW);
    admin.delete(&path).await.assert_denied(TOO_LOW);
    assert_eq!(member.get(&path).await.ok()["name"], "Corp");
    workspace.owner.delete(&path).await.assert_empty(204);
    for caller in [&workspace.owner, &admin, &member] {
        caller.get(&path).await.assert_not_found("Organization not found.");
        assert_eq!(caller.get("/api/organizations/").await.ok()["count"], 0);
    }
}

#[tokio::test]
async fn key_ban_hides_the_organization_from_the_lists_of_its_members() {
    let workspace = Workspace::new().await;
    let member = workspace.member("ann", Level::Member).await;
    let admin = workspace.member("adam", Level::Admin).await;
    for (is_allowed, shown) in [(false, 0), (true, 1)] {
        let sent = json!({ "members_can_use_personal_api_keys": is_allowed });
        workspace.owner.patch(&workspace.organization(""), sent).await.ok();
        for list in ["/api/organizations/", "/api/projects/"] {
            assert_eq!(member.get(list).await.ok()["count"], shown, "{list}");
            assert_eq!(admin.get(list).await.ok()["count"], 1, "{list}");
        }
    }
}

#[tokio::test]
async fn organization_limited_key_accesses_only_its_organizations() {
    let workspace = Workspace::new().await;
    let (id, _) = workspace.second_organization().await;
    let limits = json!({ "organizations": [workspace.made.organization_id] });
    let limited = workspace.limited_key(OWNER, &["*"], limits.clone()).await;
    let list = limited.get("/api/organizations/").await.ok();
    assert_eq!(column(&list, "name"), ["Corp"]);
    assert_eq!(list["count"], 1);
    limited.get(&workspace.organization("")).await.ok();
    let at_current = "API key does not have access to the requested organization.";
    limited.get("/api/organizations/@current/").await.assert_denied(at_current);
    // The key's limits are checked before its scopes, and also apply to lists.
    let narrow = workspace.limited_key(OWNER, &["user:read"], limits).await;
    let refused = format!("API key does not have access to the requested organization: ID {id}.");
    narrow.get(&format!("/api/organizations/{id}/")).await.assert_denied(&refused);
    let made = limited.post(&workspace.organization("projects/"), json!({})).await.ok();
    let list = limited.get("/api/projects/").await.ok();
    assert_eq!(column(&list, "id"), [json!(workspace.made.project_id), made["id"].clone()]);
    assert_eq!(list["count"], 2);
    let refused = "API keys limited to organizations or projects cannot create an organization.";
    limited.post("/api/organizations/", json!({ "name": "New" })).await.assert_denied(refused);
}
