//! The authorization matrix: requests every route of the route table as each type of caller without permission. A new
//! route is covered as soon as the table declares it.

use steward::testing::auth::{PathTarget, Requirements};

use crate::support::objects::join;
use crate::support::prelude::*;

/// Creates a workspace whose DNS server knows no names.
async fn workspace() -> (Workspace, Dns) {
    let dns = Dns::start().await;
    (Workspace::with(dns.config()).await, dns)
}

/// The expected result of authorization.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// 401 because the request has no key.
    NoKey,
    /// 401 because the key is not valid.
    BadKey,
    /// 403 with this text.
    Denied(String),
    /// 404 with this text.
    Missing(&'static str),
    /// The caller is authorized.
    LetIn,
}

impl Verdict {
    /// Asserts the complete error. The response to an authorized caller must not contain `hidden`.
    fn check(&self, row: &RouteSpec, case: &str, answer: &TestResponse, hidden: &str) {
        let error = |status: u16, kind: &str, code: &str, detail: &str| {
            let body = json!({ "type": kind, "code": code, "detail": detail, "attr": null });
            assert_eq!((answer.status, &answer.body), (status, &body), "{} {case}", row.operation);
        };
        match self {
            Self::NoKey => error(
                401,
                "authentication_error",
                "not_authenticated",
                "Authentication credentials were not provided.",
            ),
            Self::BadKey => error(
                401,
                "authentication_error",
                "authentication_failed",
                "Personal API key found in request Authorization header is invalid.",
            ),
            Self::Denied(detail) => error(403, "authentication_error", "permission_denied", detail),
            Self::Missing(detail) => error(404, "invalid_request", "not_found", detail),
            Self::LetIn => {
                let text = String::from_utf8_lossy(&answer.bytes);
                // A body of `{}` may lack a required field.
                let settled = answer.status == row.status || answer.status == 400;
                assert!(settled, "{} {case}: {} {text}", row.operation, answer.status);
                assert!(!text.contains(hidden), "{} {case}: {text}", row.operation);
            }
        }
    }
}

/// Returns keys that are not valid, each with the reason.
async fn dead_keys(workspace: &Workspace) -> Vec<(&'static str, TestClient)> {
    let key = &workspace.made.api_key;
    let email = "off@corp.example";
    join(workspace, &workspace.made.organization_id.to_string(), email, Level::Owner).await;
    let inactive = workspace.key(email, &["*"]).await;
    let off = Operation::UserSetActive { email: email.to_owned(), active: false };
    workspace.run_operation(off).await;
    let expired = workspace.limited_key(OWNER, &["*"], json!({"expires_in": 0})).await;
    vec![
        ("with a key cut off", workspace.with_key(&key[..key.len() - 1])),
        ("with an expired key", expired),
        ("with a revoked key", revoked(workspace).await),
        ("with a deactivated user's key", inactive),
    ]
}

/// Returns a key that was used and then revoked.
async fn revoked(workspace: &Workspace) -> TestClient {
    let made = Operation::KeyCreate(new_key(OWNER, "short-lived"));
    let made = workspace.run_operation(made).await;
    let caller = workspace.with_key(made["value"].as_str().expect("a key"));
    caller.get(ME).await.ok();
    let id = serde_json::from_value(made["id"].clone()).expect("an id");
    workspace.run_operation(Operation::KeyRevoke { id }).await;
    caller
}

fn missing_scope(needs: Requirements) -> Verdict {
    needs.scope.map_or(Verdict::LetIn, |scope| {
        Verdict::Denied(format!("API key missing required scope '{scope}'"))
    })
}

/// The verdict for a user who is not a member of the organization.
fn on_a_stranger(row: &RouteSpec) -> Verdict {
    match PathTarget::of(row.path) {
        PathTarget::Caller if is_own(row) => Verdict::Missing("Not found."),
        PathTarget::Caller | PathTarget::Organizations => Verdict::LetIn,
        PathTarget::Project => Verdict::Missing("Not found."),
        PathTarget::InProject => Verdict::Denied(NO_ACCESS.to_owned()),
        PathTarget::Organization | PathTarget::OrganizationProject => {
            Verdict::Denied(NOT_ALLOWED.to_owned())
        }
    }
}

/// Whether the path names an object that only its own user may access.
fn is_own(row: &RouteSpec) -> bool {
    is_at_a_key(row) || is_at_a_session(row)
}

