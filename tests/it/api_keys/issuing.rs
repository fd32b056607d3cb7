//! Tests that a key cannot grant more access than it has, and that omitted fields default to its own limits.

use serde_json::{Value, json};

use crate::api_keys::limits::{PLACES, SCOPES, World, text};
use crate::api_keys::{CURRENT, KEYS, ME, at, holder, make};
use crate::support::TestClient;

const EXPIRY: &str = "This API key cannot grant more access than it has: expires_at.";

/// Returns the request for a key with all scopes and these limits.
fn with(limits: &Value) -> Value {
    let mut sent = json!({"label": "x", "scopes": ["*"]});
    let limits = limits.as_object().expect("members").clone();
    sent.as_object_mut().expect("members").extend(limits);
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
    for (maker, sent, expected) in [
        (json!({}), json!({}), json!([[], [], null])),
        (json!({"organizations": [one]}), json!({}), json!([[one], [], null])),
        (json!({"projects": [web, shop]}), json!({}), json!([[], [web, shop], null])),
        (json!({"expires_in": 3600}), json!({}), json!([[], [], end])),
        (json!({"expires_in": 3600}), json!({"expires_at": named}), json!([[], [], named])),
        (json!({"expires_in": 3600}), json!({"expires_at": end}), json!([[], [], end])),
        (
            json!({"organizations": [one], "projects": [web], "expires_in": 3600}),
            json!({}),
            json!([[one], [web], end]),
        ),
        (
            json!({"organizations": [one]}),
            json!({"scoped_teams": [web]}),
            json!([[one], [web], null]),
        ),
        (json!({"organizations": [one]}), json!({"scoped_teams": []}), json!([[one], [], null])),
        (
            json!({"projects": [web, shop]}),
            json!({"scoped_teams": [shop]}),
            json!([[], [shop], null]),
        ),
        (
            json!({"projects": [web]}),
            json!({"scoped_organizations": [one]}),
            json!([[one], [web], null]),
        ),
        (
            json!({"projects": [web]}),
            json!({"scoped_organizations": null}),
            json!([[], [web], null]),
        ),
    ] {
        let maker = world.key(&["*"], maker).await;
        let made = make(&maker, with(&sent)).await;
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
    for (scopes, maker, field, value, refused) in [
        (scoped, json!({}), "scopes", json!(["*"]), SCOPES),
        (scoped, json!({}), "scopes", json!(["dashboard:write"]), SCOPES),
        (scoped, json!({}), "scopes", json!(["dashboard:read", "user:read"]), SCOPES),
        (all, json!({"organizations": [one]}), "scoped_organizations", json!([two]), PLACES),
        (all, json!({"organizations": [one]}), "scoped_organizations", json!([one, two]), PLACES),
        (all, json!({"organizations": [one]}), "scoped_organizations", json!([]), PLACES),
        (all, json!({"organizations": [one]}), "scoped_organizations", json!(null), PLACES),
        (all, json!({"projects": [web]}), "scoped_teams", json!([shop]), PLACES),
        (all, json!({"projects": [web]}), "scoped_teams", json!([web, far]), PLACES),
        (all, json!({"projects": [web]}), "scoped_teams", json!([]), PLACES),
        (all, json!({"projects": [web]}), "scoped_teams", json!(null), PLACES),
        (
            all,
            json!({"organizations": [one], "projects": [web]}),
            "scoped_teams",
            json!([shop]),
            PLACES,
        ),
        (
            all,
            json!({"organizations": [one], "projects": [web]}),
            "scoped_organizations",
            json!([]),
            PLACES,
        ),
        (all, json!({"expires_in": 60}), "expires_at", json!(null), EXPIRY),
        (
            all,
            json!({"expires_in": 60}),
            "expires_at",
            json!("2023-11-14T22:14:20.000001Z"),
            EXPIRY,
        ),
    ] {
        let maker = world.key(scopes, maker).await;
        let mut sent = json!({"label": "x", "scopes": ["dashboard:read"]});
        sent[field] = value.clone();
        maker.post(KEYS, sent).await.assert_denied(refused);
        // The key cannot extend its own limits either, nor those of a key that it created.
        let own = maker.get(CURRENT).await.ok();
        let child = make(&maker, json!({"label": "x", "scopes": ["dashboard:read"]})).await;
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
    let nowhere = "018f0000-0000-7000-8000-000000000000";
    for (held, sent) in [
        (json!({"organizations": [one]}), json!({"scoped_teams": [far]})),
        (json!({"organizations": [one]}), json!({"scoped_teams": [web, far]})),
        (json!({"organizations": [one]}), json!({"scoped_teams": [999_999]})),
        (
            json!({"organizations": [one]}),
            json!({"scoped_organizations": [two], "scoped_teams": [web]}),
        ),
        (
            json!({"organizations": [one]}),
            json!({"scoped_organizations": [one], "scoped_teams": [far]}),
        ),
        (
            json!({"organizations": [one]}),
            json!({"scoped_organizations": [two], "scoped_teams": [far]}),
        ),
        (
            json!({"organizations": [one]}),
            json!({"scoped_organizations": [nowhere], "scoped_teams": [web]}),
        ),
        (json!({"projects": [web]}), json!({"scoped_organizations": [two]})),
        (json!({"projects": [web]}), json!({"scoped_organizations": [one, two]})),
        (json!({"projects": [web]}), json!({"scoped_organizations": [nowhere]})),
        (json!({"projects": [web]}), json!({"scoped_organizations": [two], "scoped_teams": [web]})),
        (json!({"projects": [web]}), json!({"scoped_organizations": [two], "scoped_teams": [far]})),
        (
            json!({"organizations": [one], "projects": [web]}),
            json!({"scoped_organizations": [two]}),
        ),
        (json!({"organizations": [one], "projects": [web]}), json!({"scoped_teams": [shop, web]})),
        (json!({"organizations": [one], "projects": [web]}), json!({"scoped_teams": [far]})),
    ] {
        let key = world.key(&["*"], held).await;
        let child = make(&key, with(&json!({}))).await;
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
    let made = make(&key, with(&json!({"scoped_organizations": [two]}))).await;
    assert_eq!(limits(&made), json!([[two], [], null]));
    let changed = key.patch(&at(&made, ""), json!({"scoped_teams": [web]})).await.ok();
    assert_eq!(limits(&changed), json!([[two], [web], null]));
    let unlimited = &world.workspace.owner;
    let across = json!({"scoped_organizations": [one], "scoped_teams": [far]});
    assert_eq!(limits(&make(unlimited, with(&across)).await), json!([[one], [far], null]));
    world.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn created_key_accesses_no_route_that_its_creator_cannot() {
    let world = World::new().await;
    let ((one, projects), (two, others)) = (&world.one, &world.two);
    let mut routes = vec![ME.to_owned(), KEYS.to_owned()];
    routes.extend(["/api/projects/", "/api/organizations/"].map(str::to_owned));
    for organization in [one, two].map(text) {
        let below = ["", "members/", "invites/", "domains/", "projects/"];
        routes.extend(below.map(|rest| format!("/api/organizations/{organization}/{rest}")));
    }
    for project in projects.iter().chain(others) {
        routes.push(format!("/api/projects/{project}/"));
        routes.push(format!("/api/projects/{project}/dashboards/"));
    }
    let [web, shop] = projects;
    let places = [
        json!({}),
        json!({"scoped_organizations": [one]}),
        json!({"scoped_organizations": [one, two]}),
        json!({"scoped_teams": [web]}),
        json!({"scoped_teams": [web, others[0]]}),
        json!({"scoped_organizations": [one], "scoped_teams": [web, shop]}),
        json!({"scoped_organizations": [two], "scoped_teams": [web]}),
        json!({"scoped_organizations": []}),
        json!({"scoped_teams": []}),
    ];
    let wanted: Vec<Value> = places.iter().map(with).collect();
    let (mut makers, mut done) = (0, 0);
    for sent in &wanted {
        let maker = make(&world.workspace.owner, sent.clone()).await;
        let by = holder(&world.workspace, &maker);
        let mut open = Vec::new();
        for route in &routes {
            open.push(by.get(route).await.status == 200);
        }
        makers += 1;
        for asked in &wanted {
            let answer = by.post(KEYS, asked.clone()).await;
            if answer.status != 201 {
                assert_eq!(answer.status, 403, "{asked} by {sent}: {}", answer.body);
                continue;
            }
            let child = holder(&world.workspace, &answer.body);
            for (route, open) in routes.iter().zip(&open) {
                let opens = child.get(route).await.status == 200;
                assert!(*open || !opens, "{asked} by {sent} opens {route}");
            }
            by.delete(&at(&answer.body, "")).await.assert_empty(204);
            done += 1;
        }
        world.workspace.owner.delete(&at(&maker, "")).await.assert_empty(204);
    }
    assert!(done > 2 * makers && done < makers * makers, "{done} of {makers} squared");
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
        let child = make(key, json!({"label": "x", "scopes": ["*"]})).await;
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
    removed.assert_invalid("scoped_teams", "invalid_input", teams);
}
