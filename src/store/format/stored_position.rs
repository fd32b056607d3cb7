//! The position of a copy: the last commit of the origin that the file holds, and the server that the copy has followed. It is
//! stored with each commit.

use redb::{Database, ReadableDatabase, TableDefinition, TableError, WriteTransaction};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use crate::base::error::{Error, Result};
use crate::store::disk::engine::{Bytes, begin, storage_error};
use crate::store::values::key::{Key, take_bytes};
use crate::store::values::position::{Position, Primary};

/// The table with the position. Only copies have it. It is not one of the tables that the origin has.
const COPY: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new("copy/1");
const POSITION_KEY: &[u8] = b"position";

/// Stores the position of the commit that `transaction` completes, and the server that has it.
pub fn put_position(
    transaction: &WriteTransaction,
    position: Position,
    primary: Primary,
) -> Result<()> {
    let (system, timeline) = (primary.system.to_be_bytes(), primary.timeline.to_be_bytes());
    let position = [position.seq.to_be_bytes().as_slice(), position.name.as_bytes()].concat();
    let mut bytes = [position.as_slice(), &system, &timeline].concat();
    bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
    let mut table = transaction.open_table(COPY).map_err(storage_error)?;
    table.insert(POSITION_KEY, bytes.as_slice()).map_err(storage_error)?;
    Ok(())
}

/// Stores the position, and the server that has it, in a commit of their own.
pub fn commit_position(database: &Database, position: Position, primary: Primary) -> Result<()> {
    let transaction = begin(database)?;
    put_position(&transaction, position, primary)?;
    transaction.commit().map_err(storage_error)
}

/// Returns the position of a copy, or `None` if the file is not a copy.
pub fn position_of(database: &Database) -> Result<Option<Position>> {
    Ok(stored(database)?.map(|(position, _)| position))
}

/// Returns the server that a copy has followed.
pub fn primary_of(database: &Database) -> Result<Primary> {
    Ok(stored(database)?.map(|(_, primary)| primary).unwrap_or_default())
}

fn stored(database: &Database) -> Result<Option<(Position, Primary)>> {
    let transaction = database.begin_read().map_err(storage_error)?;
    let table = match transaction.open_table(COPY) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        table => table.map_err(storage_error)?,
    };
    let stored = table.get(POSITION_KEY).map_err(storage_error)?;
    let read = stored.and_then(|stored| read(stored.value()));
    read.map(Some).ok_or_else(|| Error::internal("the position of the copy is damaged"))
}

/// Reads what [`put_position`] stored. Returns `None` if it is damaged.
fn read(stored: &[u8]) -> Option<(Position, Primary)> {
    let (mut bytes, sum) = stored.split_last_chunk::<8>()?;
    if u64::from_le_bytes(*sum) != xxh3_64(bytes) {
        return None;
    }
    let (seq, name) = (u64::read(&mut bytes)?, Uuid::from_bytes(take_bytes(&mut bytes)?));
    let system = u64::read(&mut bytes)?;
    let timeline = u32::from_be_bytes(take_bytes(&mut bytes)?);
    bytes.is_empty().then_some((Position { seq, name }, Primary { system, timeline }))
}

/// Gives `to`, which will replace the file of `from`, the position of `from`, if that is a copy.
pub fn carry_position(from: &Database, to: &Database) -> Result<()> {
    let Some((position, primary)) = stored(from)? else { return Ok(()) };
    commit_position(to, position, primary)
}
