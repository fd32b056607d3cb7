//! What a run of the load generator is to do, and what it brings back.

use std::time::Duration;

/// When a group sends.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Each connection sends as soon as its answer is there.
    Closed,
    /// So many requests a second, whether or not answers keep up. Latency counts from the moment a request was due,
    /// so a stall is seen by all that it delays.
    Open(f64),
}

/// Connections that send the same requests, counted apart from other groups of a run.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    pub connections: usize,
    pub requests: &'a [Vec<u8>],
    /// The one status that is right.
    pub status: u16,
    pub pace: Pace,
}

impl<'a> Group<'a> {
    /// A closed loop that expects 200.
    pub fn closed(connections: usize, requests: &'a [Vec<u8>]) -> Self {
        Self { connections, requests, status: 200, pace: Pace::Closed }
    }

    /// The same group expecting another status.
    pub fn expecting(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The same group sending `rate` requests a second.
    pub fn paced(self, rate: f64) -> Self {
        Self { pace: Pace::Open(rate), ..self }
    }
}

/// How long a run lasts.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Time before counting starts.
    pub ramp: Duration,
    /// Time that counts.
    pub length: Duration,
    /// The run ends early when a group has sent so many.
    pub limit: Option<u64>,
    /// Whether to wait for the answers still due at the end.
    pub drain: bool,
}

impl Span {
    /// A slice of `length` after a short ramp.
    pub fn slice(length: Duration) -> Self {
        Self { ramp: Duration::from_millis(100), length, limit: None, drain: true }
    }

    /// Exactly `limit` requests, all counted, in `length` at most.
    pub fn exactly(limit: u64, length: Duration) -> Self {
        Self { ramp: Duration::ZERO, length, limit: Some(limit), drain: true }
    }
}

/// What one group achieved.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub answers: u64,
    pub rate: f64,
    /// Nanoseconds; ascending once the run has ended.
    pub latencies: Vec<u32>,
}

impl Tally {
    /// The latency that the share `rank` of the answers (0.5, 0.99) did not exceed.
    pub fn quantile(&self, rank: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * rank).round() as usize;
        Duration::from_nanos(self.latencies.get(at).copied().unwrap_or(0).into())
    }
}

/// What a run achieved.
#[derive(Clone, Debug)]
pub struct Run {
    pub groups: Vec<Tally>,
    /// CPU time of the watched server in the counted time, in seconds.
    pub server_cpu: f64,
    /// Share of the counted time that the generator itself used: near 1 it, not the server, set the rate.
    pub generator_busy: f64,
}

impl Run {
    /// The first group's requests a second.
    pub fn rate(&self) -> f64 {
        self.groups[0].rate
    }

    /// Server CPU seconds per answer of the first group.
    pub fn cpu_per_answer(&self) -> f64 {
        self.server_cpu / self.groups[0].answers.max(1) as f64
    }
}

/// A latency as it is kept; over 4.29 s all are alike.
pub fn nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}
