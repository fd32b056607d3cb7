//! The copy that a node keeps of the origin: a redb file with the same values and the position of the last commit in it.
//!
//! The origin has the data, so a copy can always be made again. A copy that is damaged, or that belongs to another past of
//! the origin, is kept under another name, and a new one takes its place.
//!
//! The first node of a release migrates the content of the origin. It takes the turn, migrates a copy as it would a data file,
//! and replaces all rows in one commit. Nodes of older releases then stop serving, and say why.

use std::path::Path;

use redb::{Database, WriteTransaction};

use crate::base::error::Result;
use crate::store::disk::engine::close;
use crate::store::disk::file;
use crate::store::disk::file_system::FsHandle;
use crate::store::disk::open_error::OpenError;
use crate::store::format::migrate::{STEPS, format_of, migrate, names_all_tables, stored_format};
use crate::store::format::secrets::WorkspaceId;
use crate::store::format::stored_position::{
    commit_position, position_of, primary_of, put_position,
};
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::key::Key;
use crate::store::values::payload::{damaged, unseal};
use crate::store::values::position::Position;
use crate::store::values::schema::{CELL_KEY, FORMAT, SECRET_KEY, Table};

use super::copy_source::{CopySource, stored_rows, take_rows, take_turn};
use super::trouble::not_taken;
use super::{Fault, Origin, random_name};

/// Opens the copy at `path`, and takes what changed since. Makes the copy again if it is missing, damaged, or not of this
/// past of the origin. If the origin is away, the copy is opened as it is. Returns its position.
///
/// # Errors
/// When the file is another one than a copy, the origin refuses, or there is no copy and the origin is away.
pub fn open(
    fs: &FsHandle,
    path: &Path,
    cache: usize,
    source: &CopySource,
) -> Result<(Database, Position), OpenError> {
    let existing = open_existing(fs, path, cache);
    if let Ok((database, _)) = &existing {
        source.origin.remember(primary_of(database)?);
    }
    require_workspace(&existing, path, &*source.origin)?;
    let opened = match existing {
        Ok((database, position)) => match catch_up(&database, position, source) {
            Ok(position) => Some((database, position)),
            Err(Fault::Away(cause) | Fault::Unknown(cause) | Fault::Held(cause))
                if is_current(&database)? =>
            {
                let seq = position.seq;
                tracing::warn!(seq, %cause, "the database is away; the copy is opened as it is");
                return Ok((database, position));
            }
            // The new copy has all that this one has, and takes its place when it is complete.
            Err(fault @ (Fault::Outdated(_) | Fault::TooOld)) => {
                tracing::warn!("{fault}");
                close(database)?;
                None
            }
            Err(Fault::Forked) => {
                require_same_workspace(&database, path, &*source.origin)?;
                let head = source.origin.head().ok().flatten().map(|head| head.position.seq);
                tracing::error!(
                    copy = position.seq,
                    database = head,
                    "the copy has commits that the database does not have, or their history is gone (steward_commits); making it again"
                );
                close(database)?;
                let kept = file::free_name(fs, path, "forked");
                rename(fs, path, &kept)?;
                tracing::warn!(kept = %kept.display(), "the copy was kept; it may have commits that no database has");
                None
            }
            Err(fault) => return Err(origin_error(&*source.origin, fault)),
        },
        Err(OpenError::Missing(_)) => None,
        Err(error @ OpenError::Damaged { .. }) => {
            tracing::error!(%error, "the copy is damaged; making it again");
            set_aside(fs, path, "damaged")?;
            None
        }
        Err(error) => return Err(error),
    };
    let (database, position) = match opened {
        Some(opened) => opened,
        None => make(fs, path, cache, source)?,
    };
    if is_current(&database)? {
        return Ok((database, position));
    }
    close(database)?;
    set_aside(fs, path, "older")?;
    let mut was_overtaken = false;
    let upgraded = fill(fs, path, cache, source, |database| {
        let upgraded = upgrade(database, source);
        was_overtaken = matches!(upgraded, Err(Fault::Forked | Fault::TooOld));
        upgraded
    });
    // Another node replaced all rows while this one waited for its turn.
    if was_overtaken { make(fs, path, cache, source) } else { upgraded }
}

fn store(copy: &WriteTransaction, head: Position, source: &CopySource) -> Result<()> {
    put_position(copy, head, source.origin.primary())
}

fn open_existing(
    fs: &FsHandle,
    path: &Path,
    cache: usize,
) -> Result<(Database, Position), OpenError> {
    let position = file::inspect(fs, path, cache, |database| {
        let position = position_of(database).map_err(|error| OpenError::damaged(path, &error))?;
        let position = position.ok_or_else(|| OpenError::NotACopy(path.to_owned()))?;
        format_of(database, path).map(|_| position)
    })?;
    Ok((file::open(fs, path, cache)?, position))
}

/// Takes what changed since `known`, in one commit of the copy. Returns the new position.
fn catch_up(database: &Database, known: Position, source: &CopySource) -> Result<Position, Fault> {
    let end = |copy: &WriteTransaction, head: &Position| store(copy, *head, source);
    match take_rows(database, |take| source.origin.since(known, take), end) {
        Err(Fault::Behind) => take_rows(database, |take| source.since_far(known, take), end),
        caught_up => caught_up,
    }
}

/// Makes the copy from all rows of the origin, and opens it.
fn make(
    fs: &FsHandle,
    path: &Path,
    cache: usize,
    source: &CopySource,
) -> Result<(Database, Position), OpenError> {
    fill(fs, path, cache, source, |database| {
        take_rows(database, |take| source.all(take), |copy, head| store(copy, *head, source))
    })
}

