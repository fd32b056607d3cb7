//! Tests of `POST /api/organizations/:organization_id/domains/:id/verify/` with a real DNS server.

use hickory_server::net::xfer::Protocol;

use crate::domains::{Scene, add};
use crate::support::prelude::*;

const NAME: &str = "_posthog-challenge.corp.example.";
const UNAVAILABLE: &str = "The service is temporarily unavailable. Try again shortly.";

impl Scene {
    /// Publishes the correct record.
    fn publish(&self) {
        self.dns.set(NAME, Reply::texts(&[&[self.challenge()]]));
    }

    /// Publishes the correct record in a new workspace. Its DNS server answers only when it is let go.
    async fn holding() -> Self {
        let scene = Self::new().await;
        scene.publish();
        scene.dns.hold();
        scene
    }

    /// Publishes the correct record, and verifies the domain. Returns when it was verified.
    async fn succeeds(&self) -> Value {
        self.publish();
        self.verify().await.assert_empty(200);
        self.is_verified().await
    }

    async fn verify(&self) -> TestResponse {
        self.workspace.owner.send(Method::POST, &self.verify_path(), None).await
    }

    fn verify_path(&self) -> String {
        format!("{}verify/", self.path)
    }

    /// Starts a verification, and returns when the query has reached the DNS server.
    async fn begin(&self, caller: &TestClient) -> tokio::task::JoinHandle<TestResponse> {
        let known = self.dns.asked().len();
        let (caller, path) = (caller.clone(), self.verify_path());
        let verifying = tokio::spawn(async move { caller.send(Method::POST, &path, None).await });
        self.dns.heard(known + 1).await;
        verifying
    }

    async fn shown(&self) -> Value {
        self.workspace.owner.get(&self.path).await.ok()
    }

    #[track_caller]
    fn is_unavailable(answer: &TestResponse) {
        answer.assert_error(503, "server_error", "unavailable", UNAVAILABLE, None);
        assert_eq!(answer.headers["retry-after"], "5");
    }

    /// Asserts that the domain has not changed since its creation.
    async fn is_unchanged(&self) {
        assert_eq!(self.shown().await, self.domain);
        assert_eq!(entries_about(&self.workspace, &self.domain["id"]).len(), 1);
    }

    /// Asserts that the domain is verified and otherwise unchanged. Returns when it was verified.
    async fn is_verified(&self) -> Value {
        let shown = self.shown().await;
        let mut expected = self.domain.clone();
        expected["is_verified"] = json!(true);
        expected["verified_at"] = shown["verified_at"].clone();
        assert_eq!(shown, expected);
        assert!(shown["verified_at"].is_string());
        shown["verified_at"].clone()
    }
}

