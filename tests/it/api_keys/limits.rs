//! Tests that a limited key cannot gain access through other keys or other routes.

use crate::support::prelude::*;

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
        let (workspace, clock) = Workspace::timed().await;
        let sent = json!({"name": "Shop"});
        let one = json!(workspace.made.organization_id);
        let beside = workspace.add_project(sent.clone()).await;
        let one = (one, [json!(workspace.made.project_id), beside]);
        let (id, first) = workspace.second_organization().await;
        let projects = format!("/api/organizations/{id}/projects/");
        let beside = workspace.owner.post(&projects, sent).await.ok();
        let two = (json!(id), [first, beside["id"].clone()]);
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
    let all = &["*"][..];
    let places = "scoped_organizations, scoped_teams";
    let in_one = json!({"organizations": [one]});
    let in_web = json!({"projects": [web]});
    let minute = json!({"expires_in": 60});
    for (scopes, weak, strong, lacks) in [
        (scoped, json!({}), json!({}), "scopes"),
        (all, in_one.clone(), json!({}), places),
        (all, in_one.clone(), json!({"organizations": [one, two]}), places),
        (all, in_web.clone(), in_one, places),
        (all, in_web, json!({"projects": [web, shop]}), places),
        (all, minute.clone(), json!({}), "expires_at"),
        (all, minute, json!({"expires_in": 61}), "expires_at"),
    ] {
        let weak = world.key(scopes, weak).await;
        let strong = world.key(&["*"], strong).await;
        let key = strong.get(CURRENT).await.ok();
        let text = format!("{STRONGER}{lacks}.");
        // The weaker key may not reduce the stronger key either, and invalid fields get the same error.
        for sent in
            [json!({"label": "mine"}), json!({"scopes": ["dashboard:read"]}), json!({"scopes": 5})]
        {
            weak.patch(&at(&key, ""), sent).await.assert_denied(&text);
        }
        for grace in [60, -1] {
            let sent = json!({"grace_seconds": grace});
            weak.post(&at(&key, "roll/"), sent).await.assert_denied(&text);
        }
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
    let created = by_organization.post("/api/organizations/", json!({"name": "Mine"})).await;
    created.assert_denied(&unlimited("create an organization"));
    let (eve, other) = world.workspace.outsider("eve").await;
    let invites = format!("/api/organizations/{}/invites/", text(&other["id"]));
    let invite = eve.post(&invites, json!({"target_email": OWNER, "level": 15})).await.ok();
    let token = text(&invite["accept_url"]).split("token=").nth(1).expect("a token");
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
    for (key, field, id) in [
        (&by_organization, "set_current_organization", two),
        (&by_organization, "set_current_team", far),
        (&by_project, "set_current_organization", two),
        (&by_project, "set_current_team", shop),
        (&by_both, "set_current_team", web),
        (&by_both, "set_current_organization", two),
    ] {
        let named = id.as_str().map_or(id.to_string(), str::to_owned);
        let gone = (json!({field: id}), Refusal::unknown(field, &named));
        key.assert_refusals(Method::PATCH, ME, [gone]).await;
    }
    assert_eq!(by_both.get("/api/projects/").await.ok()["count"], 0);
    assert_eq!(by_both.get(ME).await.ok()["organizations"], json!([]));

    let made = by_organization.post(&world.workspace.organization("projects/"), json!({})).await;
    assert_eq!(made.ok()["organization"], *one);
    // A dashboard of another project cannot be copied or set as primary dashboard.
    let copy = by_project.post(&dashboards(web), json!({"use_dashboard": secret})).await;
    assert_eq!(copy.status, 400, "{}", copy.body);
    assert!(!copy.body.to_string().contains("Secret"));
    let primary = json!({"primary_dashboard": secret});
    let dashboard = by_project.patch(&format!("/api/projects/{web}/"), primary).await;
    assert_eq!(dashboard.status, 400, "{}", dashboard.body);
    assert_eq!(by_project.get(&dashboards(web)).await.ok()["count"], 0);
}
