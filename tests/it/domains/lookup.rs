//! Tests of `GET /api/organizations/:organization_id/domains/:id/lookup/` with a real DNS server.

use futures_util::stream::{FuturesUnordered, StreamExt};
use hickory_server::net::xfer::Protocol;

use crate::domains::{Scene, add};
use crate::support::prelude::*;

const NAME: &str = "_posthog-challenge.corp.example";
const ABSOLUTE: &str = "_posthog-challenge.corp.example.";

impl Scene {
    fn lookup_path(&self) -> String {
        format!("{}lookup/", self.path)
    }

    async fn lookup(&self) -> Value {
        self.workspace.owner.get(&self.lookup_path()).await.ok()
    }

    /// Returns the response with these texts.
    fn found(&self, texts: &[&str], matches: bool) -> Value {
        json!({
            "name": NAME, "expected": self.challenge(), "found": texts, "matches": matches,
            "error": null,
        })
    }

    fn failed(&self, error: &str) -> Value {
        json!({
            "name": NAME, "expected": self.challenge(), "found": [], "matches": false,
            "error": error,
        })
    }
}

#[tokio::test]
async fn lookup_returns_the_records_in_the_dns_and_writes_nothing() {
    let scene = Scene::new().await;
    let right = scene.challenge();
    let (head, tail) = right.split_at(20);
    let quoted = format!("\"{head}\" \"{tail}\"");
    for (reply, texts, matches) in [
        (Reply::NxDomain, vec![], false),
        (Reply::NoData, vec![], false),
        (Reply::texts(&[&["wrong"]]), vec!["wrong"], false),
        (Reply::texts(&[&[""]]), vec![""], false),
        (Reply::texts(&[&[head, tail]]), vec![quoted.as_str()], false),
        (Reply::texts(&[&["a\u{7}\nb \u{e9}"]]), vec!["a\u{fffd}\u{fffd}b \u{e9}"], false),
        (Reply::texts(&[&["v=spf1 -all"], &[right]]), vec![right, "v=spf1 -all"], true),
        (Reply::Alias("elsewhere.example.".to_owned()), vec![], false),
    ] {
        scene.dns.set(ABSOLUTE, reply);
        assert_eq!(scene.lookup().await, scene.found(&texts, matches));
    }
    scene.workspace.owner.get(&scene.path).await.assert_is(200, scene.domain.clone());
    assert_eq!(entries_about(&scene.workspace, &scene.domain["id"]).len(), 1);
    let response = scene.workspace.owner.get(&scene.lookup_path()).await;
    assert!(!response.headers.contains_key("etag"), "{:?}", response.headers);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn many_and_long_records_are_cut_and_the_matching_one_comes_first() {
    let scene = Scene::new().await;
    let mut records: Vec<_> = (0..40).map(|number| vec![format!("{number:0>200}"); 2]).collect();
    records.push(vec![scene.challenge().to_owned(), "more".to_owned()]);
    scene.dns.set(ABSOLUTE, Reply::Texts(records));
    let body = scene.lookup().await;
    let found: Vec<_> = body["found"].as_array().expect("texts").iter().collect();
    assert_eq!((found.len(), &body["matches"]), (20, &json!(true)));
    assert_eq!(*found[0], format!("\"{}\" \"more\"", scene.challenge()));
    let long = found[1].as_str().expect("a text");
    let number = &long[199..201];
    assert_eq!(long, &format!("\"{number:0>200}\" \"{number:0>200}\"")[..300]);
    let over: Vec<Protocol> = scene.dns.asked().into_iter().map(|(over, _)| over).collect();
    assert_eq!(over, [Protocol::Udp, Protocol::Tcp]);
}

#[tokio::test]
async fn failing_name_servers_are_shown_as_an_error() {
    let scene = Scene::new().await;
    for reply in [Reply::ServFail, Reply::Refused] {
        scene.dns.set(ABSOLUTE, reply);
        let failed = scene.failed("All name servers failed or refused to answer.");
        assert_eq!(scene.lookup().await, failed);
    }
    let dns = Dns::start().await;
    let mut config = dns.config();
    config.dns_timeout = Duration::from_millis(150);
    let scene = Scene::with(dns, config).await;
    scene.dns.set(ABSOLUTE, Reply::Silence);
    assert_eq!(scene.lookup().await, scene.failed("No name server answered within 150ms."));
}

#[tokio::test]
async fn verified_domain_and_configured_prefix_are_looked_up() {
    let dns = Dns::start().await;
    let mut config = dns.config();
    config.dns_challenge_prefix = "_steward".to_owned();
    let scene = Scene::with(dns, config).await;
    prove(&scene.workspace, &scene.domain).await;
    scene.dns.set("_steward.corp.example.", Reply::texts(&[&[scene.challenge()]]));
    let mut expected = scene.found(&[scene.challenge()], true);
    expected["name"] = json!("_steward.corp.example");
    assert_eq!(scene.lookup().await, expected);
}

#[tokio::test]
async fn too_long_challenge_name_has_no_records() {
    let scene = Scene::new().await;
    let label = "a".repeat(64);
    let (long, path) = add(&scene.workspace, &format!("{label}.example")).await;
    let body = scene.workspace.owner.get(&format!("{path}lookup/")).await.ok();
    let expected = json!({
        "name": format!("_posthog-challenge.{label}.example"),
        "expected": long["verification_challenge"], "found": [], "matches": false, "error": null,
    });
    assert_eq!(body, expected);
    scene.workspace.owner.post(&format!("{path}verify/"), json!({})).await.assert_empty(200);
    assert_eq!(entries_about(&scene.workspace, &long["id"]).len(), 1, "nothing was written");
    assert!(scene.dns.asked().is_empty());
}

#[tokio::test]
async fn lookups_and_verifications_share_the_queue_of_the_organization() {
    let scene = Scene::new().await;
    scene.dns.hold();
    let (eve, made) = scene.workspace.outsider("eve").await;
    let list = in_organization(&made, "domains/");
    let (_, other) = eve.create(&list, json!({ "domain": "eve.example" })).await;
    let path = format!("{other}lookup/");
    let mut sent: FuturesUnordered<_> = (0..12)
        .map(|number| {
            let (owner, lookup) = (scene.workspace.owner.clone(), scene.lookup_path());
            let verify = format!("{}verify/", scene.path);
            tokio::spawn(async move {
                if number % 2 == 0 {
                    owner.get(&lookup).await
                } else {
                    owner.send(Method::POST, &verify, None).await
                }
            })
        })
        .collect();
    // Two look-ups run and eight wait.
    for _ in 0..2 {
        let refused = sent.next().await.expect("a response").expect("no panic");
        let detail = "The service is temporarily unavailable. Try again shortly.";
        refused.assert_error(503, "server_error", "unavailable", detail, None);
        assert_eq!(refused.headers["retry-after"], "5");
    }
    scene.dns.heard(2).await;
    assert_eq!(scene.dns.asked().len(), 2);
    // Another organization has a share of its own, and other requests do not wait.
    let begun = tokio::spawn(async move { eve.get(&path).await });
    scene.dns.heard(3).await;
    scene.workspace.owner.get(&scene.path).await.assert_is(200, scene.domain.clone());
    scene.dns.let_go();
    begun.await.expect("no panic").ok();
    while let Some(done) = sent.next().await {
        assert_eq!(done.expect("no panic").status, 200);
    }
}

#[tokio::test]
async fn domain_deleted_during_a_lookup_is_answered() {
    let scene = Scene::new().await;
    scene.dns.hold();
    let (owner, path) = (scene.workspace.owner.clone(), scene.lookup_path());
    let begun = tokio::spawn(async move { owner.get(&path).await });
    scene.dns.heard(1).await;
    scene.workspace.owner.delete(&scene.path).await.assert_empty(204);
    scene.dns.let_go();
    begun.await.expect("no panic").assert_is(200, scene.found(&[], false));
    scene.workspace.owner.get(&scene.lookup_path()).await.assert_not_found("Not found.");
    scene.workspace.assert_file_valid().await;
}
