//! How mail is sent.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{SmtpUrl, duration};

/// How mail is sent; it is not, where no server is named.
#[derive(Debug, Clone, Args)]
#[non_exhaustive]
pub struct MailConfig {
    /// The mail server: `smtps://user@host` for TLS, `smtp://user@host` for STARTTLS, which is done without only
    /// where the host is this machine. Without a server no mail is sent.
    #[arg(long, env = "STEWARD_SMTP_URL", value_name = "URL", requires = "smtp_from")]
    pub smtp_url: Option<SmtpUrl>,

    /// Whom mails come from, such as 'Steward <steward@example.org>'.
    #[arg(long, env = "STEWARD_SMTP_FROM", value_name = "ADDRESS")]
    pub smtp_from: Option<String>,

    /// A file that holds the password for the mail server.
    #[arg(long, env = "STEWARD_SMTP_PASSWORD_FILE", value_name = "FILE")]
    pub smtp_password_file: Option<PathBuf>,

    /// A PEM file with the authority to trust for the mail server's certificate, besides those of the system.
    #[arg(long, env = "STEWARD_SMTP_CA_FILE", value_name = "FILE")]
    pub smtp_ca_file: Option<PathBuf>,

    /// How long the mail server may take for one mail.
    #[arg(long, env = "STEWARD_SMTP_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = duration)]
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
