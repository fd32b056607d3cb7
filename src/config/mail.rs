//! The configuration of outgoing mail, and the URL of a mail server.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::{file_path, parse_duration};

/// The configuration of outgoing mail. Without a server no mail is sent.
#[derive(Debug, Clone, Args)]
#[non_exhaustive]
pub struct MailConfig {
    /// The mail server: `smtps://user@host` for TLS, or `smtp://user@host` for STARTTLS. With `smtp://`, a server on
    /// this machine is used without TLS. By default no mail is sent.
    #[arg(long, env = "STEWARD_SMTP_URL", hide_env_values = true, value_name = "URL", value_parser = SmtpUrlParser, requires = "smtp_from")]
    pub smtp_url: Option<SmtpUrl>,

    /// The sender of mails, such as 'Steward <steward@example.org>'.
    #[arg(long, env = "STEWARD_SMTP_FROM", value_name = "ADDRESS")]
    pub smtp_from: Option<String>,

    /// A file with the password for the mail server.
    #[arg(long, env = "STEWARD_SMTP_PASSWORD_FILE", value_name = "FILE", value_parser = file_path())]
    pub smtp_password_file: Option<PathBuf>,

    /// A PEM file with a certificate to trust for the mail server, its own or that of an authority, in addition to those of
    /// the system.
    #[arg(long, env = "STEWARD_SMTP_CA_FILE", value_name = "FILE", value_parser = file_path())]
    pub smtp_ca_file: Option<PathBuf>,

    /// The time limit for sending one mail.
    #[arg(long, env = "STEWARD_SMTP_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub smtp_timeout: Duration,
}

/// Parses `--smtp-url`. The error messages of clap's own parsers repeat the value, which may contain a password.
#[derive(Clone)]
struct SmtpUrlParser;

impl TypedValueParser for SmtpUrlParser {
    type Value = SmtpUrl;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<SmtpUrl, clap::Error> {
        let text = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
        text.and_then(str::parse).map_err(|why| {
            let text = format!("--smtp-url is not a mail server: {why}\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        })
    }
}

/// An SMTP server and its credentials. `Debug` and the parser's errors never contain the password.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpUrl {
    /// The server's name in ASCII, or its IP address without brackets.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// How the connection is protected.
    pub protection: Protection,
    /// The user name, if the server requires authentication.
    pub user: Option<String>,
    /// The user's password, if the URL contains it.
    pub password: Option<String>,
}

/// How a connection to a mail server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// TLS from the first byte.
    Tls,
    /// STARTTLS. If the server does not support it, nothing is sent.
    StartTls,
    /// No TLS: the server is on this machine.
    None,
}

const FORMAT_HINT: &str = "write smtps://user:password@host or smtp://user:password@host, with the special characters of \
                    user and password percent-encoded";

impl SmtpUrl {
    /// Returns host and port, as in `host:port`.
    pub fn server(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl FromStr for SmtpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("{error}; {FORMAT_HINT}"))?;
        let host = url.host_str().unwrap_or_default();
        let host = Host::parse(host).map_err(|_| format!("the URL has no host; {FORMAT_HINT}"))?;
        let protection = parse_protection(&url, &host)?;
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(format!("the URL must end after the host and port; {FORMAT_HINT}"));
        }
        let user = Some(percent_decode(url.username())?).filter(|user| !user.is_empty());
        let password = url.password().map(percent_decode).transpose()?;
        if user.is_none() && password.is_some() {
            return Err(format!("the URL has a password but no user; {FORMAT_HINT}"));
        }
        let usual = match protection {
            Protection::Tls => 465,
            Protection::StartTls => 587,
            Protection::None => 25,
        };
        let host = match host {
            Host::Domain(name) => name,
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        Ok(Self { host, port: url.port().unwrap_or(usual), protection, user, password })
    }
}

/// Plain SMTP is only for servers on this machine, and only if the URL does not ask for STARTTLS.
fn parse_protection(url: &Url, host: &Host) -> Result<Protection, String> {
    let here = match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    match (url.scheme(), url.query()) {
        ("smtps", None) => Ok(Protection::Tls),
        ("smtp", None) if here => Ok(Protection::None),
        ("smtp", None | Some("tls=required")) => Ok(Protection::StartTls),
        ("smtp" | "smtps", Some(_)) => {
            Err("the only parameter is tls=required, and only with smtp://".to_owned())
        }
        _ => Err(format!("the scheme is neither smtp:// nor smtps://; {FORMAT_HINT}")),
    }
}

fn percent_decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(String::from).map_err(|_| format!("user or password is not UTF-8; {FORMAT_HINT}"))
}

