//! SMTP: one mail to one server, and what the server said.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lettre::address::Address;
use lettre::message::Mailbox;
use lettre::transport::smtp::Error as Trouble;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use lettre::transport::smtp::response::Response;
use url::Host;
use x509_parser::pem::Pem;

use crate::config::{MailConfig, Protection, SmtpUrl};
use crate::error::{Error, Result};
use crate::ids::LetterId;
use crate::time::Timestamp;

use super::compose::Message;
use super::mailbox::mask;
use super::mime;

/// How many times as long as for all before it the server may take for its last word on a mail: a mail that is
/// given up then may have been sent on all the same.
const LAST_WORD: u32 = 4;
/// How long the server may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);
/// How much of what a server says is passed on.
const WORDS: usize = 300;

/// Sends mails through one server. Its clones are the same mailer.
#[derive(Clone)]
pub struct Mailer(Arc<Inner>);

struct Inner {
    url: SmtpUrl,
    tls: Option<TlsParameters>,
    credentials: Option<Credentials>,
    /// What must not be passed on when a server repeats it.
    secrets: Vec<String>,
    from: Mailbox,
    hello: ClientId,
    timeout: Duration,
}

/// Why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In one line: the server's reply, or what happened on the way to it.
    line: String,
    /// Whether the server was handed the whole mail and its last word is missing: it may have sent it on.
    pub unsure: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl Failure {
    fn sure(line: impl Into<String>) -> Self {
        Self { line: line.into(), unsure: false }
    }

    /// Its line for the log, which tells no address: without that of the recipient, where the server
    /// repeated it.
    pub(super) fn without(&self, to: &str) -> String {
        let written = ascii(to).map(|address| address.to_string());
        let known = written.as_deref().into_iter().chain([to]).filter(|known| !known.is_empty());
        known.fold(self.line.clone(), |line, address| mask(&line, address))
    }
}

impl Mailer {
    /// The mailer that `config` asks for; none where it names no server.
    ///
    /// # Errors
    /// One line for the operator when the sender, the password's file or the authority's file is no good.
    pub fn new(config: &MailConfig) -> Result<Option<Self>> {
        let Some(url) = config.smtp_url.clone() else { return Ok(None) };
        let from = sender(config.smtp_from.as_deref().unwrap_or_default())?;
        let tls = match url.protection {
            Protection::Tls | Protection::StartTls => Some(trust(&url, config)?),
            Protection::None => None,
        };
        let password = match &config.smtp_password_file {
            Some(path) => Some(password(path)?),
            None => url.password.clone(),
        };
        let (credentials, secrets) = match (&url.user, password) {
            (Some(user), Some(password)) => {
                let secrets = secrets(user, &password);
                (Some(Credentials::new(user.clone(), password)), secrets)
            }
            (None, None) => (None, Vec::new()),
            (Some(_), None) => {
                return Err(refused("--smtp-url names a user; add --smtp-password-file"));
            }
            (None, Some(_)) => {
                return Err(refused("--smtp-password-file needs a user in --smtp-url"));
            }
        };
        let hello = ClientId::Domain(from.email.domain().to_owned());
        let timeout = config.smtp_timeout;
        Ok(Some(Self(Arc::new(Inner { url, tls, credentials, secrets, from, hello, timeout }))))
    }

    /// The server's host and port.
    pub fn server(&self) -> String {
        self.0.url.server()
    }

    /// Sends one mail to one address; answers the reply with which the server accepted it.
    ///
    /// # Errors
    /// When the server did not accept it, or not within the configured time.
    pub async fn send(
        &self,
        id: LetterId,
        to: &str,
        message: &Message,
        now: Timestamp,
    ) -> Result<String, Failure> {
        let to = ascii(to).ok_or_else(|| Failure::sure("no mail can go to this address"))?;
        let mail = mime::format(id, &self.0.from, &to, message, now);
        let mail = mail.map_err(|error| Failure::sure(error.to_string()))?;
        let timeout = self.0.timeout;
        let announced = self.within(timeout, self.announce(to)).await;
        let mut connection = announced.map_err(|failure| Failure { unsure: false, ..failure })?;
        let accepted = self.within(timeout * LAST_WORD, connection.message(&mail)).await;
        goodbye(connection);
        accepted.map(|accepted| self.words(&reply(&accepted)))
    }

