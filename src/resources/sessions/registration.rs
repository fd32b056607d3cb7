//! What sessions declare about their records. The activity log does not cover them.

use crate::resources::registration::{RegisteredRecord, record};
use crate::store::Redaction;

use super::{Session, SignInLink, SignInRequest, remove_all, remove_links, remove_requests};

/// The records of sessions. Backups and exports leave their tables out.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<Session>().redacted(Redaction::Whole).deleted_with_account(remove_all),
    &record::<SignInLink>().redacted(Redaction::Whole).deleted_with_account(remove_links),
    &record::<SignInRequest>().redacted(Redaction::Whole).deleted_with_account(remove_requests),
];
