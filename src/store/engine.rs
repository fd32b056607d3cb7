//! How the store uses redb: the shape of its tables, what its failures mean, how it commits.

use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase, TableDefinition, WriteTransaction,
};

use crate::error::{Error, Result};

use super::schema::Table;

/// What a client is told to wait, in seconds, where the store cannot serve.
pub(super) const RETRY_AFTER: u32 = 1;

pub(super) type Bytes = &'static [u8];

pub(super) const fn definition(table: Table) -> TableDefinition<'static, Bytes, Bytes> {
    TableDefinition::new(table.name())
}

/// Begins a transaction that is on disk when it is committed and opens at once after a crash.
///
/// Two-phase: stored bytes come from outside, and a one-phase commit trusts checksums that an
/// attacker could arrange. Quick repair: a large file opens in a millisecond after SIGKILL.
pub(super) fn begin(database: &Database) -> Result<WriteTransaction> {
    let mut transaction = database.begin_write().map_err(storage_error)?;
    transaction.set_durability(Durability::Immediate).map_err(storage_error)?;
    transaction.set_two_phase_commit(true);
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// The present state of `database`.
pub(super) fn begin_read(database: &Database) -> Result<ReadTransaction> {
    database.begin_read().map_err(storage_error)
}

/// What a failure of redb means to a client: where the file cannot be reached it passes, everything else
/// is damage or a defect.
pub(super) fn storage_error(error: impl Into<redb::Error>) -> Error {
    match error.into() {
        error @ (redb::Error::Io(_)
        | redb::Error::PreviousIo
        | redb::Error::DatabaseClosed
        | redb::Error::LockPoisoned(_)) => Error::unavailable(RETRY_AFTER, error),
        error => Error::internal(error),
    }
}
