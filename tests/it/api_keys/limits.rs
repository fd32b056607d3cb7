//! Tests that a limited key cannot gain access through other keys or other routes.

use std::time::Duration;

use serde_json::{Value, json};
use steward::testing::operator::{Operation, OrganizationOptions};
use steward::testing::resources::members::Level;
use steward::testing::time::ManualClock;

use crate::api_keys::{CURRENT, KEYS, ME, at, holder, make, standing};
use crate::support::{OWNER, TestClient, Workspace};

pub const PLACES: &str =
    "This API key cannot grant more access than it has: scoped_organizations, scoped_teams.";
pub const SCOPES: &str = "This API key cannot grant more access than it has: scopes.";
const STRONGER: &str = "This API key cannot change a key with more access: ";

/// Two organizations of the owner with two projects each.
pub struct World {
    pub workspace: Workspace,
    pub clock: ManualClock,
    /// Each organization with its projects.
    pub one: (Value, [Value; 2]),
    pub two: (Value, [Value; 2]),
}

impl World {
    pub async fn new() -> Self {
        let (workspace, clock) = standing().await;
        let sent = json!({"name": "Shop"});
        let one = json!(workspace.made.organization_id);
        let beside =
            workspace.owner.post(&workspace.organization("projects/"), sent.clone()).await.ok();
        let one = (one, [json!(workspace.made.project_id), beside["id"].clone()]);
        let owner = OWNER.to_owned();
        let made = Operation::OrganizationCreate(OrganizationOptions {
            name: "Two".to_owned(),
            owner,
            existing: false,
        });
        let made = workspace.run_operation(made).await;
        let projects = format!("/api/organizations/{}/projects/", text(&made["id"]));
        let beside = workspace.owner.post(&projects, sent).await.ok();
        let two = (made["id"].clone(), [made["project_id"].clone(), beside["id"].clone()]);
        Self { workspace, clock, one, two }
    }

    /// Creates a key as the operator.
    pub async fn key(&self, scopes: &[&str], limits: Value) -> TestClient {
        self.workspace.limited_key(OWNER, scopes, limits).await
    }
}

pub fn text(id: &Value) -> &str {
    id.as_str().expect("an id")
}

#[tokio::test]
async fn organization_limited_key_may_update_a_key_limited_to_its_projects() {
    let world = World::new().await;
    let ((one, [web, shop]), (_, [far, _])) = (&world.one, &world.two);
    let by_organization = world.key(&["*"], json!({"organizations": [one]})).await;
    let sibling = world.key(&["*"], json!({"projects": [web, shop]})).await;
    let sibling = sibling.get(CURRENT).await.ok();
    by_organization.patch(&at(&sibling, ""), json!({"label": "within"})).await.ok();
    let sent = json!({"scoped_teams": [web], "scoped_organizations": [one]});
    by_organization.patch(&at(&sibling, ""), sent).await.ok();
    // The key has access only to what both limits allow, so removing one of them adds nothing here.
    let sent = json!({"scoped_organizations": []});
    by_organization.patch(&at(&sibling, ""), sent).await.ok();
    let sent = json!({"scoped_teams": []});
    by_organization.patch(&at(&sibling, ""), sent).await.assert_denied(PLACES);
    let across = world.key(&["*"], json!({"projects": [web, far]})).await;
    let across = across.get(CURRENT).await.ok();
    let text = format!("{STRONGER}scoped_organizations, scoped_teams.");
    by_organization.patch(&at(&across, ""), json!({"label": "beyond"})).await.assert_denied(&text);
}

