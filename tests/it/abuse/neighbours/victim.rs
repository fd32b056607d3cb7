//! The victim: another organization on the same server, whose requests are few and cheap.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::stage::open_from;
use crate::support::process::Connection;

/// Where the victim's requests come from.
const ADDRESS: &str = "127.0.0.3";
/// How long the victim rests between two requests of one kind.
const REST: Duration = Duration::from_millis(2);
/// How long the victim waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the victim asks, and of whom.
pub struct Victim {
    pub address: SocketAddr,
    /// The requests, by kind: a word for the table, and the bytes that are sent.
    pub requests: Vec<(&'static str, String)>,
}

/// How long each request of one kind took, and how many were not served.
#[derive(Default)]
pub struct Samples {
    times: Vec<Duration>,
    pub failed: usize,
}

impl Samples {
    /// The time within which 99 of 100 requests were answered.
    pub fn p99(&self) -> Duration {
        let at = (self.times.len() * 99).div_ceil(100).saturating_sub(1);
        self.times.get(at).copied().unwrap_or(PATIENCE)
    }
}

/// The samples by kind, in the order of [`Victim::requests`].
pub type Latencies = Vec<(&'static str, Samples)>;

impl Victim {
    /// Sends requests of every kind side by side for this long.
    pub fn measure(&self, span: Duration) -> Latencies {
        thread::scope(|scope| {
            let kinds: Vec<_> = self
                .requests
                .iter()
                .map(|(kind, request)| (*kind, scope.spawn(|| repeat(self.address, request, span))))
                .collect();
            let joined = kinds.into_iter().map(|(kind, run)| (kind, run.join().expect("a victim")));
            joined.collect()
        })
    }
}

/// Sends one request again and again on a keep-alive connection.
fn repeat(address: SocketAddr, request: &str, span: Duration) -> Samples {
    let (mut samples, begun) = (Samples::default(), Instant::now());
    let mut connection = None;
    while begun.elapsed() < span {
        let asked = Instant::now();
        match ask(&mut connection, address, request) {
            Some(200..500) => samples.times.push(asked.elapsed()),
            status => {
                eprintln!("the victim got {status:?}");
                samples.failed += 1;
                connection = None;
            }
        }
        thread::sleep(REST);
    }
    samples.times.sort_unstable();
    samples
}

/// The status of the answer; none where none came. A connection that was closed while it was idle is opened again.
fn ask(connection: &mut Option<Connection>, address: SocketAddr, request: &str) -> Option<u16> {
    for _ in 0..2 {
        let open = match connection.take() {
            Some(open) => open,
            None => Connection::of(open_from(ADDRESS, address)?).ok()?,
        };
        open.patience(PATIENCE);
        let open = connection.insert(open);
        if open.write(request).is_ok()
            && let Ok(reply) = open.reply()
        {
            return Some(reply.status);
        }
        *connection = None;
    }
    None
}
