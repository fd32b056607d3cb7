//! Tests of `/api/users/@me/`.

use crate::support::prelude::*;

/// Returns the current organization and project in a response.
fn place(me: &Value) -> (Value, Value) {
    (me["organization"]["id"].clone(), me["team"]["id"].clone())
}

fn unknown(id: &str) -> String {
    format!("Invalid pk \"{id}\" - object does not exist.")
}

#[tokio::test]
async fn user_has_exactly_these_fields_and_read_only_ones_do_not_change() {
    let (workspace, owner) = Workspace::owned().await;
    let me = owner.get(ME).await.ok();
    owner.get("/api/users/@me").await.assert_is(200, me.clone());
    assert_eq!(me["organization"], owner.get(&workspace.organization("")).await.ok());
    assert_eq!(me["team"], owner.get("/api/projects/").await.ok()["results"][0]);
    assert_eq!(me["uuid"], json!(workspace.made.user_uuid));
    let mut rest = redacted(me);
    for name in ["organization", "team"] {
        rest.as_object_mut().expect("an object").remove(name);
    }
    let expected = json!({
        "date_joined": "[date_joined]", "uuid": "[uuid]", "distinct_id": "[distinct_id]",
        "first_name": "Olga", "last_name": "", "email": OWNER, "pending_email": null,
        "is_email_verified": false, "notification_settings": {}, "anonymize_data": false,
        "toolbar_mode": "toolbar", "has_password": false, "id": 1, "is_staff": false,
        "is_impersonated": false, "is_impersonated_until": null,
        "sensitive_session_expires_at": null,
        "organizations": [{
            "id": "[id]", "name": "Corp", "slug": "[slug]", "logo_media_id": null,
            "membership_level": 15, "members_can_use_personal_api_keys": true,
        }],
        "events_column_config": { "active": "DEFAULT" }, "is_2fa_enabled": false,
        "has_social_auth": false, "has_sso_enforcement": false, "has_seen_product_intro_for": null,
        "scene_personalisation": [], "theme_mode": null, "hedgehog_config": null,
        "role_at_organization": null,
    });
    assert_eq!(rest, expected);
    let before = owner.get(ME).await.ok();
    let sent = json!({
        "email": "new@corp.example", "pending_email": "x", "id": 9, "uuid": "x", "distinct_id": "x",
        "is_staff": true, "is_email_verified": true, "date_joined": "x", "organization": {},
        "organizations": [], "team": {}, "has_password": true, "unknown": 1,
    });
    owner.patch(ME, sent).await.assert_is(200, before.clone());
    owner.get(ME).await.assert_is(200, before);
}

#[tokio::test]
async fn users_update_their_own_fields_and_others_see_the_public_ones() {
    let workspace = Workspace::new().await;
    let hedgehog = json!({
        "use_as_profile": true, "color": "blue", "accessories": ["hat"], "walking": true,
    });
    let changed = json!({
        "first_name": "Ola", "last_name": "Nord", "notification_settings": { "weekly": true },
        "anonymize_data": true, "toolbar_mode": "disabled",
        "events_column_config": { "active": ["a"] },
        "has_seen_product_intro_for": { "surveys": true }, "theme_mode": "dark",
        "hedgehog_config": hedgehog, "role_at_organization": "engineering",
    });
    let mut expected = workspace.owner.get(ME).await.ok();
    let (id, uuid, distinct_id) =
        (expected["id"].clone(), expected["uuid"].clone(), expected["distinct_id"].clone());
    for (name, value) in changed.as_object().expect("fields") {
        expected[name] = value.clone();
    }
    workspace.owner.patch(ME, changed).await.assert_is(200, expected.clone());
    workspace.owner.get(ME).await.assert_is(200, expected.clone());
    workspace.owner.patch(ME, json!({})).await.assert_is(200, expected);

    let member = workspace.member("ann", Level::Member).await;
    let path = workspace.organization(&format!("members/?email={OWNER}"));
    let public = json!({
        "id": id, "uuid": uuid, "distinct_id": distinct_id, "first_name": "Ola",
        "last_name": "Nord", "email": OWNER, "is_email_verified": false,
        "hedgehog_config": { "use_as_profile": true, "color": "blue", "accessories": ["hat"] },
        "role_at_organization": "engineering",
    });
    assert_eq!(member.get(&path).await.ok()["results"][0]["user"], public);

    let nullable =
        ["has_seen_product_intro_for", "theme_mode", "hedgehog_config", "role_at_organization"];
    let nulls: Value = nullable.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    let cleared = workspace.owner.patch(ME, nulls).await.ok();
    assert!(nullable.iter().all(|name| cleared[name].is_null()), "{cleared}");
    assert!(member.get(&path).await.ok()["results"][0]["user"]["hedgehog_config"].is_null());
}

