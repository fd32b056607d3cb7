//! The nodes of a shared database: their list, and the heartbeat of this one.
//!
//! A heartbeat is a small commit every two seconds, which shows that the shared database takes commits of this node and how far
//! its copy is. It also forgets old commits from time to time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::base::error::Result;
use crate::base::tasks::spawn_thread;
use crate::base::time::{Clock, Timestamp};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::store::disk::engine::unavailable;
use crate::store::disk::open_error::OpenError;
use crate::store::origin::copy_source::CopySource;
use crate::store::origin::trouble::Trouble;
use crate::store::origin::{Beat, Fault, Node};
use crate::store::values::position::Position;
use crate::store::writer::{Shared, Store};

/// The time between two heartbeats.
const BEAT_INTERVAL: Duration = Duration::from_secs(2);
/// The number of heartbeats between two trims: about an hour.
const BEATS_PER_TRIM: u64 = 1800;
/// How many commits the origin remembers. A copy that is further behind is made again.
const KEPT_COMMITS: u64 = 100_000;
/// The difference of the clocks that is reported, in milliseconds.
const CLOCK_TOLERANCE: u64 = 1000;
/// After this many heartbeats without one of another node of the same name, there is no such node.
const ALONE_AFTER: u32 = 5;

impl Store {
    /// Returns the name of this node of a shared database, or `None` for a data file.
    pub(crate) fn node(&self) -> Option<&str> {
        self.shared.origin.as_ref().map(|source| source.origin.node())
    }

    /// Returns the nodes of a shared database, ordered by name, or `None` for a data file. A node whose database does not answer
    /// knows only itself.
    ///
    /// # Errors
    /// 503 when the database does not answer and this process is no node.
    pub(crate) async fn nodes(&self) -> Result<Option<Vec<Node>>> {
        let Some(source) = &self.shared.origin else { return Ok(None) };
        let is_node = source.state.is_node.load(Ordering::Acquire);
        let own = self.node().filter(|_| is_node);
        let (problem, origin) = (problem_of(source), Arc::clone(&source.origin));
        // On a thread of its own: the methods of an origin block, and never run on a thread of an async runtime.
        let mut nodes = match run_low_priority(Priority::Answer, move || origin.nodes()).await? {
            Ok(nodes) => nodes,
            Err(fault) => {
                let own = own.ok_or_else(|| unavailable(&fault))?;
                let problem = problem.or_else(|| Some(fault.to_string()));
                return Ok(Some(vec![self.own_status(own, problem)]));
            }
        };
        // Later than the nodes, so that none of them is ahead.
        if let Ok(state) = self.fresh().await {
            for node in &mut nodes {
                node.behind = Some(state.position.seq.saturating_sub(node.position));
            }
        }
        // This process knows its own problem before it can tell the database, and also if it never can.
        if let Some(own) = own {
            match nodes.iter_mut().find(|node| node.name == own) {
                Some(node) => node.problem = problem,
                None => nodes.push(self.own_status(own, problem)),
            }
            nodes.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(Some(nodes))
    }

    fn own_status(&self, name: &str, problem: Option<String>) -> Node {
        Node {
            name: name.to_owned(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            position: self.snapshot().map_or(0, |state| state.position.seq),
            behind: None,
            seen_at: None,
            problem,
        }
    }

    /// Begins to send heartbeats, which make this process a node of its shared database until the store is closed. A command
    /// that opens a copy for a moment sends none. A data file has no nodes.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start_heartbeat(&self) -> Result<(), OpenError> {
        let Some(source) = self.shared.origin.clone() else { return Ok(()) };
        source.state.is_node.store(true, Ordering::Release);
        let (shared, known) = (Arc::clone(&self.shared), Known::default());
        let heartbeat = Heartbeat { source, shared, known };
        let started = spawn_thread("heartbeat", move || heartbeat.run());
        started.map(drop).map_err(OpenError::io("start a thread of", self.path()))
    }
}

/// Returns the gravest trouble of this node, as the list of nodes shows it.
fn problem_of(source: &CopySource) -> Option<String> {
    source.state.troubles.list().into_iter().next().map(|(_, text)| text)
}

/// What the thread needs.
struct Heartbeat {
    source: Arc<CopySource>,
    shared: Arc<Shared>,
    known: Known,
}

/// What the thread knows of earlier heartbeats.
#[derive(Default)]
struct Known {
    beats: u64,
    /// When the last one was recorded, by the clock of the origin. `None` if that is unknown.
    seen: Option<Timestamp>,
    /// How many were recorded since another node of this name recorded one.
    alone: u32,
    /// Since when the origin takes none.
    failing: Option<Instant>,
    is_apart: bool,
}

impl Heartbeat {
    fn run(mut self) {
        loop {
            let problem = problem_of(&self.source);
            let (begun, now) = (Instant::now(), Clock::System.now());
            match self.source.origin.heartbeat(self.position(), problem.as_deref()) {
                Ok(beat) => self.note_beat(begun, now, beat),
                Err(cause) => self.note_failure(begun, &cause),
            }
            if !self.source.state.pause(BEAT_INTERVAL) {
                return;
            }
        }
    }

