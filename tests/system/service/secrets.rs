//! Secrets never appear in the log, not even at the `trace` level, in metrics, or in responses to other callers.
//! `secrets rotate` replaces them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::process::{Connection, DataFolder, Server, own_address};
use crate::support::smtp::{MailServer, Setup};

const SMTP_PASSWORD: &str = "SECRET-smtp-password-93";

/// A server that logs at the `trace` level, and all secrets that it has seen.
struct Walk {
    site: DataFolder,
    server: Server,
    numbers: String,
    owner: String,
    organization: String,
    project: Value,
    secrets: Vec<(&'static str, String)>,
    /// Response bodies, each with the index of the secret that the request contained.
    heard: Vec<(usize, String)>,
}

impl Walk {
    fn new(format: &str, mails: &MailServer) -> Self {
        let (site, made) = DataFolder::with_workspace();
        let numbers = own_address().to_string();
        let smtp = format!("smtp://steward:{SMTP_PASSWORD}@{}", mails.address);
        let args = ["--log", "trace", "--log-format", format, "--metrics-listen", &numbers];
        let mail = ["--smtp-url", &smtp, "--smtp-from", "Steward <steward@corp.example>"];
        let server = site.serve(&[&args[..], &mail].concat());
        let owner = made["api_key"].as_str().expect("a key").to_owned();
        let secrets = vec![("smtp password", SMTP_PASSWORD.to_owned()), ("key", owner.clone())];
        let organization = made["organization_id"].as_str().expect("an id").to_owned();
        let project = made["project_id"].clone();
        Self { site, server, numbers, owner, organization, project, secrets, heard: Vec::new() }
    }

    #[track_caller]
    fn does(&self, method: &str, path: &str, body: Value) -> Value {
        self.server.send(method, path, &self.owner, Some(&body)).ok()
    }

    /// Records the secret in a member of a response.
    #[track_caller]
    fn note(&mut self, kind: &'static str, answer: &Value, member: &str) -> String {
        let text = answer[member].as_str().unwrap_or_else(|| panic!("{kind}: {answer}"));
        let secret = text.split_once("?token=").map_or(text, |(_, token)| token).to_owned();
        assert!(secret.len() > 15, "{kind}: {secret}");
        self.secrets.push((kind, secret.clone()));
        secret
    }

