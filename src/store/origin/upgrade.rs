//! Migrating the content of a shared database to this release.
//!
//! The first node of a release does it. It takes the turn, migrates a copy as it would a data file, and replaces all rows in
//! one commit. Nodes of older releases then stop serving, and say why.

use redb::Database;

use crate::error::Result;
use crate::store::disk::engine::{begin, storage_error};
use crate::store::disk::open_error::OpenError;
use crate::store::format::migrate::{STEPS, migrate, names_all_tables, stored_format};
use crate::store::format::stored_position::put_position;
use crate::store::reads::snapshot::Snapshot;
use crate::store::reads::stored_rows::StoredRows;
use crate::store::values::position::Position;
use crate::store::values::schema::FORMAT;

use super::copy_source::{CopySource, take_rows, take_turn};
use super::{Fault, random_name};

/// Whether a copy has the format and all tables of this release, so its database has them, too.
pub(in crate::store) fn is_current(database: &Database) -> Result<bool> {
    let snapshot = Snapshot::begin(database)?;
    Ok(stored_format(&snapshot)? == Some(FORMAT) && names_all_tables(&snapshot)?)
}

/// Fills an empty copy with all rows of the origin, and migrates both, unless another node was first. Returns the last commit.
pub(in crate::store) fn upgrade(
    database: &Database,
    source: &CopySource,
) -> Result<Position, Fault> {
    let known = take_rows(database, |take| source.all(take), |_, _| Ok(()))?;
    // No node commits from here on.
    let (mut position, turn) = take_turn(database, source, known)?;
    if !is_current(database)? {
        turn.extend()?;
        let found = stored_format(&Snapshot::begin(database)?)?.unwrap_or_default();
        migrate(database, found, STEPS, FORMAT).map_err(|error| not_migrated(&error))?;
        position =
            turn.replace(random_name(), &mut StoredRows::new(&Snapshot::begin(database)?))?;
        tracing::info!(from = found, to = FORMAT, "migrated the database to this release");
    }
    let transaction = begin(database)?;
    put_position(&transaction, position, source.origin.primary())?;
    transaction.commit().map_err(storage_error)?;
    Ok(position)
}

fn not_migrated(error: &OpenError) -> Fault {
    Fault::Refused(format!("the database was not migrated: {error}"))
}