#[tokio::test]
async fn dns_challenge_record_verifies_a_domain_once() {
    let scene = Scene::new().await;
    let since = scene.succeeds().await;
    assert_eq!(scene.dns.asked(), [(Protocol::Udp, NAME.to_owned())]);

    let again = scene.verify().await;
    again.assert_invalid_body("already_verified", "This domain has already been verified.");
    assert_eq!(scene.is_verified().await, since);
    assert_eq!(scene.dns.asked().len(), 1, "no query for a verified domain");

    let entries = entries_about(&scene.workspace, &scene.domain["id"]);
    let changes = json!({ "is_verified": [false, true], "verified_at": [null, since] });
    let id = scene.domain["id"].clone();
    assert_eq!(
        entries,
        [
            json!(["OrganizationDomain", id, "created", "corp.example", {}]),
            json!(["OrganizationDomain", id, "updated", "corp.example", changes]),
        ]
    );
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn only_an_exact_dns_record_verifies_a_domain() {
    let scene = Scene::new().await;
    let right = scene.challenge();
    let (head, tail) = right.split_at(20);
    let quoted = format!("\"{right}\"");
    let spaced = format!("{right} ");
    let upper = right.to_uppercase();
    for (case, reply) in [
        ("no such name", Reply::NxDomain),
        ("no such record", Reply::NoData),
        ("another value", Reply::texts(&[&["wrong"]])),
        ("an empty value", Reply::texts(&[&[""]])),
        ("several wrong ones", Reply::texts(&[&["wrong"], &["v=spf1 -all"], &[head]])),
        ("split over two strings", Reply::texts(&[&[head, tail]])),
        ("in the second string", Reply::texts(&[&["wrong", right]])),
        ("the beginning of it", Reply::texts(&[&[head]])),
        ("quoted", Reply::texts(&[&[&quoted]])),
        ("with a space", Reply::texts(&[&[&spaced]])),
        ("in upper case", Reply::texts(&[&[&upper]])),
        ("under a name that leads nowhere", Reply::Alias("elsewhere.example.".to_owned())),
        ("under a name that leads to itself", Reply::Alias(NAME.to_owned())),
    ] {
        scene.dns.set(NAME, reply);
        let answer = scene.verify().await;
        assert_eq!(answer.status, 200, "{case}");
        answer.assert_empty(200);
        scene.is_unchanged().await;
    }
    // Earlier results are not cached.
    scene.succeeds().await;
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn challenge_may_be_one_of_several_records_or_behind_a_cname() {
    for case in 0..4 {
        let scene = Scene::new().await;
        let right = scene.challenge();
        let reply = match case {
            0 => Reply::texts(&[&["v=spf1 -all"], &[""], &[right]]),
            1 => Reply::texts(&[&[right, "more"]]),
            2 => Reply::texts(&[&[right], &[right]]),
            _ => Reply::Alias("challenges.example.".to_owned()),
        };
        scene.dns.set(NAME, reply);
        scene.dns.set("challenges.example.", Reply::texts(&[&[right]]));
        scene.verify().await.assert_empty(200);
        scene.is_verified().await;
    }
}

#[tokio::test]
async fn failing_or_refusing_name_server_returns_503_and_changes_nothing() {
    let scene = Scene::new().await;
    for reply in [Reply::ServFail, Reply::Refused] {
        scene.dns.set(NAME, reply);
        Scene::is_unavailable(&scene.verify().await);
        scene.is_unchanged().await;
    }
    scene.succeeds().await;
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn silent_or_unreachable_name_server_returns_503_after_the_timeout() {
    for is_reachable in [true, false] {
        let dns = Dns::start().await;
        let mut config = dns.config();
        config.dns_timeout = Duration::from_millis(150);
        if !is_reachable {
            config.dns_resolvers = vec!["127.0.0.1:1".parse().expect("an address")];
        }
        let scene = Scene::with(dns, config).await;
        scene.dns.set(NAME, Reply::Silence);
        Scene::is_unavailable(&scene.verify().await);
        scene.is_unchanged().await;
    }
}

#[tokio::test]
async fn one_working_name_server_is_sufficient() {
    for broken in [Reply::ServFail, Reply::Refused, Reply::Silence] {
        let (dns, beside) = (Dns::start().await, Dns::start().await);
        beside.set(NAME, broken);
        let mut config = dns.config();
        config.dns_resolvers = vec![beside.address(), dns.address()];
        Scene::with(dns, config).await.succeeds().await;
        beside.heard(1).await;
    }
}

#[tokio::test]
async fn challenge_name_prefix_is_configurable() {
    let dns = Dns::start().await;
    let mut config = dns.config();
    config.dns_challenge_prefix = "_steward".to_owned();
    let scene = Scene::with(dns, config).await;
    scene.publish();
    scene.verify().await.assert_empty(200);
    scene.is_unchanged().await;
    scene.dns.set("_steward.corp.example.", Reply::texts(&[&[scene.challenge()]]));
    scene.verify().await.assert_empty(200);
    scene.is_verified().await;
}

#[tokio::test]
async fn verify_request_body_must_be_an_object_and_is_ignored() {
    let scene = Scene::new().await;
    let (owner, path) = (&scene.workspace.owner, scene.verify_path());
    for ignored in [
        json!({}),
        json!({ "domain": 5, "is_verified": true, "saml_x509_cert": "x", "sso_enforcement": null }),
    ] {
        owner.post(&path, ignored).await.assert_empty(200);
        owner.post(path.trim_end_matches('/'), json!({})).await.assert_empty(200);
        scene.is_unchanged().await;
    }
    let list = "Invalid data. Expected a dictionary, but got list.";
    owner.post(&path, json!([])).await.assert_bad_body(list);
    owner.post(&path, json!(null)).await.assert_invalid_body("null", "No data provided");
    for gone in ["nobody", UNKNOWN] {
        let gone = scene.workspace.organization(&format!("domains/{gone}/verify/"));
        owner.post(&gone, json!([])).await.assert_bad_body(list);
        let broken = owner.fetch(Method::POST, &gone, &JSON, "{").await;
        assert_eq!((broken.status, &broken.body["code"]), (400, &json!("parse_error")));
        owner.post(&gone, json!({})).await.assert_not_found("Not found.");
    }
}

#[tokio::test]
async fn other_requests_do_not_wait_for_a_dns_lookup() {
    let scene = Scene::holding().await;
    let owner = scene.workspace.owner.clone();
    let verifying = scene.begin(&owner).await;
    // Requests that read and write, including the domain itself, do not wait.
    scene.is_unchanged().await;
    owner.patch(&scene.path, json!({ "saml_entity_id": "idp" })).await.ok();
    let (other, _) = add(&scene.workspace, "other.example").await;
    let list = owner.get(&scene.workspace.organization("domains/")).await.ok();
    assert_eq!((&list["count"], &list["results"][1]), (&json!(2), &other));
    assert!(!verifying.is_finished());

    scene.dns.let_go();
    verifying.await.expect("an answer").assert_empty(200);
    let shown = scene.shown().await;
    assert_eq!((&shown["is_verified"], &shown["saml_entity_id"]), (&json!(true), &json!("idp")));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn concurrent_verifications_take_effect_once() {
    let scene = Scene::holding().await;
    let owner = scene.workspace.owner.clone();
    let (one, two) = (scene.begin(&owner).await, scene.begin(&owner).await);
    scene.dns.let_go();
    one.await.expect("an answer").assert_empty(200);
    two.await.expect("an answer").assert_empty(200);
    scene.is_verified().await;
    assert_eq!(entries_about(&scene.workspace, &scene.domain["id"]).len(), 2);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn domain_verified_during_the_lookup_keeps_its_first_verification() {
    let scene = Scene::holding().await;
    let verifying = scene.begin(&scene.workspace.owner).await;
    prove(&scene.workspace, &scene.domain).await;
    scene.dns.let_go();
    verifying.await.expect("an answer").assert_empty(200);
    assert_eq!(scene.is_verified().await, "2025-01-02T03:04:05Z");
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn domain_deleted_during_the_lookup_returns_404() {
    let scene = Scene::holding().await;
    let owner = scene.workspace.owner.clone();
    let verifying = scene.begin(&owner).await;
    owner.delete(&scene.path).await.assert_empty(204);
    // A new domain with the same name is a different domain.
    let (again, path) = add(&scene.workspace, "corp.example").await;
    assert_ne!(again["verification_challenge"], scene.domain["verification_challenge"]);
    scene.dns.let_go();
    verifying.await.expect("an answer").assert_not_found("Not found.");
    owner.get(&path).await.assert_is(200, again);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn organization_deleted_during_the_lookup_returns_404() {
    let scene = Scene::holding().await;
    let owner = scene.workspace.owner.clone();
    let verifying = scene.begin(&owner).await;
    owner.delete(&scene.workspace.organization("")).await.assert_empty(204);
    scene.dns.let_go();
    verifying.await.expect("an answer").assert_not_found("Organization not found.");
}

#[tokio::test]
async fn level_lowered_during_the_lookup_rejects_the_verification() {
    let scene = Scene::holding().await;
    let verifying = scene.begin(&scene.workspace.member("ada", Level::Admin).await).await;
    let uuid = scene.workspace.uuid("ada@corp.example").await;
    let path = scene.workspace.organization(&format!("members/{uuid}/"));
    scene.workspace.owner.patch(&path, json!({ "level": 1 })).await.ok();
    scene.dns.let_go();
    verifying.await.expect("an answer").assert_denied(TOO_LOW);
    scene.is_unchanged().await;
    scene.workspace.assert_file_valid().await;
}
