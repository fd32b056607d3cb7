//! Rows 31-35: this build compared with an older one, in alternation.

use super::{cost_ratio, costs, micros, rate_ratio, rates, repeat};
use crate::plan::{Group, Run, Span};
use crate::report::{ReportLine, middle};
use crate::site::{CONNECTIONS, Site};
use crate::{Result, Settings, progress};

/// Measures both builds, if there is an older one.
pub fn builds(settings: &Settings) -> Result<Vec<ReportLine>> {
    if !settings.wants(&[31, 32, 33, 34, 35]) {
        return Ok(Vec::new());
    }
    let Some(before) = &settings.before else {
        progress("rows 31-35 are left out: they need `--before`");
        return Ok(Vec::new());
    };
    let older = Site::few_of(settings, "before", before)?;
    let now = Site::few(settings, "now")?;
    let [of_now, of_older] = [&now, &older]
        .map(|site| [site.gets(), site.list(0), site.creates(), site.patches(), site.creates()]);
    let mut lines = Vec::new();
    for (at, (what, connections, status)) in [
        ("GET one", CONNECTIONS, 200),
        ("list of 100", CONNECTIONS, 200),
        ("create at 64", CONNECTIONS, 201),
        ("PATCH at 64", CONNECTIONS, 200),
        ("create at 1 connection", 1, 201),
    ]
    .into_iter()
    .enumerate()
    {
        let row = 31 + at as u8;
        if !settings.wants(&[row]) {
            continue;
        }
        let run = |site: &Site, requests: &[Vec<u8>]| {
            let group = Group::closed(connections, requests).expecting(status);
            site.run(&[group], Span::slice(settings.slice))
        };
        let rounds = repeat(settings, &format!("{what}, two builds"), || {
            Ok((run(&now, &of_now[at])?, run(&older, &of_older[at])?))
        })?;
        lines.extend(compare(row, what, &rounds));
    }
    Ok(lines)
}

fn compare(row: u8, what: &str, rounds: &[(Run, Run)]) -> [ReportLine; 2] {
    let line = |of: &str, ratio| ReportLine::ratio(row, format!("{what} / before: {of}"), ratio);
    let writer = |run: &Run| micros(run) * run.writer_cpu / run.server_cpu;
    let own = middle(rounds, |(own, _)| writer(own));
    let other = middle(rounds, |(_, other)| writer(other));
    [
        line("req/s", rate_ratio(rounds)).figures(rates(rounds)),
        line("CPU", cost_ratio(rounds))
            .figures(format!("{}; writer thread {own:.1} of {other:.1} us", costs(rounds))),
    ]
}