fn is_at_a_session(row: &RouteSpec) -> bool {
    row.path.contains("/sessions/{id}/")
}

fn is_at_a_key(row: &RouteSpec) -> bool {
    row.path.contains("/personal_api_keys/{id}/")
}

/// The verdict for a restricted key that accesses an unrestricted key.
fn on_a_stronger_key(row: &RouteSpec) -> Verdict {
    if row.method == Method::GET {
        return Verdict::LetIn;
    }
    let text =
        "This API key cannot change a key with more access: scoped_organizations, scoped_teams.";
    Verdict::Denied(text.to_owned())
}

/// The verdict for a key limited to another organization.
fn on_elsewhere(row: &RouteSpec, at: &Objects) -> Verdict {
    match PathTarget::of(row.path) {
        PathTarget::Caller if is_at_a_key(row) => on_a_stronger_key(row),
        PathTarget::Organizations if row.method == Method::POST => on_a_limited_maker(),
        PathTarget::Caller | PathTarget::Organizations => Verdict::LetIn,
        PathTarget::Project | PathTarget::InProject => Verdict::Denied(format!(
            "API key does not have access to the requested project: ID {}.",
            at.project()
        )),
        PathTarget::Organization | PathTarget::OrganizationProject => Verdict::Denied(format!(
            "API key does not have access to the requested organization: ID {}.",
            at.organization()
        )),
    }
}

fn on_a_limited_maker() -> Verdict {
    let text = "API keys limited to organizations or projects cannot create an organization.";
    Verdict::Denied(text.to_owned())
}

/// The verdict for a key limited to another project of the organization.
fn on_beside(row: &RouteSpec, at: &Objects) -> Verdict {
    match PathTarget::of(row.path) {
        PathTarget::Caller if is_at_a_key(row) => on_a_stronger_key(row),
        PathTarget::Caller => Verdict::LetIn,
        PathTarget::Organizations | PathTarget::Organization => Verdict::Denied(
            "API keys with scoped projects are only supported on project-based endpoints."
                .to_owned(),
        ),
        PathTarget::OrganizationProject | PathTarget::Project | PathTarget::InProject => {
            Verdict::Denied(format!(
                "API key does not have access to the requested project: ID {}.",
                at.project()
            ))
        }
    }
}

/// The verdict for a key without the scope, if the organization and the project in the path do not exist.
fn on_nothing(row: &RouteSpec) -> Verdict {
    match PathTarget::of(row.path) {
        PathTarget::Caller | PathTarget::Organizations => missing_scope(row.requirements),
        PathTarget::Organization | PathTarget::OrganizationProject => {
            Verdict::Missing("Organization not found.")
        }
        PathTarget::Project => Verdict::Missing("Not found."),
        PathTarget::InProject => Verdict::Missing("Project not found."),
    }
}

/// The verdict for a member at this level.
fn on_level(row: &RouteSpec, level: Level) -> Verdict {
    if level < row.requirements.level {
        Verdict::Denied(TOO_LOW.to_owned())
    } else {
        Verdict::LetIn
    }
}

/// The operations that only admins may perform, and those that only owners may.
const BY_ADMINS: &str = "\
    domains_create domains_destroy domains_lookup_retrieve domains_partial_update \
    domains_verify_create organizations_partial_update organizations_projects_destroy \
    organizations_projects_reset_token_partial_update projects_destroy \
    projects_reset_token_partial_update roles_create roles_destroy roles_partial_update \
    roles_role_memberships_create roles_role_memberships_destroy roles_update";
const BY_OWNERS: [&str; 1] = ["organizations_destroy"];

async fn fire(caller: &TestClient, row: &RouteSpec, path: &str) -> TestResponse {
    let takes = [Method::POST, Method::PUT, Method::PATCH].contains(&row.method);
    caller.send(row.method.clone(), path, takes.then(|| json!({}))).await
}

#[tokio::test]
async fn every_non_public_route_requires_a_valid_key() {
    let (workspace, _dns) = workspace().await;
    let at = Objects::make(&workspace, "here").await;
    let dead = dead_keys(&workspace).await;
    let anonymous = workspace.anonymous();
    for row in routes().specs() {
        let path = at.fill(row.path);
        let without = fire(&anonymous, row, &path).await;
        if row.requirements.public.is_some() {
            Verdict::LetIn.check(row, "without a key", &without, at.organization());
            continue;
        }
        Verdict::NoKey.check(row, "without a key", &without, at.organization());
        for (case, caller) in &dead {
            Verdict::BadKey.check(row, case, &fire(caller, row, &path).await, at.organization());
        }
    }
}

