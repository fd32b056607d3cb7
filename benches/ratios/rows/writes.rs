//! Rows 3-6: writes compared with the disk's sync rate, with each other and with a constant
//! response.

use super::{cost_ratio, costs, repeat};
use crate::ceiling;
use crate::load::run;
use crate::machine::sync_rate;
use crate::plan::{Group, Run, Span};
use crate::reference::Reference;
use crate::report::{ReportLine, middle, millis};
use crate::site::{CONNECTIONS, Site};
use crate::{Result, Settings, grouped};

/// The measurements of one round.
struct RoundResult {
    /// The fdatasync rates around the creates at 64 connections, and around those at one
    /// connection.
    syncs: [f64; 2],
    group: Run,
    alone: Run,
    patch: Run,
    constant: Run,
}

/// Measures the writes.
pub fn writes(settings: &Settings) -> Result<Vec<ReportLine>> {
    if !settings.wants(&[3, 4, 5, 6]) {
        return Ok(Vec::new());
    }
    let site = Site::few(settings, "writes")?;
    let (one, list) = site.bodies()?;
    let ceiling = ceiling::start(&settings.folder, settings.cores, &one, &list)?;
    let requests = [site.creates(), site.patches(), site.gets()];
    let rounds = repeat(settings, "writes", || round(settings, &site, &ceiling, &requests))?;
    Ok(lines(&rounds))
}

fn round(
    settings: &Settings,
    site: &Site,
    ceiling: &Reference,
    requests: &[Vec<Vec<u8>>; 3],
) -> Result<RoundResult> {
    let [creates, patches, gets] = requests;
    let span = Span::slice(settings.slice);
    // Measured on the service's core, so that wake-up times are comparable to those of its writer.
    let syncs = || settings.cores.on_server(|| sync_rate(&settings.folder, settings.slice / 2))?;
    let before = syncs()?;
    let group = site.run(&[Group::closed(CONNECTIONS, creates).expecting(201)], span)?;
    let between = syncs()?;
    let alone = site.run(&[Group::closed(1, creates).expecting(201)], span)?;
    let after = syncs()?;
    let patch = site.run(&[Group::closed(CONNECTIONS, patches)], span)?;
    let constant = run(ceiling.address, ceiling.pid(), &[Group::closed(CONNECTIONS, gets)], span)?;
    let syncs = [f64::midpoint(before, between), f64::midpoint(between, after)];
    Ok(RoundResult { syncs, group, alone, patch, constant })
}

fn lines(rounds: &[RoundResult]) -> Vec<ReportLine> {
    let syncs = |at: usize| grouped(middle(rounds, |round| round.syncs[at]));
    let group = grouped(middle(rounds, |round| round.group.rate()));
    let alone = grouped(middle(rounds, |round| round.alone.rate()));
    let p99 = middle(rounds, |round| millis(round.group.groups[0].quantile(0.99)));
    let cost = |what: &str, own: fn(&RoundResult) -> &Run| {
        let pairs: Vec<_> =
            rounds.iter().map(|round| (own(round).clone(), round.constant.clone())).collect();
        let rate = grouped(middle(rounds, |round| own(round).rate()));
        let what = format!("{what} at 64 / constant GET: CPU");
        ReportLine::ratio(6, what, cost_ratio(&pairs))
            .figures(format!("{}; {rate} req/s", costs(&pairs)))
            .at_most(3.5, 5.0)
    };
    let ratio = |row, what: &str, of: fn(&RoundResult) -> f64| {
        ReportLine::ratio(row, what, middle(rounds, of))
    };
    vec![
        ratio(3, "create at 64 / fdatasync rate", |round| round.group.rate() / round.syncs[0])
            .figures(format!("{group} of {} /s, p99 {p99:.1} ms", syncs(0)))
            .at_least(3.0, 2.0),
        ratio(4, "create at 64 / at 1 connection", |round| round.group.rate() / round.alone.rate())
            .figures(format!("{group} of {alone} /s"))
            .at_least(10.0, 6.0),
        ratio(5, "create at 1 connection / fdatasync rate", |round| {
            round.alone.rate() / round.syncs[1]
        })
        .figures(format!("{alone} of {} /s", syncs(1)))
        .at_least(0.25, 0.15),
        cost("create", |round| &round.group),
        cost("PATCH", |round| &round.patch),
    ]
}
