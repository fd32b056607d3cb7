//! An origin in memory, for tests. It follows a script: at which call it fails, is overtaken, or is late.

mod calls;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use crate::store::values::position::{OriginRow, Position, Primary};
use crate::store::values::schema::{FORMAT, Table};
use crate::wait::TEST_TIMEOUT;

use super::{Fault, Head, Lacking, Node, Take};

/// What happens at a call of a writer: `commit`, `turn`, the commit of a turn, `committed` or `confirm`. The first of these
/// calls has the number 1.
#[derive(Debug, Clone)]
pub enum Event {
    /// The origin is away: the call has no effect.
    FailBefore,
    /// The call has its effect, but its answer is lost.
    FailAfter,
    /// The call has no effect, and its answer is lost. The caller cannot tell it from [`FailAfter`](Self::FailAfter).
    Lose,
    /// Another node makes a commit before the call.
    Overtake,
    /// The answer is lost. If the call is a commit, it has its effect only before the call of this number, or never if it
    /// does not fit then.
    LandBefore(u64),
}

/// An origin in memory.
pub struct Scripted {
    inner: Mutex<Inner>,
    turn_ended: Condvar,
}

struct Inner {
    state: State,
    /// The state after each commit, by its number.
    past: BTreeMap<u64, State>,
    script: HashMap<u64, Event>,
    /// How many calls of writers were made.
    count: u64,
    ghosts: Vec<Ghost>,
    outage: Option<Outage>,
    has_turn: bool,
    /// How many durable writes that change nothing were made.
    confirmed: u64,
    primary: Primary,
    /// How many random names were drawn.
    drawn: u64,
}

/// What does not answer. One at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outage {
    All,
    Standby,
    Heartbeats,
}

/// A commit that its caller has given up.
struct Ghost {
    from: Position,
    name: uuid::Uuid,
    rows: Vec<OriginRow>,
    due: u64,
}

impl Default for Scripted {
    fn default() -> Self {
        let inner = Inner {
            state: State::default(),
            past: BTreeMap::new(),
            script: HashMap::new(),
            count: 0,
            ghosts: Vec::new(),
            outage: None,
            has_turn: false,
            confirmed: 0,
            primary: Primary::default(),
            drawn: 0,
        };
        Self { inner: Mutex::new(inner), turn_ended: Condvar::new() }
    }
}

impl Scripted {
    /// Lets this happen at the call of this number.
    pub fn at(&self, number: u64, event: Event) {
        self.inner().script.insert(number, event);
    }

    /// Lets nothing more happen at later calls.
    pub fn end_script(&self) {
        self.inner().script.clear();
    }

    /// Returns how many calls of writers were made.
    pub fn count(&self) -> u64 {
        self.inner().count
    }

    /// Returns how many durable writes that change nothing were made.
    pub fn confirmed(&self) -> u64 {
        self.inner().confirmed
    }

    /// Lets no heartbeat succeed, although questions are answered.
    pub fn refuse_heartbeats(&self, refuses: bool) {
        self.inner().outage = refuses.then_some(Outage::Heartbeats);
    }

    /// Lets no durable write succeed while the standby is away.
    pub fn set_standby(&self, is_there: bool) {
        self.inner().outage = (!is_there).then_some(Outage::Standby);
    }

    /// Lets all calls fail without effect, or lets them through again.
    pub fn set_away(&self, is_away: bool) {
        self.inner().outage = is_away.then_some(Outage::All);
    }

    /// Changes the format of the rows, as a newer release does.
    pub fn set_format(&self, format: u64) {
        self.inner().state.format = format;
    }

    /// Lets a question about changes return no more rows than this.
    pub fn limit_changes(&self, most: usize) {
        self.inner().state.most_changes = most;
    }

    /// Commits these rows as another node does.
    pub fn commit_as_other(&self, rows: &[OriginRow]) -> Position {
        self.inner().commit_as_other(rows)
    }

    /// Goes back to the state after the commit of this number, as a restored backup or a failover that loses commits does.
    pub fn rewind(&self, seq: u64) {
        let mut inner = self.inner();
        let state = inner.past.get(&seq).cloned().expect("a state of this origin");
        inner.past.split_off(&(seq + 1));
        inner.state = state;
    }

    /// Forgets the names of all commits, as somebody with access to the database could. The head stays.
    pub fn forget_commits(&self) {
        self.inner().state.commits.clear();
    }

    /// Returns the rows that are not removed.
    pub fn content(&self) -> BTreeMap<(Table, Vec<u8>), Vec<u8>> {
        let inner = self.inner();
        let rows = inner.state.rows.iter();
        rows.filter_map(|(key, (sealed, _))| Some((key.clone(), sealed.clone()?))).collect()
    }

    /// Changes a stored value without a commit, as somebody with access to the database could. A copy that has the row does
    /// not notice.
    pub fn damage(&self, table: Table, key: &[u8], sealed: Vec<u8>) {
        let mut inner = self.inner();
        let row = inner.state.rows.get_mut(&(table, key.to_owned())).expect("a row");
        row.0 = Some(sealed);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other node has a turn. Returns `None` if that takes too long.
    fn without_turn(&self) -> Option<MutexGuard<'_, Inner>> {
        let waited =
            self.turn_ended.wait_timeout_while(self.inner(), TEST_TIMEOUT, |inner| inner.has_turn);
        let (inner, result) = waited.unwrap_or_else(PoisonError::into_inner);
        (!result.timed_out()).then_some(inner)
    }

    fn end_turn(&self) {
        self.inner().has_turn = false;
        self.turn_ended.notify_all();
    }
}

impl Inner {
    fn is_away(&self) -> bool {
        self.outage == Some(Outage::All)
    }

    fn new_name(&mut self) -> uuid::Uuid {
        self.drawn += 1;
        uuid::Uuid::from_u64_pair(u64::MAX, self.drawn)
    }

    fn commit_as_other(&mut self, rows: &[OriginRow]) -> Position {
        let (from, name) = (self.state.position, self.new_name());
        self.apply(from, name, rows).expect("a commit after the last one")
    }

    /// Applies a commit if it fits. Returns the new head.
    fn apply(&mut self, from: Position, name: uuid::Uuid, rows: &[OriginRow]) -> Option<Position> {
        let position = self.state.apply(from, name, rows)?;
        self.past.insert(position.seq, self.state.clone());
        Some(position)
    }

    /// Counts a call, and lets commits of earlier calls land that are due. Returns what happens at this call.
    fn begin(&mut self) -> Option<Event> {
        self.count += 1;
        let number = self.count;
        let (due, later) = std::mem::take(&mut self.ghosts)
            .into_iter()
            .partition(|ghost: &Ghost| ghost.due <= number);
        self.ghosts = later;
        for ghost in due {
            self.apply(ghost.from, ghost.name, &ghost.rows);
        }
        match self.script.remove(&number) {
            Some(Event::Overtake) => {
                self.commit_as_other(&[]);
                None
            }
            event => event,
        }
    }
}

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
    pub(super) fn apply(
        &mut self,
        from: Position,
        name: Uuid,
        rows: &[OriginRow],
    ) -> Option<Position> {
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
                take(OriginRow { table: *table, key: key.clone(), sealed: sealed.clone() })?;
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
