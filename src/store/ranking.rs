//! Building the ranks of large lists in the background.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::error::{Error, Result};

use super::Store;
use super::ranks::{self, RankedList, State};
use super::record_registry::RecordRegistry;
use super::write::WriteTx;

/// Builds the ranks of lists that are large and have none, such as those of a file of an older release.
pub struct RankBuilder {
    lists: Vec<&'static RankedList>,
    /// The lists and tenants whose ranks could not be built, because rows of the list are damaged.
    failed: HashSet<(&'static str, Vec<u8>)>,
}

impl Store {
    /// Returns what is woken when ranks are due, and when the file was opened again.
    pub(crate) fn ranks_due(&self) -> Arc<Notify> {
        Arc::clone(&self.shared.ranks_due)
    }
}

impl RankBuilder {
    /// Creates a builder for the lists of these types of records.
    pub(crate) fn new(registry: &RecordRegistry) -> Self {
        Self { lists: registry.ranked().collect(), failed: HashSet::new() }
    }

    /// Builds all ranks that are due. Each transaction builds a small part.
    ///
    /// # Errors
    /// 503 when the file is closed or cannot be read or written.
    pub(crate) async fn build(&mut self, store: &Store) -> Result<()> {
        for list in self.lists.clone() {
            let mut after = Vec::new();
            loop {
                let snapshot = store.snapshot()?;
                let find = move || ranks::find_due(&*snapshot, list, &after);
                let found = tokio::task::spawn_blocking(find).await.map_err(Error::internal)??;
                let Some(last) = found.last() else { break };
                after = last.clone();
                for tenant in found {
                    self.build_tenant(store, list, tenant).await?;
                }
            }
        }
        Ok(())
    }

    async fn build_tenant(
        &mut self,
        store: &Store,
        list: &'static RankedList,
        tenant: Vec<u8>,
    ) -> Result<()> {
        let name = list.table().name();
        let failed = (name, tenant);
        if self.failed.contains(&failed) {
            return Ok(());
        }
        let tenant: Arc<[u8]> = failed.1.as_slice().into();
        let mut built = None;
        loop {
            let of = Arc::clone(&tenant);
            let rule = move |tx: &mut WriteTx<'_>| tx.build_ranks(list, &of);
            let ((), snapshot) = store.write_for(None, rule).await?;
            match ranks::state(&*snapshot, list, &tenant)? {
                Some(State::Building(until)) if built.as_ref().is_none_or(|last| *last < until) => {
                    built = Some(until);
                }
                Some(State::Building(_)) => {
                    tracing::error!(list = name, "the ranks of a list cannot be built");
                    self.failed.insert(failed);
                    return Ok(());
                }
                // Complete, or the list has become short.
                Some(State::Complete) | None => return Ok(()),
            }
        }
    }
}
