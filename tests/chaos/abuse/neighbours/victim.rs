//! The victim: another organization on the same server, with few and cheap requests.

use std::time::Instant;

use crate::prelude::*;
use crate::support::process::TEST_TIMEOUT;

/// The address of the victim.
const ADDRESS: &str = "127.0.0.3";

/// The requests of the victim, and the server.
pub struct Victim {
    pub address: SocketAddr,
    /// The requests by kind: the name in the table, and the bytes to send.
    pub requests: Vec<(&'static str, String)>,
}

/// The latencies of the requests of one kind, and the number of failed ones.
#[derive(Default)]
pub struct Samples {
    times: Vec<Duration>,
    pub failed: usize,
}

impl Samples {
    /// Returns the 99th percentile of the latencies.
    pub fn p99(&self) -> Duration {
        let at = (self.times.len() * 99).div_ceil(100).saturating_sub(1);
        self.times.get(at).copied().unwrap_or(TEST_TIMEOUT)
    }
}

/// The samples by kind, in the order of [`Victim::requests`].
pub type Latencies = Vec<(&'static str, Samples)>;

impl Victim {
    /// Sends this many requests of each kind, the kinds concurrently.
    pub fn measure(&self, count: usize) -> Latencies {
        thread::scope(|scope| {
            let kinds: Vec<_> = self
                .requests
                .iter()
                .map(|(kind, request)| {
                    (*kind, scope.spawn(move || repeat(self.address, request, count)))
                })
                .collect();
            kinds.into_iter().map(|(kind, run)| (kind, run.join().expect("a victim"))).collect()
        })
    }
}

/// Sends one request repeatedly on a keep-alive connection.
fn repeat(address: SocketAddr, request: &str, count: usize) -> Samples {
    let mut samples = Samples::default();
    let mut connection = None;
    for _ in 0..count {
        let asked = Instant::now();
        match ask(&mut connection, address, request) {
            Some(200..500) => samples.times.push(asked.elapsed()),
            status => {
                eprintln!("the victim got {status:?}");
                samples.failed += 1;
                connection = None;
            }
        }
    }
    samples.times.sort_unstable();
    samples
}

/// Returns the status of the response, or `None` without a response. Reopens a connection that was closed while idle.
fn ask(connection: &mut Option<Connection>, address: SocketAddr, request: &str) -> Option<u16> {
    for _ in 0..2 {
        let open = match connection.take() {
            Some(open) => open,
            None => Connection::of(connect_from(ADDRESS, address).ok()?).ok()?,
        };
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
