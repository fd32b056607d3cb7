//! The SMTP client: it sends one mail and returns the server's reply.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use tokio_rustls::TlsConnector;

use crate::base::error::{Error, Result};
use crate::base::tasks::spawn;
use crate::base::time::Timestamp;
use crate::config::{INVALID_CONFIGURATION, MailConfig, Protection, SmtpUrl};
use crate::ids::OutboxMessageId;
use crate::net::trust_anchors::{client_config, read_certificates, system_certificates};

use super::compose::{MailContent, NOT_COMPOSED, format_mail, to_ascii_address};
use super::mailbox::mask_all;
use super::transport::{MailAddress, MailTransport};
use super::wire::{self, Failure, SendError};

/// The timeout of the last reply, as a multiple of the usual one. It is longer, because the server may send a mail on
/// even if this reply does not arrive in time.
const FINAL_REPLY_FACTOR: u32 = 4;
/// The time limit for closing a connection.
const QUIT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of characters of a server's reply that are shown.
const MAX_REPLY_LENGTH: usize = 300;
/// The reasons of failed attempts for the members of an organization. They tell nothing about the mail server.
const NO_CONNECTION: &str = "The connection to the mail server failed.";
const NO_REPLY: &str = "The mail server did not reply in time.";

/// A client of one SMTP server.
pub(super) struct SmtpClient {
    url: SmtpUrl,
    tls: Option<TlsConnector>,
    credentials: Option<Credentials>,
    /// Texts that are masked in the server's replies.
    secrets: Vec<String>,
    from: Mailbox,
    hello: ClientId,
    timeout: Duration,
}

impl MailTransport for SmtpClient {
    fn server(&self) -> String {
        self.url.server()
    }

    fn send<'m>(
        &'m self,
        id: OutboxMessageId,
        to: MailAddress,
        message: &'m MailContent,
        now: Timestamp,
    ) -> BoxFuture<'m, Result<String, SendError>> {
        self.deliver(id, to, message, now).boxed()
    }
}

impl SmtpClient {
    /// Creates the client that `config` describes, or `None` if it names no server.
    ///
    /// # Errors
    /// One line for the operator if the sender, the password file or the file of the certificate authority is invalid.
    pub(super) fn new(config: &MailConfig) -> Result<Option<Self>> {
        let Some(url) = config.smtp_url.clone() else { return Ok(None) };
        let from = parse_sender(config.smtp_from.as_deref().unwrap_or_default())?;
        let tls = match url.protection {
            Protection::Tls | Protection::StartTls => Some(tls_connector(config)?),
            Protection::None => None,
        };
        let password = match &config.smtp_password_file {
            Some(path) => Some(read_password(path)?),
            None => url.password.clone(),
        };
        let (credentials, secrets) = match (&url.user, password) {
            (Some(user), Some(password)) => {
                let secrets = secrets_to_redact(user, &password);
                (Some(Credentials::new(user.clone(), password)), secrets)
            }
            (None, None) => (None, Vec::new()),
            (Some(_), None) => {
                return Err(config_error("--smtp-url has a user; add --smtp-password-file"));
            }
            (None, Some(_)) => {
                return Err(config_error("--smtp-password-file needs a user in --smtp-url"));
            }
        };
        let hello = ClientId::Domain(from.email.domain().to_owned());
        let timeout = config.smtp_timeout;
        Ok(Some(Self { url, tls, credentials, secrets, from, hello, timeout }))
    }

    async fn deliver(
        &self,
        id: OutboxMessageId,
        to: MailAddress,
        message: &MailContent,
        now: Timestamp,
    ) -> Result<String, SendError> {
        let mail = format_mail(id, &self.from, &to, message, now);
        let mail =
            mail.map_err(|error| SendError::not_delivered(error.to_string(), NOT_COMPOSED))?;
        let timeout = self.timeout;
        let announced = self.within(timeout, self.begin_transaction(to)).await;
        let mut connection =
            announced.map_err(|failure| SendError { may_be_delivered: false, ..failure })?;
        let content = async { connection.message(&mail).await.map_err(Failure::Mail) };
        let accepted = self.within(timeout * FINAL_REPLY_FACTOR, content).await;
        quit(connection);
        accepted.map(|accepted| {
            let lines = accepted.message().collect::<Vec<_>>().join(" ");
            self.sanitize_reply(&format!("{} {lines}", accepted.code()))
        })
    }

