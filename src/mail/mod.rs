//! Mail: the outbox in the data file, and SMTP (decisions §4, Invite).
//!
//! A mail is written to the [outbox] in the transaction of what it tells of. It says what it is about and
//! to whom it goes; its text is composed when it is sent, so that no token lies in the file. The
//! [postman] sends what waits, one mail at a time, within the limits that [sent] keeps; the organizations
//! take turns.

pub mod compose;
mod limits;
mod mailbox;
mod mime;
mod notices;
pub mod outbox;
mod pauses;
pub mod postman;
mod round;
mod schedule;
pub mod sent;
pub mod smtp;
