//! Runs every operation that writes. Tests which entries it records, and that no entry contains a secret.

use steward::testing::operator::{KeyOptions, OrganizationOptions};

use crate::support::dry_run::DryRunOutcome;
use crate::support::prelude::*;

/// The names of response fields that contain secrets.
const SECRETS: [&str; 5] =
    ["api_token", "access_token", "live_events_token", "accept_url", "value"];

/// The DNS name of the record that verifies the domain.
const CHALLENGE: &str = "_posthog-challenge.corp.example.";

/// The state of a run through all operations.
pub struct Walk {
    pub workspace: Workspace,
    dns: Dns,
    /// The secrets that no entry may contain.
    secrets: Vec<String>,
    done: BTreeSet<&'static str>,
    /// Whether each request is sent as a dry run before.
    tries_first: bool,
}

/// Returns the scope and the activity of an entry.
fn in_short(entry: &Entry) -> String {
    assert!(!entry.fields.item_id.is_empty(), "{entry:?}");
    let of_none = entry.meta.organization == NO_ORGANIZATION;
    assert!(!of_none || ["User", "PersonalAPIKey"].contains(&entry.fields.scope.as_str()));
    format!("{} {}", entry.fields.scope, entry.fields.activity)
}

impl Walk {
    async fn new() -> Self {
        let dns = Dns::start().await;
        let mut config = dns.config();
        let url = "smtp://steward:SECRET-smtp@127.0.0.1:9";
        config.mail.smtp_url = Some(url.parse().expect("a URL"));
        config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
        let workspace = Workspace::with(config).await;
        let secrets = vec!["SECRET".to_owned(), workspace.made.api_key.clone()];
        dns.set(CHALLENGE, Reply::texts(&[&["nothing"]]));
        Self { workspace, dns, secrets, done: BTreeSet::new(), tries_first: false }
    }

    /// Creates a run that sends each request as a dry run before, and compares the results.
    pub async fn with_dry_runs() -> Self {
        Self { tries_first: true, ..Self::new().await }
    }

    /// Sends a request.
    async fn send(
        &self,
        caller: &TestClient,
        row: &RouteSpec,
        path: &str,
        sent: Value,
    ) -> TestResponse {
        let method = || row.method.clone();
        if !self.tries_first {
            return caller.send(method(), path, Some(sent)).await;
        }
        let tried = DryRunOutcome::of(&self.workspace, caller, method(), path, Some(&sent)).await;
        let answer = caller.send(method(), path, Some(sent)).await;
        tried.assert_like(&self.workspace, &answer);
        answer
    }

    /// Runs an operation as the owner, and asserts which entries it records: `"Role created, Role updated"`. Returns the
    /// response body. `ids` are the parameters of the path besides the first organization and project.
    async fn does(
        &mut self,
        operation: &'static str,
        ids: &[(&str, &Value)],
        sent: Value,
        told: &str,
    ) -> Value {
        let owner = self.workspace.owner.clone();
        self.does_as(&owner, operation, ids, sent, told).await
    }

    async fn does_as(
        &mut self,
        caller: &TestClient,
        operation: &'static str,
        ids: &[(&str, &Value)],
        sent: Value,
        told: &str,
    ) -> Value {
        let table = routes();
        let row = table.specs().iter().find(|row| row.operation == operation).expect(operation);
        let organization = json!(self.workspace.made.organization_id);
        let project = json!(self.workspace.made.project_id);
        let defaults = [("organization_id", &organization), ("project_id", &project)];
        let mut path = row.path.to_owned();
        for (name, id) in ids.iter().chain(&defaults) {
            let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            path = path.replace(&format!("{{{name}}}"), &id);
        }
        assert!(!path.contains('{'), "{path}");
        let known = entries(&self.workspace);
        let answer = self.send(caller, row, &path, sent).await;
        assert_eq!(answer.status, row.status, "{operation}: {}", answer.body);
        self.note(&answer.body);
        self.left(operation, &known, told);
        self.done.insert(operation);
        answer.body
    }

    /// The same for an operator command.
    async fn operates(&mut self, operation: Operation, told: &str) -> Value {
        let known = entries(&self.workspace);
        let name = format!("{operation:?}");
        let answer = self.workspace.run_operation(operation).await;
        self.note(&answer);
        self.left(&name, &known, told);
        answer
    }

    #[track_caller]
    fn left(&self, operation: &str, known: &[Entry], told: &str) {
        let mut new = entries(&self.workspace);
        new.retain(|entry| !known.contains(entry));
        let said: Vec<_> = new.iter().map(in_short).collect();
        assert_eq!(said.join(", "), told, "{operation}: {new:?}");
    }

