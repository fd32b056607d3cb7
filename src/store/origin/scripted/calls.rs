//! The calls of the origin in memory.

use uuid::Uuid;

use crate::base::time::Clock;
use crate::store::values::position::{OriginRow, Position, Primary};
use crate::store::values::schema::Table;

use super::super::{
    Beat, Commit, CommitOutcome, Fault, Head, Lacking, Node, Origin, Rows, Take, Turn,
};
use super::{Event, Ghost, Inner, Outage, Scripted, State};

fn away() -> Fault {
    Fault::Away("the script says so".to_owned())
}

fn lost() -> Fault {
    Fault::Unknown("the script says so".to_owned())
}

impl Inner {
    /// Does what a question of a reader does.
    fn read<T>(&self, answer: impl FnOnce(&State) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.is_away() { Err(away()) } else { answer(&self.state) }
    }

    /// Does what a question of a writer does, with the event of this call.
    fn ask<T>(&mut self, answer: impl FnOnce(&State) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.is_away() || self.begin().is_some() {
            return Err(away());
        }
        answer(&self.state)
    }

    /// Does what a commit does, with the event of this call.
    fn commit(&mut self, commit: &Commit<'_>) -> Result<CommitOutcome, Fault> {
        if self.is_away() {
            return Err(away());
        }
        let Commit { from, name, rows } = *commit;
        let event = self.begin();
        match event {
            Some(Event::FailBefore) => return Err(away()),
            Some(Event::Lose) => return Err(lost()),
            Some(Event::LandBefore(due)) => {
                self.ghosts.push(Ghost { from, name, rows: rows.to_vec(), due });
                return Err(lost());
            }
            Some(Event::FailAfter | Event::Overtake) | None => {}
        }
        let outcome =
            self.apply(from, name, rows).map_or(CommitOutcome::Overtaken, CommitOutcome::Committed);
        if matches!(event, Some(Event::FailAfter)) { Err(lost()) } else { Ok(outcome) }
    }

    /// Applies a commit to the head.
    fn put_all(&mut self, name: Uuid, rows: &[OriginRow]) -> Result<Position, Fault> {
        self.apply(self.state.position, name, rows).ok_or_else(away)
    }
}

impl Origin for Scripted {
    fn since(&self, known: Position, take: &mut Take<'_>) -> Result<Position, Fault> {
        self.inner().read(|state| state.since(known, take))
    }

    fn since_far(&self, known: Position, take: &mut Take<'_>) -> Result<Position, Fault> {
        self.inner().read(|state| state.since_far(known, take))
    }

    fn lacking(&self, known: Position) -> Result<Lacking, Fault> {
        self.inner().read(|state| state.lacking(known))
    }

    fn commit(&self, commit: &Commit<'_>) -> Result<CommitOutcome, Fault> {
        let Some(mut inner) = self.without_turn() else { return Ok(CommitOutcome::Overtaken) };
        inner.commit(commit)
    }

    fn turn<'o>(
        &'o self,
        known: Position,
        take: &mut Take<'_>,
    ) -> Result<(Position, Box<dyn Turn + 'o>), Fault> {
        let mut inner = self.without_turn().ok_or_else(away)?;
        let head = inner.ask(|state| state.since(known, take))?;
        inner.has_turn = true;
        Ok((head, Box::new(HeldTurn(self))))
    }

    fn committed(&self, name: Uuid) -> Result<Option<u64>, Fault> {
        self.inner().ask(|state| Ok(state.committed(name)))
    }

    fn confirm(&self, known: Position) -> Result<(), Fault> {
        let mut inner = self.inner();
        inner.ask(|state| {
            let has_commit = state.position == known || state.has(known);
            if has_commit { Ok(()) } else { Err(Fault::Forked) }
        })?;
        if inner.outage == Some(Outage::Standby) {
            // Not one of the faults after which a node asks again.
            return Err(Fault::Refused("the script has no standby".to_owned()));
        }
        inner.confirmed += 1;
        Ok(())
    }

    fn found_workspace(&self, name: Uuid, rows: &mut Rows<'_>) -> Result<Option<Position>, Fault> {
        let mut inner = self.inner();
        if inner.is_away() {
            return Err(away());
        }
        if inner.state.head().is_some() {
            return Ok(None);
        }
        let rows = rows.collect::<Result<Vec<OriginRow>, _>>()?;
        inner.state.workspace = inner.new_name();
        inner.put_all(name, &rows).map(Some)
    }

    fn head(&self) -> Result<Option<Head>, Fault> {
        self.inner().read(|state| Ok(state.head()))
    }

    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.inner().read(|state| {
            let stored = state.rows.get(&(table, key.to_owned()));
            Ok(stored.and_then(|(sealed, _)| sealed.clone()))
        })
    }

    fn heartbeat(&self, position: Position, problem: Option<&str>) -> Result<Beat, Fault> {
        let mut inner = self.inner();
        if inner.is_away() {
            return Err(away());
        }
        if inner.outage == Some(Outage::Heartbeats) {
            return Err(Fault::Away("the script takes no heartbeats".to_owned()));
        }
        let seen = Clock::System.now();
        let node = Node {
            name: self.node().to_owned(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            position: position.seq,
            behind: None,
            seen_at: Some(seen),
            problem: problem.map(str::to_owned),
        };
        let before = std::mem::replace(&mut inner.state.nodes, vec![node]);
        Ok(Beat { seen, before: before.first().and_then(|node| node.seen_at) })
    }

    fn trim(&self, keep: u64) -> Result<(), Fault> {
        self.inner().state.trim(keep);
        Ok(())
    }

    fn remember(&self, primary: Primary) {
        let mut inner = self.inner();
        if !primary.is_before(inner.primary) {
            inner.primary = primary;
        }
    }

    fn primary(&self) -> Primary {
        self.inner().primary
    }

    fn node(&self) -> &'static str {
        "node"
    }

    fn nodes(&self) -> Result<Vec<Node>, Fault> {
        let inner = self.inner();
        if inner.is_away() { Err(away()) } else { Ok(inner.state.nodes.clone()) }
    }

    fn shown(&self) -> &'static str {
        "a script"
    }
}

/// A turn of the origin in memory.
struct HeldTurn<'o>(&'o Scripted);

impl Turn for HeldTurn<'_> {
    fn extend(&self) -> Result<(), Fault> {
        if self.0.inner().is_away() { Err(away()) } else { Ok(()) }
    }

    fn commit(self: Box<Self>, commit: &Commit<'_>) -> Result<CommitOutcome, Fault> {
        self.0.inner().commit(commit)
    }

    fn replace(self: Box<Self>, name: Uuid, rows: &mut Rows<'_>) -> Result<Position, Fault> {
        let mut inner = self.0.inner();
        if inner.is_away() {
            return Err(away());
        }
        let rows = rows.collect::<Result<Vec<OriginRow>, _>>()?;
        inner.state.rows.clear();
        let position = inner.put_all(name, &rows)?;
        inner.state.horizon = position.seq;
        inner.past.clear();
        let state = inner.state.clone();
        inner.past.insert(position.seq, state);
        Ok(position)
    }
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        self.0.end_turn();
    }
}
