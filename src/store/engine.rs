//! How the store uses redb: the shape of its tables, what its failures mean, how it commits, and how it reads.

use std::ops::{Bound, ControlFlow};

use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition,
    WriteTransaction,
};

use crate::error::{Error, Result};

use super::read::Visit;
use super::record::open;
use super::schema::Table;
use super::window::Order;

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

/// Fails where the handle refuses to go on.
pub(super) fn probe(database: &Database) -> Result<()> {
    begin(database)?.abort().map_err(storage_error)
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

/// Hands the opened payload under `key` to `visit`.
pub(super) fn get_from(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    key: &[u8],
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    match source.get(key).map_err(storage_error)? {
        Some(sealed) => visit(open(table, key, sealed.value())?),
        None => Ok(()),
    }
}

/// Hands each key of a span, its end excluded, and its opened payload to `visit`, past the first `skip` ones.
/// `spend` is told the bytes of each value before it is opened, and 0 for each one that is skipped.
pub(super) fn walk_from(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    (from, until): (&[u8], Option<&[u8]>),
    mut skip: usize,
    order: Order,
    spend: impl Fn(usize) -> Result<()>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    // redb panics over a range that ends before it begins.
    if until.is_some_and(|until| until <= from) {
        return Ok(());
    }
    let upper = until.map_or(Bound::Unbounded, Bound::Excluded);
    let range = source.range::<&[u8]>((Bound::Included(from), upper)).map_err(storage_error)?;
    let step = |entry: std::result::Result<_, redb::StorageError>| {
        let (key, sealed): (redb::AccessGuard<'_, Bytes>, redb::AccessGuard<'_, Bytes>) =
            entry.map_err(storage_error)?;
        if let Some(left) = skip.checked_sub(1) {
            skip = left;
            return spend(0).map(ControlFlow::Continue);
        }
        spend(sealed.value().len())?;
        visit(key.value(), open(table, key.value(), sealed.value())?)
    };
    let walked = match order {
        Order::Ascending => range.map(step).try_for_each(flow),
        Order::Descending => range.rev().map(step).try_for_each(flow),
    };
    match walked {
        ControlFlow::Break(Err(error)) => Err(error),
        ControlFlow::Break(Ok(())) | ControlFlow::Continue(()) => Ok(()),
    }
}

fn flow(step: Result<ControlFlow<()>>) -> ControlFlow<Result<()>> {
    match step {
        Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
        Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
        Err(error) => ControlFlow::Break(Err(error)),
    }
}
