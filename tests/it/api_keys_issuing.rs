//! A key grants no more than it holds, and what a request leaves out is as its maker has it (decisions §2,
//! Issuing).

use serde_json::{Value, json};

use crate::api_keys_http::{CURRENT, KEYS, ME, at, holder, make};
use crate::api_keys_limits::{PLACES, SCOPES, World, text};

const EXPIRY: &str = "This API key cannot grant more than it holds: expires_at.";

/// What is sent for a key for everything with these limits.
fn with(limits: &Value) -> Value {
    let mut sent = json!({"label": "x", "scopes": ["*"]});
    let limits = limits.as_object().expect("members").clone();
    sent.as_object_mut().expect("members").extend(limits);
    sent
}

/// What a key is limited to.
fn limits(key: &Value) -> Value {
    json!([key["scoped_organizations"], key["scoped_teams"], key["expires_at"]])
}

#[tokio::test]
async fn what_a_request_leaves_out_is_as_its_maker_has_it() {
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
async fn a_key_grants_nothing_beyond_what_it_holds() {
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
        maker.post(KEYS, sent).await.denies(refused);
        // Nor does it lift itself, or a key that it made.
        let own = maker.get(CURRENT).await.ok();
        let child = make(&maker, json!({"label": "x", "scopes": ["dashboard:read"]})).await;
        if limits(&own) != json!([[one], [web], null]) {
            for key in [&own, &child] {
                maker.patch(&at(key, ""), json!({field: value})).await.denies(refused);
            }
        }
        assert_eq!(limits(&maker.get(CURRENT).await.ok()), limits(&own));
    }
}

#[tokio::test]
async fn a_key_opens_no_route_that_its_maker_does_not() {
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
            by.delete(&at(&answer.body, "")).await.is_empty(204);
            done += 1;
        }
        world.workspace.owner.delete(&at(&maker, "")).await.is_empty(204);
    }
    assert!(done > 2 * makers && done < makers * makers, "{done} of {makers} squared");
}

#[tokio::test]
async fn a_limit_to_what_was_removed_stays_a_limit() {
    let world = World::new().await;
    let ((one, [web, shop]), (two, [far, _])) = (&world.one, &world.two);
    let owner = &world.workspace.owner;
    let by_project = world.key(&["*"], json!({"projects": [shop]})).await;
    let by_organization = world.key(&["*"], json!({"organizations": [two]})).await;
    owner.delete(&format!("/api/projects/{shop}/")).await.is_empty(204);
    owner.delete(&format!("/api/organizations/{}/", text(two))).await.is_empty(204);
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
        let none = json!({"scoped_teams": [], "scoped_organizations": []});
        key.patch(&at(&child, ""), none.clone()).await.denies(PLACES);
        key.post(KEYS, with(&none)).await.denies(PLACES);
        let elsewhere = if kept[1] == json!([]) {
            json!({"scoped_organizations": [one]})
        } else {
            json!({"scoped_teams": [web]})
        };
        key.post(KEYS, with(&elsewhere)).await.denies(PLACES);
        let teams = "You must be a member of all teams that you are scoping the key to.";
        let removed = key.post(KEYS, with(&json!({"scoped_teams": [far]}))).await;
        removed.refuses_field("scoped_teams", "invalid_input", teams);
    }
}