    /// Connects, signs in and sends the envelope, until the server is ready for the content.
    async fn begin_transaction(&self, to: MailAddress) -> Result<AsyncSmtpConnection, Failure> {
        let from = self.from.email.clone();
        let mut connection = self.connect().await?;
        let announced = async {
            connection.command(Mail::new(Some(from), Vec::new())).await?;
            connection.command(Rcpt::new(to, Vec::new())).await?;
            connection.command(Data).await
        };
        match announced.await {
            Ok(_) => Ok(connection),
            Err(trouble) => {
                quit(connection);
                Err(Failure::Mail(trouble))
            }
        }
    }

    /// Connects and signs in.
    async fn connect(&self) -> Result<AsyncSmtpConnection, Failure> {
        let Self { url, tls, credentials, hello, .. } = self;
        let mut connection = wire::connect(url, tls.as_ref(), hello).await?;
        if let Some(credentials) = credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await?;
        }
        Ok(connection)
    }

    /// Runs a part of the SMTP dialogue with a time limit. Without a reply, the outcome is unsure.
    async fn within<T>(
        &self,
        time: Duration,
        piece: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, SendError> {
        let (said, reason, may_be_delivered) = match tokio::time::timeout(time, piece).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(failure)) => {
                let text = failure.text();
                let (line, unsure) = match failure.status() {
                    Some(code) => (format!("{code} {text}"), false),
                    None => (format!("{}: {text}", self.server()), true),
                };
                (line, self.public_reason(&failure), unsure)
            }
            Err(_) => {
                let time = humantime::format_duration(time);
                (format!("{} took longer than {time}", self.server()), NO_REPLY.to_owned(), true)
            }
        };
        Err(SendError { line: self.sanitize_reply(&said), reason, may_be_delivered })
    }

    /// Returns the reason of a failure for the members of an organization: the server's reply, if it is about the mail.
    /// Other replies tell about the operator's account.
    fn public_reason(&self, failure: &Failure) -> String {
        match (failure, failure.status()) {
            (Failure::Mail(_), Some(code)) => {
                let said = self.hide_secrets(&format!("{code} {}", failure.text()));
                to_short_line(&mask_all(&said))
            }
            _ => NO_CONNECTION.to_owned(),
        }
    }

    /// Formats a server's reply as one line of limited length, without control characters and secrets.
    fn sanitize_reply(&self, said: &str) -> String {
        to_short_line(&self.hide_secrets(said))
    }

    fn hide_secrets(&self, said: &str) -> String {
        let hide = |line: String, secret: &String| line.replace(secret.as_str(), "[secret]");
        self.secrets.iter().fold(said.to_owned(), hide)
    }
}

fn to_short_line(text: &str) -> String {
    text.replace(char::is_control, " ").chars().take(MAX_REPLY_LENGTH).collect()
}

/// Closes the connection in the background.
///
/// lettre waits for the reply to QUIT before it returns the outcome. With a server that is slow to reply, an accepted
/// mail would then count as failed and be sent twice.
fn quit(mut connection: AsyncSmtpConnection) {
    spawn(async move {
        let _ = tokio::time::timeout(QUIT_TIMEOUT, connection.abort()).await;
    });
}

fn config_error(why: impl Display) -> Error {
    Error::invalid(INVALID_CONFIGURATION, why.to_string())
}

/// Parses the sender into a form that headers and envelopes can hold.
fn parse_sender(text: &str) -> Result<Mailbox> {
    let wrong =
        || config_error("--smtp-from is not an address such as 'Steward <steward@example.org>'");
    let written: Mailbox = text.parse().map_err(|_| wrong())?;
    let email = to_ascii_address(written.email.as_ref()).ok_or_else(wrong)?;
    match written.name {
        Some(name) if name.contains(char::is_control) => Err(wrong()),
        name => Ok(Mailbox::new(name, email)),
    }
}

fn read_password(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        config_error(format_args!("cannot read --smtp-password-file {}: {error}", path.display()))
    })?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Returns the password in plain form and in the encodings of SMTP authentication.
