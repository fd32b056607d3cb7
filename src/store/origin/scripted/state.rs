//! The content of the origin in memory.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use crate::store::values::position::{Position, Row};
use crate::store::values::schema::{FORMAT, Table};

use super::super::{Fault, Head, Lacking, Node, Take};

/// The sealed value of a row, or `None` if it was removed, and the number of the commit that wrote it.
pub(super) type Stored = (Option<Vec<u8>>, u64);

/// What the database holds.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// Nil before the workspace is founded.
    pub workspace: Uuid,
    pub format: u64,
    pub position: Position,
    pub horizon: u64,
    pub rows: BTreeMap<(Table, Vec<u8>), Stored>,
    pub commits: HashMap<u64, Uuid>,
    pub nodes: Vec<Node>,
    /// The most rows that one question about changes returns.
    pub most_changes: usize,
}

impl Default for State {
    fn default() -> Self {
        Self {
            workspace: Uuid::nil(),
            format: FORMAT,
            position: Position::NONE,
            horizon: 1,
            rows: BTreeMap::new(),
            commits: HashMap::new(),
            nodes: Vec::new(),
            most_changes: usize::MAX,
        }
    }
}

impl State {
    /// Applies a commit if `from` is the head and its name is new. Returns the new head.
    pub(super) fn apply(&mut self, from: Position, name: Uuid, rows: &[Row]) -> Option<Position> {
        if self.position != from || self.commits.values().any(|taken| *taken == name) {
            return None;
        }
        let position = Position { seq: from.seq + 1, name };
        self.position = position;
        self.format = FORMAT;
        self.commits.insert(position.seq, name);
        for row in rows {
            let place = (row.table, row.key.clone());
            self.rows.insert(place, (row.sealed.clone(), position.seq));
        }
        Some(position)
    }

    pub(super) fn head(&self) -> Option<Head> {
        let Self { workspace, format, position, horizon, .. } = *self;
        (position != Position::NONE).then_some(Head { workspace, format, position, horizon })
    }

    pub(super) fn since(&self, known: Position, take: &mut Take<'_>) -> Result<Position, Fault> {
        let mut left = if known == Position::NONE { usize::MAX } else { self.most_changes };
        self.since_far(known, &mut |row| {
            left = left.checked_sub(1).ok_or(Fault::Behind)?;
            take(row)
        })
    }

    pub(super) fn lacking(&self, known: Position) -> Result<Lacking, Fault> {
        self.since_far(known, &mut |_| Ok(()))?;
        let count = |is_counted: &dyn Fn(&Stored) -> bool| {
            self.rows.values().filter(|row| is_counted(row)).count() as u64
        };
        let (rows, of) =
            (count(&|(_, seq)| *seq > known.seq), count(&|(sealed, _)| sealed.is_some()));
        Ok(Lacking { rows, of })
    }

    pub(super) fn since_far(
        &self,
        known: Position,
        take: &mut Take<'_>,
    ) -> Result<Position, Fault> {
        let Some(head) = self.head() else {
            return Err(Fault::Refused("the database holds no Steward workspace".to_owned()));
        };
        if head.format > FORMAT {
            return Err(Fault::Newer { found: head.format });
        }
        let is_known = self.has(known);
        let is_past = is_known && (self.horizon..=self.position.seq).contains(&known.seq);
        if known != Position::NONE && known != self.position && !is_past {
            return Err(if is_known { Fault::TooOld } else { Fault::Forked });
        }
        for ((table, key), (sealed, seq)) in &self.rows {
            if *seq > known.seq && (sealed.is_some() || known != Position::NONE) {
                take(Row { table: *table, key: key.clone(), sealed: sealed.clone() })?;
            }
        }
        Ok(self.position)
    }

    /// Whether the commit at this position is remembered.
    pub(super) fn has(&self, known: Position) -> bool {
        self.commits.get(&known.seq) == Some(&known.name)
    }

    /// Returns the number of the commit with this name.
    pub(super) fn committed(&self, name: Uuid) -> Option<u64> {
        self.commits.iter().find(|(_, taken)| **taken == name).map(|(seq, _)| *seq)
    }

    pub(super) fn trim(&mut self, keep: u64) {
        let horizon = self.horizon.max(self.position.seq.saturating_sub(keep));
        self.horizon = horizon;
        self.rows.retain(|_, (sealed, seq)| sealed.is_some() || *seq > horizon);
        self.commits.retain(|seq, _| *seq >= horizon);
    }
}