/// Creates the copy with what `fill` takes from the origin, and opens it. It appears complete or not at all, in the place of an
/// older one if there is one.
fn fill(
    fs: &FsHandle,
    path: &Path,
    cache: usize,
    source: &CopySource,
    fill: impl FnOnce(&Database) -> Result<Position, Fault>,
) -> Result<(Database, Position), OpenError> {
    let position = file::recreate(fs, path, cache, |database| {
        let position = fill(database).map_err(|fault| origin_error(&*source.origin, fault))?;
        format_of(database, path)?;
        Ok(position)
    })?;
    source.stats.numbers().copies_made += 1;
    tracing::info!(seq = position.seq, copy = %path.display(), "made a new copy of the database");
    Ok((file::open(fs, path, cache)?, position))
}

/// Fails if the origin holds no workspace. If it cannot be asked and a copy exists, the copy is enough to begin.
fn require_workspace<T>(
    existing: &Result<T, OpenError>,
    path: &Path,
    origin: &dyn Origin,
) -> Result<(), OpenError> {
    let has_copy = !matches!(existing, Err(OpenError::Missing(_)));
    match origin.head() {
        Ok(Some(_)) => Ok(()),
        Ok(None) if has_copy => Err(OpenError::Database {
            database: origin.shown().to_owned(),
            cause: format!(
                "it holds no workspace, but {} is a copy of one; restore the database, or move the copy away",
                path.display()
            ),
        }),
        Ok(None) => Err(OpenError::NoWorkspace(origin.shown().to_owned())),
        Err(Fault::Away(_) | Fault::Unknown(_) | Fault::Held(_)) if has_copy => Ok(()),
        Err(fault) => Err(origin_error(origin, fault)),
    }
}

/// Fails if the copy is of another workspace than the origin has now. Only an operator may remove that copy.
fn require_same_workspace(
    database: &Database,
    path: &Path,
    origin: &dyn Origin,
) -> Result<(), OpenError> {
    let found = workspace_of(origin).map_err(|fault| origin_error(origin, fault))?;
    if WorkspaceId::stored(&Snapshot::begin(database)?)? == found {
        return Ok(());
    }
    Err(OpenError::Other(format!(
        "{} is a copy of another workspace than {} holds, and was left untouched; correct --data, or move the copy away",
        path.display(),
        origin.shown()
    )))
}

/// Returns the workspace of an origin.
///
/// # Errors
/// Those of the origin, and [`Fault::Copy`] if the values that name the workspace are missing or damaged.
fn workspace_of(origin: &dyn Origin) -> Result<WorkspaceId, Fault> {
    let value = |key: &[u8]| {
        let sealed = origin.value(Table::Meta, key)?;
        Ok::<_, Fault>(match sealed {
            Some(sealed) => Some(unseal(Table::Meta, key, &sealed)?.to_vec()),
            None => None,
        })
    };
    let missing = || damaged(Table::Meta, &"no signing secret, or one of the wrong length");
    let secret = value(SECRET_KEY)?.and_then(|secret| <[u8; 32]>::try_from(secret).ok());
    let cell = value(CELL_KEY)?.and_then(|number| u64::read(&mut number.as_slice()));
    Ok(WorkspaceId::named(&secret.ok_or_else(missing)?, cell.unwrap_or_default()))
}

/// Moves the copy at `path` to a name with this suffix, and replaces what had that name.
pub fn set_aside(fs: &FsHandle, path: &Path, suffix: &str) -> Result<(), OpenError> {
    rename(fs, path, &file::beside(path, suffix))
}

fn rename(fs: &FsHandle, path: &Path, to: &Path) -> Result<(), OpenError> {
    fs.file_system().rename(path, to).map_err(OpenError::io("rename", path))?;
    file::sync_folder(fs, path)
}

/// Returns the error of an opening that the origin did not answer as it should.
pub fn origin_error(origin: &dyn Origin, fault: Fault) -> OpenError {
    let database = origin.shown().to_owned();
    match fault {
        Fault::Away(cause) | Fault::Unknown(cause) | Fault::Held(cause) => {
            OpenError::Unreachable { database, cause }
        }
        Fault::Copy(error) if error.status() == 500 => {
            OpenError::Database { database, cause: not_taken(&error) }
        }
        Fault::Copy(error) => error.into(),
        fault => OpenError::Database { database, cause: fault.to_string() },
    }
}

/// Whether a copy has the format and all tables of this release, so its database has them, too.
pub fn is_current(database: &Database) -> Result<bool> {
    let snapshot = Snapshot::begin(database)?;
    Ok(stored_format(&snapshot)? == Some(FORMAT) && names_all_tables(&snapshot)?)
}

/// Fills an empty copy with all rows of the origin, and migrates both, unless another node was first. Returns the last commit.
pub fn upgrade(database: &Database, source: &CopySource) -> Result<Position, Fault> {
    let known = take_rows(database, |take| source.all(take), |_, _| Ok(()))?;
    // No node commits from here on.
    let (mut position, turn) = take_turn(database, source, known)?;
    if !is_current(database)? {
        turn.extend()?;
        let found = stored_format(&Snapshot::begin(database)?)?.unwrap_or_default();
        let refused =
            |error: OpenError| Fault::Refused(format!("the database was not migrated: {error}"));
        migrate(database, found, STEPS, FORMAT).map_err(refused)?;
        position = turn.replace(random_name(), &mut stored_rows(&Snapshot::begin(database)?))?;
        tracing::info!(from = found, to = FORMAT, "migrated the database to this release");
    }
    commit_position(database, position, source.origin.primary())?;
    Ok(position)
}
