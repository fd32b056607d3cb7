//! Disks that lose, refuse or change what was written.

mod bit_rot;
mod faults;
pub mod full_disk;
mod io_faults;
mod power_cuts;

use crate::prelude::*;

/// The dashboards that a server acknowledged, each with its id and name.
#[derive(Default)]
pub struct Acknowledged(Vec<(u64, String)>);

impl Acknowledged {
    /// Creates a large dashboard. Asserts that the response is 201 or 503, and returns its status.
    pub fn create(&mut self, server: &Server, (path, key): (&str, &str), name: &str) -> u16 {
        let body = json!({ "name": name, "description": "x".repeat(16_000) });
        let reply = server.post(path, key, &body);
        match reply.status {
            201 => self.0.push((reply.json()["id"].as_u64().expect("an id"), name.to_owned())),
            _ => reply.assert_error(503, "server_error", "unavailable"),
        }
        reply.status
    }

    /// Asserts that all of them are among these.
    pub fn assert_shown(&self, shown: &[(u64, String)]) {
        let lost: Vec<_> = self.0.iter().filter(|one| !shown.contains(one)).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}
