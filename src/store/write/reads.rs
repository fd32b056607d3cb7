//! Reads of a write: its own changes over those of the batch, over what is stored.

use crate::base::error::Result;
use crate::store::changes::pending_values::{PendingValue, walk_merged};
use crate::store::disk::engine::{get_value, walk_range};
use crate::store::packed;
use crate::store::values::payload::payload_of;
use crate::store::values::raw::{KeySpan, Raw, Visit, VisitValue};
use crate::store::values::schema::Table;

use super::WriteTx;

impl Raw for WriteTx<'_> {
    fn raw_get(&self, table: Table, key: &[u8], visit: &mut VisitValue<'_>) -> Result<()> {
        self.pending_or_stored(self.pending.get(table, key), table, key, visit)
    }

    fn raw_between(&self, table: Table, span: KeySpan<'_>, visit: &mut Visit<'_>) -> Result<()> {
        let (stored, changed) = (self.table(table)?, self.pending.of(table));
        if changed.is_empty() && !table.is_packed() {
            return walk_range(stored, table, span, |_| Ok(()), visit);
        }
        walk_merged(stored, table, changed, span, visit)
    }
}

impl WriteTx<'_> {
    /// Calls `visit` with the payload of `pending`, or with what the transaction has under `key` if `pending` is `None`.
    pub(super) fn pending_or_stored(
        &self,
        pending: Option<&PendingValue>,
        table: Table,
        key: &[u8],
        visit: &mut VisitValue<'_>,
    ) -> Result<()> {
        match pending {
            Some(Some(sealed)) => visit(payload_of(sealed)),
            Some(None) => Ok(()),
            None => self.stored(table, key, visit),
        }
    }

    /// Calls `visit` with the payload that the transaction has under `key`.
    fn stored(&self, table: Table, key: &[u8], visit: &mut VisitValue<'_>) -> Result<()> {
        if table.is_packed() {
            return packed::get(self.table(table)?, table, key, visit);
        }
        if let Some(known) = self.hot.get(table, key) {
            return known.map_or(Ok(()), |payload| visit(&payload));
        }
        let mut exists = false;
        get_value(self.table(table)?, table, key, &mut |payload| {
            exists = true;
            self.hot.keep(table, key, Some(payload));
            visit(payload)
        })?;
        if !exists {
            self.hot.keep(table, key, None);
        }
        Ok(())
    }
}