impl fmt::Debug for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmtpUrl({}, {:?})", self.server(), self.protection)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        mail: MailConfig,
    }

    fn read(args: &[&str]) -> Result<MailConfig, String> {
        let args = [&["steward"], args].concat();
        Flags::try_parse_from(args).map(|read| read.mail).map_err(|error| error.to_string())
    }

    #[test]
    fn smtp_url_requires_a_sender() {
        let refused = read(&["--smtp-url", "smtps://ann:hunter2@mail.example.org"]).unwrap_err();
        assert!(refused.contains("--smtp-from") && !refused.contains("hunter2"), "{refused}");
        let from = "Steward <steward@example.org>";
        let mail = read(&["--smtp-url", "smtp://localhost", "--smtp-from", from]).unwrap();
        assert_eq!(mail.smtp_from.as_deref(), Some(from));
    }

    #[test]
    fn rejected_smtp_url_is_not_in_the_error() {
        let from = ["--smtp-from", "a@example.org"];
        let args = [&["--smtp-url", "smtp://ann:hunter2@mail.example.org/x"], &from[..]].concat();
        let refused = read(&args).unwrap_err();
        assert!(refused.starts_with("error: --smtp-url is not a mail server: "), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }

    fn parse_url(text: &str) -> SmtpUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn smtp_scheme_and_host_determine_tls_mode_and_port() {
        use Protection::{None, StartTls, Tls};
        for (text, server, protection) in [
            ("smtps://mail.example.org", "mail.example.org:465", Tls),
            ("smtps://localhost", "localhost:465", Tls),
            ("SMTPS://Mail.Example.org:2465/", "mail.example.org:2465", Tls),
            ("smtp://mail.example.org", "mail.example.org:587", StartTls),
            ("smtp://mail.example.org:25", "mail.example.org:25", StartTls),
            ("smtp://mail.example.org?tls=required", "mail.example.org:587", StartTls),
            ("smtp://bücher.example", "xn--bcher-kva.example:587", StartTls),
            ("smtp://192.0.2.1", "192.0.2.1:587", StartTls),
            ("smtp://[2001:db8::1]:26", "[2001:db8::1]:26", StartTls),
            ("smtp://localhost.example.org", "localhost.example.org:587", StartTls),
            ("smtp://localhost", "localhost:25", None),
            ("smtp://LOCALHOST:1025", "localhost:1025", None),
            ("smtp://127.8.9.10", "127.8.9.10:25", None),
            ("smtp://[::1]", "[::1]:25", None),
            ("smtp://localhost?tls=required", "localhost:587", StartTls),
            ("smtp://127.0.0.1:2525?tls=required", "127.0.0.1:2525", StartTls),
        ] {
            let url = parse_url(text);
            assert_eq!((url.server().as_str(), url.protection), (server, protection), "{text}");
        }
    }

    #[test]
    fn smtp_user_and_password_are_percent_decoded() {
        let url = parse_url("smtps://ann%40example.org:p%3Aa%2Fs%20s%C3%A9@mail.example.org");
        assert_eq!(url.user.as_deref(), Some("ann@example.org"));
        assert_eq!(url.password.as_deref(), Some("p:a/s sé"));
        let url = parse_url("smtps://ann@mail.example.org");
        assert_eq!((url.user.as_deref(), url.password), (Some("ann"), None));
        assert_eq!(parse_url("smtps://@mail.example.org").user, None);
    }

    #[test]
    fn invalid_smtp_urls_are_rejected_without_showing_the_password() {
        for text in [
            "mail.example.org",
            "hunter2",
            "https://ann:hunter2@mail.example.org",
            "smtp:ann:hunter2@mail.example.org",
            "smtp://",
            "smtp:///hunter2",
            "smtps://ann:hunter2@",
            "smtps://:hunter2@mail.example.org",
            "smtps://ann:hunter2@mail.example.org/inbox",
            "smtps://ann:hunter2@mail.example.org#there",
            "smtps://ann:hunter2@mail.example.org?tls=required",
            "smtp://ann:hunter2@mail.example.org?tls=opportunistic",
            "smtp://ann:hunter2@mail.example.org?tls=required&x=hunter2",
            "smtps://ann:hunter2@mail.example.org:99999",
            "smtps://ann:hunter2#x@mail.example.org",
            "smtps://ann:hunter2/x@mail.example.org",
            "smtps://ann:hunter2%FF@mail.example.org",
            "smtps://ann:hunter2@mail example.org",
        ] {
            let refused = text.parse::<SmtpUrl>().expect_err(text);
            assert!(!refused.contains("hunter2") && !refused.contains('\n'), "{text}: {refused}");
        }
    }

    #[test]
    fn debug_output_of_an_smtp_url_hides_the_password() {
        let print = format!("{:?}", parse_url("smtps://ann:hunter2@mail.example.org"));
        assert_eq!(print, "SmtpUrl(mail.example.org:465, Tls)");
    }
}
