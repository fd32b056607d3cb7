//! Rows 28-30: writes compared with those of a peer, axum over `SQLite`, in alternation.

use std::time::Duration;

use super::{cost_ratio, costs, micros, rate_ratio, rates};
use crate::load::run;
use crate::peer::Peer;
use crate::plan::{Group, Run, Span};
use crate::report::{ReportLine, Unit, middle, millis};
use crate::site::{CONNECTIONS, FEW, Site};
use crate::{Result, Settings, progress};

/// The objects that the peer has at the start: all that the changes name.
const PEER_OBJECTS: u64 = 2 * FEW;

/// Measures the writes of the service and of the peer.
pub fn peers(settings: &Settings) -> Result<Vec<ReportLine>> {
    if !settings.wants(&[28, 29, 30]) {
        return Ok(Vec::new());
    }
    let site = Site::few(settings, "peers")?;
    let (one, _) = site.bodies()?;
    let peer = Peer::start(&settings.folder.join("peer"), settings.cores, &one)?;
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
    (site, peer): (&Site, &Peer),
    row: u8,
    what: &str,
    group: Group<'_>,
) -> Result<[ReportLine; 2]> {
    let span = Span::slice(settings.slice);
    let mut rounds: Vec<(Run, Run)> = Vec::new();
    for round in 1..=settings.rounds {
        progress(&format!("{what}, beside SQLite: round {round} of {}", settings.rounds));
        rounds.push((site.run(&[group], span)?, run(peer.address, peer.pid(), &[group], span)?));
    }
    let p99 = |get: fn(&(Run, Run)) -> &Run| {
        middle(&rounds, |round| millis(get(round).groups[0].quantile(0.99)))
    };
    let (own, other) = (p99(|round| &round.0), p99(|round| &round.1));
    let writer = middle(&rounds, |(run, _)| micros(run) * run.writer_cpu / run.server_cpu);
    Ok([
        ReportLine::new(
            row,
            format!("{what} / axum + SQLite: req/s"),
            rate_ratio(&rounds),
            Unit::Times,
        )
        .figures(format!("{}; p99 {own:.1} of {other:.1} ms", rates(&rounds))),
        ReportLine::new(
            row,
            format!("{what} / axum + SQLite: CPU"),
            cost_ratio(&rounds),
            Unit::Times,
        )
        .figures(format!("{}; writer thread {writer:.1} us", costs(&rounds))),
    ])
}