#[tokio::test]
async fn invalid_or_too_long_user_field_is_rejected_and_nothing_is_changed() {
    let workspace = Workspace::new().await;
    let before = workspace.owner.get(ME).await.ok();
    let null = "This field may not be null.";
    let dict = "Expected a dictionary of items but got type \"list\".";
    for (attr, value, code, detail) in [
        ("notification_settings", json!([]), "not_a_dict", dict),
        ("notification_settings", json!(null), "null", null),
        ("anonymize_data", json!("maybe"), "invalid_input", "Must be a valid boolean."),
        ("toolbar_mode", json!("x"), "invalid_choice", "\"x\" is not a valid choice."),
        ("events_column_config", json!(null), "null", null),
        ("has_seen_product_intro_for", json!([]), "not_a_dict", dict),
        ("theme_mode", json!("blue"), "invalid_choice", "\"blue\" is not a valid choice."),
        ("hedgehog_config", json!([]), "not_a_dict", dict),
        ("role_at_organization", json!("x"), "invalid_choice", "\"x\" is not a valid choice."),
        ("set_current_organization", json!("x"), "invalid_input", BAD_UUID),
        ("set_current_team", json!("x"), "invalid_input", "A valid integer is required."),
    ] {
        let mut sent = json!({ "first_name": "Changed" });
        sent[attr] = value;
        workspace.owner.patch(ME, sent).await.assert_invalid(attr, code, detail);
    }
    workspace.owner.get(ME).await.assert_is(200, before);
    let config =
        |name: &str, length: usize| json!({ "hedgehog_config": { name: "x".repeat(length) } });
    workspace.owner.patch(ME, config("color", 1025)).await.assert_invalid(
        "hedgehog_config",
        "max_length",
        "Ensure use_as_profile, color, accessories have no more than 1024 bytes of JSON.",
    );
    workspace.owner.patch(ME, config("color", 900)).await.ok();
    workspace.owner.patch(ME, config("private", 20_000)).await.ok();
}

#[tokio::test]
async fn users_select_their_current_organization_and_project() {
    let (workspace, owner) = Workspace::owned().await;
    let (first, web) = (json!(workspace.made.organization_id), json!(workspace.made.project_id));
    let (id, project) = workspace.second_organization().await;
    let extra = format!("/api/organizations/{id}/projects/");
    let extra = owner.post(&extra, json!({ "name": "Extra" })).await.ok()["id"].clone();
    assert_eq!(place(&owner.get(ME).await.ok()), (json!(id), extra.clone()));

    let back = owner.patch(ME, json!({ "set_current_organization": first })).await.ok();
    assert_eq!(place(&back), (first.clone(), web.clone()));
    assert_eq!(owner.get("/api/organizations/@current/").await.ok()["id"], first);
    assert_eq!(owner.get("/api/projects/@current/").await.ok()["id"], web);
    let there = owner.patch(ME, json!({ "set_current_team": project })).await.ok();
    assert_eq!(place(&there), (json!(id), project.clone()));
    let text = json!({ "set_current_team": extra.to_string() });
    assert_eq!(place(&owner.patch(ME, text).await.ok()), (json!(id), extra.clone()));
    let nothing = json!({ "set_current_organization": null, "set_current_team": null });
    assert_eq!(place(&owner.patch(ME, nothing).await.ok()), (json!(id), extra));
}

#[tokio::test]
async fn inaccessible_organization_or_project_cannot_be_selected_as_current() {
    let workspace = Workspace::new().await;
    let (_, foreign) = workspace.outsider("eve").await;
    let member = workspace.member("ann", Level::Member).await;
    let secret = json!({ "access_control": true });
    let private = workspace.owner.post(&workspace.organization("projects/"), secret).await.ok();
    let before = member.get(ME).await.ok();
    for (attr, id) in [
        ("set_current_organization", foreign["id"].clone()),
        ("set_current_organization", json!(Uuid::max().to_string())),
        ("set_current_team", foreign["project_id"].clone()),
        ("set_current_team", private["id"].clone()),
        ("set_current_team", json!(999)),
        ("set_current_team", json!(0)),
    ] {
        let detail = unknown(&id.as_str().map_or_else(|| id.to_string(), str::to_owned));
        let mut sent = json!({ "first_name": "Changed" });
        sent[attr] = id;
        member.patch(ME, sent).await.assert_invalid(attr, "does_not_exist", &detail);
    }
    let negative = member.patch(ME, json!({ "set_current_team": -1 })).await;
    assert_eq!((negative.status, &negative.body["code"]), (400, &json!("does_not_exist")));
    member.get(ME).await.assert_is(200, before);
}

#[tokio::test]
async fn deleted_organization_cannot_be_current_before_its_records_are_deleted() {
    let workspace = Workspace::new().await;
    let (id, project) = workspace.second_organization().await;
    let removed: OrganizationId = id.parse().expect("an id");
    let store = workspace.app.store();
    store.write(move |tx| cascade_delete::delete_organization(tx, removed)).await.expect("removed");
    let me = workspace.owner.get(ME).await.ok();
    let first = (json!(workspace.made.organization_id), json!(workspace.made.project_id));
    assert_eq!(place(&me), first);
    assert_eq!(me["organizations"].as_array().expect("a list").len(), 1);
    let organization = workspace.owner.patch(ME, json!({ "set_current_organization": id })).await;
    organization.assert_invalid("set_current_organization", "does_not_exist", &unknown(&id));
    let team = workspace.owner.patch(ME, json!({ "set_current_team": project })).await;
    team.assert_invalid("set_current_team", "does_not_exist", &unknown(&project.to_string()));
}

