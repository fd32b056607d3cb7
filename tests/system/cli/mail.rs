//! Tests of the SMTP client with a real connection, and of `steward mail test` with the real binary.

use steward::testing::config::MailConfig;
use steward::testing::ids::OutboxMessageId;
use steward::testing::mail::{MailContent, MailKind, Mailer, SendError};
use tempfile::TempDir;
use tokio_rustls::rustls::ServerConfig;
use uuid::Uuid;

use crate::prelude::*;
use crate::support::smtp::{Authority, ServerBehavior, Setup, certify_itself};

const NOW: Timestamp = Timestamp::from_micros(1_735_787_045_678_901);
const ID: OutboxMessageId =
    OutboxMessageId(Uuid::from_u128(0x0194_0000_0000_7000_8000_0000_0000_0001));
const PASSWORD: &str = "correct/horse battery";
const USER: (&str, &str) = ("ann@corp.example", PASSWORD);
/// The user and the password, encoded for a URL.
const SIGNED_IN: &str = "ann%40corp.example:correct%2Fhorse%20battery";

fn message() -> MailContent {
    MailContent {
        kind: MailKind::Test,
        link: None,
        subject: "Grüße".to_owned(),
        text: "Schöne Grüße.\n.\nEnde".to_owned(),
        html: "<p>Schöne Grüße.</p>".to_owned(),
    }
}

fn config(url: &str) -> MailConfig {
    let mut mail = Config::default().mail;
    mail.smtp_url = Some(url.parse().expect("a URL"));
    mail.smtp_from = Some("Küche <steward@bücher.example>".to_owned());
    mail.smtp_timeout = TEST_TIMEOUT;
    mail
}

/// Sends the message with this configuration.
async fn send_to(to: &str, config: &MailConfig) -> Result<String, SendError> {
    let mailer = Mailer::new(config).expect("it can be used").expect("a server is named");
    mailer.send(ID, to, &message(), NOW).await
}

async fn send(config: &MailConfig) -> Result<String, SendError> {
    send_to("bob@corp.example", config).await
}

/// Returns the error that the log would contain.
async fn failure(config: &MailConfig) -> String {
    let failure = send(config).await.expect_err("it is not sent").to_string();
    assert!(!failure.contains('\n') && !failure.contains(PASSWORD), "{failure}");
    failure
}

/// A mail server with TLS, from the start or after STARTTLS, and with authentication; and a file with the certificate
/// authority that signed its certificate.
struct Secured {
    server: MailServer,
    scheme: &'static str,
    authority: PathBuf,
    _folder: TempDir,
}

impl Secured {
    fn new(scheme: &'static str, name: &str) -> Self {
        let authority = Authority::new();
        let setup = Setup { user: Some(USER), ..Setup::default() };
        Self::with((authority.certify(name), &authority.pem), scheme, setup)
    }

    fn with((config, pem): (Arc<ServerConfig>, &str), scheme: &'static str, setup: Setup) -> Self {
        let server = MailServer::with(Setup { tls: Some((config, scheme == "smtps")), ..setup });
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("ca.pem");
        fs::write(&path, format!("Some words before.\n{pem}")).unwrap();
        Self { server, scheme, authority: path, _folder: folder }
    }

    /// Returns a configuration that trusts the server's certificate authority.
    fn config(&self) -> MailConfig {
        self.config_with(SIGNED_IN)
    }

    fn config_with(&self, signed_in: &str) -> MailConfig {
        let port = self.server.address.port();
        let required = if self.scheme == "smtp" { "?tls=required" } else { "" };
        let url = format!("{}://{signed_in}@localhost:{port}{required}", self.scheme);
        let mut config = config(&url);
        config.smtp_ca_file = Some(self.authority.clone());
        config
    }
}

#[tokio::test]
async fn mail_has_text_and_html_parts_and_standard_headers() {
    let mut server = MailServer::start();
    let reply = send_to("Bob@corp.example", &config(&server.url())).await;
    assert_eq!(reply, Ok("250 2.0.0 taken".to_owned()));
    let mail = server.mail().await;
    assert_eq!(mail.to, ["Bob@corp.example"]);
    assert_eq!(mail.from, "steward@xn--bcher-kva.example");
    assert_eq!(mail.hello, "xn--bcher-kva.example");
    assert_eq!((mail.encrypted, mail.user.as_ref()), (false, None));
    assert!(mail.data.is_ascii());
    let parsed = mail.parsed();
    assert_eq!(parsed.subject(), Some("Grüße"));
    assert_eq!(parsed.body_text(0).unwrap().replace("\r\n", "\n").trim_end(), message().text);
    assert_eq!(parsed.body_html(0).unwrap().trim_end(), message().html);
    let id = format!("{ID}@xn--bcher-kva.example");
    assert_eq!(parsed.message_id(), Some(id.as_str()));
    assert_eq!(parsed.date().unwrap().to_rfc3339(), "2025-01-02T03:04:05Z");
    let from = parsed.from().unwrap().first().unwrap();
    assert_eq!((from.name(), from.address()), (Some("Küche"), Some(mail.from.as_str())));
    assert_eq!(parsed.to().unwrap().first().unwrap().address(), Some("Bob@corp.example"));
    assert_eq!(parsed.header_raw("Auto-Submitted").unwrap().trim(), "auto-generated");
    let kind = parsed.header_raw("Content-Type").unwrap().trim();
    assert!(kind.starts_with("multipart/alternative;"), "{kind}");
    for part in 0..2 {
        let part = &parsed.parts[part + 1];
        let kind = part.headers.iter().find(|header| header.name() == "Content-Type").unwrap();
        assert_eq!(kind.value().as_content_type().unwrap().attribute("charset"), Some("utf-8"));
    }
}

