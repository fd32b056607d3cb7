//! Opens a data file of any format: migrates an older one, and refuses a newer one or a file that is not a data file.

use std::io;
use std::path::Path;

use redb::Database;

use crate::base::error::{Error, Result};
use crate::store::disk::file;
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::reads::snapshot::Snapshot;
use crate::store::record::Tx;
use crate::store::values::key::Key;
use crate::store::values::schema::{self, Table};
use crate::store::write::{WriteTx, write_alone};

use super::stored_position::position_of;

/// Migrates a file from one format to the next.
///
/// A step reads and stores records by types of its own, because the types of resources go on changing. Such a type has the
/// table, key, indexes, counts, sums and owner of the resource's type, so that the store keeps these up to date. If the step
/// adds a member, the type reads its default in records that lack it, and the step puts these records. It
/// [adjusts](WriteTx::adjust) sums of other records that depend on them. Between records it calls [`WriteTx::savepoint`],
/// which bounds the memory.
pub type Step = fn(&mut WriteTx<'_>) -> Result<()>;

/// The migrations to [`schema::FORMAT`], the one from format `n` to `n + 1` at index `n - 1`. The new tables of a format
/// exist before the first step runs.
pub const STEPS: &[Step] = &[];

/// Opens the file if it is a data file in a format that this release reads.
pub fn open_database(fs: &FsHandle, path: &Path, cache: usize) -> Result<Database, OpenError> {
    let (found, is_complete) = file::inspect(fs, path, cache, |database| {
        if matches!(position_of(database), Ok(Some(_))) {
            return Err(OpenError::IsCopy(path.to_owned()));
        }
        let found = format_of(database, path)?;
        let has_all = has_all_tables(database, path)?;
        Ok((found, has_all && found == schema::FORMAT))
    })?;
    let database = file::open(fs, path, cache)?;
    if !is_complete {
        migrate(&database, found, STEPS, schema::FORMAT)?;
    }
    Ok(database)
}

/// Returns the format of a data file that this release can read.
pub fn format_of(database: &Database, path: &Path) -> Result<u64, OpenError> {
    let foreign = || OpenError::Foreign(path.to_owned());
    let snapshot = Snapshot::begin(database)?;
    let unreadable = |error: Error| match error.status() {
        503 => OpenError::io("read", path)(io::Error::other(error.to_string())),
        _ => OpenError::damaged(path, &error),
    };
    if !snapshot.holds(Table::Meta).map_err(unreadable)? {
        return Err(foreign());
    }
    let mark = snapshot.get_raw(Table::Meta, schema::MARK_KEY).map_err(unreadable)?;
    if mark.as_deref() != Some(schema::MARK) {
        return Err(foreign());
    }
    let found = stored_format(&snapshot).map_err(unreadable)?;
    let found = found.filter(|found| *found > 0).ok_or_else(foreign)?;
    if found > schema::FORMAT {
        let what = format!("format {found}, this release reads up to {}", schema::FORMAT);
        return Err(OpenError::Newer { path: path.to_owned(), what });
    }
    Ok(found)
}

/// Returns whether the file has all tables of this release; it lacks those that this release added. Fails if it lost a
/// table: a new one would be empty, as if its records had never existed.
fn has_all_tables(database: &Database, path: &Path) -> Result<bool, OpenError> {
    let snapshot = Snapshot::begin(database)?;
    let noted = snapshot.get_raw(Table::Meta, schema::TABLES_KEY);
    let noted = noted.map_err(|error| OpenError::damaged(path, &error))?;
    let noted = noted.map(|names| String::from_utf8_lossy(&names).into_owned());
    let mut has_all = true;
    for table in Table::ALL {
        if snapshot.holds(*table)? {
            continue;
        }
        if noted.as_ref().is_none_or(|names| names.lines().any(|name| name == table.name())) {
            let cause = format_args!("it has no table {}", table.name());
            return Err(OpenError::damaged(path, &cause));
        }
        has_all = false;
    }
    let mut names = noted.iter().flat_map(|names| names.lines());
    match names.find(|name| Table::with_name(name).is_none()) {
        Some(table) => {
            let what = format!("the table {table} of a newer release");
            Err(OpenError::Newer { path: path.to_owned(), what })
        }
        None => Ok(has_all),
    }
}

/// Whether the file has the format and the tables of this release.
pub fn is_of_this_release(database: &Database, path: &Path) -> Result<bool, OpenError> {
    Ok(format_of(database, path)? == schema::FORMAT && has_all_tables(database, path)?)
}

/// Returns the format that a state says it has.
pub fn stored_format(snapshot: &Snapshot) -> Result<Option<u64>> {
    let format = snapshot.get_raw(Table::Meta, schema::FORMAT_KEY)?;
    Ok(format.and_then(|format| u64::read(&mut format.as_slice())))
}

/// Whether the list of tables names all tables of this release.
pub fn names_all_tables(snapshot: &Snapshot) -> Result<bool> {
    let noted = snapshot.get_raw(Table::Meta, schema::TABLES_KEY)?.unwrap_or_default();
    let noted = String::from_utf8_lossy(&noted);
    Ok(Table::ALL.iter().all(|table| noted.lines().any(|name| name == table.name())))
}

/// Creates the tables that this release added, and migrates the file from format `found` to format `to`, in one transaction.
pub fn migrate(database: &Database, found: u64, steps: &[Step], to: u64) -> Result<(), OpenError> {
    let done = usize::try_from(found.saturating_sub(1)).unwrap_or(usize::MAX);
    write_alone(database, |tx| {
        tx.create_tables()?;
        for step in steps.iter().skip(done) {
            step(tx)?;
        }
        tx.put_raw(Table::Meta, schema::FORMAT_KEY, &to.encoded());
        Ok::<_, Error>(())
    })?;
    if found == to {
        tracing::info!("created the tables of this release in the data file");
    } else {
        tracing::info!(from = found, to, "migrated the data file to this release");
    }
    Ok(())
}
