//! Tests that a key cannot grant more access than it has, and that omitted fields default to its own limits.

use crate::api_keys::limits::{PLACES, SCOPES, World, text};
use crate::support::prelude::*;

const EXPIRY: &str = "This API key cannot grant more access than it has: expires_at.";

/// Returns the request for a key with all scopes and these limits.
fn with(limits: &Value) -> Value {
    let mut sent = json!({"label": "x", "scopes": ["*"]});
    sent.as_object_mut().expect("members").extend(limits.as_object().expect("members").clone());
    sent
}

/// Returns the limits of a key.
fn limits(key: &Value) -> Value {
    json!([key["scoped_organizations"], key["scoped_teams"], key["expires_at"]])
}

/// The user's keys and what each is limited to.
async fn held_by_all(caller: &TestClient) -> Vec<(Value, Value)> {
    let keys = caller.get(KEYS).await.ok();
    keys.as_array().expect("keys").iter().map(|key| (key["id"].clone(), limits(key))).collect()
}

#[tokio::test]
async fn omitted_fields_of_a_new_key_default_to_those_of_the_creating_key() {
    let world = World::new().await;
    let (one, [web, shop]) = &world.one;
    let end = "2023-11-14T23:13:20Z";
    let named = "2023-11-14T22:13:30Z";
    for [maker, sent, expected] in rows(json!([
        [{}, {}, [[], [], null]],
        [{"organizations": [one]}, {}, [[one], [], null]],
        [{"projects": [web, shop]}, {}, [[], [web, shop], null]],
        [{"expires_in": 3600}, {}, [[], [], end]],
        [{"expires_in": 3600}, {"expires_at": named}, [[], [], named]],
        [{"expires_in": 3600}, {"expires_at": end}, [[], [], end]],
        [{"organizations": [one], "projects": [web], "expires_in": 3600}, {}, [[one], [web], end]],
        [{"organizations": [one]}, {"scoped_teams": [web]}, [[one], [web], null]],
        [{"organizations": [one]}, {"scoped_teams": []}, [[one], [], null]],
        [{"projects": [web, shop]}, {"scoped_teams": [shop]}, [[], [shop], null]],
        [{"projects": [web]}, {"scoped_organizations": [one]}, [[one], [web], null]],
        [{"projects": [web]}, {"scoped_organizations": null}, [[], [web], null]],
    ])) {
        let made = make_key(&world.key(&["*"], maker).await, with(&sent)).await;
        assert_eq!(limits(&made), expected, "{sent}");
        assert_eq!(holder(&world.workspace, &made).get(CURRENT).await.status, 200);
    }
}

#[tokio::test]
async fn key_cannot_grant_more_than_it_has() {
    let world = World::new().await;
    let ((one, [web, shop]), (two, [far, _])) = (&world.one, &world.two);
    let scoped = &["personal_api_key:write", "dashboard:read"][..];
    let all = &["*"][..];
    let in_one = json!({"organizations": [one]});
    let in_web = json!({"projects": [web]});
    let in_both = json!({"organizations": [one], "projects": [web]});
    let minute = json!({"expires_in": 60});
    for (scopes, maker, field, value, refused) in [
        (scoped, json!({}), "scopes", json!(["*"]), SCOPES),
        (scoped, json!({}), "scopes", json!(["dashboard:write"]), SCOPES),
        (scoped, json!({}), "scopes", json!(["dashboard:read", "user:read"]), SCOPES),
        (all, in_one.clone(), "scoped_organizations", json!([two]), PLACES),
        (all, in_one.clone(), "scoped_organizations", json!([one, two]), PLACES),
        (all, in_one.clone(), "scoped_organizations", json!([]), PLACES),
        (all, in_one, "scoped_organizations", json!(null), PLACES),
        (all, in_web.clone(), "scoped_teams", json!([shop]), PLACES),
        (all, in_web.clone(), "scoped_teams", json!([web, far]), PLACES),
        (all, in_web.clone(), "scoped_teams", json!([]), PLACES),
        (all, in_web, "scoped_teams", json!(null), PLACES),
        (all, in_both.clone(), "scoped_teams", json!([shop]), PLACES),
        (all, in_both, "scoped_organizations", json!([]), PLACES),
        (all, minute.clone(), "expires_at", json!(null), EXPIRY),
        (all, minute, "expires_at", json!("2023-11-14T22:14:20.000001Z"), EXPIRY),
    ] {
        let maker = world.key(scopes, maker).await;
        let mut sent = json!({"label": "x", "scopes": ["dashboard:read"]});
        sent[field] = value.clone();
        maker.post(KEYS, sent).await.assert_denied(refused);
        // The key cannot extend its own limits either, nor those of a key that it created.
        let own = maker.get(CURRENT).await.ok();
        let child = make_key(&maker, json!({"label": "x", "scopes": ["dashboard:read"]})).await;
        if limits(&own) != json!([[one], [web], null]) {
            for key in [&own, &child] {
                maker.patch(&at(key, ""), json!({field: value})).await.assert_denied(refused);
            }
        }
        assert_eq!(limits(&maker.get(CURRENT).await.ok()), limits(&own));
    }
}

