//! Tests that creating keys does not delay the verification of other users' keys, and that failed requests count
//! towards rate limits.

use std::pin::Pin;
use std::task::Poll;

use axum::http::Method;
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::{FutureExt, poll};
use serde_json::{Value, json};
use steward::App;
use steward::router;
use steward::testing::config::{Config, RateLimit};
use steward::testing::metrics::Metrics;
use steward::testing::operator::Operation;
use steward::testing::resources::api_keys::{ApiKey, Verifiers};
use steward::testing::resources::members::Level;
use steward::testing::store::{Store, Tx};

use crate::support::api_keys::{at, make};
use crate::support::metrics::Numbers;
use crate::support::{OWNER, TestClient, TestResponse, Workspace};

const ME: &str = "/api/users/@me/";
const CURRENT: &str = "/api/personal_api_keys/@current/";

fn metered() -> Config {
    let mut config = Config::default();
    config.metrics = Metrics::enabled();
    config
}

/// Returns the number of Argon2 runs of this server.
fn runs(app: &App) -> usize {
    let count = Numbers::at_once(app).value("steward_argon2_duration_seconds_count", &[]);
    (0..=u32::MAX).position(|runs| count < f64::from(runs) + 0.5).expect("a count")
}

/// Returns the number of waiting Argon2 runs.
fn waiting(app: &App) -> f64 {
    Numbers::at_once(app).value("steward_argon2_queue_length", &[])
}

/// Restarts the server with the same data file.
async fn restarted(workspace: &Workspace, app: &App) -> App {
    app.close().await;
    let store = Store::open(&workspace.path(), 1 << 20).expect("the data file");
    App::new(store, metered()).expect("the service")
}

#[tokio::test]
async fn first_key_use_after_a_restart_runs_no_argon2() {
    let workspace = Workspace::with(metered()).await;
    let owner = &workspace.owner;
    assert_eq!(runs(&workspace.app), 0, "a new data file contains the digest of its first key");
    let member = workspace.member("ann", Level::Member).await;
    let made = make(owner, json!({ "label": "x", "scopes": ["*"] })).await;
    let sent = json!({ "grace_seconds": 3600 });
    let rolled = owner.post(&at(&made, "roll/"), sent).await.ok();
    let value = |key: &Value| key["value"].as_str().expect("a value").to_owned();
    let keys = [owner.key.clone(), member.key, Some(value(&made)), Some(value(&rolled))];
    assert_eq!(runs(&workspace.app), 3, "one run for each new key");
    let mut app = workspace.app.clone();
    for _ in 0..2 {
        app = restarted(&workspace, &app).await;
        for key in &keys {
            let caller = TestClient::of(router(app.clone()), key.as_deref().expect("a key"));
            assert_eq!(caller.get(ME).await.status, 200);
            assert_eq!(caller.get(ME).await.status, 200);
        }
        assert_eq!(runs(&app), 0);
    }
    let path = at(&made, "");
    let owner = TestClient::of(router(app.clone()), keys[0].as_deref().expect("a key"));
    owner.delete(&path).await.assert_empty(204);
    TestClient::of(router(app.clone()), &value(&rolled)).get(ME).await.is_bad_key();
    let id = serde_json::from_value(made["id"].clone()).expect("an id");
    let tx = app.store().snapshot().expect("a snapshot");
    assert!(!tx.exists::<Verifiers>(&id).expect("read"), "its digests are deleted");
}

/// Queues rotations of a key. They go on only while the futures are polled.
async fn rotations(
    attacker: &TestClient,
    count: usize,
) -> Vec<Pin<Box<impl Future<Output = u16> + '_>>> {
    let made = make(attacker, json!({ "label": "x", "scopes": ["user:read"] })).await;
    let path = at(&made, "roll/");
    let roll = |_| {
        let path = path.clone();
        Box::pin(async move { attacker.post(&path, json!({})).await.status })
    };
    (0..count).map(roll).collect()
}

