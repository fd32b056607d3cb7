//! Behaviour that all routes share: errors, methods, trailing slashes and request ids. See `docs/spec/errors.md`.

use axum::http::header::{ALLOW, CONTENT_TYPE};

use crate::support::prelude::*;

const REQUEST_ID: &str = "x-request-id";
pub const READ_ONLY: &str = "API key missing required scope 'dashboard:write'";

impl TestResponse {
    #[track_caller]
    pub fn is_parse_error(&self, text: &str) {
        let detail = format!("JSON parse error - {text}");
        self.assert_error(400, "invalid_request", "parse_error", &detail, None);
    }

    #[track_caller]
    pub fn is_wrong_method(&self, method: &str) {
        let detail = format!("Method \"{method}\" not allowed.");
        self.assert_error(405, "invalid_request", "method_not_allowed", &detail, None);
    }
}

async fn post(caller: &TestClient, path: &str, body: impl Into<Body>) -> TestResponse {
    caller.fetch(Method::POST, path, &JSON, body).await
}

#[tokio::test]
async fn body_that_is_no_json_object_is_refused_and_creates_nothing() {
    let workspace = Workspace::new().await;
    let (owner, list) = (&workspace.owner, workspace.dashboards(""));
    let deep = r#"{"a":"#.repeat(200_000);
    for (body, text) in [
        (&b"{name: 1}"[..], "key must be a string at line 1 column 2"),
        (b"{\"name\": \"A\"} x", "trailing characters at line 1 column 15"),
        (b"\xef\xbb\xbf{}", "expected value at line 1 column 1"),
        (b"{\"a\":\"\xff\"}", "invalid unicode code point at line 1 column 7"),
        (b"  ", "EOF while parsing a value at line 1 column 2"),
        (deep.as_bytes(), "recursion limit exceeded at line 1 column 636"),
    ] {
        post(owner, &list, body.to_vec()).await.is_parse_error(text);
    }
    let no_object = "Invalid data. Expected a dictionary, but got list.";
    owner.post(&list, json!([{}])).await.assert_bad_body(no_object);
    owner.post(&list, json!(null)).await.assert_invalid_body("null", "No data provided");
    let post = async |kind: &str, body: &str| {
        owner.fetch(Method::POST, &list, &[("content-type", kind)], body.to_owned()).await
    };
    for (kind, body) in [("text/plain", "{}"), ("application/json5", ""), ("", "{}")] {
        let detail = format!("Unsupported media type \"{kind}\" in request.");
        let answer = post(kind, body).await;
        answer.assert_error(415, "invalid_request", "unsupported_media_type", &detail, None);
    }
    assert_eq!(owner.get(&list).await.ok()["count"], 0);
    let answer = post("Application/JSON ;charset=latin1", r#"{"name":"ä"}"#).await;
    assert_eq!((answer.status, &answer.body["name"]), (201, &json!("ä")));
}

#[tokio::test]
async fn request_body_of_one_mebibyte_is_accepted_and_a_larger_one_rejected() {
    let workspace = Workspace::new().await;
    let list = workspace.dashboards("");
    let body = |size: usize| format!(r#"{{"x":"{}"}}"#, "a".repeat(size - r#"{"x":""}"#.len()));
    assert_eq!(post(&workspace.owner, &list, body(1 << 20)).await.status, 201);
    let detail = "The request body is larger than 1048576 bytes.";
    let large = post(&workspace.owner, &list, body((1 << 20) + 1)).await;
    large.assert_error(413, "invalid_request", "payload_too_large", detail, None);
    post(&workspace.anonymous(), &list, body((1 << 20) + 1)).await.is_no_key();
    assert_eq!(workspace.owner.get(&list).await.ok()["count"], 1);
}

#[tokio::test]
async fn unknown_route_returns_404_with_and_without_a_key() {
    let workspace = Workspace::new().await;
    let unknown = "/ /api /api/ /nonsense /api/nonsense/ /api/projects/1/nonsense/ \
        /api/projects/1/dashboards/1/nonsense/ /API/users/@me/ /api/users/%40me%2F/ /%FF";
    for path in unknown.split(' ') {
        for caller in [&workspace.owner, &workspace.anonymous()] {
            for method in [Method::GET, Method::POST, Method::OPTIONS] {
                let answer = caller.fetch(method, path, &[], "").await;
                answer.assert_not_found("API endpoint not found.");
            }
        }
    }
}

#[tokio::test]
async fn every_path_allows_options_without_a_key_and_405_has_allow() {
    let workspace = Workspace::new().await;
    let routes = routes();
    let mut paths: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in routes.specs().iter().filter(|row| row.status != 405) {
        let allowed = paths.entry(row.path).or_insert_with(|| BTreeSet::from(["OPTIONS"]));
        allowed.insert(row.method.as_str());
        if row.method == Method::GET {
            allowed.insert("HEAD");
        }
    }
    let allow = |answer: &TestResponse| -> BTreeSet<String> {
        answer.headers[ALLOW].to_str().expect("text").split(", ").map(str::to_owned).collect()
    };
    for (path, allowed) in paths {
        let allowed: BTreeSet<String> = allowed.into_iter().map(str::to_owned).collect();
        let path = path
            .replace("{organization_id}", "@current")
            .replace("{project_id}", "@current")
            .replace("{user__uuid}", "@me");
        let path = path.replace("{id}", "1");
        for path in [path.as_str(), path.trim_end_matches('/')] {
            let options = workspace.anonymous().fetch(Method::OPTIONS, path, &[], "").await;
            options.assert_empty(204);
            assert_eq!(allow(&options), allowed, "{path}");
            for method in ["PUT", "TRACE", "BREW"].into_iter().filter(|one| !allowed.contains(*one))
            {
                let method: Method = method.parse().expect("a method");
                let answer = workspace.owner.fetch(method.clone(), path, &[], "").await;
                answer.is_wrong_method(method.as_str());
                assert_eq!(allow(&answer), allowed, "{path}");
            }
        }
    }
    workspace.anonymous().post("/_livez", json!({})).await.is_wrong_method("POST");
}

#[tokio::test]
async fn head_responds_like_get_without_a_body() {
    let workspace = Workspace::new().await;
    let (_, one) = make(&workspace, &workspace.owner, json!({"name": "A"})).await;
    for path in [workspace.dashboards(""), one, workspace.dashboards("999/")] {
        let get = workspace.owner.get(&path).await;
        let head = workspace.owner.fetch(Method::HEAD, &path, &[], "").await;
        assert_eq!((head.status, head.bytes.len()), (get.status, 0));
        assert_eq!(head.headers[CONTENT_TYPE], get.headers[CONTENT_TYPE]);
    }
    let head = workspace.anonymous().fetch(Method::HEAD, ME, &[], "").await;
    assert_eq!((head.status, head.bytes.len()), (401, 0));
}

#[tokio::test]
async fn paths_without_trailing_slash_and_with_current_respond_equally() {
    let (workspace, owner) = Workspace::owned().await;
    let (_, one) = make(&workspace, &owner, json!({"name": "A"})).await;
    for path in [one.clone(), ME.to_owned(), workspace.organization("")] {
        owner.get(path.trim_end_matches('/')).await.assert_is(200, owner.get(&path).await.ok());
    }
    let bare = workspace.dashboards("").trim_end_matches('/').to_owned();
    assert_eq!(owner.post(&bare, json!({})).await.status, 201);
    assert_eq!(owner.get(&bare).await.ok()["count"], 2);
    let changed = owner.patch(one.trim_end_matches('/'), json!({"name": "B"})).await.ok();
    assert_eq!(changed["name"], "B");
    let expected = owner.get(&one).await.ok();
    let id = expected["id"].to_string();
    owner.get(&format!("/api/projects/@current/dashboards/{id}/")).await.assert_is(200, expected);
    let organization = owner.get(&workspace.organization("")).await.ok();
    owner.get("/api/organizations/@current/").await.assert_is(200, organization);
    let (outsider, _) = workspace.outsider("eve").await;
    assert_eq!(outsider.get("/api/projects/@current/dashboards/").await.ok()["count"], 0);
}

#[tokio::test]
async fn valid_request_id_is_used_and_otherwise_generated() {
    let workspace = Workspace::new().await;
    let nobody = workspace.anonymous();
    for path in [ME, "/api/nonsense/", "/_livez"] {
        let shown = async |sent: &str| {
            let answer = nobody.fetch(Method::GET, path, &[(REQUEST_ID, sent)], "").await;
            answer.headers[REQUEST_ID].to_str().expect("text").to_owned()
        };
        assert_eq!(shown("a.B_9-").await, "a.B_9-");
        let made: Uuid = shown("a b").await.parse().expect("a UUID");
        assert_eq!(made.get_version_num(), 7);
    }
}

/// Some features of `serde_json` give a member of this name a meaning of its own, and parse its value as JSON text
/// again. A few kilobytes could then nest deeply enough to overflow the stack.
#[tokio::test]
async fn member_with_a_serde_json_internal_name_is_an_ordinary_member() {
    let (workspace, owner) = Workspace::owned().await;
    let mut text = "1".to_owned();
    for _ in 0..12 {
        let inner = serde_json::to_string(&text).expect("a text");
        text = format!("{{\"$serde_json::private::RawValue\":{inner}}}");
    }
    let body: Value = serde_json::from_str(&text).expect("JSON");
    let answer = owner.post(&workspace.dashboards(""), json!({ "name": body })).await;
    answer.assert_bad("name", "Not a valid string.");
    let filters = json!({ "$serde_json::private::RawValue": "[1]" });
    let answer = owner.post(&workspace.dashboards(""), json!({ "filters": filters })).await;
    assert_eq!(answer.ok()["filters"], filters);
}
