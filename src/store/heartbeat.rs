//! The heartbeat of a node: a small commit every two seconds, which shows that the shared database takes commits of this node
//! and how far its copy is. It also forgets old commits from time to time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

use crate::time::Clock;

use super::Store;
use super::open_error::OpenError;
use super::origin::{Origin, Position};
use super::origin_state::OriginState;
use super::shared::Shared;

/// The time between two heartbeats.
const BEAT_INTERVAL: Duration = Duration::from_secs(2);
/// The number of heartbeats between two trims: about an hour.
const BEATS_PER_TRIM: u64 = 1800;
/// How many commits the origin remembers. A copy that is further behind is made again.
const KEPT_COMMITS: u64 = 100_000;
/// The difference of the clocks that is reported, in milliseconds.
const CLOCK_TOLERANCE: u64 = 1000;

impl Store {
    /// Begins to send heartbeats, which make this process a node of its shared database until the store is closed. A command
    /// that opens a copy for a moment sends none. A data file has no nodes.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn start_heartbeat(&self) -> Result<(), OpenError> {
        let (Some(source), Some(state)) = (&self.source, &self.shared.origin) else {
            return Ok(());
        };
        let heartbeat = Heartbeat {
            origin: Arc::clone(&source.origin),
            state: Arc::clone(state),
            shared: Arc::clone(&self.shared),
        };
        let thread = std::thread::Builder::new().name("heartbeat".to_owned());
        let started = thread.spawn(move || heartbeat.run());
        started.map(drop).map_err(OpenError::io("start a thread of", self.path()))
    }
}

/// What the thread needs.
struct Heartbeat {
    origin: Arc<dyn Origin>,
    state: Arc<OriginState>,
    shared: Arc<Shared>,
}

impl Heartbeat {
    fn run(self) {
        let mut beats = 0_u64;
        let mut is_apart = false;
        loop {
            let begun = Instant::now();
            match self.origin.heartbeat(self.position(), now()) {
                Ok(ahead) => {
                    self.state.note_beat(begun);
                    let was_apart =
                        std::mem::replace(&mut is_apart, ahead.unsigned_abs() > CLOCK_TOLERANCE);
                    if is_apart && !was_apart {
                        tracing::warn!(
                            ahead_ms = ahead,
                            "the clock of this node differs from that of the database"
                        );
                    }
                    beats += 1;
                    if beats.is_multiple_of(BEATS_PER_TRIM) {
                        self.trim();
                    }
                }
                Err(cause) => tracing::debug!(%cause, "the database did not take a heartbeat"),
            }
            if !self.state.pause(BEAT_INTERVAL) {
                return;
            }
        }
    }

    fn trim(&self) {
        if let Err(cause) = self.origin.trim(KEPT_COMMITS) {
            tracing::warn!(%cause, "the database could not forget old commits");
        }
    }

    fn position(&self) -> Position {
        self.shared.snapshot.load_full().map_or(Position::NONE, |state| state.position)
    }
}

fn now() -> OffsetDateTime {
    let micros = i128::from(Clock::System.now().micros());
    OffsetDateTime::from_unix_timestamp_nanos(micros * 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