    /// Sends a request that contains the secret at index `place`, and records the response body.
    fn sends(&mut self, place: usize, request: &str) {
        let mut connection = Connection::open(self.server.address).expect("a connection");
        connection.write(request).expect("sent");
        if let Ok(reply) = connection.reply() {
            self.heard.push((place, String::from_utf8_lossy(&reply.body).into_owned()));
        }
    }
}

/// Creates API keys in all possible ways.
fn keys(walk: &mut Walk) {
    let sent = json!({ "label": "a", "scopes": ["*"] });
    let made = walk.does("POST", "/api/personal_api_keys/", sent);
    walk.note("made key", &made, "value");
    let path = format!("/api/personal_api_keys/{}/roll/", made["id"].as_str().expect("an id"));
    let rolled = walk.does("POST", &path, json!({ "grace_seconds": 60 }));
    walk.note("rolled key", &rolled, "value");
    let args = ["key", "create", "--email", "owner@corp.example", "--label", "b", "--scope", "*"];
    let made = walk.site.json(&args);
    walk.note("operator's key", &made, "value");
    assert!(walk.server.get("/api/users/@me/", &walk.owner).ok()["uuid"].is_string());
}

/// Creates invites with and without a mail, and accepts one of them.
fn invites(walk: &mut Walk, mails: &mut MailServer) {
    let path = format!("/api/organizations/{}/invites/", walk.organization);
    let sent = json!({ "target_email": "ann@x.example", "send_email": false });
    let made = walk.does("POST", &path, sent);
    let token = walk.note("invite's token", &made, "accept_url");
    let signup = format!("/api/signup/{}/", made["id"].as_str().expect("an id"));
    walk.server.get(&format!("/signup/{}?token={token}", made["id"].as_str().expect("an id")), "");
    walk.server.get(&format!("{signup}?token={token}"), "");
    walk.server.post(&signup, "", &json!({ "token": token, "first_name": [] }));
    let joined =
        walk.server.post(&signup, "", &json!({ "token": token, "first_name": "Ann" })).ok();
    walk.note("newcomer's key", &joined["personal_api_key"], "value");
    let made = walk.does("POST", &path, json!({ "target_email": "bob@x.example" }));
    let link = walk.site.json(&["invite", "link", made["id"].as_str().expect("an id")]);
    walk.note("handed link", &link, "accept_url");
    // The first mail notifies the owner of the new member.
    let token = (0..2).find_map(|_| {
        let mail = mails.mail_now();
        let text = mail.parsed().body_text(0)?.into_owned();
        let (_, rest) = text.split_once("?token=")?;
        Some(rest.split_whitespace().next()?.to_owned())
    });
    walk.secrets.push(("mailed token", token.expect("a mail with a link")));
}

/// Shares a dashboard, and opens its page with the old token and the new one.
fn shares(walk: &mut Walk) {
    let dashboards = format!("/api/projects/{}/dashboards/", walk.project);
    let made = walk.does("POST", &dashboards, json!({ "name": "D" }));
    let sharing = format!("{dashboards}{}/sharing/", made["id"]);
    let shown = walk.server.get(&sharing, &walk.owner).ok();
    walk.note("unused sharing token", &shown, "access_token");
    let on = walk.does("PATCH", &sharing, json!({ "enabled": true }));
    let old = walk.note("sharing token", &on, "access_token");
    let new = walk.does("POST", &format!("{sharing}refresh/"), json!({}));
    let new = walk.note("new sharing token", &new, "access_token");
    for token in [old, new] {
        assert_eq!(walk.server.get(&format!("/shared/{token}"), "").status, 200);
        assert_eq!(walk.server.get(&format!("/shared/{token}.json"), "").status, 200);
    }
}

/// Stores secrets of other services.
fn keeps(walk: &mut Walk) {
    let project = format!("/api/projects/{}/", walk.project);
    let hook = "https://hooks.example/SECRET-slack-webhook-5512";
    let shown = walk.does("PATCH", &project, json!({ "slack_incoming_webhook": hook }));
    walk.secrets.push(("webhook", hook.to_owned()));
    walk.note("project's token", &shown, "api_token");
    walk.note("live events token", &shown, "live_events_token");
    let secret = "SECRET-export-token-41887";
    walk.secrets.push(("export's token", secret.to_owned()));
    let exports = format!("{project}batch_exports/");
    let to = |config: Value| json!({ "name": "E", "interval": "day", "destination": { "type": "HTTP", "config": config } });
    walk.does("POST", &exports, to(json!({ "url": "https://in.example", "token": secret })));
    for wrong in [json!({ "token": secret }), json!({ "url": 7, "token": [secret] }), json!(secret)]
    {
        assert_eq!(walk.server.post(&exports, &walk.owner, &to(wrong)).status, 400);
    }
}

/// Returns requests that contain `secret`, in the right place and in wrong ones.
fn requests(secret: &str, project: &Value) -> Vec<String> {
    let line = |method: &str, path: &str, headers: &str, body: &str| {
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
    };
    let list = format!("/api/projects/{project}/dashboards/");
    let json_type = "Content-Type: application/json\r\n";
    let quoted = secret.replace('/', "%2F").replace(':', "%3A");
    let mut requests = vec![
        line("GET", &format!("{list}?personal_api_key={quoted}&search={quoted}"), "", ""),
        line("GET", &format!("/api/projects/{quoted}/dashboards/{quoted}/"), "", ""),
        line("GET", &format!("/shared/{quoted}.json?x={quoted}"), "", ""),
        line("GET", &format!("/{quoted}"), "", ""),
        line("GET", &format!("/api/signup/{quoted}/?token={quoted}"), "", ""),
        line("POST", &list, json_type, &format!("{{\"name\": {secret}")),
        line("POST", "/api/signup/1/", json_type, &json!({ "token": secret }).to_string()),
        line("POST", &list, "Content-Type: text/plain\r\n", secret),
        line("GET", "/_livez", &format!("Host: {secret}\r\n"), ""),
        format!("GET /{secret} HTTP/9.9\r\n\r\n"),
        format!("{secret}\r\n\r\n"),
    ];
    for header in [
        "Authorization: Bearer ",
        "Authorization: Bearer  x",
        "Authorization: Token ",
        "Authorization: ",
        "Cookie: session=",
        "Idempotency-Key: ",
        "If-None-Match: ",
        "If-Match: ",
        "Origin: https://",
        "Referer: https://a.example/?token=",
        "User-Agent: ",
        "X-Forwarded-For: ",
        "Accept: ",
        "Expect: ",
    ] {
        requests.push(line("GET", &list, &format!("{header}{secret}\r\n"), ""));
        let headers = format!("{json_type}{header}{secret}\r\n");
        requests.push(line("PATCH", "/api/users/@me/", &headers, "{"));
    }
    let bearer = format!("{json_type}Authorization: Bearer {secret}\r\n");
    let board = json!({ "name": [secret], "tags": secret }).to_string();
    requests.push(line("POST", &list, &bearer, &board));
    let key = json!({ "label": secret }).to_string();
    requests.push(line("POST", "/api/personal_api_keys/", &bearer, &key));
    requests
}

/// Returns the forms in which a secret may appear.
fn spelled(secret: &str) -> [String; 3] {
    // Also without the prefix that all keys have.
    let core = secret[secret.len() - secret.len().min(20)..].to_owned();
    [secret.to_owned(), core, STANDARD.encode(secret).trim_end_matches('=').to_owned()]
}

#[test]
fn no_secret_appears_in_logs_metrics_or_other_responses() {
    for format in ["json", "text"] {
        let user = Some(("steward", SMTP_PASSWORD));
        let mut mails = MailServer::with(Setup { user, ..Setup::default() });
        let mut walk = Walk::new(format, &mails);
        keys(&mut walk);
        invites(&mut walk, &mut mails);
        shares(&mut walk);
        keeps(&mut walk);
        assert_eq!(walk.secrets.len(), 16, "{:?}", walk.secrets);
        for (place, (_, secret)) in walk.secrets.clone().iter().enumerate() {
            for request in requests(secret, &walk.project) {
                walk.sends(place, &request);
            }
        }
        let mut numbers =
            Connection::open(walk.numbers.parse().expect("an address")).expect("open");
        numbers.write("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        let numbers = String::from_utf8(numbers.reply().expect("an answer").body).expect("text");
        assert!(numbers.contains("steward_http_requests_total{"), "{numbers}");
        let Walk { server, heard, secrets, .. } = walk;
        let log = server.stop();
        assert!(log.contains("/shared/{token}") && log.contains("DEBUG"), "no DEBUG lines");
        assert!(heard.len() > 400, "{}", heard.len());
        for (place, (kind, secret)) in secrets.iter().enumerate() {
            for text in spelled(secret) {
                let line = log.lines().find(|line| line.contains(&text));
                assert!(line.is_none(), "{kind} in the log: {line:?}");
                assert!(!numbers.contains(&text), "{kind} in the metrics");
                let others = heard.iter().find(|(of, body)| *of != place && body.contains(&text));
                assert!(others.is_none(), "{kind} in {others:?}");
            }
        }
    }
}

#[test]
fn secret_rotation_works_with_and_without_a_running_server() {
    let (site, _) = DataFolder::with_workspace();
    let renewed = ["invite links", "public pages", "live events tokens", "console sessions"];
    let told = json!({ "renewed": renewed, "public_pages": 0 });
    let server = site.serve(&[]);
    assert_eq!(site.json(&["secrets", "rotate"]), told);
    assert!(!server.stop().contains("ERROR"));
    assert_eq!(site.json(&["secrets", "rotate"]), told);
    let text = site.run(&["secrets", "rotate"]).ok();
    assert!(text.contains("public_pages  0"), "{text}");
    site.run(&["secrets"]).assert_usage_error("rotate");
    site.check();
}
