//! Rate limits per key (`--rate-limit`) and per client address (`--peer-limit`).

use steward::testing::config::RateLimit;

use crate::support::prelude::*;

fn rates(texts: &[&str]) -> Vec<RateLimit> {
    texts.iter().map(|text| text.parse().expect("a rate")).collect()
}

/// Creates a workspace with rate limits, a manual clock, and trust in `X-Forwarded-For`.
async fn limited(keys: &[&str], peers: &[&str]) -> (Workspace, ManualClock) {
    let (mut config, clock) = with_clock();
    config.rate_limits = rates(keys);
    config.peer_limits = rates(peers);
    config.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    (Workspace::with(config).await, clock)
}

/// Returns the rate limit headers: the limit, the remaining requests, and the seconds until the full limit is
/// available.
fn standing(answer: &TestResponse) -> Option<[u64; 3]> {
    let tell = |name: &str| answer.headers.get(name)?.to_str().ok()?.parse().ok();
    Some([tell("ratelimit-limit")?, tell("ratelimit-remaining")?, tell("ratelimit-reset")?])
}

#[track_caller]
fn is_throttled(answer: &TestResponse, wait: u64) {
    let unit = if wait == 1 { "second" } else { "seconds" };
    let detail = format!("Request was throttled. Expected available in {wait} {unit}.");
    answer.assert_error(429, "throttled_error", "throttled", &detail, None);
    assert_eq!(answer.headers["retry-after"], wait.to_string());
}

async fn from(caller: &TestClient, address: &str, path: &str) -> TestResponse {
    caller.fetch(Method::GET, path, &[("x-forwarded-for", address)], "").await
}

#[tokio::test]
async fn key_quota_is_available_at_once_and_replenished_evenly() {
    let (workspace, clock) = limited(&["3/m"], &[]).await;
    let owner = &workspace.owner;
    for (left, reset) in [(2, 20), (1, 40), (0, 60)] {
        let answer = owner.get(ME).await;
        assert_eq!((answer.status, standing(&answer)), (200, Some([3, left, reset])));
    }
    let refused = owner.get(ME).await;
    is_throttled(&refused, 20);
    assert_eq!(standing(&refused), Some([3, 0, 20]));
    clock.advance(Duration::from_millis(19_001));
    is_throttled(&owner.get(ME).await, 1);
    clock.advance(Duration::from_millis(999));
    assert_eq!(standing(&owner.get(ME).await), Some([3, 0, 60]));
    is_throttled(&owner.get(ME).await, 20);
    clock.advance(Duration::from_mins(1));
    assert_eq!(standing(&owner.get(ME).await), Some([3, 2, 20]));
}

#[tokio::test]
async fn all_configured_quotas_apply_together() {
    let (workspace, clock) = limited(&["2/m", "3/h"], &[]).await;
    let owner = &workspace.owner;
    assert_eq!(standing(&owner.get(ME).await), Some([2, 1, 30]));
    assert_eq!(standing(&owner.get(ME).await), Some([2, 0, 60]));
    is_throttled(&owner.get(ME).await, 30);
    clock.advance(Duration::from_mins(1));
    assert_eq!(standing(&owner.get(ME).await), Some([3, 0, 3600]));
    is_throttled(&owner.get(ME).await, 1140);
}

#[tokio::test]
async fn request_variations_do_not_avoid_the_rate_limit_of_a_key() {
    let (workspace, _) = limited(&["1/h"], &[]).await;
    let owner = &workspace.owner;
    let key = owner.key.clone().expect("a key");
    owner.get(ME).await.ok();
    let project = workspace.made.project_id;
    for path in [
        "/api/users/@me",
        "/api/users/@me/?x=1",
        "/api/organizations/@current/",
        &format!("/api/projects/{project}/dashboards/"),
    ] {
        is_throttled(&owner.get(path).await, 3600);
    }
    is_throttled(&workspace.with_key(&format!("  {key} ")).get(ME).await, 3600);
    for address in ["1.2.3.4", "5.6.7.8"] {
        is_throttled(&from(owner, address, ME).await, 3600);
    }
    assert_eq!(owner.send(Method::HEAD, ME, None).await.status, 429);
    workspace.key(OWNER, &["*"]).await.get(ME).await.ok();
}

