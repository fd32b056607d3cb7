//! Outgoing mail: the outbox in the data file, and SMTP.
//!
//! A transaction adds a mail to the [outbox] together with the change that it reports. The outbox stores the subject
//! and the recipient; the text is composed when the mail is sent, so that the file contains no tokens. The [mail
//! worker](worker) sends four mails at once, one of an organization, within the limits of [`pace`].

mod attempt;
pub mod compose;
mod mailbox;
pub mod mailer;
pub mod outbox;
pub mod pace;
mod smtp;
pub mod transport;
pub mod wire;
pub mod worker;

use crate::store::{RecordType, RecordTypeOf, Redaction};
use outbox::OutboxMessage;
use pace::Pace;

/// The types of records of mails.
pub const RECORD_TYPES: &[&dyn RecordType] =
    &[&RecordTypeOf::<OutboxMessage>(Redaction::Open), &RecordTypeOf::<Pace>(Redaction::Open)];
