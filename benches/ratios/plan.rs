//! The plan of a load run, and its results.

use std::time::Duration;

/// The timing of a group's requests.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Each connection sends the next request as soon as it has the response.
    Closed,
    /// This many requests per second, even if responses fall behind. Latency counts from the time a request was
    /// due, so a stall affects every request that it delays.
    Open(f64),
}

/// Connections that send the same requests. Each group of a run is counted separately.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    pub connections: usize,
    pub requests: &'a [Vec<u8>],
    /// The expected status of every response.
    pub status: u16,
    pub pace: Pace,
}

impl<'a> Group<'a> {
    /// Creates a closed loop that expects status 200.
    pub fn closed(connections: usize, requests: &'a [Vec<u8>]) -> Self {
        Self { connections, requests, status: 200, pace: Pace::Closed }
    }

    /// Sets the expected status.
    pub fn expecting(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Makes the group an open loop with `rate` requests per second.
    pub fn paced(self, rate: f64) -> Self {
        Self { pace: Pace::Open(rate), ..self }
    }
}

/// The duration of a run.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The time before measuring starts.
    pub ramp: Duration,
    /// The measured time.
    pub length: Duration,
    /// The run ends early when every group has sent this many requests.
    pub limit: Option<u64>,
    /// Whether to wait for outstanding responses at the end.
    pub drain: bool,
}

impl Span {
    /// Creates a run of `length` after a short ramp.
    pub fn slice(length: Duration) -> Self {
        Self { ramp: Duration::from_millis(100), length, limit: None, drain: true }
    }

    /// Creates a run of exactly `limit` requests without a ramp, of at most `length`.
    pub fn exactly(limit: u64, length: Duration) -> Self {
        Self { ramp: Duration::ZERO, length, limit: Some(limit), drain: true }
    }
}

/// The results of one group.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub answers: u64,
    pub rate: f64,
    /// In nanoseconds, sorted once the run has ended.
    pub latencies: Vec<u32>,
}

impl Tally {
    /// Returns the latency at a quantile such as 0.5 or 0.99.
    pub fn quantile(&self, rank: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * rank).round() as usize;
        Duration::from_nanos(self.latencies.get(at).copied().unwrap_or(0).into())
    }
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Run {
    pub groups: Vec<Tally>,
    /// The CPU time of the server in the measured time, in seconds.
    pub server_cpu: f64,
    /// The part of it that the thread named `writer` used.
    pub writer_cpu: f64,
    /// The generator's use of its core in the measured time. Near 1, the generator limited the rate.
    pub generator_busy: f64,
}

impl Run {
    /// Returns the rate of the first group, in requests per second.
    pub fn rate(&self) -> f64 {
        self.groups[0].rate
    }

    /// Returns the server's CPU time per response of the first group, in seconds.
    pub fn cpu_per_answer(&self) -> f64 {
        self.server_cpu / self.groups[0].answers.max(1) as f64
    }
}

/// Converts a latency to nanoseconds, capped at 4.29 s.
pub fn nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}