#[tokio::test]
async fn rate_limit_is_checked_after_the_key_and_before_rights_method_and_body() {
    let (workspace, _) = limited(&["3/h"], &[]).await;
    let narrow = workspace.key(OWNER, &["dashboard:read"]).await;
    let member = workspace.member("ann", Level::Member).await;
    let domains = workspace.organization("domains/");
    for _ in 0..3 {
        narrow.get(ME).await.assert_denied("API key missing required scope 'user:read'");
        member.post(&domains, json!({})).await.assert_denied(TOO_LOW);
    }
    is_throttled(&narrow.get(ME).await, 1200);
    is_throttled(&member.post(&domains, json!({})).await, 1200);
    let owner = &workspace.owner;
    for _ in 0..3 {
        owner.get(ME).await.ok();
    }
    is_throttled(&owner.delete(ME).await, 1200);
    is_throttled(&owner.fetch(Method::PATCH, ME, &JSON, "{").await, 1200);
    is_throttled(&owner.get("/api/nowhere/").await, 1200);
    let options = owner.send(Method::OPTIONS, ME, None).await;
    assert_eq!((options.status, standing(&options)), (204, None));
}

#[tokio::test]
async fn errors_of_counted_requests_have_rate_limit_headers() {
    let (workspace, _) = limited(&["9/h"], &[]).await;
    let (owner, list) = (&workspace.owner, workspace.dashboards(""));
    let long = "x".repeat(2 << 20);
    let once = |key| [("idempotency-key", key), JSON[0]];
    let sent = [
        (owner.delete(ME).await, 405),
        (owner.post(ME, json!({})).await, 405),
        (owner.fetch(Method::POST, &list, &once("one"), long.clone()).await, 413),
        (owner.fetch(Method::POST, &list, &once(""), "{}").await, 400),
        (owner.fetch(Method::POST, &list, &JSON, long).await, 413),
    ];
    for (left, (answer, status)) in (0..9).rev().zip(sent) {
        assert_eq!(answer.status, status, "{}", answer.body);
        let [limit, remaining, _] = standing(&answer).expect("rate limit headers");
        assert_eq!((limit, remaining), (9, left));
    }
    assert!(standing(&workspace.anonymous().delete(ME).await).is_none());
}

#[tokio::test]
async fn address_limit_is_checked_before_any_key() {
    let (workspace, clock) = limited(&[], &["2/m"]).await;
    let (owner, nobody) = (&workspace.owner, workspace.anonymous());
    let wrong = workspace.with_key("phx_none");
    assert_eq!(from(&nobody, "192.0.2.1", ME).await.status, 401);
    assert_eq!(from(&wrong, "192.0.2.1", "/api/nowhere/").await.status, 404);
    for caller in [owner, &nobody, &wrong] {
        is_throttled(&from(caller, "192.0.2.1", ME).await, 30);
        is_throttled(&from(caller, "192.0.2.1", "/shared/x").await, 30);
        is_throttled(&from(caller, "6.6.6.6, 192.0.2.1", ME).await, 30);
    }
    assert!(standing(&from(owner, "192.0.2.2", ME).await).is_none());
    from(owner, "192.0.2.2", ME).await.ok();
    for _ in 0..5 {
        assert_eq!(from(&nobody, "192.0.2.1", "/_livez").await.status, 200);
    }
    clock.advance(Duration::from_secs(30));
    from(owner, "192.0.2.1", ME).await.ok();
    is_throttled(&from(owner, "192.0.2.1", ME).await, 30);
}

#[tokio::test]
async fn client_is_an_ipv4_address_or_ipv6_network_that_only_a_trusted_proxy_names() {
    let (workspace, _) = limited(&[], &["1/h"]).await;
    let owner = &workspace.owner;
    from(owner, "2001:db8:0:1::1", ME).await.ok();
    is_throttled(&from(owner, "2001:db8:0:1:ffff::2", ME).await, 3600);
    from(owner, "2001:db8:0:2::1", ME).await.ok();
    from(owner, "192.0.2.1", ME).await.ok();
    is_throttled(&from(owner, "::ffff:192.0.2.1", ME).await, 3600);

    // Without a trusted proxy, a client cannot choose its address.
    let (mut config, _) = with_clock();
    config.peer_limits = rates(&["1/h"]);
    let workspace = Workspace::with(config).await;
    from(&workspace.owner, "192.0.2.1", ME).await.ok();
    is_throttled(&from(&workspace.owner, "192.0.2.2", ME).await, 3600);
}

#[tokio::test]
async fn there_is_no_rate_limit_by_default() {
    let workspace = Workspace::new().await;
    for _ in 0..50 {
        let answer = workspace.owner.get(ME).await;
        assert_eq!((answer.status, standing(&answer)), (200, None));
    }
}
