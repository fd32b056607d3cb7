//! What a key can do, compared with requests to every route.

use crate::support::objects::join;
use crate::support::prelude::*;

const OPERATIONS: &str = "/api/personal_api_keys/operations/";

/// Refusals by the rule of an operation, with a text of the authorization: members create demo projects only, and the
/// session is of another user.
const REFUSED_BY_RULE: [(&str, &str); 2] =
    [("organizations_projects_create", TOO_LOW), ("users_sessions_destroy", "Not found.")];

/// Whether the authorization of the route refused the request, and not the rule of the operation.
fn is_refused(row: &RouteSpec, answer: &TestResponse) -> bool {
    let detail = answer.body["detail"].as_str().unwrap_or_default();
    let starts = ["API key", "Organization ", "Project not found.", "Not found."];
    let whole = [TOO_LOW, NOT_ALLOWED, NO_ACCESS];
    [401, 403, 404].contains(&answer.status)
        && (whole.contains(&detail) || starts.iter().any(|start| detail.starts_with(start)))
        && !REFUSED_BY_RULE.contains(&(row.operation, detail))
}

/// A member of one organization with one project, and a key with every scope.
struct User {
    client: TestClient,
    objects: Objects,
}

impl User {
    /// Creates a key, and returns what it can do by its id and by its access, which are the same.
    async fn asks(&self, workspace: &Workspace, access: &Value) -> (TestClient, Vec<Value>) {
        let mut sent = access.clone();
        sent["label"] = json!("asked");
        let made = self.client.post(KEYS, sent).await.ok();
        let by_id = self.client.get(&at(&made, "operations/")).await.ok();
        self.client.post(OPERATIONS, access.clone()).await.assert_is(200, by_id.clone());
        let key = workspace.with_key(made["value"].as_str().expect("a key"));
        (key, by_id.as_array().expect("a list").clone())
    }

    /// Asserts that the list is what requests with the key find.
    async fn assert_true(&self, key: &TestClient, listed: &[Value]) {
        let mut own = self.objects.clone();
        let id = key.get("/api/personal_api_keys/@current/").await.ok()["id"].clone();
        own.set("/personal_api_keys/{id}", id.as_str().expect("an id").to_owned());
        let table = routes();
        let rows: Vec<_> =
            table.specs().iter().filter(|row| !row.is_public() && row.status < 400).collect();
        let names: Vec<&str> = rows.iter().map(|row| row.operation).collect();
        let listed_names: Vec<&str> =
            listed.iter().map(|row| row["operation"].as_str().expect("a name")).collect();
        assert_eq!(listed_names, names);
        for (row, listed) in rows.into_iter().zip(listed) {
            let answer = request(key, row, &own.fill(row.path)).await;
            let refused = is_refused(row, &answer);
            let reason = if refused { answer.body["detail"].clone() } else { Value::Null };
            let expected = json!({
                "operation": row.operation, "method": row.method.as_str(), "path": row.path,
                "summary": row.summary, "resource": row.resource.name,
                "scope": row.requirements.scope, "allowed": !refused, "reason": reason,
            });
            assert_eq!(listed, &expected, "{}", answer.body);
        }
    }
}

/// Sends a request that changes nothing.
async fn request(key: &TestClient, row: &RouteSpec, path: &str) -> TestResponse {
    if row.method == Method::GET {
        return key.get(path).await;
    }
    let takes = row.method != Method::DELETE;
    dry_run(key, row.method.clone(), path, takes.then(|| json!({})).as_ref()).await
}

#[tokio::test]
async fn listed_operations_are_those_that_a_key_passes_on_every_route() {
    let dns = Dns::start().await;
    let workspace = Workspace::with(dns.config()).await;
    let objects = Objects::make(&workspace, "here").await;
    join(&workspace, objects.organization(), "boss@corp.example", Level::Owner).await;
    let client = workspace.key("boss@corp.example", &["*"]).await;
    let boss = User { client, objects: objects.clone() };
    let organization = json!([objects.organization()]);
    let project = json!([objects.project().parse::<u64>().expect("a number")]);
    let table = routes();
    let reads: Vec<&str> = table.specs().iter().filter_map(|row| row.requirements.scope).collect();
    let reads: Vec<&str> = reads.into_iter().filter(|scope| scope.ends_with(":read")).collect();
    for access in [
        json!({ "scopes": ["*"] }),
        json!({ "scopes": reads }),
        json!({ "scopes": ["dashboard:write"] }),
        json!({ "scopes": ["*"], "scoped_organizations": organization }),
        json!({ "scopes": ["*"], "scoped_teams": project }),
        json!({ "scopes": ["project:read"], "scoped_teams": project }),
    ] {
        let (key, listed) = boss.asks(&workspace, &access).await;
        boss.assert_true(&key, &listed).await;
    }
    let client = workspace.key("here@corp.example", &["*"]).await;
    let member = User { client, objects: objects.clone() };
    let (key, listed) = member.asks(&workspace, &json!({ "scopes": ["*"] })).await;
    member.assert_true(&key, &listed).await;
    let organization = objects.fill("/api/organizations/{organization_id}/");
    for setting in ["members_can_invite", "members_can_use_personal_api_keys"] {
        boss.client.patch(&organization, json!({ setting: false })).await.ok();
        let (key, listed) = member.asks(&workspace, &json!({ "scopes": ["*"] })).await;
        member.assert_true(&key, &listed).await;
    }
}