fn secrets_to_redact(user: &str, password: &str) -> Vec<String> {
    let plain = STANDARD.encode(format!("\0{user}\0{password}"));
    let secrets = vec![plain, STANDARD.encode(password), password.to_owned()];
    secrets.into_iter().filter(|secret| !secret.is_empty()).collect()
}

/// Trusts the system's certificate authorities, and the certificates in `--smtp-ca-file`.
fn tls_connector(config: &MailConfig) -> Result<TlsConnector> {
    let path = config.smtp_ca_file.as_deref();
    let unusable = |why: String| {
        let shown = path.map(|path| format!(" {}", path.display())).unwrap_or_default();
        config_error(format_args!("cannot use --smtp-ca-file{shown}: {why}"))
    };
    let named = path.map(read_certificates).transpose().map_err(unusable)?;
    let tls = client_config(system_certificates(), named.unwrap_or_default(), None);
    Ok(Arc::new(tls.map_err(unusable)?).into())
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    use super::*;

    fn config(url: &str, from: &str) -> MailConfig {
        let smtp_url = Some(url.parse().unwrap());
        MailConfig { smtp_url, smtp_from: Some(from.to_owned()), ..Config::default().mail }
    }

    fn refusal(config: &MailConfig) -> String {
        SmtpClient::new(config).err().expect("a refusal").to_string()
    }

    #[test]
    fn smtp_from_must_be_a_valid_address() {
        for (text, shown) in [
            ("a@example.org", "a@example.org"),
            ("Steward <a@example.org>", "Steward <a@example.org>"),
            ("\"Team, Küche\" <a@bücher.example>", "\"Team, Küche\" <a@xn--bcher-kva.example>"),
            ("a@localhost", "a@localhost"),
        ] {
            let read = parse_sender(text).map(|sender| sender.to_string());
            assert_eq!(read.ok().as_deref(), Some(shown), "{text}");
        }
        for text in
            ["", "Steward", "a@", "ä@example.org", "a@example.org, b@example.org", "a\r\nb@c.de"]
        {
            let refused = refusal(&config("smtp://localhost", text));
            assert!(refused.starts_with("--smtp-from is not an address"), "{text}: {refused}");
        }
    }

    #[test]
    fn smtp_user_requires_a_password_and_vice_versa() {
        let refused = refusal(&config("smtp://ann@localhost", "a@example.org"));
        assert_eq!(refused, "--smtp-url has a user; add --smtp-password-file");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "hunter2\n").unwrap();
        let mut config = config("smtp://localhost", "a@example.org");
        config.smtp_password_file = Some(file.clone());
        assert_eq!(refusal(&config), "--smtp-password-file needs a user in --smtp-url");
        config.smtp_password_file = Some(folder.path().join("none"));
        let refused = refusal(&config);
        assert!(refused.starts_with("cannot read --smtp-password-file /"), "{refused}");
    }

    #[test]
    fn password_file_loses_only_its_last_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        for (text, read) in [("a b \n", "a b "), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a")] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(read_password(&file).unwrap(), read);
        }
        std::fs::write(&file, b"\xff\n").unwrap();
        assert!(read_password(&file).unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn smtp_ca_file_must_contain_a_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let mut config = config("smtps://localhost", "a@example.org");
        config.smtp_ca_file = Some(file.clone());
        for text in
            ["", "hunter2", "-----BEGIN CERTIFICATE-----\naGk=\n-----END CERTIFICATE-----\n"]
        {
            std::fs::write(&file, text).unwrap();
            let refused = refusal(&config);
            assert!(refused.contains("--smtp-ca-file"), "{refused}");
            assert!(!refused.contains('\n') && !refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn smtp_reply_is_sanitized_to_one_short_line_without_secrets() {
        let client = SmtpClient::new(&config("smtp://ann:hunter2@localhost", "a@example.org"));
        let client = client.unwrap().unwrap();
        let plain = STANDARD.encode("\0ann\0hunter2");
        let said = format!("535 no\r\n hunter2 {plain} {} \u{1b}[31m", STANDARD.encode("hunter2"));
        assert_eq!(client.sanitize_reply(&said), "535 no   [secret] [secret] [secret]  [31m");
        assert_eq!(client.sanitize_reply(&"é".repeat(1000)).chars().count(), MAX_REPLY_LENGTH);
    }
}