    fn note_beat(&mut self, begun: Instant, now: Timestamp, beat: Beat) {
        self.source.state.beat.send_replace(Some(begun));
        self.source.state.troubles.end(&[Trouble::Writes]);
        self.known.failing = None;
        self.compare_clocks(beat.ahead(now));
        self.compare_names(&beat);
        self.known.beats += 1;
        if self.known.beats.is_multiple_of(BEATS_PER_TRIM) {
            self.trim();
        }
    }

    /// Reports that no heartbeat is taken, if questions are answered meanwhile. If not, that is reported.
    fn note_failure(&mut self, begun: Instant, cause: &Fault) {
        self.known.seen = None;
        tracing::debug!(%cause, "the database did not take a heartbeat");
        let failing = *self.known.failing.get_or_insert(begun);
        if self.source.state.asked_at().is_some_and(|asked| asked > failing) {
            self.note(Trouble::Writes, &cause.to_string());
        }
    }

    fn compare_clocks(&mut self, ahead: i64) {
        let is_apart = ahead.unsigned_abs() > CLOCK_TOLERANCE;
        if is_apart && !std::mem::replace(&mut self.known.is_apart, is_apart) {
            tracing::warn!(
                ahead_ms = ahead,
                "the clock of this node differs from that of the database"
            );
        }
        self.known.is_apart = is_apart;
    }

    /// Reports another node that records heartbeats under the same name, if the database has one after the last one of
    /// this node. After a restore or a failover, the database may have lost that last one.
    fn compare_names(&mut self, beat: &Beat) {
        let last = self.known.seen.replace(beat.seen);
        if last.zip(beat.before).is_some_and(|(last, before)| before > last) {
            self.known.alone = 0;
            let node = self.source.origin.node();
            let cause = format!("another process sends heartbeats as {node}");
            self.note(Trouble::Name, &cause);
        } else {
            self.known.alone = self.known.alone.saturating_add(1);
            if self.known.alone == ALONE_AFTER {
                self.source.state.troubles.end(&[Trouble::Name]);
            }
        }
    }

    /// Lets the origin forget old commits, on a thread of its own: after a large deletion that takes longer than the time between
    /// two heartbeats.
    fn trim(&self) {
        let origin = Arc::clone(&self.source.origin);
        let trim = move || {
            if let Err(cause) = origin.trim(KEPT_COMMITS) {
                tracing::warn!(%cause, "the database could not forget old commits");
            }
        };
        if let Err(cause) = spawn_thread("trim", trim) {
            tracing::warn!(%cause, "the database could not forget old commits");
        }
    }

    fn note(&self, trouble: Trouble, cause: &str) {
        self.source.state.troubles.note(trouble, &*self.source.origin, self.position().seq, cause);
    }

    fn position(&self) -> Position {
        self.shared.snapshot.load_full().map_or(Position::NONE, |state| state.position)
    }
}