#[tokio::test]
async fn callers_without_access_are_rejected_on_every_route() {
    let (workspace, dns) = workspace().await;
    let mut at = Objects::make(&workspace, "here").await;
    let projects = at.fill("/api/organizations/{organization_id}/projects/");
    let beside = workspace.owner.post(&projects, json!({})).await.ok();
    let mut nothing = at.clone();
    nothing.set("{organization_id}", UNKNOWN.to_owned());
    nothing.set("{project_id}", "999999".to_owned());
    let narrow = workspace.key(OWNER, &["notebook:write"]).await;
    let (stranger, _) = workspace.outsider("eve").await;
    let elsewhere = json!({"organizations": [workspace.made.organization_id]});
    let elsewhere = workspace.limited_key(OWNER, &["*"], elsewhere).await;
    let beside = workspace.limited_key(OWNER, &["*"], json!({"projects": [beside["id"]]})).await;
    let shown = workspace.owner.get(&at.fill("/api/projects/{project_id}/")).await.ok();
    let token = shown["api_token"].as_str().expect("a token");
    let hidden = at.organization().to_owned();
    for row in routes().specs().iter().filter(|row| row.requirements.public.is_none()) {
        // Such a key deletes the session.
        if is_at_a_session(row) {
            for caller in [&elsewhere, &beside] {
                assert_eq!(fire(caller, row, &at.fill(row.path)).await.status, row.status);
                at.set_session(&workspace).await;
            }
        }
        let path = at.fill(row.path);
        let unknown = nothing.fill(row.path);
        for (case, caller, path, verdict, hidden) in [
            ("at nothing", &narrow, &unknown, on_nothing(row), hidden.as_str()),
            ("with another scope", &narrow, &path, missing_scope(row.requirements), &hidden),
            ("from another organization", &stranger, &path, on_a_stranger(row), &hidden),
            ("limited to another organization", &elsewhere, &path, on_elsewhere(row, &at), &hidden),
            // Such a key may see its organization, but no other project of the organization.
            ("limited to another project", &beside, &path, on_beside(row, &at), token),
        ] {
            if !(is_at_a_session(row) && verdict == Verdict::LetIn) {
                verdict.check(row, case, &fire(caller, row, path).await, hidden);
            }
        }
    }
    let shown = workspace.owner.get(&at.fill("/api/projects/{project_id}/dashboards/{id}/")).await;
    assert_eq!(shown.status, 200, "an object was deleted");
    assert!(dns.asked().is_empty(), "a rejected request asked the name server");
}

#[tokio::test]
async fn too_low_level_is_rejected_on_routes_with_a_required_level() {
    let (workspace, _dns) = workspace().await;
    let at = Objects::make(&workspace, "here").await;
    join(&workspace, at.organization(), "ada@corp.example", Level::Admin).await;
    let member = workspace.key("here@corp.example", &["*"]).await;
    let admin = workspace.key("ada@corp.example", &["*"]).await;
    let table = routes();
    let of_level = |level: Level| -> BTreeSet<&str> {
        let rows = table.specs().iter().filter(|row| row.requirements.level == level);
        rows.map(|row| row.operation).collect()
    };
    assert_eq!(of_level(Level::Admin), BY_ADMINS.split(' ').collect());
    assert_eq!(of_level(Level::Owner), BTreeSet::from(BY_OWNERS));
    for row in table.specs().iter().filter(|row| row.requirements.level > Level::Member) {
        for (caller, level) in [(&member, Level::Member), (&admin, Level::Admin)] {
            // The following requests need the objects that an admin may delete.
            if row.method == Method::DELETE && level >= row.requirements.level {
                continue;
            }
            let answer = fire(caller, row, &at.fill(row.path)).await;
            on_level(row, level).check(row, level.as_str(), &answer, "no such text");
        }
    }
}