    /// Signs in and announces a mail, up to the server's word that it may come.
    async fn announce(&self, to: Address) -> Result<AsyncSmtpConnection, Trouble> {
        let Inner { url, tls, credentials, hello, timeout, from, .. } = &*self.0;
        let (at_once, upgrade) = match url.protection {
            Protection::Tls => (tls.clone(), None),
            Protection::StartTls | Protection::None => (None, tls.clone()),
        };
        let server = (url.host.as_str(), url.port);
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(server, Some(*timeout), hello, at_once, None)
                .await?;
        if let Some(tls) = upgrade {
            connection.starttls(tls, hello).await?;
        }
        if let Some(credentials) = credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await?;
        }
        let announced = async {
            connection.command(Mail::new(Some(from.email.clone()), Vec::new())).await?;
            connection.command(Rcpt::new(to, Vec::new())).await?;
            connection.command(Data).await
        };
        match announced.await {
            Ok(_) => Ok(connection),
            Err(trouble) => {
                goodbye(connection);
                Err(trouble)
            }
        }
    }

    /// What comes of a piece of the dialogue that may take this long; without a reply nobody is sure of it.
    async fn within<T>(
        &self,
        time: Duration,
        piece: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Failure> {
        let (said, unsure) = match tokio::time::timeout(time, piece).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(trouble)) => match trouble.status() {
                Some(code) => (format!("{code} {}", cause(&trouble)), false),
                None => (format!("{}: {}", self.server(), cause(&trouble)), true),
            },
            Err(_) => {
                let time = humantime::format_duration(time);
                (format!("{} took longer than {time}", self.server()), true)
            }
        };
        Err(Failure { line: self.words(&said), unsure })
    }

    /// What a server said, in one bounded line without control characters and without secrets that it
    /// repeated.
    fn words(&self, said: &str) -> String {
        let mut line = said.to_owned();
        for secret in &self.0.secrets {
            line = line.replace(secret.as_str(), "[secret]");
        }
        line.replace(char::is_control, " ").chars().take(WORDS).collect()
    }
}

/// The mail is ASCII throughout and so are its addresses: no server needs an extension for it.
/// lettre's own way waits for the reply to QUIT before it tells what became of the mail: a server that is slow
/// then would get twice what it has accepted. So this runs aside.
fn goodbye(mut connection: AsyncSmtpConnection) {
    tokio::spawn(async move {
        let _ = tokio::time::timeout(GOODBYE, connection.abort()).await;
    });
}

fn refused(why: impl fmt::Display) -> Error {
    Error::invalid("invalid_input", why.to_string())
}

/// The sender as headers and envelopes can hold it.
fn sender(text: &str) -> Result<Mailbox> {
    let wrong = || refused("--smtp-from is no address such as 'Steward <steward@example.org>'");
    let written: Mailbox = text.parse().map_err(|_| wrong())?;
    let email = ascii(written.email.as_ref()).ok_or_else(wrong)?;
    match written.name {
        Some(name) if name.contains(char::is_control) => Err(wrong()),
        name => Ok(Mailbox::new(name, email)),
    }
}

/// `address` as every server understands it: the domain in its ASCII form. None where the local part has none.
fn ascii(address: &str) -> Option<Address> {
    let (local, domain) = address.rsplit_once('@')?;
    let domain = Host::parse(domain).ok()?.to_string();
    let writable = local.is_ascii() && !local.contains(|c: char| c.is_ascii_control());
    Address::new(local, domain).ok().filter(|_| writable)
}

fn password(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        refused(format_args!("cannot read --smtp-password-file {}: {error}", path.display()))
    })?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// The password as it is, and as it goes over the wire.
fn secrets(user: &str, password: &str) -> Vec<String> {
    let plain = STANDARD.encode(format!("\0{user}\0{password}"));
    let secrets = vec![plain, STANDARD.encode(password), password.to_owned()];
    secrets.into_iter().filter(|secret| !secret.is_empty()).collect()
}