#[tokio::test]
async fn limited_key_shows_only_its_organizations_and_projects() {
    let (workspace, owner) = Workspace::owned().await;
    let (id, project) = workspace.second_organization().await;
    let (first, web) = (json!(workspace.made.organization_id), json!(workspace.made.project_id));
    let projects = workspace.organization("projects/");
    let extra = owner.post(&projects, json!({ "name": "Extra" })).await.ok()["id"].clone();
    owner.patch(ME, json!({ "set_current_team": web })).await.ok();
    let names = |me: &Value| -> Vec<Value> {
        let all = me["organizations"].as_array().expect("a list");
        all.iter().map(|organization| organization["name"].clone()).collect()
    };

    let here = workspace.limited_key(OWNER, &["*"], json!({ "organizations": [first] })).await;
    let me = here.get(ME).await.ok();
    assert_eq!((place(&me), names(&me)), ((first.clone(), web.clone()), vec!["Corp".into()]));
    assert_eq!(me["organization"]["teams"].as_array().expect("teams").len(), 2);
    let refused = here.patch(ME, json!({ "set_current_organization": id })).await;
    refused.assert_invalid("set_current_organization", "does_not_exist", &unknown(&id));

    let there = workspace.limited_key(OWNER, &["*"], json!({ "organizations": [id] })).await;
    let me = there.get(ME).await.ok();
    assert_eq!((place(&me), names(&me)), ((Value::Null, Value::Null), vec!["Second".into()]));
    assert!(me["organization"].is_null() && me["team"].is_null());

    let narrow = workspace.limited_key(OWNER, &["*"], json!({ "projects": [web] })).await;
    let me = narrow.get(ME).await.ok();
    assert_eq!((place(&me), names(&me)), ((first.clone(), web.clone()), vec!["Corp".into()]));
    for list in ["teams", "projects"] {
        let shown = me["organization"][list].as_array().expect("a list");
        assert_eq!((shown.len(), &shown[0]["id"]), (1, &web), "{list}");
    }
    let refused = narrow.patch(ME, json!({ "set_current_team": project })).await;
    refused.assert_invalid("set_current_team", "does_not_exist", &unknown(&project.to_string()));
    let refused = narrow.patch(ME, json!({ "set_current_organization": id })).await;
    refused.assert_invalid("set_current_organization", "does_not_exist", &unknown(&id));
    let same = json!({ "set_current_team": web, "set_current_organization": first });
    narrow.patch(ME, same).await.ok();
    let list = narrow.get("/api/projects/").await.ok();
    assert_eq!((&list["count"], &list["results"][0]["id"]), (&json!(1), &web));
    let there = owner.patch(ME, json!({ "set_current_team": extra })).await.ok();
    assert_eq!(place(&there), (first, extra));
    assert_eq!(narrow.get(ME).await.ok()["team"]["id"], web);
    assert_eq!(narrow.get("/api/projects/@current/").await.ok()["id"], web);
}

#[tokio::test]
async fn user_without_an_organization_has_no_current_one() {
    let workspace = Workspace::new().await;
    workspace.run_operation(Operation::UserCreate(new_user("solo@Else.Example", None))).await;
    let solo = workspace.key("SOLO@else.example", &["*"]).await;
    let me = solo.get(ME).await.ok();
    assert_eq!(me["email"], "solo@else.example");
    assert!(me["organization"].is_null() && me["team"].is_null());
    assert_eq!(me["organizations"], json!([]));
    solo.get("/api/organizations/@current/").await.assert_not_found("Organization not found.");
    solo.get("/api/projects/@current/").await.assert_not_found("Not found.");
    solo.get("/api/projects/@current/dashboards/").await.assert_not_found("Project not found.");
    let empty = json!({ "count": 0, "next": null, "previous": null, "results": [] });
    solo.get("/api/organizations/").await.assert_is(200, empty.clone());
    solo.get("/api/projects/").await.assert_is(200, empty);
}

#[tokio::test]
async fn organization_with_a_key_ban_is_hidden_from_its_members() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let closed = json!({ "members_can_use_personal_api_keys": false });
    workspace.owner.patch(&workspace.organization(""), closed).await.ok();
    let me = ann.get(ME).await.ok();
    assert_eq!((&me["organization"], &me["team"]), (&json!(null), &json!(null)));
    assert_eq!(me["organizations"], json!([]));
    let only = json!({ "projects": [workspace.made.project_id] });
    let limited = workspace.limited_key(ANN, &["*"], only).await;
    assert_eq!(limited.get(ME).await.ok()["team"], json!(null));
    let id = workspace.made.organization_id;
    let refused = ann.patch(ME, json!({ "set_current_organization": id })).await;
    let detail = format!("Invalid pk \"{id}\" - object does not exist.");
    refused.assert_invalid("set_current_organization", "does_not_exist", &detail);
    assert_eq!(workspace.owner.get(ME).await.ok()["organization"]["id"], json!(id));
}
