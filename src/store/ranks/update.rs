//! Updating the ranks of a tenant after its list changed.

use std::ops::{Bound, ControlFlow};

use redb::{ReadableTable, Table as RedbTable};

use crate::error::Result;

use super::super::change_feed::NotedChanges;
use super::super::engine::{Bytes, storage_error, walk_range};
use super::super::key::prefix_end;
use super::super::schema::Table;
use super::super::sealed::{damaged, seal, unseal};
use super::super::window::Order;
use super::RankedList;
use super::changes::TenantChanges;
use super::layout::{Height, Span, State};

/// Writes the ranks of one tenant.
pub(in crate::store) struct RankWriter<'w, 't> {
    pub(in crate::store) list: &'static RankedList,
    pub(in crate::store) tenant: &'w [u8],
    /// [`Table::Ranks`].
    pub(in crate::store) ranks: &'w mut RedbTable<'t, Bytes, Bytes>,
    /// Notes the keys of ranks that appear and disappear.
    pub(in crate::store) noted: &'w mut NotedChanges,
    /// The table of the list, with all changes of the batch.
    pub(in crate::store) rows: &'w RedbTable<'t, Bytes, Bytes>,
}

/// A change within a bucket or a group: of its rows, and of its parts.
pub(super) struct Delta {
    pub(super) key: Vec<u8>,
    pub(super) rows: i64,
    pub(super) parts: i64,
}

/// A bucket or a group that changes.
struct Changing {
    span: Span,
    /// The key behind it, if it was looked up and is not the end of the table.
    end: Option<Vec<u8>>,
    rows: i64,
    parts: i64,
}

impl Changing {
    fn is_known_to_hold(&self, key: &[u8]) -> bool {
        self.end.as_deref().is_some_and(|end| key < end)
    }

    fn add(&mut self, delta: &Delta) {
        self.rows += delta.rows;
        self.parts += delta.parts;
    }
}

/// Buckets or groups of equal size, one behind the other.
pub(super) struct Parts {
    size: u64,
    spans: Vec<Span>,
}

impl Parts {
    pub(super) fn new(first: &[u8], size: u64) -> Self {
        Self { size, spans: vec![Span { first: first.to_vec(), rows: 0, parts: 0 }] }
    }

    /// Adds a row, or a bucket with `rows` rows. Keys must be in ascending order.
    pub(super) fn add(&mut self, key: &[u8], rows: u64) {
        match self.spans.last_mut() {
            Some(last) if last.parts < self.size => {
                last.rows += rows;
                last.parts += 1;
            }
            _ => self.spans.push(Span { first: key.to_vec(), rows, parts: 1 }),
        }
    }
}

impl IntoIterator for Parts {
    type Item = Span;
    type IntoIter = std::vec::IntoIter<Span>;

    fn into_iter(self) -> Self::IntoIter {
        self.spans.into_iter()
    }
}

impl RankWriter<'_, '_> {
    /// Updates the ranks after the changes of a batch. `count` is the number of rows of the list. Returns the new state of
    /// the ranks.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read or written. Ranks that are damaged are built again.
    pub(in crate::store) fn update(
        &mut self,
        changes: TenantChanges,
        count: u64,
    ) -> Result<Option<State>> {
        let limits = self.list.limits;
        let state = match &changes.state {
            Some(_) if count < limits.keep_from => return self.drop_all().map(|()| None),
            Some(state) => state.clone(),
            None if count < limits.build_from || !changes.builds => return Ok(None),
            None => State::Building(self.tenant.to_vec()),
        };
        let rows = changes.rows.into_iter().filter(|(_, added)| *added != 0);
        let rows = rows.map(|(key, added)| Delta { key, rows: added, parts: added });
        let updated = if changes.are_lost {
            Err(damaged(Table::Ranks, &"a value could not be read"))
        } else {
            self.apply(rows.collect(), &state).and_then(|()| match &state {
                State::Building(from) if changes.builds => self.build(from),
                other => Ok(other.clone()),
            })
        };
        let new = match updated {
            Err(error) if error.status() == 503 => return Err(error),
            Err(error) => {
                tracing::error!(%error, "the ranks of a list cannot be updated; building them again");
                State::Building(self.tenant.to_vec())
            }
            Ok(new) => new,
        };
        if changes.state.as_ref() != Some(&new) {
            self.put(Height::Tenant, self.tenant, new.payload())?;
        }
        Ok(Some(new))
    }

