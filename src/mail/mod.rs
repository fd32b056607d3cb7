//! Mail: the outbox in the data file, and SMTP (decisions §4, Invite).
//!
//! A mail is written to the [outbox] in the transaction of what it tells of. It says what it is about and
//! to whom it goes; its text is composed when it is sent, so that no token lies in the file.

mod compose;
pub mod outbox;

pub use compose::{Compose, Composed, Message};
