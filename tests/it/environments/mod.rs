//! `/api/environments/`: the second spelling of `/api/projects/`, with the same behaviour.

use crate::support::prelude::*;

const PROJECTS: &str = "/api/projects/";
const ENVIRONMENTS: &str = "/api/environments/";

fn in_environments(path: &str) -> String {
    path.replacen(PROJECTS, ENVIRONMENTS, 1)
}

/// Returns a body without the values that are random, and with the spelling of its links replaced. Arrays are sorted,
/// because the order of objects of the same instant is random.
fn comparable(body: Value) -> Value {
    const RANDOM: [&str; 5] =
        ["access_token", "api_token", "distinct_id", "live_events_token", "short_id"];
    match body {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| match value {
                Value::String(_) if RANDOM.contains(&name.as_str()) => (name, json!("random")),
                value => (name, comparable(value)),
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(comparable).collect();
            items.sort_by_key(Value::to_string);
            Value::Array(items)
        }
        Value::String(text) if text.parse::<Uuid>().is_ok() => json!("random"),
        Value::String(text) => json!(text.replace(ENVIRONMENTS, PROJECTS)),
        other => other,
    }
}

/// A response as it is compared: what was requested, the status, the names of the headers, `Allow`, and the body.
#[derive(Debug, PartialEq)]
struct Seen {
    request: String,
    status: u16,
    headers: BTreeSet<String>,
    allow: Option<String>,
    body: Value,
}

impl Seen {
    fn of(request: String, response: TestResponse) -> Self {
        let headers = response.headers.keys().map(ToString::to_string).collect();
        let allow = response
            .headers
            .get("allow")
            .map(|methods| methods.to_str().expect("the names of methods").to_owned());
        Self { request, status: response.status, headers, allow, body: comparable(response.body) }
    }
}

/// Requests every route below `/api/projects/` of a new workspace, below `root` instead: without a key, as a user of
/// another organization, with a method that the path lacks, and as the owner. The activity log is requested last.
async fn all_responses(root: &str) -> Vec<Seen> {
    let (workspace, _clock) = Workspace::timed().await;
    let shared = Objects::make(&workspace, "shared").await;
    let (stranger, _) = workspace.outsider("eve").await;
    let mut seen = Vec::new();
    for row in routes().specs().iter().filter(|row| row.path.starts_with(PROJECTS)) {
        // A deleted object would be missing for the following requests.
        let at = match row.method {
            Method::DELETE => Objects::make(&workspace, row.operation).await,
            _ => shared.clone(),
        };
        let path = at.fill(row.path).replacen(PROJECTS, root, 1);
        for (who, caller) in [
            ("nobody", &workspace.anonymous()),
            ("a stranger", &stranger),
            ("the owner", &workspace.owner),
        ] {
            let response = send(caller, row, &at, &path).await;
            seen.push(Seen::of(format!("{} as {who}", row.operation), response));
        }
        for method in [Method::OPTIONS, Method::TRACE] {
            let request = format!("{method} at {}", row.operation);
            seen.push(Seen::of(request, workspace.owner.send(method, &path, None).await));
        }
    }
    let log = shared.fill(&format!("{root}{{project_id}}/activity_log/?limit=1000"));
    seen.push(Seen::of("the log".to_owned(), workspace.owner.get(&log).await));
    workspace.assert_file_valid().await;
    seen
}

async fn send(caller: &TestClient, row: &RouteSpec, at: &Objects, path: &str) -> TestResponse {
    let takes = [Method::POST, Method::PUT, Method::PATCH].contains(&row.method);
    caller.send(row.method.clone(), path, takes.then(|| at.example(row))).await
}

