//! What mails are handed over to.

use futures_util::future::BoxFuture;

use crate::base::time::Timestamp;
use crate::ids::OutboxMessageId;

use super::compose::MailContent;

pub use super::wire::SendError;
pub use lettre::address::Address as MailAddress;

/// What a [`Mailer`](super::mailer::Mailer) hands mails over to.
pub trait MailTransport: Send + Sync + 'static {
    /// Returns its name for the operator: host and port of a server.
    fn server(&self) -> String;

    /// Sends a mail to one address. Returns the reply with which it was accepted.
    ///
    /// # Errors
    /// Fails if the mail was not accepted.
    fn send<'m>(
        &'m self,
        id: OutboxMessageId,
        to: MailAddress,
        message: &'m MailContent,
        now: Timestamp,
    ) -> BoxFuture<'m, Result<String, SendError>>;
}
