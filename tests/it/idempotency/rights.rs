//! `Idempotency-Key` and permissions. Different spellings of a path are the same request, and a stored response is
//! replayed only to a caller that is still authorized.

use crate::api_keys::limits::{World, text};
use crate::idempotency::is_reused;
use crate::support::prelude::*;

const DASHBOARDS: &str = "/api/projects/@current/dashboards/";

#[track_caller]
fn is_done(answer: &TestResponse) {
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert!(!answer.headers.contains_key("idempotent-replayed"));
}

/// Returns the number of dashboards in a project.
async fn count(workspace: &Workspace, project: &Value) -> Value {
    workspace.owner.get(&format!("/api/projects/{project}/dashboards/")).await.ok()["count"].clone()
}

#[tokio::test]
async fn same_idempotency_key_is_separate_for_each_project() {
    let world = World::new().await;
    let ((_, [web, shop]), (_, [far, _])) = (&world.one, &world.two);
    let body = json!({ "name": "Sales" });
    let mut answers = Vec::new();
    for project in [web, shop, far] {
        let key = world.key(&["dashboard:write"], json!({ "projects": [project] })).await;
        let path = format!("/api/projects/{project}/dashboards/");
        let there = if project == far { path.as_str() } else { DASHBOARDS };
        let first = post_once(&key, there, "one", &body).await;
        is_done(&first);
        assert_eq!(count(&world.workspace, project).await, 1);
        // The project's id and its aliases are the same request.
        is_replayed(&post_once(&key, &path, "one", &body).await, &first, &first.body);
        is_reused(&post_once(&key, there, "one", &json!({ "name": "Other" })).await);
        answers.push((key, first));
    }
    for (key, first) in &answers[..2] {
        is_replayed(&post_once(key, DASHBOARDS, "one", &body).await, first, &first.body);
    }
    assert_eq!(stored::<StoredResponse>(&world.workspace), 3);
    world.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn current_organization_in_the_path_is_resolved_for_idempotency() {
    let world = World::new().await;
    let owner = &world.workspace.owner;
    let body = json!({ "name": "Blog" });
    let mut made = Vec::new();
    for (organization, _) in [&world.one, &world.two] {
        owner.patch(ME, json!({ "set_current_organization": organization })).await.ok();
        let first = post_once(owner, "/api/organizations/@current/projects/", "one", &body).await;
        is_done(&first);
        assert_eq!(first.body["organization"], *organization);
        is_done(&post_once(owner, DASHBOARDS, "one", &json!({})).await);
        let path = format!("/api/organizations/{}/projects/", text(organization));
        made.push((organization, path, first.body["id"].clone()));
    }
    for (organization, path, id) in &made {
        let again = post_once(owner, path, "one", &body).await;
        assert_eq!(again.headers["idempotent-replayed"], "true");
        assert_eq!(again.body["id"], *id);
        owner.patch(ME, json!({ "set_current_organization": organization })).await.ok();
        let again = post_once(owner, "/api/organizations/@current/projects", "one", &body).await;
        assert_eq!(again.headers["idempotent-replayed"], "true");
        assert_eq!(again.body["id"], *id);
    }
    world.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn percent_encoded_path_is_the_same_idempotent_request() {
    let (workspace, owner) = Workspace::owned().await;
    owner.post(&workspace.dashboards(""), json!({})).await.ok();
    owner.post(&workspace.dashboards(""), json!({})).await.ok();
    let refresh = |id: &str| workspace.dashboards(&format!("{id}/sharing/refresh/"));
    post_once(&owner, &refresh("1"), "one", &json!({})).await.ok();
    let again = post_once(&owner, &refresh("%31"), "one", &json!({})).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let other = post_once(&owner, &refresh("2"), "one", &json!({})).await;
    assert!(!other.headers.contains_key("idempotent-replayed"));
    // The end of a path is never taken for the start of the idempotency key.
    let list = workspace.dashboards("");
    is_done(&post_once(&owner, &list, "1\tx", &json!({})).await);
    is_done(&post_once(&owner, &list, "x", &json!({})).await);
}

/// Sends an idempotent POST whose body follows only after the key was revoked.
async fn post_late(
    workspace: &Workspace,
    caller: &TestClient,
    path: &str,
    body: Value,
) -> TestResponse {
    let (owner, own) = (workspace.owner.clone(), caller.clone());
    let body = stream::once(async move {
        // The server reads the body after it authorized the caller.
        let key = at(&own.get(CURRENT).await.ok(), "");
        let holder = if owner.get(&key).await.status == 200 { owner } else { own };
        holder.delete(&key).await.assert_empty(204);
        Ok::<_, Infallible>(body.to_string())
    });
    let headers = [("idempotency-key", "one"), JSON[0]];
    caller.fetch(Method::POST, path, &headers, Body::from_stream(body)).await
}

#[tokio::test]
async fn key_revoked_while_its_body_is_sent_gets_no_replay() {
    let dns = Dns::start().await;
    let workspace = Workspace::with(dns.config()).await;
    let (_, path) = crate::domains::add(&workspace, "corp.example").await;
    let verify = format!("{path}verify/");
    post_once(&workspace.owner, &verify, "one", &json!({})).await.assert_empty(200);
    let key = workspace.key(OWNER, &["*"]).await;
    post_late(&workspace, &key, &verify, json!({})).await.is_bad_key();
    let (ann, _) = workspace.outsider("ann").await;
    let offer = offer(&workspace, "ann@other.example", 1).await;
    let body = json!({ "token": offer.token });
    is_done(&post_once(&ann, &offer.path, "one", &body).await);
    post_late(&workspace, &ann, &offer.path, body).await.is_bad_key();
}

#[tokio::test]
async fn level_lowered_while_the_body_is_sent_prevents_the_replay() {
    let dns = Dns::start().await;
    let workspace = Workspace::with(dns.config()).await;
    let ann = workspace.member("ann", Level::Admin).await;
    let uuid = workspace.uuid(ANN).await;
    let (_, path) = crate::domains::add(&workspace, "corp.example").await;
    let verify = format!("{path}verify/");
    post_once(&ann, &verify, "one", &json!({})).await.assert_empty(200);
    let (owner, member) =
        (workspace.owner.clone(), workspace.organization(&format!("members/{uuid}/")));
    let body = stream::once(async move {
        owner.patch(&member, json!({ "level": 1 })).await.ok();
        Ok::<_, Infallible>("{}")
    });
    let headers = [("idempotency-key", "one"), JSON[0]];
    let answer = ann.fetch(Method::POST, &verify, &headers, Body::from_stream(body)).await;
    answer.assert_denied(TOO_LOW);
}