#[tokio::test]
async fn access_beyond_that_of_the_key_is_refused() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = &workspace.owner;
    let limits = json!({ "organizations": [workspace.made.organization_id] });
    let limited =
        workspace.limited_key(OWNER, &["personal_api_key:read", "user:read"], limits).await;
    let known = owner.get(KEYS).await.ok();
    let teams = "You must be a member of all teams that you are scoping the key to.";
    let cases = [
        (json!({}), Refusal::required("scopes")),
        (json!({ "scopes": ["x:y"] }), Refusal::invalid("scopes", "Invalid scope: x:y")),
        (json!({ "scopes": ["*"], "scoped_teams": [99] }), Refusal::invalid("scoped_teams", teams)),
    ];
    owner.assert_refusals(Method::POST, OPERATIONS, cases).await;
    let unlimited = json!({ "scopes": ["user:read"], "scoped_organizations": [] });
    for (sent, fields) in
        [(json!({ "scopes": ["*"] }), "scopes"), (unlimited, "scoped_organizations, scoped_teams")]
    {
        let detail = format!("This API key cannot grant more access than it has: {fields}.");
        limited.post(OPERATIONS, sent).await.assert_denied(&detail);
    }
    // Limits that the body leaves out are those of the key that asks.
    let inherited = limited.post(OPERATIONS, json!({ "scopes": ["user:read"] })).await.ok();
    let limits = json!({ "scopes": ["user:read"], "scoped_organizations": [workspace.made.organization_id] });
    owner.post(OPERATIONS, limits).await.assert_is(200, inherited);
    assert_eq!(owner.get(KEYS).await.ok(), known);

    // The keys of others, and a key that has expired.
    let stranger = workspace.member("ann", Level::Owner).await;
    stranger.get(&at(&known[0], "operations/")).await.assert_not_found("Not found.");
    let made = json!({ "label": "short", "scopes": ["*"], "expires_at": "2023-11-14T22:13:21Z" });
    let made = owner.post(KEYS, made).await.ok();
    clock.advance(Duration::from_secs(1));
    let listed = owner.get(&at(&made, "operations/")).await.ok();
    let reason = "Personal API key found in request Authorization header is invalid.";
    let listed = listed.as_array().expect("a list");
    assert!(!listed.is_empty());
    for row in listed {
        assert_eq!((&row["allowed"], &row["reason"]), (&json!(false), &json!(reason)), "{row}");
    }
}

#[tokio::test]
async fn reasons_name_only_organizations_that_the_asking_key_may_see() {
    let workspace = Workspace::new().await;
    let (boss, made) = workspace.outsider("boss").await;
    let organization = made["id"].as_str().expect("an id");
    let new = new_user(OWNER, Some(organization.parse().expect("an id")));
    workspace.run_operation(Operation::UserCreate(UserOptions { existing: true, ..new })).await;
    let one = format!("/api/organizations/{organization}/");
    boss.patch(&one, json!({ "members_can_use_personal_api_keys": false })).await.ok();
    let sent = json!({ "label": "x", "scopes": ["*"], "scoped_organizations": [organization] });
    let made = workspace.owner.post(KEYS, sent).await.ok();
    let reason = async |asker: &TestClient| {
        let listed = asker.get(&at(&made, "operations/")).await.ok();
        let rows = listed.as_array().expect("a list").iter();
        let row = rows.clone().find(|row| row["operation"] == "members_list").expect("a row");
        (row["allowed"].clone(), row["reason"].clone())
    };
    let banned = "Organization 'boss's' does not allow using personal API keys. Contact an admin to enable personal API keys for this organization.";
    assert_eq!(reason(&workspace.owner).await, (json!(false), json!(banned)));
    let limits = json!({ "organizations": [workspace.made.organization_id] });
    let limited = workspace.limited_key(OWNER, &["*"], limits).await;
    assert_eq!(reason(&limited).await, (json!(false), json!(NOT_ALLOWED)));
}