    /// Applies changes of rows, sorted by key, to the buckets and groups before the end of the built ranks.
    fn apply(&mut self, mut deltas: Vec<Delta>, state: &State) -> Result<()> {
        let end = state.end(self.tenant);
        deltas.retain(|delta| end.as_ref().is_none_or(|end| delta.key < *end));
        for height in [Height::Bucket, Height::Group] {
            deltas = self.apply_to(height, &deltas, end.as_deref())?;
        }
        Ok(())
    }

    /// Applies changes to the buckets, or to the groups. Returns the changes of the groups above.
    pub(super) fn apply_to(
        &mut self,
        height: Height,
        deltas: &[Delta],
        end: Option<&[u8]>,
    ) -> Result<Vec<Delta>> {
        let mut above = Vec::new();
        let mut last: Option<Changing> = None;
        for delta in deltas {
            if let Some(last) = last.as_mut().filter(|it| it.is_known_to_hold(&delta.key)) {
                last.add(delta);
                continue;
            }
            let span = self.span_of(height, &delta.key)?;
            match &mut last {
                // A second change of one bucket: more may follow, so it pays to know the bucket's end.
                Some(last) if last.span.first == span.first => {
                    last.end = self.next_first(height, &span.first, end)?;
                    last.add(delta);
                }
                _ => {
                    let (rows, parts) = (delta.rows, delta.parts);
                    let changing = Changing { span, end: None, rows, parts };
                    if let Some(done) = last.replace(changing) {
                        self.store(height, done, end, &mut above)?;
                    }
                }
            }
        }
        if let Some(done) = last {
            self.store(height, done, end, &mut above)?;
        }
        Ok(above)
    }

    /// Stores a changed bucket or group: removes it if it is empty, and divides it if it is too large.
    fn store(
        &mut self,
        height: Height,
        changing: Changing,
        end: Option<&[u8]>,
        above: &mut Vec<Delta>,
    ) -> Result<()> {
        let Changing { span, rows, parts, .. } = changing;
        if (rows, parts) == (0, 0) {
            return Ok(());
        }
        let add = |number: u64, added| {
            let sum = number.checked_add_signed(added);
            sum.ok_or_else(|| damaged(Table::Ranks, &"a size is less than what was removed"))
        };
        let new = Span { rows: add(span.rows, rows)?, parts: add(span.parts, parts)?, ..span };
        if new.parts == 0 && new.first != self.tenant {
            self.remove(height, &new.first)?;
            above.push(Delta { key: new.first, rows, parts: -1 });
            return Ok(());
        }
        if new.parts <= self.list.limits.max_parts {
            self.put(height, &new.first, &new.payload())?;
            above.push(Delta { key: new.first, rows, parts: 0 });
            return Ok(());
        }
        let until = self.next_first(height, &new.first, end)?;
        let size = new.parts.div_ceil(new.parts / (self.list.limits.max_parts / 2));
        for part in self.divide(height, &new.first, until.as_deref(), size)? {
            self.put(height, &part.first, &part.payload())?;
            let is_first = part.first == new.first;
            let before = if is_first { span.rows } else { 0 };
            let rows = part.rows.cast_signed() - before.cast_signed();
            above.push(Delta { key: part.first, rows, parts: i64::from(!is_first) });
        }
        Ok(())
    }