#[tokio::test]
async fn limited_key_cannot_name_organizations_or_projects_outside_its_limits() {
    let world = World::new().await;
    let ((one, [web, shop]), (two, [far, _])) = (&world.one, &world.two);
    let nowhere = json!("018f0000-0000-7000-8000-000000000000");
    let organizations = |ids: &[&Value]| json!({"scoped_organizations": ids});
    let projects = |ids: &[&Value]| json!({"scoped_teams": ids});
    let both = |of: &Value, id: &Value| json!({"scoped_organizations": [of], "scoped_teams": [id]});
    let in_one = json!({"organizations": [one]});
    let in_web = json!({"projects": [web]});
    let in_both = json!({"organizations": [one], "projects": [web]});
    for (held, sent) in [
        (&in_one, projects(&[far])),
        (&in_one, projects(&[web, far])),
        (&in_one, projects(&[&json!(999_999)])),
        (&in_one, both(two, web)),
        (&in_one, both(one, far)),
        (&in_one, both(two, far)),
        (&in_one, both(&nowhere, web)),
        (&in_web, organizations(&[two])),
        (&in_web, organizations(&[one, two])),
        (&in_web, organizations(&[&nowhere])),
        (&in_web, both(two, web)),
        (&in_web, both(two, far)),
        (&in_both, organizations(&[two])),
        (&in_both, projects(&[shop, web])),
        (&in_both, projects(&[far])),
    ] {
        let key = world.key(&["*"], held.clone()).await;
        let child = make_key(&key, with(&json!({}))).await;
        let own = key.get(CURRENT).await.ok();
        let before = held_by_all(&key).await;
        key.post(KEYS, with(&sent)).await.assert_denied(PLACES);
        for changed in [&own, &child] {
            key.patch(&at(changed, ""), sent.clone()).await.assert_denied(PLACES);
        }
        assert_eq!(held_by_all(&key).await, before, "{sent}");
    }
    // What is inside the limits may be named, though the key opens nothing then.
    let key = world.key(&["*"], json!({"organizations": [one, two]})).await;
    let made = make_key(&key, with(&json!({"scoped_organizations": [two]}))).await;
    assert_eq!(limits(&made), json!([[two], [], null]));
    let changed = key.patch(&at(&made, ""), json!({"scoped_teams": [web]})).await.ok();
    assert_eq!(limits(&changed), json!([[two], [web], null]));
    let unlimited = &world.workspace.owner;
    let across = json!({"scoped_organizations": [one], "scoped_teams": [far]});
    assert_eq!(limits(&make_key(unlimited, with(&across)).await), json!([[one], [far], null]));
    world.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn limit_to_a_deleted_organization_or_project_remains() {
    let world = World::new().await;
    let ((one, [web, shop]), (two, [far, _])) = (&world.one, &world.two);
    let owner = &world.workspace.owner;
    let by_project = world.key(&["*"], json!({"projects": [shop]})).await;
    let by_organization = world.key(&["*"], json!({"organizations": [two]})).await;
    owner.delete(&format!("/api/projects/{shop}/")).await.assert_empty(204);
    owner.delete(&format!("/api/organizations/{}/", text(two))).await.assert_empty(204);
    let teams = "You must be a member of all teams that you are scoping the key to.";
    for (key, kept) in
        [(&by_project, json!([[], [shop], null])), (&by_organization, json!([[two], [], null]))]
    {
        assert_eq!(key.get("/api/projects/").await.ok()["count"], 0);
        assert_eq!(key.get(ME).await.ok()["organizations"], json!([]));
        let refused = key.get(&world.workspace.organization("")).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
        let child = make_key(key, json!({"label": "x", "scopes": ["*"]})).await;
        assert_eq!(limits(&child), kept);
        key.patch(&at(&child, ""), json!({"label": "y"})).await.ok();
        // The limits that the key has may be sent back.
        let shown = key.get(&at(&child, "")).await.ok();
        key.patch(&at(&child, ""), shown.clone()).await.assert_is(200, shown);
        let none = json!({"scoped_teams": [], "scoped_organizations": []});
        key.patch(&at(&child, ""), none.clone()).await.assert_denied(PLACES);
        key.post(KEYS, with(&none)).await.assert_denied(PLACES);
        let elsewhere = if kept[1] == json!([]) {
            json!({"scoped_organizations": [one]})
        } else {
            json!({"scoped_teams": [web]})
        };
        key.post(KEYS, with(&elsewhere)).await.assert_denied(PLACES);
        key.post(KEYS, with(&json!({"scoped_teams": [far]}))).await.assert_denied(PLACES);
    }
    let removed = by_project.post(KEYS, with(&json!({"scoped_teams": [shop]}))).await;
    removed.assert_bad("scoped_teams", teams);
}
