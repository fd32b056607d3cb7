//! What the keys held that made a key's values: no later change of the key gives a value more than that, so that
//! who comes to a value by a weak key waits in vain for its key to become a stronger one (decisions §2, Issuing).

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ids::ApiKeyId;
use crate::store::{Owner, Record, Reference, Table, Tx, WriteTx};
use crate::time::Timestamp;

use super::issuing::excess;
use super::verifiers::is_in_grace;
use super::{ApiKey, Holdings};

/// What was held by the keys that made a key's values, each at the moment when it did. A first value that no key
/// made, but the operator or a signup, has no such bound: most keys have none, so it is kept beside them.
#[derive(Serialize, Deserialize)]
pub struct Makers {
    key: ApiKeyId,
    /// By that of the value that the key has.
    current: Holdings,
    /// By that of the one before, where a key made it.
    retired: Option<Holdings>,
}

impl Record for Makers {
    const TABLE: Table = Table::ApiKeyMakers;
    type Key = ApiKeyId;
    type Head = Self;
    type Shown = ();

    fn key(&self) -> ApiKeyId {
        self.key
    }

    fn parts(&self) -> (&Self, &()) {
        (self, &())
    }

    fn join(head: Self, (): ()) -> Self {
        head
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(None)
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<ApiKey>(&self.key)]
    }
}

/// Notes that a key with these holdings made another's value anew.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn note(tx: &mut WriteTx<'_>, id: ApiKeyId, maker: &Holdings) -> Result<()> {
    let retired = tx.head::<Makers>(&id)?.map(|makers| makers.current);
    tx.put(&Makers { key: id, current: maker.clone(), retired })
}

/// Lets a key hold only what each key held that made a value of it which still works, or would again.
///
/// # Errors
/// 403 where one of them held less.
pub(super) fn require_held(
    tx: &impl Tx,
    id: ApiKeyId,
    wanted: &Holdings,
    now: Timestamp,
) -> Result<()> {
    let Some(Makers { current, retired, .. }) = tx.head::<Makers>(&id)? else { return Ok(()) };
    let retired = if is_in_grace(tx, id, now)? { retired } else { None };
    for maker in [current].iter().chain(&retired) {
        if let Some(excess) = excess(tx, wanted, maker)? {
            return Err(Error::denied(format!(
                "A value of this API key was made by a key that held less: {}. Roll it without grace first.",
                excess.fields()
            )));
        }
    }
    Ok(())
}
