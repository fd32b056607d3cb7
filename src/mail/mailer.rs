//! What sends mails: an SMTP server, or another transport.

use std::sync::Arc;

use crate::base::error::Result;
use crate::base::time::Timestamp;
use crate::config::MailConfig;
use crate::ids::OutboxMessageId;

use super::compose::{MailContent, to_ascii_address};
use super::smtp::SmtpClient;
use super::transport::{MailTransport, SendError};

/// The reason of a failed attempt for the members of an organization. It tells nothing about the mail server.
const UNUSABLE: &str = "The address cannot be used in a mail.";

/// Hands mails over. Clones hand them over in the same way.
#[derive(Clone)]
pub struct Mailer(Arc<dyn MailTransport>);

impl Mailer {
    /// Creates a mailer that hands mails over to `transport`.
    pub fn over(transport: Arc<dyn MailTransport>) -> Self {
        Self(transport)
    }

    /// Creates the mailer that `config` describes, or `None` if it names no server.
    ///
    /// # Errors
    /// One line for the operator if the sender, the password file or the file of the certificate authority is
    /// invalid.
    pub fn new(config: &MailConfig) -> Result<Option<Self>> {
        Ok(SmtpClient::new(config)?.map(|client| Self(Arc::new(client))))
    }

    /// Returns the server's host and port.
    pub fn server(&self) -> String {
        self.0.server()
    }

    /// Sends a mail to one address. Returns the reply with which the server accepted it.
    ///
    /// # Errors
    /// Fails if the server does not accept the mail, or not within the configured time.
    pub async fn send(
        &self,
        id: OutboxMessageId,
        to: &str,
        message: &MailContent,
        now: Timestamp,
    ) -> Result<String, SendError> {
        let unusable =
            || SendError::not_delivered("the address cannot be used in a mail", UNUSABLE);
        let to = to_ascii_address(to).ok_or_else(unusable)?;
        self.0.send(id, to, message, now).await
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::mail::compose::MailKind;

    use super::*;

    #[tokio::test]
    async fn address_that_mail_cannot_reach_is_not_sent_to() {
        let smtp_url = Some("smtp://localhost".parse().unwrap());
        let smtp_from = Some("a@example.org".to_owned());
        let config = MailConfig { smtp_url, smtp_from, ..Config::default().mail };
        let mailer = Mailer::new(&config).unwrap().unwrap();
        let (id, now) = (OutboxMessageId(uuid::Uuid::nil()), Timestamp::MIN);
        let part = || "Hello".to_owned();
        let content = MailContent {
            kind: MailKind::Test,
            link: None,
            subject: part(),
            text: part(),
            html: part(),
        };
        let refused = mailer.send(id, "\u{e4}nn@x.example", &content, now).await;
        let line = "the address cannot be used in a mail";
        assert_eq!(refused, Err(SendError::not_delivered(line, UNUSABLE)));
    }
}
