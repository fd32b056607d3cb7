//! Rows 28-30: writes compared with those of a peer, axum over `SQLite`, in alternation.

use std::time::Duration;

use super::{cost_ratio, costs, micros, p99, rate_ratio, rates, repeat};
use crate::load::run;
use crate::peer;
use crate::plan::{Group, Span};
use crate::reference::Reference;
use crate::report::{ReportLine, middle};
use crate::site::{CONNECTIONS, FEW, Site};
use crate::{Result, Settings};

/// The objects that the peer has at the start: all that the changes name.
const PEER_OBJECTS: u64 = 2 * FEW;

/// Measures the writes of the service and of the peer.
pub fn peers(settings: &Settings) -> Result<Vec<ReportLine>> {
    if !settings.wants(&[28, 29, 30]) {
        return Ok(Vec::new());
    }
    let site = Site::few(settings, "peers")?;
    let (one, _) = site.bodies()?;
    let peer = peer::start(&settings.folder.join("peer"), settings.cores, &one)?;
    let (creates, patches) = (site.creates(), site.patches());
    let seed = Group::closed(CONNECTIONS, &creates).expecting(201);
    let span = Span::exactly(PEER_OBJECTS, Duration::from_secs(60));
    run(peer.address, peer.pid(), &[seed], span)?;
    let mut lines = Vec::new();
    for (row, what, group) in [
        (28, "create at 64", Group::closed(CONNECTIONS, &creates).expecting(201)),
        (29, "PATCH at 64", Group::closed(CONNECTIONS, &patches)),
        (30, "create at 1 connection", Group::closed(1, &creates).expecting(201)),
    ] {
        if settings.wants(&[row]) {
            lines.extend(compare(settings, (&site, &peer), row, what, group)?);
        }
    }
    Ok(lines)
}

fn compare(
    settings: &Settings,
    (site, peer): (&Site, &Reference),
    row: u8,
    what: &str,
    group: Group<'_>,
) -> Result<[ReportLine; 2]> {
    let span = Span::slice(settings.slice);
    let rounds = repeat(settings, &format!("{what}, beside SQLite"), || {
        Ok((site.run(&[group], span)?, run(peer.address, peer.pid(), &[group], span)?))
    })?;
    let [own, other] = p99(&rounds);
    let writer = middle(&rounds, |(run, _)| micros(run) * run.writer_cpu / run.server_cpu);
    Ok([
        ReportLine::ratio(row, format!("{what} / axum + SQLite: req/s"), rate_ratio(&rounds))
            .figures(format!("{}; p99 {own:.1} of {other:.1} ms", rates(&rounds))),
        ReportLine::ratio(row, format!("{what} / axum + SQLite: CPU"), cost_ratio(&rounds))
            .figures(format!("{}; writer thread {writer:.1} us", costs(&rounds))),
    ])
}
