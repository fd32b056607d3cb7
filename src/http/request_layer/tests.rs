use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::routing::get;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;
use uuid::Uuid;

use super::*;
use crate::base::time::Clock;
use crate::fair::memory_budget::MemoryBudget;
use crate::http::client::Peer;
use crate::http::logging::tests::CapturedLog;

fn no_limits() -> Arc<RateLimits> {
    Arc::new(RateLimits::new(&[], &[], &Clock::System))
}

/// A router with a time limit that no test reaches.
fn router() -> Router {
    router_with(Duration::from_hours(1))
}

fn router_with(timeout: Duration) -> Router {
    Router::new()
        .route("/things/{id}", get(|| async { "ok" }))
        .route("/panic", get(|| async { panic!("no {}", 7) as () }))
        .route("/refused", get(|| async { Error::not_found() }))
        .route("/broken", get(|| async { Error::internal("bad page") }))
        .route("/full", get(|| async { Error::overloaded(1, "all slots are in use") }))
        .route("/stuck", get(std::future::pending::<()>))
        .layer(RequestLayer::new(RequestLayerConfig {
            timeout,
            trusted_proxies: TrustedProxies::default(),
            rate_limiter: no_limits(),
            is_https: false,
            cors: None,
            metrics: None,
            delivery: ResponseDelivery::new(MemoryBudget::new(1 << 20)),
        }))
}

fn request(path: &str) -> Request {
    Request::builder().uri(path).body(Body::empty()).unwrap()
}

fn id_of(response: &Response) -> &str {
    response.headers()[REQUEST_ID].to_str().unwrap()
}

async fn body_of(response: Response) -> Value {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

/// Returns the lines logged at `level` while `work` runs.
async fn capture_log(level: tracing::Level, work: impl Future) -> Vec<Value> {
    let kept = CapturedLog::default();
    let log = tracing_subscriber::fmt().json().flatten_event(true).with_max_level(level);
    let log = log.with_writer(kept.writer()).finish();
    let guard = tracing::subscriber::set_default(log);
    work.await;
    drop(guard);
    kept.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn valid_client_request_id_is_returned() {
    for own in ["a", "A.b_c-9", &"x".repeat(128)] {
        let mut request = request("/things/1");
        request.headers_mut().insert(REQUEST_ID, own.parse().unwrap());
        assert_eq!(id_of(&router().oneshot(request).await.unwrap()), own);
    }
}

#[tokio::test]
async fn invalid_or_missing_request_id_is_replaced_by_a_uuid_v7() {
    for bad in ["", "a b", "a/b", "é", &"x".repeat(129)] {
        let mut request = request("/nowhere");
        let value = HeaderValue::from_bytes(bad.as_bytes()).unwrap();
        request.headers_mut().insert(REQUEST_ID, value);
        let response = router().oneshot(request).await.unwrap();
        let id = Uuid::parse_str(id_of(&response)).unwrap();
        assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
    }
    let response = router().oneshot(request("/things/1")).await.unwrap();
    assert!(Uuid::parse_str(id_of(&response)).is_ok());
}

#[tokio::test]
async fn panic_returns_500_and_is_only_logged() {
    let mut response = None;
    let lines = capture_log(tracing::Level::DEBUG, async {
        response = router().oneshot(request("/panic")).await.ok();
    })
    .await;
    let response = response.unwrap();
    assert_eq!(response.status(), 500);
    let id = id_of(&response).to_owned();
    assert_eq!(body_of(response).await["detail"], "A server error occurred.");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!((&line["level"], &line["status"]), (&"ERROR".into(), &500.into()));
    assert_eq!((&line["error"], &line["route"]), (&"panic: no 7".into(), &"/panic".into()));
    assert_eq!(line["request_id"], id);
}

#[tokio::test]
async fn request_timeout_returns_503() {
    let router = router_with(Duration::from_millis(1));
    let response = router.oneshot(request("/stuck")).await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    assert!(response.headers().contains_key(REQUEST_ID));
    assert_eq!(body_of(response).await["code"], "unavailable");
}

#[tokio::test]
async fn log_line_has_the_route_template_and_no_path_or_query() {
    let lines = capture_log(tracing::Level::DEBUG, async {
        let mut asked = request("/things/secret?key=secret");
        asked.extensions_mut().insert(Peer(SocketAddr::from(([192, 0, 2, 7], 1))));
        let _ = router().oneshot(asked).await;
        let _ = router().oneshot(request("/secret")).await;
    })
    .await;
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["route"], "/things/{id}");
    assert_eq!(lines[0]["method"], "GET");
    assert_eq!(lines[0]["client"], "192.0.2.7");
    assert!(lines[0]["duration_ms"].is_f64());
    assert_eq!(lines[0].get("error"), None);
    assert_eq!((&lines[1]["route"], &lines[1]["status"]), (&"unmatched".into(), &404.into()));
    assert!(!format!("{lines:?}").contains("secret"));
}

#[tokio::test]
async fn only_server_errors_are_logged_at_info_level() {
    let lines = capture_log(tracing::Level::INFO, async {
        for path in ["/things/1", "/refused", "/nowhere", "/broken"] {
            let _ = router().oneshot(request(path)).await;
        }
    })
    .await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["error"], "bad page");
}

#[tokio::test]
async fn disconnected_client_is_logged() {
    let lines = capture_log(tracing::Level::DEBUG, async {
        assert!(router().oneshot(request("/stuck")).now_or_never().is_none());
    })
    .await;
    assert_eq!((lines.len(), &lines[0]["status"]), (1, &CLIENT_GONE.into()));
}

#[tokio::test]
async fn refusal_by_a_limit_is_logged_as_a_warning_that_names_the_limit() {
    let mut response = None;
    let lines = capture_log(tracing::Level::INFO, async {
        response = router().oneshot(request("/full")).await.ok();
    })
    .await;
    let refused = response.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &1.into()));
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!((&line["level"], &line["count"]), (&"WARN".into(), &1.into()));
    assert_eq!(line["limit"], "all slots are in use");
}
