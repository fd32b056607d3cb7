//! Storing the records of older layouts in the current one.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::low_priority::{Priority, run_low_priority};
use crate::store::disk::open_error::OpenError;
use crate::store::format::migrate::require_known_layouts;
use crate::store::kinds::record_registry::{RecordRegistry, RecordType};
use crate::store::reads::snapshot::Snapshot;
use crate::store::values::payload::Payload;
use crate::store::values::raw::Raw;
use crate::store::values::window::Order;
use crate::store::writer::Store;

/// How many records one write stores again.
const UPGRADE_BATCH: usize = 500;
/// The time after which a search for older records continues in another snapshot.
const SEARCH_TIME: Duration = Duration::from_millis(50);

impl Store {
    /// Fails if a newer release added members to records of this file. An older layout needs no migration: its records
    /// are completed when they are read.
    ///
    /// # Errors
    /// When a table has a layout that this release does not know, or the file cannot be read.
    pub(crate) fn require_known_layouts(&self, registry: &RecordRegistry) -> Result<(), OpenError> {
        require_known_layouts(&*self.snapshot()?, self.path(), registry)
    }

    /// Stores every record of an older layout in the current one, some in each write. Returns the number of these records.
    pub(in crate::store) async fn upgrade(&self, registry: &RecordRegistry) -> Result<u64> {
        let mut upgraded = 0;
        for kind in registry.record_types.iter().copied() {
            let mut from = (!kind.added().is_empty()).then(Vec::new);
            while let Some(begin) = from {
                let snapshot = self.snapshot()?;
                let search = move || find_older(&snapshot, kind, &begin);
                let OlderRecords { keys: older, next } =
                    run_low_priority(Priority::Upkeep, search).await??;
                if !older.is_empty() {
                    upgraded += older.len() as u64;
                    let older: Arc<[_]> = older.into();
                    self.write(move |tx| kind.upgrade(tx, &older)).await?;
                }
                from = next;
            }
        }
        if upgraded > 0 {
            tracing::info!(upgraded, "stored records of older releases in the current layout");
        }
        Ok(upgraded)
    }
}

/// Some records of an older layout.
#[derive(Default)]
struct OlderRecords {
    keys: Vec<Vec<u8>>,
    /// Where to continue; `None` at the end of the table.
    next: Option<Vec<u8>>,
}

/// Returns some records of an older layout from `from` on.
fn find_older(snapshot: &Snapshot, kind: &dyn RecordType, from: &[u8]) -> Result<OlderRecords> {
    let (begun, mut older) = (Instant::now(), OlderRecords::default());
    snapshot.raw_between(
        kind.table(),
        (from, None),
        0,
        Order::Ascending,
        &mut |key, payload| {
            if Payload::read(kind.table(), payload)?.layout < kind.added().len() {
                older.keys.push(key.to_vec());
            }
            if older.keys.len() < UPGRADE_BATCH && begun.elapsed() < SEARCH_TIME {
                return Ok(ControlFlow::Continue(()));
            }
            older.next = Some([key, &[0][..]].concat());
            Ok(ControlFlow::Break(()))
        },
    )?;
    Ok(older)
}