/// Trusts the system's authorities and the one that the operator named.
fn trust(url: &SmtpUrl, config: &MailConfig) -> Result<TlsParameters> {
    let mut builder = TlsParameters::builder(url.host.clone());
    let path = config.smtp_ca_file.as_deref();
    for certificate in path.map(certificates).transpose()?.unwrap_or_default() {
        builder = builder.add_root_certificate(certificate);
    }
    builder
        .build()
        .map_err(|error| refused(format_args!("cannot use --smtp-ca-file: {}", cause(&error))))
}

fn certificates(path: &Path) -> Result<Vec<Certificate>> {
    let no_good = |why: &dyn fmt::Display| {
        refused(format_args!("cannot use --smtp-ca-file {}: {why}", path.display()))
    };
    let bytes = std::fs::read(path).map_err(|error| no_good(&error))?;
    let mut found = Vec::new();
    for pem in Pem::iter_from_buffer(&bytes) {
        let pem = pem.map_err(|error| no_good(&error))?;
        if pem.label == "CERTIFICATE" {
            found.push(Certificate::from_der(pem.contents).map_err(|error| no_good(&error))?);
        }
    }
    if found.is_empty() {
        return Err(no_good(&"there is no certificate in it"));
    }
    Ok(found)
}

fn reply(response: &Response) -> String {
    let lines = response.message().collect::<Vec<_>>();
    format!("{} {}", response.code(), lines.join(" "))
}

/// What lies at the bottom of an error: the text of the server's reply, or what is wrong with the network or a
/// certificate.
fn cause(error: &lettre::transport::smtp::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, from: &str) -> MailConfig {
        let smtp_url = Some(url.parse().unwrap());
        MailConfig { smtp_url, smtp_from: Some(from.to_owned()), ..MailConfig::default() }
    }

    fn refusal(config: &MailConfig) -> String {
        match Mailer::new(config) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it is taken"),
        }
    }

    #[test]
    fn a_sender_has_an_address_that_every_server_understands() {
        for (text, shown) in [
            ("a@example.org", "a@example.org"),
            ("Steward <a@example.org>", "Steward <a@example.org>"),
            ("\"Team, Küche\" <a@bücher.example>", "\"Team, Küche\" <a@xn--bcher-kva.example>"),
            ("a@localhost", "a@localhost"),
        ] {
            let read = sender(text).map(|sender| sender.to_string());
            assert_eq!(read.ok().as_deref(), Some(shown), "{text}");
        }
        for text in
            ["", "Steward", "a@", "ä@example.org", "a@example.org, b@example.org", "a\r\nb@c.de"]
        {
            let refused = refusal(&config("smtp://localhost", text));
            assert!(refused.starts_with("--smtp-from is no address"), "{text}: {refused}");
        }
    }

    #[test]
    fn user_and_password_come_together() {
        let refused = refusal(&config("smtp://ann@localhost", "a@example.org"));
        assert_eq!(refused, "--smtp-url names a user; add --smtp-password-file");
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
    fn a_passwords_file_loses_its_last_line_break_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        for (text, read) in [("a b \n", "a b "), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a")] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(password(&file).unwrap(), read);
        }
        std::fs::write(&file, b"\xff\n").unwrap();
        assert!(password(&file).unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn an_authoritys_file_holds_a_certificate() {
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
    fn what_a_server_says_is_one_bounded_line_without_secrets() {
        let mailer = Mailer::new(&config("smtp://ann:hunter2@localhost", "a@example.org"));
        let mailer = mailer.unwrap().unwrap();
        let plain = STANDARD.encode("\0ann\0hunter2");
        let said = format!("535 no\r\n hunter2 {plain} {} \u{1b}[31m", STANDARD.encode("hunter2"));
        assert_eq!(mailer.words(&said), "535 no   [secret] [secret] [secret]  [31m");
        assert_eq!(mailer.words(&"é".repeat(1000)).chars().count(), WORDS);
    }
}