    /// Remembers every secret in a response.
    fn note(&mut self, answer: &Value) {
        match answer {
            Value::Object(members) => {
                for (name, value) in members {
                    match value.as_str() {
                        // The `value` of a filter, such as a domain of addresses, is not a secret.
                        Some(text)
                            if SECRETS.contains(&name.as_str()) && !text.starts_with('@') =>
                        {
                            let secret =
                                text.split_once("?token=").map_or(text, |(_, token)| token);
                            self.secrets.push(secret.to_owned());
                        }
                        _ => self.note(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.note(item)),
            _ => {}
        }
    }
}

/// Runs the operations on an organization, its members and invites.
async fn organization(walk: &mut Walk) {
    let none = || json!({});
    walk.does("users_partial_update", &[], json!({ "theme_mode": "dark" }), "User updated").await;
    let named = |name: &str| json!({ "name": name });
    let made = walk.does("organizations_create", &[], named("Two"), "Organization created").await;
    let id = [("organization_id", &made["id"])];
    let updated = "Organization updated";
    walk.does("organizations_partial_update", &id, named("Second"), updated).await;
    walk.does("organizations_destroy", &id, none(), "Organization deleted").await;

    let sent = json!({ "domain": "corp.example" });
    let domain = walk.does("domains_create", &[], sent, "OrganizationDomain created").await;
    let (id, updated) = ([("id", &domain["id"])], "OrganizationDomain updated");
    walk.does("domains_verify_create", &id, none(), "").await;
    let challenge = domain["verification_challenge"].as_str().expect("a challenge");
    walk.dns.set(CHALLENGE, Reply::texts(&[&[challenge]]));
    walk.does("domains_verify_create", &id, none(), updated).await;
    let sent = json!({ "sso_enforcement": "github", "saml_entity_id": "https://idp.example" });
    walk.does("domains_partial_update", &id, sent, updated).await;
    walk.does("domains_destroy", &id, none(), "OrganizationDomain deleted").await;

    let sent = json!({ "target_email": "ann@x.example", "send_email": false, "message": "Hello" });
    let made = walk.does("invites_create", &[], sent, "OrganizationInvite created").await;
    let offer = Offer::of(&made);
    let sent = json!([{ "target_email": "bob@x.example" }, { "target_email": "cat@x.example" }]);
    let two = "OrganizationInvite created, OrganizationInvite created";
    walk.does("invites_bulk_create", &[], sent, two).await;
    let sent = json!({ "token": offer.token, "first_name": "Ann" });
    let anyone = walk.workspace.anonymous();
    let joined = "OrganizationMembership created";
    let ann = walk.does_as(&anyone, "signup_create", &[("id", &made["id"])], sent, joined).await;
    let keys = walk.secrets.iter().filter(|one| one.starts_with("phx_")).count();
    assert!(walk.secrets.contains(&offer.token) && keys == 2);
    let list = walk.workspace.owner.get(&walk.workspace.organization("invites/")).await.ok();
    let id = [("id", &list["results"][0]["id"])];
    walk.does("invites_destroy", &id, none(), "OrganizationInvite deleted").await;
    let id = [("user__uuid", &ann["uuid"])];
    let raised = json!({ "level": 8 });
    walk.does("members_partial_update", &id, raised, "OrganizationMembership updated").await;
    walk.does("members_destroy", &id, none(), "OrganizationMembership deleted").await;
}

/// Runs the operations on roles. The deletion of a role that is the default and has members is one entry.
async fn roles(walk: &mut Walk) {
    let named = |name: &str| json!({ "name": name });
    let role = walk.does("roles_create", &[], named("A"), "Role created").await;
    let id = [("id", &role["id"])];
    walk.does("roles_partial_update", &id, named("B"), "Role updated").await;
    walk.does("roles_update", &id, named("C"), "Role updated").await;
    walk.does("roles_partial_update", &id, named("C"), "").await;
    let default = json!({ "default_role_id": role["id"] });
    walk.does("organizations_partial_update", &[], default, "Organization updated").await;

    let sent = json!({ "user_uuid": walk.workspace.uuid(OWNER).await });
    let (create, added) = ("roles_role_memberships_create", "RoleMembership created");
    let of = [("role_id", &role["id"])];
    let member = walk.does(create, &of, sent.clone(), added).await;
    let one = [of[0], ("id", &member["id"])];
    walk.does("roles_role_memberships_destroy", &one, json!({}), "RoleMembership deleted").await;
    walk.does(create, &of, sent, added).await;
    walk.does("roles_destroy", &id, json!({}), "Organization updated, Role deleted").await;
}

/// Runs the operations on projects.
async fn projects(walk: &mut Walk) {
    let webhook = |url: Value| json!({ "slack_incoming_webhook": url });
    for (updates, resets, destroys) in [
        (
            "organizations_projects_partial_update",
            "organizations_projects_reset_token_partial_update",
            "organizations_projects_destroy",
        ),
        ("projects_partial_update", "projects_reset_token_partial_update", "projects_destroy"),
    ] {
        let sent = webhook(json!("https://h.example/SECRET-1"));
        let made = walk.does("organizations_projects_create", &[], sent, "Project created").await;
        let id = [("project_id", &made["id"])];
        for url in [json!("https://h.example/SECRET-2"), Value::Null] {
            walk.does(updates, &id, webhook(url), "Project updated").await;
        }
        walk.does(resets, &id, json!({}), "Project updated").await;
        walk.does(destroys, &id, json!({}), "Project deleted").await;
    }
}

/// Runs the operations on dashboards and their access controls.
async fn dashboards(walk: &mut Walk) {
    let none = || json!({});
    walk.workspace.member("ann", Level::Member).await;
    let uuid = json!(walk.workspace.uuid(ANN).await);
    let member = walk.workspace.membership(ANN).await;
    let (created, updated) = ("Dashboard created", "Dashboard updated");
    let sent = json!({ "use_template": "DEFAULT_APP" });
    let made = walk.does("dashboards_create", &[], sent, created).await;
    let id = [("id", &made["id"])];
    let template = json!({ "template": {
        "template_name": "T", "dashboard_description": "", "dashboard_filters": {},
        "tiles": [{ "type": "TEXT", "body": "text" }],
    } });
    let operation = "dashboards_create_from_template_json_create";
    let other = walk.does(operation, &[], template, created).await;
    let sent =
        json!({ "tiles": [{ "text": { "body": "text" } }], "restriction_level": 37, "name": "N" });
    let changed = walk.does("dashboards_partial_update", &id, sent, updated).await;
    let tiles = changed["tiles"].as_array().expect("tiles");
    let text = tiles.iter().find(|tile| !tile["text"].is_null()).expect("a text");
    let sent = json!({ "tile": { "id": text["id"] }, "toDashboard": other["id"] });
    let both = "Dashboard updated, Dashboard updated";
    walk.does("dashboards_move_tile_partial_update", &id, sent, both).await;

    for (operation, level) in [
        ("projects_access_controls_update", "member"),
        ("projects_resource_access_controls_update", "viewer"),
        ("dashboards_access_controls_update", "none"),
    ] {
        let sent = json!({
            "organization_member": member, "access_level": level, "resource": "dashboard",
        });
        walk.does(operation, &id, sent, "AccessControl created").await;
    }
    let of = [("dashboard_id", &made["id"]), ("user__uuid", &uuid)];
    let added = json!({ "user_uuid": uuid, "level": 37 });
    for (operation, sent, told) in [
        ("dashboards_collaborators_create", added, "DashboardCollaborator created"),
        ("dashboards_collaborators_destroy", none(), "DashboardCollaborator deleted"),
    ] {
        walk.does(operation, &of, sent, told).await;
    }
    for enabled in [true, false, true] {
        let told = if enabled { "Dashboard sharing enabled" } else { "Dashboard sharing disabled" };
        let sent = json!({ "enabled": enabled });
        walk.does("dashboards_sharing_partial_update", &of, sent, told).await;
    }
    let refreshed = "Dashboard access token refreshed";
    walk.does("dashboards_sharing_refresh_create", &of, none(), refreshed).await;
    walk.does("dashboards_destroy", &id, none(), "").await;
    let deleted = json!({ "deleted": true });
    walk.does("dashboards_partial_update", &id, deleted, "Dashboard deleted").await;
}

/// Runs the operations on batch exports, at both paths.
async fn batch_exports(walk: &mut Walk) {
    let project = walk.workspace.made.project_id;
    let token = |number: u8| {
        let config = json!({ "url": "https://in.example", "token": format!("SECRET-{number}") });
        json!({ "type": "HTTP", "config": config })
    };
    for [create, update, pause, unpause, destroy] in [
        [
            "batch_exports_create",
            "batch_exports_partial_update",
            "batch_exports_pause_create",
            "batch_exports_unpause_create",
            "batch_exports_destroy",
        ],
        [
            "projects_batch_exports_create",
            "projects_batch_exports_partial_update",
            "projects_batch_exports_pause_create",
            "projects_batch_exports_unpause_create",
            "projects_batch_exports_destroy",
        ],
    ] {
        let sent = json!({ "project_id": project, "name": "N", "interval": "day", "destination": token(1) });
        let made = walk.does(create, &[], sent, "BatchExport created").await;
        let id = [("id", &made["id"])];
        walk.does(update, &id, json!({ "destination": token(2) }), "BatchExport updated").await;
        walk.does(pause, &id, json!({}), "BatchExport paused").await;
        walk.does(unpause, &id, json!({}), "BatchExport unpaused").await;
        walk.does(destroy, &id, json!({}), "BatchExport deleted").await;
    }
}

/// Runs the operations on API keys.
async fn keys(walk: &mut Walk) {
    let sent = json!({ "label": "x", "scopes": ["user:read"] });
    let made = walk.does("personal_api_keys_create", &[], sent, "PersonalAPIKey created").await;
    let id = [("id", &made["id"])];
    for (operation, sent, told) in [
        ("personal_api_keys_partial_update", json!({ "label": "y" }), "PersonalAPIKey updated"),
        ("personal_api_keys_roll_create", json!({ "grace_seconds": 60 }), "PersonalAPIKey rolled"),
        ("personal_api_keys_destroy", json!({}), "PersonalAPIKey deleted"),
    ] {
        walk.does(operation, &id, sent, told).await;
    }
}

/// Runs all other operations that write, by their examples. Each records an entry, except the end of a session.
async fn others(walk: &mut Walk) {
    let owner = walk.workspace.owner.clone();
    let objects = Objects::make(&walk.workspace, "objects").await;
    let routes = routes();
    let mut writes: Vec<_> =
        routes.specs().iter().filter(|row| row.method != Method::GET).collect();
    writes.sort_by_key(|row| row.method == Method::DELETE);
    for row in writes {
        if !walk.done.insert(row.operation) {
            continue;
        }
        let known = entries(&walk.workspace).len();
        let answer = walk.send(&owner, row, &objects.fill(row.path), objects.example(row)).await;
        assert_eq!(answer.status, row.status, "{}: {}", row.operation, answer.body);
        walk.note(&answer.body);
        let records = entries(&walk.workspace).len() > known;
        let is_logged = row.status != 405 && row.operation != "users_sessions_destroy";
        assert_eq!(records, is_logged && !row.only_reads, "{}", row.operation);
    }
}

/// Runs the operator commands.
async fn operator(walk: &mut Walk) {
    let organization = Some(walk.workspace.made.organization_id);
    let (name, owner) = ("Three".to_owned(), OWNER.to_owned());
    let made = OrganizationOptions { name, owner, existing: false };
    walk.operates(Operation::OrganizationCreate(made), "Organization created").await;
    let email = "eve@corp.example".to_owned();
    let user = |organization: Option<OrganizationId>| {
        let existing = organization.is_some();
        Operation::UserCreate(UserOptions { existing, ..new_user(&email, organization) })
    };
    walk.operates(user(None), "User created").await;
    walk.operates(user(organization), "OrganizationMembership created").await;
    let off = Operation::UserSetActive { email: email.clone(), active: false };
    walk.operates(off, "User updated").await;
    let organizations = organization.into_iter().collect();
    let made = KeyOptions { organizations, ..new_key(OWNER, "label") };
    let made = walk.operates(Operation::KeyCreate(made), "PersonalAPIKey created").await;
    let id = serde_json::from_value(made["id"].clone()).expect("an id");
    walk.operates(Operation::KeyRevoke { id }, "PersonalAPIKey deleted").await;
}

/// Runs every operation of the route table that writes.
pub async fn every_write(walk: &mut Walk) {
    organization(walk).await;
    roles(walk).await;
    projects(walk).await;
    dashboards(walk).await;
    batch_exports(walk).await;
    keys(walk).await;
    others(walk).await;
}

#[tokio::test]
async fn every_write_creates_log_entries_without_secrets() {
    let mut walk = Walk::new().await;
    every_write(&mut walk).await;
    operator(&mut walk).await;

    assert!(walk.secrets.len() > 12, "{}", walk.secrets.len());
    let log: Vec<String> =
        entries(&walk.workspace).iter().map(|entry| json!(entry.fields).to_string()).collect();
    for secret in &walk.secrets {
        // The part after the common prefix of all keys must not occur either.
        let core = &secret[secret.len() - secret.len().min(20)..];
        for entry in &log {
            assert!(!entry.contains(core), "{core}: {entry}");
        }
    }
    for kind in ["phx_", "phc_", "argon2", "token="] {
        assert!(!log.iter().any(|entry| entry.contains(kind)), "{kind}");
    }
    walk.workspace.assert_file_valid().await;
}
