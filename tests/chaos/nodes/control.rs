//! The control of the torture: the same load, but the database takes a commit without comparing what it was computed on.
//! The load must then find lost updates, or it would find none elsewhere either.

use super::load::Load;
use super::{Cluster, database};
use crate::prelude::*;
use crate::support::line::Line;

/// A part of the statement that takes a commit if the head is the one that the commit names.
const COMPARED: &[u8] = b" AND seq = $4 AND name = $5";
/// The same part, of the same length, so that the head is moved in any case: `id = 1 OR seq = $4 AND name = $5`.
const NOT_COMPARED: &[u8] = b" OR  seq = $4 AND name = $5";

fn remove_comparison(request: &mut [u8]) {
    let found = request.windows(COMPARED.len()).position(|bytes| bytes == COMPARED);
    if let Some(at) = found {
        request[at..at + COMPARED.len()].copy_from_slice(NOT_COMPARED);
    }
}

#[test]
fn load_finds_lost_updates_and_stale_reads_without_the_comparison() {
    let (schema, postgres) = database();
    let line = Line::altered(postgres.folder(), remove_comparison);
    let cluster = Cluster::start((0..3).map(|_| schema.url_at(&line.url(ROLE))));
    let load = Load::new(&cluster);
    load.run(|| until("the load finds a lost update", || (load.lost_updates() > 0).then_some(())));
    println!("{}", load.end());
}