#[tokio::test]
async fn every_route_of_projects_has_the_same_responses_below_environments() {
    let (expected, found) = tokio::join!(all_responses(PROJECTS), all_responses(ENVIRONMENTS));
    let succeeded =
        expected.iter().filter(|seen| seen.status < 300 && seen.allow.is_none()).count();
    assert!(succeeded >= 25, "{succeeded}");
    assert_eq!(expected.len(), found.len());
    for (expected, found) in expected.into_iter().zip(found) {
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn both_spellings_return_the_same_body_and_etag() {
    let workspace = Workspace::new().await;
    let at = Objects::make(&workspace, "here").await;
    let owner = &workspace.owner;
    let mut tagged = 0;
    let is_read = |row: &&RouteSpec| row.path.starts_with(PROJECTS) && row.method == Method::GET;
    for row in routes().specs().iter().filter(is_read) {
        let path = at.fill(row.path);
        let (one, other) = (owner.get(&path).await, owner.get(&in_environments(&path)).await);
        other.assert_is(one.status, one.body);
        assert_eq!(other.headers.get("etag"), one.headers.get("etag"), "{path}");
        if let Some(tag) = one.headers.get("etag") {
            let known = [("if-none-match", tag.to_str().expect("a tag"))];
            let path = in_environments(path.trim_end_matches('/'));
            assert_eq!(owner.fetch(Method::GET, &path, &known, "").await.status, 304, "{path}");
            tagged += 1;
        }
    }
    assert!(tagged >= 4, "{tagged}");
}

#[tokio::test]
async fn idempotency_key_and_current_cover_both_spellings_and_page_links_have_the_requested_one() {
    let workspace = Workspace::new().await;
    let (list, body) = (workspace.dashboards(""), json!({"name": "A"}));
    let first = post_once(&workspace.owner, &in_environments(&list), "one", &body).await;
    assert_eq!(first.status, 201, "{}", first.body);
    for path in [&list, &in_environments(&list), &in_environments(list.trim_end_matches('/'))] {
        let again = post_once(&workspace.owner, path, "one", &body).await;
        assert_eq!(again.headers["idempotent-replayed"], "true", "{path}");
        again.assert_is(201, first.body.clone());
    }
    assert_eq!(post_once(&workspace.owner, &list, "one", &json!({"name": "B"})).await.status, 422);
    assert_eq!(stored::<StoredResponse>(&workspace), 1);
    assert_eq!(workspace.owner.get(&list).await.ok()["count"], 1);
    for name in ["A", "B", "C"] {
        workspace.owner.post(&list, json!({ "name": name })).await.ok();
    }
    for list in [list.clone(), in_environments(&list)] {
        let page = workspace.owner.get(&format!("{list}?limit=1&offset=1")).await.ok();
        for (link, offset) in [("next", "limit=1&offset=2"), ("previous", "limit=1")] {
            let url = page[link].as_str().expect("a link");
            assert!(url.ends_with(&format!("{list}?{offset}")), "{url}");
        }
    }
    let expected = workspace.owner.get("/api/projects/@current/").await.ok();
    for current in ["@current", "%40current"] {
        assert_eq!(workspace.owner.get(&format!("{ENVIRONMENTS}{current}/")).await.ok(), expected);
    }
}

#[tokio::test]
async fn requests_under_both_spellings_are_counted_as_one_route() {
    let (mut config, _clock) = with_clock();
    config.metrics = Metrics::enabled();
    let workspace = Workspace::with(config).await;
    let list = workspace.dashboards("");
    for path in [&list, &in_environments(&list), &in_environments(list.trim_end_matches('/'))] {
        workspace.owner.get(path).await.ok();
    }
    let numbers = Numbers::of(&workspace).await;
    let counted = numbers.requests("GET", "/api/projects/{project_id}/dashboards/", "2xx");
    assert!(is(counted, 3), "{counted}");
    let routes: Vec<_> = numbers.family("steward_http_requests_total").collect();
    assert!(!format!("{routes:?}").contains("environments"), "{routes:?}");
}

#[tokio::test]
async fn environments_are_created_as_projects_only() {
    let (workspace, owner) = Workspace::owned().await;
    for path in [ENVIRONMENTS, ENVIRONMENTS.trim_end_matches('/')] {
        let refused = owner.post(path, json!({"name": "Second"})).await;
        refused.is_wrong_method("POST");
        assert_eq!(refused.headers["allow"], "GET, HEAD, OPTIONS");
    }
    let project = format!("{PROJECTS}{}/", workspace.made.project_id);
    for path in ["environments/", "environments/1/"] {
        owner.get(&format!("{project}{path}")).await.assert_not_found("API endpoint not found.");
    }
    for path in [
        "/environments/",
        "/api/environments/environments/1/",
        "/api/organizations/@current/environments/",
    ] {
        owner.get(path).await.assert_not_found("API endpoint not found.");
    }
    assert_eq!(owner.get(PROJECTS).await.ok()["count"], 1);
}