    /// Counts the rows or buckets from `from` up to `until` again, in parts of `size`.
    fn divide(
        &self,
        height: Height,
        from: &[u8],
        until: Option<&[u8]>,
        size: u64,
    ) -> Result<Parts> {
        let mut parts = Parts::new(from, size);
        if height == Height::Group {
            self.each_bucket((from, until), |bucket| parts.add(&bucket.first, bucket.rows))?;
        } else {
            self.list.each_row(self.rows, (from, until), |key, is_shown| {
                if is_shown {
                    parts.add(key, 1);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(parts)
    }

    fn each_bucket(&self, span: (&[u8], Option<&[u8]>), mut visit: impl FnMut(Span)) -> Result<()> {
        let head = self.list.head_size();
        let (from, until) = self.list.keys(Height::Bucket, span);
        let mut visit = |key: &[u8], payload: &[u8]| {
            visit(Span::parse(key.get(head..).unwrap_or_default(), payload)?);
            Ok(ControlFlow::Continue(()))
        };
        let span = (from.as_slice(), until.as_deref());
        walk_range(self.ranks, Table::Ranks, span, 0, Order::Ascending, |_| Ok(()), &mut visit)
    }

    /// Returns the bucket or group of a key.
    fn span_of(&self, height: Height, key: &[u8]) -> Result<Span> {
        let (from, until) = (self.list.key(height, self.tenant), self.list.key(height, key));
        let range = from.as_slice()..=until.as_slice();
        let mut range = self.ranks.range::<&[u8]>(range).map_err(storage_error)?;
        let Some(entry) = range.next_back() else {
            return Err(damaged(Table::Ranks, &"a row has no bucket"));
        };
        let (key, sealed) = entry.map_err(storage_error)?;
        let payload = unseal(Table::Ranks, key.value(), sealed.value())?;
        Span::parse(key.value().get(self.list.head_size()..).unwrap_or_default(), payload)
    }

    /// Returns the first key of the bucket or group after the one that begins at `first`, or `end` if there is none
    /// before it.
    fn next_first(
        &self,
        height: Height,
        first: &[u8],
        end: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let after = [first, &[0]].concat();
        let (from, until) = self.list.keys(height, (&after, end));
        let mut next = None;
        let mut visit = |key: &[u8], _: &[u8]| {
            next = key.get(self.list.head_size()..).map(<[u8]>::to_vec);
            Ok(ControlFlow::Break(()))
        };
        let span = (from.as_slice(), until.as_deref());
        walk_range(self.ranks, Table::Ranks, span, 0, Order::Ascending, |_| Ok(()), &mut visit)?;
        Ok(next.or_else(|| end.map(<[u8]>::to_vec)))
    }

    pub(super) fn put(&mut self, height: Height, key: &[u8], payload: &[u8]) -> Result<()> {
        let key = self.list.key(height, key);
        let sealed = seal(Table::Ranks, &key, payload);
        let before = self.ranks.insert(key.as_slice(), sealed.as_slice());
        let was = before.map_err(storage_error)?.is_some();
        self.noted.note_value(Table::Ranks, &key, was, Some(&sealed));
        Ok(())
    }

    fn remove(&mut self, height: Height, key: &[u8]) -> Result<()> {
        let key = self.list.key(height, key);
        let was = self.ranks.remove(key.as_slice()).map_err(storage_error)?.is_some();
        self.noted.note_value(Table::Ranks, &key, was, None);
        Ok(())
    }

    /// Removes the buckets or groups from `span.0` up to, but not including, `span.1`.
    pub(super) fn remove_between(
        &mut self,
        height: Height,
        span: (&[u8], Option<&[u8]>),
    ) -> Result<()> {
        let (from, until) = self.list.keys(height, span);
        let upper = until.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let span = (Bound::Included(from.as_slice()), upper);
        let noted = &mut *self.noted;
        let remove = |key: &[u8], _: &[u8]| {
            noted.note_value(Table::Ranks, key, true, None);
            false
        };
        self.ranks.retain_in::<&[u8], _>(span, remove).map_err(storage_error)
    }

    /// Removes the ranks of the tenant. A tenant whose list became short has few.
    fn drop_all(&mut self) -> Result<()> {
        for height in [Height::Tenant, Height::Bucket, Height::Group] {
            self.remove_between(height, (self.tenant, prefix_end(self.tenant).as_deref()))?;
        }
        Ok(())
    }
}