/// Rotates a key of one user on 512 connections at once. The first use of another user's key must not wait for them.
#[tokio::test]
async fn key_rotations_of_one_user_do_not_delay_another_users_key() {
    let workspace = Workspace::with(metered()).await;
    let attacker = workspace.member("eve", Level::Member).await;
    let victim = workspace.key(OWNER, &["*"]).await;
    let mut refused = 0;
    let mut queued = Vec::new();
    for mut roll in rotations(&attacker, 512).await {
        match poll!(roll.as_mut()) {
            Poll::Ready(status) => {
                assert_eq!(status, 503);
                refused += 1;
            }
            Poll::Pending => queued.push(roll),
        }
    }
    assert!(refused > 400, "the queue of one user must be bounded: {refused} of 512");
    assert!(waiting(&workspace.app) > 10.0);
    assert_eq!(victim.get(ME).await.status, 200);
    let statuses = join_all(queued).await;
    // A busy machine refuses those that have waited long.
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
}

/// 60 rotations wait before the victim's new key. Without turns, it is the last.
#[tokio::test]
async fn users_creating_keys_take_turns() {
    let workspace = Workspace::with(metered()).await;
    let (attacker, victim) =
        (workspace.member("eve", Level::Member).await, workspace.key(OWNER, &["*"]).await);
    let mut rolls = rotations(&attacker, 60).await;
    for roll in &mut rolls {
        assert!(poll!(roll.as_mut()).is_pending());
    }
    let created = async {
        let sent = json!({ "label": "y", "scopes": ["user:read"] });
        victim.post("/api/personal_api_keys/", sent).await.status
    };
    let mut created = Box::pin(created);
    assert!(poll!(created.as_mut()).is_pending());
    assert!(waiting(&workspace.app) > 50.0);
    let mut answered = FuturesUnordered::new();
    for roll in rolls {
        answered.push(roll.map(|status| ("roll", status)).boxed_local());
    }
    answered.push(created.map(|status| ("victim", status)).boxed_local());
    let mut done = 0;
    loop {
        match answered.next().await.expect("it is answered") {
            // A machine that needs ten seconds for a few runs refuses all that wait.
            ("victim", status) => break assert!([201, 503].contains(&status), "{status}"),
            (_, 200) => done += 1,
            (_, status) => assert_eq!(status, 503, "done, or refused after a long wait"),
        }
    }
    assert!(done < 10, "{done} rotations were done before the victim's key");
}

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
    let foreign = format!("/api/organizations/{}/", other["id"].as_str().expect("an id"));
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
    let off = Operation::UserSetActive { email: "ann@corp.example".to_owned(), active: false };
    workspace.run_operation(off).await;
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
    assert_eq!(
        from(&nobody, "2001:db8:0:2::1", ME).await.status,
        401,
        "another network has its own quota"
    );
    from(&workspace.owner, "2001:db8:0:1::1", ME).await.ok();
    for _ in 0..6 {
        for path in ["/_livez", "/api/docs/", "/shared/x"] {
            let answer = from(&nobody, "2001:db8:0:1::1", path).await;
            assert_ne!(
                answer.status, 429,
                "public routes without authentication have no quota: {path}"
            );
            assert!(!answer.headers.contains_key("ratelimit-limit"));
        }
    }
}

/// A wrong key gets the same error as a missing one, and costs no Argon2 run.
#[tokio::test]
async fn many_wrong_keys_run_no_argon2() {
    let workspace = Workspace::with(metered()).await;
    let key = workspace.made.api_key.clone();
    workspace.owner.get(ME).await.ok();
    for end in 0..64 {
        let wrong = format!("{}{end:02}", &key[..key.len() - 2]);
        if wrong != key {
            workspace.with_key(&wrong).get(ME).await.is_bad_key();
        }
    }
    assert_eq!(runs(&workspace.app), 0);
    let tx = workspace.app.store().snapshot().expect("a snapshot");
    let id = serde_json::from_value(workspace.owner.get(CURRENT).await.ok()["id"].clone());
    let stored = tx.meta::<ApiKey>(&id.expect("an id")).expect("read").expect("the key");
    assert!(stored.hash.starts_with("$argon2id$"), "the hash is stored in addition to the digest");
    drop(tx);
    workspace.app.close().await;
}
