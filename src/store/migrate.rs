//! Opening a file of whatever form: refused where it is not ours or newer, brought up to date where it is older.

mod activity;
mod link_accounts;
mod mail;
mod shares;
mod tenants;

use std::io;
use std::path::Path;

use redb::{Database, TableDefinition};

use crate::error::{Error, Result};

use super::disk::Drive;
use super::engine::{Bytes, begin, begin_read, storage_error};
use super::file;
use super::key::Key;
use super::open_error::OpenError;
use super::read::Tx;
use super::schema::{self, Table};
use super::snapshot::Snapshot;
use super::write::WriteTx;

/// One step from a form to the next.
pub(super) type Step = fn(&mut WriteTx<'_>) -> Result<()>;

/// What brings a file from form `n` to form `n + 1`, at index `n - 1`; all run in one transaction.
const STEPS: &[Step] = &[
    // 2 has tables that 1 lacks, and 3 some that 2 lacks: every migration creates what is missing.
    |_| Ok(()),
    |_| Ok(()),
    // So has 4, and indexes and counts of a table that 3 has.
    activity::fill,
    fill_format_5,
];

/// 5 has tables that 4 lacks, and counts and sums by tenant. Kept answers are read in their old form first; bytes are
/// counted when all records have their new form.
fn fill_format_5(tx: &mut WriteTx<'_>) -> Result<()> {
    mail::fill(tx)?;
    shares::fill(tx)?;
    link_accounts::fill(tx)?;
    tenants::fill(tx)
}

/// Opens the file, once it is known to be ours and of a form that this release reads.
pub(super) fn open_database(
    drive: &Drive,
    path: &Path,
    cache: usize,
) -> Result<Database, OpenError> {
    let found = file::inspect(drive, path, cache, |shown| {
        let found = format_of(shown, path)?;
        if found == schema::FORMAT {
            require_tables(shown, path)?;
        }
        Ok(found)
    })?;
    let database = file::open(drive, path, cache)?;
    migrate(&database, found, STEPS, schema::FORMAT)?;
    Ok(database)
}

/// The format version of a file that is one of ours.
pub(super) fn format_of(database: &Database, path: &Path) -> Result<u64, OpenError> {
    let foreign = || OpenError::Foreign(path.to_owned());
    let snapshot = Snapshot::new(begin_read(database)?, Box::new(|| ()));
    let unreadable = |error: Error| match error.status() {
        503 => OpenError::io("read", path)(io::Error::other(error.to_string())),
        _ => OpenError::damaged(path, &error),
    };
    if !snapshot.holds(Table::Meta).map_err(unreadable)? {
        return Err(foreign());
    }
    let meta = |key| snapshot.plain(Table::Meta, key).map_err(unreadable);
    if meta(schema::MARK_KEY)?.as_deref() != Some(schema::MARK) {
        return Err(foreign());
    }
    let format = meta(schema::FORMAT_KEY)?.ok_or_else(foreign)?;
    let found = u64::read(&mut format.as_slice()).ok_or_else(foreign)?;
    if found > schema::FORMAT {
        return Err(OpenError::Newer { path: path.to_owned(), found });
    }
    Ok(found)
}

/// A write makes the table that it misses, and rules would take its emptiness for the truth.
fn require_tables(database: &Database, path: &Path) -> Result<(), OpenError> {
    let snapshot = Snapshot::new(begin_read(database)?, Box::new(|| ()));
    for table in Table::ALL {
        if !snapshot.holds(*table)? {
            return Err(OpenError::damaged(
                path,
                &format_args!("it has no table {}", table.name()),
            ));
        }
    }
    Ok(())
}

/// Brings a file of form `found` to form `to`, in one transaction.
pub(super) fn migrate(
    database: &Database,
    found: u64,
    steps: &[Step],
    to: u64,
) -> Result<(), OpenError> {
    if found == to {
        return Ok(());
    }
    let done = usize::try_from(found.saturating_sub(1)).unwrap_or(usize::MAX);
    let transaction = begin(database)?;
    let mut tx = WriteTx::new(&transaction);
    tx.create_tables()?;
    for step in steps.iter().skip(done) {
        step(&mut tx)?;
    }
    tx.put_plain(Table::Meta, schema::FORMAT_KEY, &to.encoded())?;
    tx.finish()?;
    for name in schema::RETIRED {
        transaction
            .delete_table(TableDefinition::<Bytes, Bytes>::new(name))
            .map_err(storage_error)?;
    }
    transaction.commit().map_err(storage_error)?;
    tracing::info!(from = found, to, "the data file was brought to a newer format");
    Ok(())
}
