//! Outgoing mail: the outbox in the data file, and SMTP.
//!
//! A transaction adds a mail to the [outbox] together with the change that it reports. The outbox stores the subject
//! and the recipient; the text is composed when the mail is sent, so that the file contains no tokens. The [mail
//! worker](worker) sends one mail at a time within the limits of [`sent_log`]. The organizations take turns.

mod attempt;
pub mod compose;
mod mailbox;
mod mime;
mod notifier;
pub mod outbox;
mod pauses;
mod schedule;
pub mod send_error;
mod send_limits;
pub mod sent_log;
pub mod smtp;
mod wire;
pub mod worker;

use crate::store::{RecordType, RecordTypeOf, Redaction};
use outbox::OutboxMessage;
use sent_log::SentMail;

/// The types of records of mails.
pub const RECORD_TYPES: &[&dyn RecordType] =
    &[&RecordTypeOf::<OutboxMessage>(Redaction::Open), &RecordTypeOf::<SentMail>(Redaction::Open)];
