//! How the store uses redb: table definitions, transactions, reads, and the meaning of redb's errors and panics.

use std::cell::Cell;
use std::fmt::Display;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use redb::{Database, Durability, ReadableTable, TableDefinition, WriteTransaction};

use crate::base::error::{Error, Result};
use crate::store::values::payload::unseal;
use crate::store::values::raw::{KeySpan, Visit, VisitValue};
use crate::store::values::schema::Table;

/// The default size of redb's page cache: 64 MiB.
pub const DEFAULT_CACHE: usize = 64 * 1024 * 1024;

/// The `Retry-After` of the store's 503 responses, in seconds.
pub const RETRY_AFTER: u32 = 1;

/// Returns the error of work that may succeed a moment later.
pub fn unavailable(cause: impl Display) -> Error {
    Error::unavailable(RETRY_AFTER, cause)
}

/// Returns the error of reads and writes while the file is closed.
pub fn closed() -> Error {
    unavailable("the data file is closed")
}

pub type Bytes = &'static [u8];

pub const fn definition(table: Table) -> TableDefinition<'static, Bytes, Bytes> {
    TableDefinition::new(table.name())
}

/// Begins a write transaction whose commit is durable and which needs no long repair after a crash.
///
/// Two-phase commit: an attacker can choose stored bytes, and a one-phase commit trusts checksums that such
/// bytes could forge. Quick repair: after SIGKILL even a large file opens within a millisecond.
pub fn begin(database: &Database) -> Result<WriteTransaction> {
    let mut transaction = database.begin_write().map_err(storage_error)?;
    transaction.set_durability(Durability::Immediate).map_err(storage_error)?;
    transaction.set_two_phase_commit(true);
    transaction.set_quick_repair(true);
    Ok(transaction)
}

/// Begins a write transaction of a file that does not outlive this process, so that no crash can follow its commit.
pub fn begin_volatile(database: &Database) -> Result<WriteTransaction> {
    let mut transaction = database.begin_write().map_err(storage_error)?;
    transaction.set_durability(Durability::Immediate).map_err(storage_error)?;
    Ok(transaction)
}

/// Begins a write transaction whose commit a crash may undo, until a later commit of [`begin`] makes it durable.
pub fn begin_unsynced(database: &Database) -> Result<WriteTransaction> {
    let mut transaction = database.begin_write().map_err(storage_error)?;
    transaction.set_durability(Durability::None).map_err(storage_error)?;
    Ok(transaction)
}

/// Fails if redb refuses further writes through this handle.
pub fn require_usable(database: &Database) -> Result<()> {
    begin(database)?.abort().map_err(storage_error)
}

/// Closes `database`. Snapshots of it cannot be read any more.
///
/// # Errors
/// 503 when the last bytes could not be written: the next opening then repairs the file.
pub fn close(database: Database) -> Result<()> {
    database.close().map_err(storage_error)
}

/// Maps an error of redb to an error of the API. A file that cannot be reached is 503, because it may pass;
/// everything else is 500, because the file is damaged or the code has a defect.
pub fn storage_error(error: impl Into<redb::Error>) -> Error {
    match error.into() {
        error @ (redb::Error::Io(_)
        | redb::Error::PreviousIo
        | redb::Error::DatabaseClosed
        | redb::Error::LockPoisoned(_)) => unavailable(error),
        error => Error::internal(error),
    }
}

/// Calls `visit` with the verified payload under `key`. Does not call it if the key is absent.
pub fn get_value(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    key: &[u8],
    visit: &mut VisitValue<'_>,
) -> Result<()> {
    match source.get(key).map_err(storage_error)? {
        Some(sealed) => visit(unseal(table, key, sealed.value())?),
        None => Ok(()),
    }
}

/// Stores this sealed value under `key`, or removes the key if it is `None`.
pub fn set_value(
    opened: &mut redb::Table<'_, Bytes, Bytes>,
    key: &[u8],
    sealed: Option<&[u8]>,
) -> Result<()> {
    let before = match sealed {
        Some(sealed) => opened.insert(key, sealed),
        None => opened.remove(key),
    };
    before.map(drop).map_err(storage_error)
}

/// Returns the entries of a span, or `None` if there can be none.
pub fn range_of<'s>(
    source: &'s impl ReadableTable<Bytes, Bytes>,
    KeySpan { from, until, .. }: KeySpan<'_>,
) -> Result<Option<redb::Range<'s, Bytes, Bytes>>> {
    // redb panics on a range whose end is before its start.
    if until.is_some_and(|until| until <= from) {
        return Ok(None);
    }
    let upper = until.map_or(Bound::Unbounded, Bound::Excluded);
    let range = source.range::<&[u8]>((Bound::Included(from), upper)).map_err(storage_error)?;
    Ok(Some(range))
}

/// Calls `visit` with each key of `span` and its verified payload. Calls `spend` with the size of each value before verifying
/// it, and with 0 for each skipped key.
pub fn walk_range(
    source: &impl ReadableTable<Bytes, Bytes>,
    table: Table,
    span: KeySpan<'_>,
    spend: impl Fn(usize) -> Result<()>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let Some(range) = range_of(source, span)? else { return Ok(()) };
    for (at, entry) in span.order.of(range).enumerate() {
        let (key, sealed) = entry.map_err(storage_error)?;
        if at < span.skip {
            spend(0)?;
            continue;
        }
        spend(sealed.value().len())?;
        if visit(key.value(), unseal(table, key.value(), sealed.value())?)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

thread_local! {
    /// Whether [`catch_panic`] catches a panic on this thread.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `work`, or `None` if it panics.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    let (mut work, mut outcome) = (Some(work), None);
    run_until_panic(&mut || outcome = work.take().map(|work| work()));
    outcome
}

fn run_until_panic(work: &mut dyn FnMut()) {
    silence_expected();
    let outer = EXPECTED.replace(true);
    drop(catch_unwind(AssertUnwindSafe(work)));
    EXPECTED.set(outer);
}

/// Installs a panic hook that reports only panics that are not caught.
fn silence_expected() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if EXPECTED.get() {
                tracing::debug!(%panic, "redb panicked");
            } else {
                report(panic);
            }
        }));
    });
}
