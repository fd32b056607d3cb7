//! Security headers, CORS and compression.

use std::io::Read;

use crate::support::prelude::*;

const FAR: (&str, &str) = ("x-forwarded-for", "192.0.2.1");
const GZIP: (&str, &str) = ("accept-encoding", "gzip, br");

async fn with(origins: &[&str]) -> Workspace {
    let mut config = Config::default();
    config.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    config.cors_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    Workspace::with(config).await
}

fn header<'a>(answer: &'a TestResponse, name: &str) -> Option<&'a str> {
    answer.headers.get(name).map(|value| value.to_str().expect("text"))
}

#[tokio::test]
async fn every_response_has_security_headers() {
    let workspace = Workspace::new().await;
    let nobody = workspace.anonymous();
    for (caller, path, kept) in [
        (&workspace.owner, ME, "private, no-cache"),
        (&workspace.owner, &*workspace.dashboards(""), "no-store"),
        (&nobody, ME, "no-store"),
        (&nobody, "/nowhere", "no-store"),
        (&nobody, "/_livez", "no-store"),
    ] {
        let answer = caller.get(path).await;
        assert_eq!(header(&answer, "x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(header(&answer, "referrer-policy"), Some("no-referrer"), "{path}");
        let policy = "default-src 'none'; frame-ancestors 'none'";
        assert_eq!(header(&answer, "content-security-policy"), Some(policy), "{path}");
        assert_eq!(header(&answer, "cache-control"), Some(kept), "{path}");
        assert_eq!(header(&answer, "strict-transport-security"), None);
    }
    let page = nobody.get("/signup/x").await;
    assert!(header(&page, "content-security-policy").is_some_and(|it| it.contains("script-src")));
}

#[tokio::test]
async fn responses_to_writes_have_no_store_despite_an_etag() {
    let workspace = Workspace::new().await;
    let (owner, keys) = (&workspace.owner, "/api/personal_api_keys/");
    let made = owner.post(keys, json!({"label": "x", "scopes": ["user:read"]})).await;
    let one = format!("{keys}{}/", made.body["id"].as_str().expect("an id"));
    let rolled = owner.post(&format!("{one}roll/"), json!({})).await;
    for answer in [made, rolled, owner.patch(&one, json!({"label": "y"})).await] {
        assert!(header(&answer, "etag").is_some(), "{}", answer.body);
        assert_eq!(header(&answer, "cache-control"), Some("no-store"), "{}", answer.body);
    }
    for method in [Method::GET, Method::HEAD] {
        let answer = owner.send(method, &one, None).await;
        assert_eq!(header(&answer, "cache-control"), Some("private, no-cache"));
        let tag = header(&answer, "etag").expect("a tag");
        let known = owner.fetch(Method::GET, &one, &[("if-none-match", tag)], "").await;
        assert_eq!(known.status, 304);
        assert_eq!(header(&known, "cache-control"), Some("private, no-cache"));
    }
}

#[tokio::test]
async fn https_public_url_adds_strict_transport_security() {
    let url = Some("https://admin.example.org".to_owned());
    let workspace = Workspace::configured(|config| config.public_url = url).await;
    let answer = workspace.owner.get(ME).await;
    assert_eq!(header(&answer, "strict-transport-security"), Some("max-age=63072000"));
}

#[tokio::test]
async fn configured_cors_origins_may_call_and_read() {
    let workspace = with(&["https://app.example.org", "http://localhost:3000"]).await;
    for origin in ["https://app.example.org", "http://localhost:3000"] {
        let asked = [
            ("origin", origin),
            ("access-control-request-method", "PATCH"),
            ("access-control-request-headers", "authorization,content-type,if-match"),
        ];
        let nobody = workspace.anonymous();
        let answer = nobody.fetch(Method::OPTIONS, ME, &asked, "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(header(&answer, "access-control-allow-origin"), Some(origin));
        let allowed = header(&answer, "access-control-allow-methods").expect("methods");
        assert!(allowed.contains("PATCH"), "{allowed}");
        let allowed = header(&answer, "access-control-allow-headers").expect("headers");
        for name in ["authorization", "if-match", "dry-run"] {
            assert!(allowed.split(',').any(|one| one == name), "{name}: {allowed}");
        }
        assert_eq!(header(&answer, "access-control-allow-credentials"), None);
        for (caller, status) in [(&workspace.owner, 200), (&nobody, 401)] {
            let answer = caller.fetch(Method::GET, ME, &[("origin", origin)], "").await;
            assert_eq!(answer.status, status);
            assert_eq!(header(&answer, "access-control-allow-origin"), Some(origin));
            let exposed = header(&answer, "access-control-expose-headers").expect("headers");
            assert!(exposed.contains("etag") && exposed.contains("retry-after"), "{exposed}");
        }
    }
}

#[tokio::test]
async fn other_origins_get_no_cors_headers() {
    let asked = [("origin", "https://evil.example"), ("access-control-request-method", "GET")];
    let named = with(&["https://app.example.org"]).await;
    let answer = named.owner.fetch(Method::OPTIONS, ME, &asked, "").await;
    assert_eq!(header(&answer, "access-control-allow-origin"), None);
    for workspace in [named, with(&[]).await] {
        let answer = workspace.owner.fetch(Method::GET, ME, &asked[..1], "").await;
        assert_eq!(header(&answer, "access-control-allow-origin"), None);
    }
    let answer = with(&["*"]).await.owner.fetch(Method::GET, ME, &asked[..1], "").await;
    assert_eq!(header(&answer, "access-control-allow-origin"), Some("*"));
}

/// A page of another origin can read a 429, which precedes the search for the route and the check of the key.
#[tokio::test]
async fn rate_limit_responses_have_cors_headers() {
    let origin = ("origin", "https://app.example.org");
    let (mut config, _) = with_clock();
    config.cors_origins = vec![origin.1.to_owned()];
    config.peer_limits = vec!["2/m".parse().expect("a rate")];
    let workspace = Workspace::with(config).await;
    let nobody = workspace.anonymous();
    let asked = [origin, ("access-control-request-method", "GET")];
    for status in [401, 401, 429, 429] {
        let preflight = nobody.fetch(Method::OPTIONS, ME, &asked, "").await;
        assert_eq!((preflight.status, header(&preflight, "retry-after")), (200, None));
        let answer = nobody.fetch(Method::GET, ME, &[origin], "").await;
        assert_eq!(answer.status, status);
        assert_eq!(header(&answer, "access-control-allow-origin"), Some(origin.1));
        assert_eq!(header(&answer, "retry-after").is_some(), status == 429);
        assert!(header(&answer, "x-request-id").is_some());
    }
}

/// An OPTIONS request is a preflight only with the headers of one.
#[tokio::test]
async fn options_without_preflight_headers_returns_allow() {
    let workspace = with(&["https://app.example.org"]).await;
    for (path, status, allow) in
        [(ME, 204, Some("GET, PATCH, HEAD, OPTIONS")), ("/api/nope/", 404, None)]
    {
        let answer = workspace.anonymous().fetch(Method::OPTIONS, path, &[FAR, GZIP], "").await;
        assert_eq!((answer.status, header(&answer, "allow")), (status, allow));
        assert_eq!(header(&answer, "access-control-allow-methods"), None);
    }
}

fn unpacked(answer: &TestResponse) -> Value {
    let mut text = String::new();
    flate2::read::GzDecoder::new(answer.bytes.as_slice()).read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test]
async fn large_responses_to_remote_clients_are_compressed_with_their_own_etag() {
    let workspace = with(&[]).await;
    let owner = &workspace.owner;
    let (list, one) = (workspace.dashboards(""), workspace.dashboards("1/"));
    for _ in 0..12 {
        owner.post(&list, json!({ "description": "x".repeat(1000) })).await.ok();
    }
    owner.patch(&one, json!({ "filters": { "a": "b".repeat(10_000) } })).await.ok();
    for path in [&list, &one] {
        let plain = owner.get(path).await;
        let packed = owner.fetch(Method::GET, path, &[FAR, GZIP], "").await;
        assert_eq!((packed.status, header(&packed, "content-encoding")), (200, Some("gzip")));
        assert_eq!(header(&packed, "vary"), Some("accept-encoding"));
        assert!(packed.bytes.len() * 4 < plain.bytes.len());
        let mut shown = unpacked(&packed);
        shown["next"] = plain.body["next"].clone();
        assert_eq!(shown["id"], plain.body["id"]);
    }
    let tag = owner.get(&one).await.tag();
    let packed = owner.fetch(Method::GET, &one, &[FAR, GZIP], "").await;
    let own = header(&packed, "etag").expect("a tag").to_owned();
    assert_eq!(own, format!("{}-gzip\"", tag.trim_end_matches('"')));
    let again = owner.fetch(Method::GET, &one, &[FAR, GZIP, ("if-none-match", &own)], "").await;
    again.assert_empty(304);
    assert_eq!(header(&again, "etag"), Some(&*own));
    let known = owner.fetch(Method::GET, &one, &[FAR, GZIP, ("if-none-match", &tag)], "").await;
    known.assert_empty(304);
    assert_eq!(header(&known, "etag"), Some(&*tag));
    owner.if_match(Method::PATCH, &one, &own, json!({ "name": "x" })).await.ok();
    owner.if_match(Method::PATCH, &one, &own, json!({})).await.assert_stale();
}

#[tokio::test]
async fn small_local_and_non_gzip_responses_are_not_compressed() {
    let workspace = with(&[]).await;
    let list = workspace.dashboards("");
    for _ in 0..12 {
        workspace.owner.post(&list, json!({ "description": "x".repeat(1000) })).await.ok();
    }
    for (path, headers) in [
        (&*list, [GZIP, ("x-forwarded-for", "127.0.0.1")]),
        (&*list, [FAR, ("accept-encoding", "identity")]),
        (&*list, [FAR, ("accept-encoding", "gzip;q=0")]),
        (ME, [FAR, GZIP]),
    ] {
        let answer = workspace.owner.fetch(Method::GET, path, &headers, "").await;
        assert_eq!((answer.status, header(&answer, "content-encoding")), (200, None), "{path}");
        assert!(answer.body.is_object());
    }
}