#[tokio::test]
async fn internationalized_recipient_domain_is_sent_in_ascii() {
    let mut server = MailServer::start();
    send_to("bob@Straße.example", &config(&server.url())).await.expect("it is sent");
    let mail = server.mail().await;
    assert_eq!(mail.to, ["bob@xn--strae-oqa.example"]);
    assert_eq!(mail.parsed().to().unwrap().first().unwrap().address(), Some(mail.to[0].as_str()));
}

#[tokio::test]
async fn address_with_line_breaks_is_not_used() {
    let server = MailServer::start();
    for to in [
        "",
        "bob",
        "bob@",
        "bøb@corp.example",
        "bob>\r\nRCPT TO:<eve@corp.example",
        "\"b\r\nc\"@corp.example",
        "bob@corp.example\r\nX: y",
    ] {
        let failure = send_to(to, &config(&server.url())).await.expect_err(to);
        assert_eq!(failure.to_string(), "the address cannot be used in a mail");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn implicit_tls_and_starttls_work_with_the_configured_ca() {
    for scheme in ["smtps", "smtp"] {
        let authority = Authority::new();
        let signed = || (authority.certify("localhost"), authority.pem.clone());
        // The file may also have the certificate of the server itself, and servers may write keywords in lower case.
        for ((tls, pem), login_only, lower_case) in [
            (signed(), false, false),
            (signed(), true, false),
            (signed(), false, true),
            (certify_itself("localhost"), false, false),
        ] {
            let setup = Setup { user: Some(USER), login_only, lower_case, ..Setup::default() };
            let mut secured = Secured::with((tls, &pem), scheme, setup);
            assert_eq!(send(&secured.config()).await, Ok("250 2.0.0 taken".to_owned()));
            let mail = secured.server.mail().await;
            assert_eq!((mail.encrypted, mail.user.as_deref()), (true, Some(USER.0)));
            let clear =
                if scheme == "smtp" { "EHLO xn--bcher-kva.example\r\nSTARTTLS\r\n" } else { "" };
            assert_eq!(secured.server.heard_in_clear(), clear);
        }
    }
}

#[tokio::test]
async fn untrusted_or_misnamed_mail_server_receives_nothing() {
    for scheme in ["smtps", "smtp"] {
        let mut secured = Secured::new(scheme, "localhost");
        let mut unknown = secured.config();
        unknown.smtp_ca_file = None;
        let said = failure(&unknown).await;
        assert!(said.contains("invalid peer certificate: UnknownIssuer"), "{said}");
        secured.server.has_no_more();
        let mut other = Secured::new(scheme, "mail.example.org");
        let said = failure(&other.config()).await;
        assert!(said.contains("not valid for name"), "{said}");
        other.server.has_no_more();
        assert!(!other.server.heard_in_clear().contains("AUTH"));
    }
}

#[tokio::test]
async fn server_without_what_the_url_asks_for_receives_nothing() {
    let mut server = MailServer::with(Setup { user: Some(USER), ..Setup::default() });
    let port = server.address.port();
    let config_of = |scheme: &str, rest: &str| {
        config(&format!("{scheme}://{SIGNED_IN}@localhost:{port}{rest}"))
    };
    let said = failure(&config_of("smtp", "?tls=required")).await;
    assert_eq!(said, format!("localhost:{port}: STARTTLS is not supported on this server"));
    assert_eq!(server.heard_in_clear(), "EHLO xn--bcher-kva.example\r\n");
    failure(&config_of("smtps", "")).await;
    server.has_no_more();
    // A server without passwords.
    let mut server = MailServer::start();
    let said = failure(&config(&format!("smtp://{SIGNED_IN}@{}", server.address))).await;
    assert!(said.ends_with("No compatible authentication mechanism was found"), "{said}");
    server.has_no_more();
}

#[tokio::test]
async fn wrong_password_fails_and_is_hidden_in_the_error() {
    let mut secured = Secured::new("smtps", "localhost");
    let wrong = secured.config_with("ann%40corp.example:wrong%20password");
    assert_eq!(failure(&wrong).await, "535 5.7.8 [secret] is not the password of ann@corp.example");
    secured.server.has_no_more();
}

#[tokio::test]
async fn password_file_takes_precedence_over_the_url() {
    let mut secured = Secured::new("smtps", "localhost");
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    for signed_in in ["ann%40corp.example", "ann%40corp.example:wrong"] {
        let mut config = secured.config_with(signed_in);
        config.smtp_password_file = Some(file.clone());
        send(&config).await.expect("it is sent");
        assert_eq!(secured.server.mail().await.user.as_deref(), Some(USER.0));
    }
}

/// Returns the flags that configure this server.
fn flags(server: &MailServer) -> [String; 4] {
    let from = "Steward <steward@corp.example>".to_owned();
    ["--smtp-url".to_owned(), server.url(), "--smtp-from".to_owned(), from]
}

fn run(site: &DataFolder, args: &[&str], flags: &[String]) -> CommandOutput {
    CommandOutput::new(site.steward(args).args(flags).env("STEWARD_SMTP_TIMEOUT", "1h"))
}

/// The flags that configure a server that does not answer.
const ELSEWHERE: [&str; 4] = ["--smtp-url", "smtp://127.0.0.1:1", "--smtp-from", "a@corp.example"];
const TEST: [&str; 4] = ["mail", "test", "bob@corp.example", "--json"];

#[test]
fn mail_test_sends_one_mail_and_shows_the_server_reply() {
    let mut server = MailServer::start();
    let (site, _) = DataFolder::with_workspace();
    let answer = run(&site, &TEST, &flags(&server)).json();
    let address = server.address.to_string();
    let told = json!({ "to": "bob@corp.example", "server": address, "reply": "250 2.0.0 taken" });
    assert_eq!(answer, told);
    let mail = server.mail_now();
    assert_eq!(mail.to, ["bob@corp.example"]);
    assert_eq!(mail.subject(), "Test mail from Steward");
    let text = run(&site, &TEST[..3], &flags(&server)).ok();
    let server = server.address;
    let expected = format!("to      bob@corp.example\nserver  {server}\nreply   250 2.0.0 taken\n");
    assert_eq!(text, expected);
    site.check();
}

#[test]
fn mail_test_next_to_a_running_server_uses_its_configuration() {
    let mut server = MailServer::start();
    let (site, _) = DataFolder::with_workspace();
    let flags = flags(&server);
    let serving = site.serve(&flags.each_ref().map(String::as_str));
    assert_eq!(site.run(&TEST).json()["server"], server.address.to_string());
    assert_eq!(server.mail_now().to, ["bob@corp.example"]);
    run(&site, &TEST, &ELSEWHERE.map(str::to_owned)).json();
    assert_eq!(server.mail_now().to, ["bob@corp.example"]);
    server.refuse("bob@corp.example");
    site.run(&TEST).assert_failed("the mail was not sent: 550 5.1.1 <bob@corp.example> is unknown");
    serving.stop();
}

#[test]
fn mail_test_fails_with_one_line() {
    let server = MailServer::start();
    let (site, _) = DataFolder::with_workspace();
    server.refuse("bob@corp.example");
    run(&site, &TEST, &flags(&server)).assert_failed("550 5.1.1 <bob@corp.example> is unknown");
    server.next([ServerBehavior::Silent]);
    let patience = [&flags(&server)[..], &["--smtp-timeout=200ms".to_owned()]].concat();
    run(&site, &TEST, &patience)
        .assert_failed(&format!("{} took longer than 200ms", server.address));
    let nobody = ["mail", "test", "bob"];
    run(&site, &nobody, &flags(&server)).assert_failed("Enter a valid email address.");
    site.run(&TEST).assert_failed("no mail server is configured; set --smtp-url and --smtp-from");
    let serving = site.serve(&[]);
    run(&site, &TEST, &flags(&server))
        .assert_failed("no mail server is configured; set --smtp-url and --smtp-from");
    serving.stop();
}

#[test]
fn mail_test_does_not_send_queued_messages() {
    let mut server = MailServer::start();
    let Served { site, server: serving, key, .. } = Served::with(&ELSEWHERE);
    for to in ["ann@corp.example", "eva@corp.example"] {
        let invites = "/api/organizations/@current/invites/";
        serving.post(invites, &key, &json!({ "target_email": to })).ok();
    }
    serving.stop();
    run(&site, &TEST, &flags(&server)).json();
    assert_eq!(server.mail_now().subject(), "Test mail from Steward");
    let log = site.serve(&[]).stop();
    let warned = log.lines().find(|line| line.contains("the outbox has mails"));
    let warned: serde_json::Value = serde_json::from_str(warned.expect("a warning")).unwrap();
    assert_eq!((&warned["level"], &warned["waiting"]), (&json!("WARN"), &json!(2)));
}
