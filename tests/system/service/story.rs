//! An organization from end to end, with the real binary, a real DNS server and a real mail server.

use serde_json::{Value, json};

use crate::support::dns::{Dns, Reply};
use crate::support::process::{DataFolder, Reply as Answer};
use crate::support::smtp::MailServer;

/// Prints a step, if the test runs with `--nocapture`.
fn tell(what: &str, answer: &Value) {
    println!("{what}\n    {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn domain_is_verified_and_a_user_joins_by_mail() {
    let dns = Dns::start().await;
    let mut mail = MailServer::start();
    let (site, made) = DataFolder::with_workspace();
    let (resolver, url) = (dns.address().to_string(), mail.url());
    let from = ["--smtp-url", &url, "--smtp-from", "Steward <steward@corp.example>"];
    let server = site.serve(&[&["--dns-resolver", &resolver][..], &from].concat());
    let key = made["api_key"].as_str().expect("a key").to_owned();
    let organization =
        format!("/api/organizations/{}/", made["organization_id"].as_str().expect("an id"));
    let at = |rest: &str| format!("{organization}{rest}");
    let call = |method: &str, path: &str, body: Option<&Value>| -> Answer {
        server.send(method, path, &key, body)
    };

    let domain = call("POST", &at("domains/"), Some(&json!({ "domain": "corp.example" }))).ok();
    tell("POST domains/", &domain);
    let one = at(&format!("domains/{}/", domain["id"].as_str().expect("an id")));
    let sso = json!({ "sso_enforcement": "google-oauth2" });
    let early = call("PATCH", &one, Some(&sso));
    assert_eq!((early.status, &early.json()["code"]), (400, &json!("verification_required")));
    tell("PATCH sso_enforcement, unverified", &early.json());

    let challenge = domain["verification_challenge"].as_str().expect("a challenge");
    dns.set("_posthog-challenge.corp.example.", Reply::texts(&[&[challenge]]));
    assert_eq!(call("POST", &format!("{one}verify/"), None).status, 200);
    let verified = call("GET", &one, None).ok();
    assert_eq!(verified["is_verified"], true);
    tell("POST verify/, GET", &verified);
    let enforced = call("PATCH", &one, Some(&sso)).ok();
    assert_eq!(enforced["sso_enforcement"], "google-oauth2");

    let sent = json!({ "target_email": "ann@corp.example", "first_name": "Ann", "level": 8, "message": "Welcome!" });
    let invite = call("POST", &at("invites/"), Some(&sent)).ok();
    assert_eq!(invite["emailing_attempt_made"], true);
    tell("POST invites/", &invite);
    let mail_sent = mail.mail().await;
    let text = mail_sent.parsed().body_text(0).expect("a text").into_owned();
    println!("the mail to {:?}\n{text}", mail_sent.to);
    let link = text.lines().find(|line| line.contains("/signup/")).expect("a link").trim();
    assert!(link.starts_with(&format!("http://{}/signup/", server.address)), "{link}");
    let (path, token) = link.split_once("?token=").expect("a token");
    let path = format!("/api/signup/{}/", path.rsplit('/').next().expect("an id"));

    let joined = server.post(&path, "", &json!({ "token": token, "first_name": "Ann" })).ok();
    let shown = json!([joined["email"], joined["is_email_verified"]]);
    assert_eq!(shown, json!(["ann@corp.example", true]));
    tell("POST signup/", &joined);
    let new = joined["personal_api_key"]["value"].as_str().expect("a key");
    let me = server.get("/api/users/@me/", new).ok();
    assert_eq!(me["organization"]["membership_level"], 8);
    assert_eq!(mail.mail().await.subject(), "Ann has joined Corp");
    let log = server.stop();
    assert!(!log.contains(token) && !log.contains(new), "the log contains a secret");
    site.check();
}