#[tokio::test]
async fn limited_key_cannot_update_rotate_or_revoke_a_stronger_key() {
    let world = World::new().await;
    let ((one, [web, shop]), (two, _)) = (&world.one, &world.two);
    let scoped = &["personal_api_key:write", "dashboard:read"][..];
    for (scopes, weak, strong, lacks) in [
        (scoped, json!({}), json!({}), "scopes"),
        (
            &["*"][..],
            json!({"organizations": [one]}),
            json!({}),
            "scoped_organizations, scoped_teams",
        ),
        (
            &["*"],
            json!({"organizations": [one]}),
            json!({"organizations": [one, two]}),
            "scoped_organizations, scoped_teams",
        ),
        (
            &["*"],
            json!({"projects": [web]}),
            json!({"organizations": [one]}),
            "scoped_organizations, scoped_teams",
        ),
        (
            &["*"],
            json!({"projects": [web]}),
            json!({"projects": [web, shop]}),
            "scoped_organizations, scoped_teams",
        ),
        (&["*"], json!({"expires_in": 60}), json!({}), "expires_at"),
        (&["*"], json!({"expires_in": 60}), json!({"expires_in": 61}), "expires_at"),
    ] {
        let weak = world.key(scopes, weak).await;
        let strong = world.key(&["*"], strong).await;
        let key = strong.get(CURRENT).await.ok();
        let text = format!("{STRONGER}{lacks}.");
        weak.patch(&at(&key, ""), json!({"label": "mine"})).await.assert_denied(&text);
        // The weaker key may not reduce the stronger key either, and invalid fields get the same error.
        weak.patch(&at(&key, ""), json!({"scopes": ["dashboard:read"]})).await.assert_denied(&text);
        weak.patch(&at(&key, ""), json!({"scopes": 5})).await.assert_denied(&text);
        weak.post(&at(&key, "roll/"), json!({"grace_seconds": 60})).await.assert_denied(&text);
        weak.post(&at(&key, "roll/"), json!({"grace_seconds": -1})).await.assert_denied(&text);
        weak.delete(&at(&key, "")).await.assert_denied(&text);
        assert_eq!(weak.get(&at(&key, "")).await.ok()["value"], json!(null));
        let listed = weak.get(KEYS).await.ok();
        let mut listed = listed.as_array().expect("an array").iter();
        assert!(listed.all(|key| key["value"].is_null()), "a list contains no values");
        assert_eq!(strong.get(CURRENT).await.ok()["label"], "test");
        // The stronger key may change the weaker one.
        let key = weak.get(CURRENT).await.ok();
        strong.patch(&at(&key, ""), json!({"label": "seen"})).await.ok();
        strong.post(&at(&key, "roll/"), json!({})).await.ok();
        weak.get(CURRENT).await.is_bad_key();
        strong.delete(&at(&key, "")).await.assert_empty(204);
    }
    world.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn read_scope_does_not_allow_changing_keys() {
    let world = World::new().await;
    let reader = world.key(&["personal_api_key:read", "user:write"], json!({})).await;
    let key = reader.get(CURRENT).await.ok();
    reader.get(KEYS).await.ok();
    reader.get(&at(&key, "")).await.ok();
    let text = "API key missing required scope 'personal_api_key:write'";
    reader.post(KEYS, json!({})).await.assert_denied(text);
    reader.patch(&at(&key, ""), json!({})).await.assert_denied(text);
    reader.delete(&at(&key, "")).await.assert_denied(text);
    reader.post(&at(&key, "roll/"), json!({})).await.assert_denied(text);
}

#[tokio::test]
async fn key_cannot_restore_its_own_removed_scope() {
    let world = World::new().await;
    let key = world.key(&["personal_api_key:write", "dashboard:write"], json!({})).await;
    let own = key.get(CURRENT).await.ok();
    let less = json!({"scopes": ["personal_api_key:write", "dashboard:read"]});
    key.patch(&at(&own, ""), less.clone()).await.ok();
    let more = json!({"scopes": ["personal_api_key:write", "dashboard:write"]});
    key.patch(&at(&own, ""), more).await.assert_denied(SCOPES);
    let rolled = key.post(&at(&own, "roll/"), json!({"grace_seconds": 60})).await.ok();
    assert_eq!(rolled["scopes"], json!(["dashboard:read", "personal_api_key:write"]));
    let text = "API key missing required scope 'dashboard:write'";
    for caller in [&key, &holder(&world.workspace, &rolled)] {
        caller.post(&world.workspace.dashboards(""), json!({})).await.assert_denied(text);
    }
}

#[tokio::test]
async fn limited_key_gains_no_access_through_other_routes() {
    let world = World::new().await;
    let ((one, [web, shop]), (two, [far, _])) = (&world.one, &world.two);
    let owner = &world.workspace.owner;
    let dashboards = |project: &Value| format!("/api/projects/{project}/dashboards/");
    let secret = owner.post(&dashboards(shop), json!({"name": "Secret"})).await.ok()["id"].clone();
    let by_organization = world.key(&["*"], json!({"organizations": [one]})).await;
    let by_project = world.key(&["*"], json!({"projects": [web]})).await;
    let by_both = world.key(&["*"], json!({"organizations": [two], "projects": [web]})).await;

    // A limited key cannot create or join organizations.
    let unlimited =
        |what: &str| format!("API keys limited to organizations or projects cannot {what}.");
    by_organization
        .post("/api/organizations/", json!({"name": "Mine"}))
        .await
        .assert_denied(&unlimited("create an organization"));
    let (eve, other) = world.workspace.outsider("eve").await;
    let invites = format!("/api/organizations/{}/invites/", text(&other["id"]));
    let invite = eve.post(&invites, json!({"target_email": OWNER, "level": 15})).await.ok();
    let link = text(&invite["accept_url"]);
    let token = link.split("token=").nth(1).expect("a token");
    let signup = format!("/api/signup/{}/", text(&invite["id"]));
    for key in [&by_organization, &by_project, &by_both] {
        let joined = key.post(&signup, json!({"token": token})).await;
        joined.assert_denied(&unlimited("join an organization"));
    }
    // A user that joins with a key gets no new key.
    let joining = world.key(&["user:write"], json!({})).await;
    let joined = joining.post(&signup, json!({"token": token})).await.ok();
    assert_eq!(joined["personal_api_key"], json!(null));

    // `@current` can only be set to what the key can access.
    let gone = |field: &str, id: &Value| {
        let id = id.as_str().map_or(id.to_string(), str::to_owned);
        (field.to_owned(), format!("Invalid pk \"{id}\" - object does not exist."))
    };
    for (key, field, id) in [
        (&by_organization, "set_current_organization", two),
        (&by_organization, "set_current_team", far),
        (&by_project, "set_current_organization", two),
        (&by_project, "set_current_team", shop),
        (&by_both, "set_current_team", web),
        (&by_both, "set_current_organization", two),
    ] {
        let (attr, detail) = gone(field, id);
        key.patch(ME, json!({field: id})).await.assert_invalid(&attr, "does_not_exist", &detail);
    }
    assert_eq!(by_both.get("/api/projects/").await.ok()["count"], 0);
    assert_eq!(by_both.get(ME).await.ok()["organizations"], json!([]));

    // A key limited to an organization creates projects only there. A key limited to projects creates none.
    let made =
        by_organization.post(&world.workspace.organization("projects/"), json!({})).await.ok();
    assert_eq!(made["organization"], *one);
    let elsewhere = format!("/api/organizations/{}/projects/", text(two));
    let text =
        format!("API key does not have access to the requested organization: ID {}.", text(two));
    by_organization.post(&elsewhere, json!({})).await.assert_denied(&text);
    let text = "API keys with scoped projects are only supported on project-based endpoints.";
    by_project
        .post(&world.workspace.organization("projects/"), json!({}))
        .await
        .assert_denied(text);
    let sent = json!({"target_email": "x@example.com"});
    by_project.post(&world.workspace.organization("invites/"), sent).await.assert_denied(text);

    // A dashboard of another project cannot be copied or set as primary dashboard.
    let copy = by_project.post(&dashboards(web), json!({"use_dashboard": secret})).await;
    assert_eq!(copy.status, 400, "{}", copy.body);
    assert!(!copy.body.to_string().contains("Secret"));
    let dashboard = by_project
        .patch(&format!("/api/projects/{web}/"), json!({"primary_dashboard": secret}))
        .await;
    assert_eq!(dashboard.status, 400, "{}", dashboard.body);
    assert_eq!(by_project.get(&dashboards(web)).await.ok()["count"], 0);
}

#[tokio::test]
async fn expired_key_cannot_create_or_change_keys() {
    let (workspace, clock) = standing().await;
    let maker = workspace.limited_key(OWNER, &["*"], json!({"expires_in": 60})).await;
    let child = make(&maker, json!({"label": "x", "scopes": ["*"]})).await;
    clock.advance(Duration::from_mins(1));
    maker.post(KEYS, json!({"label": "y", "scopes": ["*"]})).await.is_bad_key();
    maker.patch(&at(&child, ""), json!({"expires_at": null})).await.is_bad_key();
    maker.post(&at(&child, "roll/"), json!({})).await.is_bad_key();
    maker.delete(&at(&child, "")).await.is_bad_key();
    maker.get(CURRENT).await.is_bad_key();
    // The key that it created has expired with it.
    holder(&workspace, &child).get(CURRENT).await.is_bad_key();
}

#[tokio::test]
async fn members_key_loses_organization_access_with_the_membership() {
    let workspace = Workspace::new().await;
    let max = workspace.member("max", Level::Member).await;
    let sent = json!({
        "label": "x", "scopes": ["*"], "scoped_organizations": [workspace.made.organization_id],
    });
    let key = holder(&workspace, &make(&max, sent.clone()).await);
    assert_eq!(key.get(&workspace.dashboards("")).await.status, 200);
    let uuid = max.get(ME).await.ok()["uuid"].as_str().expect("a UUID").to_owned();
    workspace
        .owner
        .delete(&workspace.organization(&format!("members/{uuid}/")))
        .await
        .assert_empty(204);
    key.get(&workspace.dashboards("")).await.assert_denied("You don't have access to the project.");
    key.get(CURRENT).await.ok();
    // The key can still create keys with its own limits, which give no access. Naming the organization fails.
    make(&key, json!({"label": "y", "scopes": ["*"]})).await;
    let text = "You must be a member of all organizations that you are scoping the key to.";
    key.post(KEYS, sent).await.assert_invalid("scoped_organizations", "invalid_input", text);
}