#[tokio::test]
async fn read_scope_does_not_allow_writes() {
    let (workspace, _dns) = workspace().await;
    let at = Objects::make(&workspace, "here").await;
    let scopes: BTreeSet<&str> =
        routes().specs().iter().filter_map(|row| row.requirements.scope).collect();
    let reads: Vec<&str> =
        scopes.iter().copied().filter(|scope| scope.ends_with(":read")).collect();
    let reader = workspace.key(OWNER, &reads).await;
    let writes =
        |row: &&RouteSpec| row.requirements.scope.is_some_and(|scope| scope.ends_with(":write"));
    for row in routes().specs().iter().filter(writes) {
        let answer = fire(&reader, row, &at.fill(row.path)).await;
        missing_scope(row.requirements).check(row, "with read", &answer, at.organization());
    }
    assert!(scopes.len() > reads.len());
}

#[tokio::test]
async fn private_project_is_closed_to_members_on_every_route() {
    let (workspace, _dns) = workspace().await;
    let at = Objects::make(&workspace, "here").await;
    let project = at.fill("/api/projects/{project_id}/");
    workspace.owner.patch(&project, json!({"access_control": true})).await.ok();
    let member = workspace.key("here@corp.example", &["*"]).await;
    let mut asked = 0;
    for row in routes().specs() {
        let verdict = match PathTarget::of(row.path) {
            PathTarget::OrganizationProject | PathTarget::Project => Verdict::Missing("Not found."),
            PathTarget::InProject => Verdict::Denied(NO_ACCESS.to_owned()),
            _ => continue,
        };
        let answer = fire(&member, row, &at.fill(row.path)).await;
        verdict.check(row, "a hidden project", &answer, at.organization());
        asked += 1;
    }
    assert!(asked > 0);
}

#[tokio::test]
async fn key_ban_of_an_organization_applies_to_members_on_every_route() {
    let (workspace, _dns) = workspace().await;
    let at = Objects::make(&workspace, "here").await;
    let admin = "ada@corp.example";
    join(&workspace, at.organization(), admin, Level::Admin).await;
    let (member, admin) =
        (workspace.key("here@corp.example", &["*"]).await, workspace.key(admin, &["*"]).await);
    let closed = json!({"members_can_use_personal_api_keys": false});
    workspace.owner.patch(&at.fill("/api/organizations/{organization_id}/"), closed).await.ok();
    let text = "Organization 'here' does not allow using personal API keys. Contact an admin to enable personal API keys for this organization.";
    let mut asked = 0;
    for row in routes().specs().iter().filter(|row| row.requirements.public.is_none()) {
        let path = at.fill(row.path);
        let verdict = match PathTarget::of(row.path) {
            PathTarget::Caller if is_own(row) => Verdict::Missing("Not found."),
            PathTarget::Caller | PathTarget::Organizations => Verdict::LetIn,
            _ => Verdict::Denied(text.to_owned()),
        };
        asked += usize::from(verdict != Verdict::LetIn);
        verdict.check(row, "kept out", &fire(&member, row, &path).await, at.organization());
        // The following requests need the objects that an admin may delete. An admin may not access the owner's key or
        // session.
        let spared = row.method == Method::DELETE && row.requirements.level <= Level::Admin;
        if !spared && !is_own(row) {
            let answer = fire(&admin, row, &path).await;
            on_level(row, Level::Admin).check(row, "an admin", &answer, "no such text");
        }
    }
    assert!(asked > 0);
}

#[tokio::test]
async fn required_scope_of_a_route_is_sufficient() {
    let (workspace, _dns) = workspace().await;
    let shared = Objects::make(&workspace, "shared").await;
    let mut keys: BTreeMap<&str, TestClient> = BTreeMap::new();
    for row in routes().specs() {
        let Some(scope) = row.requirements.scope else { continue };
        if !keys.contains_key(scope) {
            keys.insert(scope, workspace.key(OWNER, &[scope]).await);
        }
        // A deleted object would be missing for the following requests.
        let at = match row.method {
            Method::DELETE => Objects::make(&workspace, row.operation).await,
            _ => shared.clone(),
        };
        let answer = fire(&keys[scope], row, &at.fill(row.path)).await;
        let lacks_fields = answer.status == 400 && answer.body["type"] == "validation_error";
        let opened = answer.status == row.status || lacks_fields;
        assert!(opened, "{}: {} {}", row.operation, answer.status, answer.body);
    }
    workspace.assert_file_valid().await;
}
