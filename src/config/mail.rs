//! The configuration of outgoing mail.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};

use super::{SmtpUrl, file_path, parse_duration};

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

impl Default for MailConfig {
    fn default() -> Self {
        Self {
            smtp_url: None,
            smtp_from: None,
            smtp_password_file: None,
            smtp_ca_file: None,
            smtp_timeout: Duration::from_secs(30),
        }
    }
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

    #[test]
    fn debug_output_hides_the_smtp_password() {
        let url = "smtps://ann:hunter2@mail.example.org";
        let mail = read(&["--smtp-url", url, "--smtp-from", "a@example.org"]).unwrap();
        let print = format!("{mail:?}");
        assert!(print.contains("mail.example.org:465") && !print.contains("hunter2"), "{print}");
    }
}
