//! Tests that failed requests count towards rate limits.

use steward::testing::config::RateLimit;

use crate::prelude::*;

const ME: &str = "/api/users/@me/";
const CURRENT: &str = "/api/personal_api_keys/@current/";

fn limited(rate: &str) -> Config {
    let mut config = Config::default();
    config.rate_limits = vec![rate.parse::<RateLimit>().expect("a rate")];
    config.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    config
}

async fn from(caller: &TestClient, address: &str, path: &str) -> TestResponse {
    caller.fetch(Method::GET, path, &[("x-forwarded-for", address)], "").await
}

#[tokio::test]
async fn rejected_requests_count_against_the_rate_limit_of_the_key() {
    let workspace = Workspace::with(limited("3/h")).await;
    let (_, other) = workspace.outsider("zoe").await;
    let foreign = in_organization(&other, "");
    let narrow = workspace.key(OWNER, &["dashboard:read"]).await;
    assert_eq!(narrow.get(ME).await.status, 403);
    assert_eq!(narrow.get(&workspace.dashboards("999/")).await.status, 404);
    assert_eq!(narrow.get("/api/nowhere/").await.status, 404);
    for path in [ME, &workspace.dashboards("999/"), "/api/nowhere/", &foreign] {
        let refused = narrow.get(path).await;
        assert_eq!(refused.status, 429, "{path}");
        assert_eq!(refused.headers["ratelimit-remaining"], "0");
        assert!(refused.headers.contains_key("retry-after"));
    }
    assert_eq!(workspace.owner.get(&foreign).await.status, 403, "another key has its own quota");
    let member = workspace.member("ann", Level::Member).await;
    let key = member.get(CURRENT).await.ok()["id"].clone();
    workspace.set_active("ann@corp.example", false).await;
    for status in [401, 401, 429] {
        assert_eq!(member.get(ME).await.status, status, "{key}");
    }
}

#[tokio::test]
async fn requests_without_a_valid_key_count_against_their_address() {
    let workspace = Workspace::with(limited("4/h")).await;
    let (nobody, wrong) = (workspace.anonymous(), workspace.with_key("phx_none"));
    for (caller, path, status) in [
        (&nobody, ME, 401),
        (&wrong, ME, 401),
        (&wrong, "/api/nowhere/", 404),
        (&nobody, "/api/signup/x/", 400),
    ] {
        let answer = from(caller, "2001:db8:0:1::1", path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert_eq!(answer.headers.contains_key("ratelimit-limit"), status != 401);
    }
    for (caller, path) in [
        (&nobody, ME),
        (&wrong, ME),
        (&nobody, "/api/nowhere/"),
        (&wrong, "/api/nowhere/"),
        (&nobody, "/api/signup/x/"),
    ] {
        let refused = from(caller, "2001:db8:0:1:ffff::2", path).await;
        assert_eq!(refused.status, 429, "{path}");
        assert_eq!(refused.headers["ratelimit-limit"], "4");
        assert_eq!(from(caller, "2001:db8:0:2::1", "/_livez").await.status, 200);
    }
    let elsewhere = from(&nobody, "2001:db8:0:2::1", ME).await.status;
    assert_eq!(elsewhere, 401, "another network has its own quota");
    from(&workspace.owner, "2001:db8:0:1::1", ME).await.ok();
    for _ in 0..6 {
        for path in ["/_livez", "/api/docs/", "/shared/x"] {
            let answer = from(&nobody, "2001:db8:0:1::1", path).await;
            assert_ne!(answer.status, 429, "public routes have no quota: {path}");
            assert!(!answer.headers.contains_key("ratelimit-limit"));
        }
    }
}
