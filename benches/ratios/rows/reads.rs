//! Rows 1, 2, 11-15 and 20-23: reads compared with the ceiling, by file size, during writes and at a fixed rate.

use std::time::Duration;

use super::{cost_ratio, costs, p99, rate_ratio, rates, repeat};
use crate::ceiling;
use crate::load::run;
use crate::plan::{Group, Run, Span};
use crate::reference::Reference;
use crate::report::{ReportLine, Unit, middle, millis};
use crate::site::{CONNECTIONS, FEW, Resource, Site};
use crate::{Result, Settings, grouped, progress};

/// The rate of the open loop, in requests per second.
const OPEN_RATE: f64 = 10_000.0;

/// The list offset of row 13: the default cap of a project.
const DEEP: u64 = 100_000;

/// The measurements of one kind of read.
struct ReadKind {
    name: String,
    /// The size of a response, in bytes.
    size: usize,
    few: Vec<Vec<u8>>,
    many: Vec<Vec<u8>>,
    /// Pairs of runs: small file and ceiling, large file and small file.
    ceiling: Vec<(Run, Run)>,
    growth: Vec<(Run, Run)>,
}

/// The numbers of the rows of one resource: one object and a list of 100 against the ceiling, then both at many rows
/// against few.
type RowNumbers = [u8; 4];

/// The rows of dashboards.
const DASHBOARDS: RowNumbers = [1, 2, 12, 11];
/// The rows of insights.
const INSIGHTS: RowNumbers = [20, 21, 23, 22];

/// Measures the reads of insights.
pub fn insights(settings: &Settings) -> Result<Vec<ReportLine>> {
    if !settings.wants(&INSIGHTS) {
        return Ok(Vec::new());
    }
    let few = Site::new(settings, "insights", Resource::Insights, FEW)?;
    let many = settings.wants(&INSIGHTS[2..]);
    let many = many.then(|| Site::many(settings, Resource::Insights)).transpose()?;
    let (one, list) = few.bodies()?;
    let ceiling = ceiling::start(&settings.folder, settings.cores, &one, &list)?;
    let sizes = [one.len(), list.len()];
    let lines = plain(settings, &few, many.as_ref(), &ceiling, sizes, INSIGHTS)?;
    many.map_or(Ok(()), |many| many.service.stop())?;
    Ok(lines)
}

/// Measures the reads of dashboards.
pub fn reads(settings: &Settings) -> Result<Vec<ReportLine>> {
    let mut lines = Vec::new();
    if !settings.wants(&[1, 2, 11, 12, 13, 14, 15]) {
        return Ok(lines);
    }
    let few = Site::few(settings, "reads")?;
    let many = settings
        .wants(&[11, 12, 13])
        .then(|| Site::many(settings, Resource::Dashboards))
        .transpose()?;
    let (one, list) = few.bodies()?;
    let ceiling = ceiling::start(&settings.folder, settings.cores, &one, &list)?;
    if settings.wants(&[1, 2, 11, 12]) {
        let sizes = [one.len(), list.len()];
        lines.extend(plain(settings, &few, many.as_ref(), &ceiling, sizes, DASHBOARDS)?);
    }
    if let Some(many) = many.as_ref().filter(|_| settings.wants(&[13])) {
        lines.extend(deep(settings, many)?);
    }
    if settings.wants(&[15]) {
        lines.push(open_loop(settings, &few, &ceiling)?);
    }
    // Run this last, because the writers grow the small file.
    if settings.wants(&[14]) {
        lines.extend(beside_writers(settings, &few)?);
    }
    // The large file is used again, and most rows assume a cleanly closed file.
    many.map_or(Ok(()), |many| many.service.stop())?;
    Ok(lines)
}

/// Measures reads of one object and lists of 100.
fn plain(
    settings: &Settings,
    few: &Site,
    many: Option<&Site>,
    ceiling: &Reference,
    sizes: [usize; 2],
    [one_row, list_row, one_growth, list_growth]: RowNumbers,
) -> Result<Vec<ReportLine>> {
    let kind = |name, size, few: Vec<Vec<u8>>, many: Option<Vec<Vec<u8>>>| {
        let many = many.unwrap_or_default();
        ReadKind { name, size, few, many, ceiling: Vec::new(), growth: Vec::new() }
    };
    let objects = few.resource.name();
    let mut one = kind(format!("GET one of {objects}"), sizes[0], few.gets(), many.map(Site::gets));
    let mut list = kind(
        format!("list of 100 {objects}"),
        sizes[1],
        few.list(0),
        many.map(|many| many.list(0)),
    );
    let span = Span::slice(settings.slice);
    let mut busiest: f64 = 0.0;
    for round in 1..=settings.rounds {
        progress(&format!("reads: round {round} of {}", settings.rounds));
        for kind in [&mut one, &mut list] {
            let group = [Group::closed(CONNECTIONS, &kind.few)];
            let top = run(ceiling.address, ceiling.pid(), &group, span)?;
            busiest = busiest.max(top.generator_busy);
            let small = few.run(&group, span)?;
            if let Some(many) = many {
                let large = many.run(&[Group::closed(CONNECTIONS, &kind.many)], span)?;
                kind.growth.push((large, small.clone()));
            }
            kind.ceiling.push((small, top));
        }
    }
    // If the generator is fully busy, it limits the ceiling, and the service's ratio looks too
    // good.
    progress(&format!("the load generator was busy at most {:.0} % of its core", busiest * 100.0));
    let rows = few.count.max(1);
    let mut lines = Vec::from(against_ceiling(one_row, &one, [0.80, 0.65], [1.25, 1.6]));
    lines.extend(against_ceiling(list_row, &list, [0.60, 0.28], [1.7, 3.6]));
    if let Some(many) = many {
        lines.push(growth(list_growth, &list, many.count, rows).at_most(1.2, 1.35));
        lines.push(growth(one_growth, &one, many.count, rows).at_most(1.3, 1.45));
    }
    Ok(lines)
}

fn against_ceiling(row: u8, kind: &ReadKind, rate: [f64; 2], cost: [f64; 2]) -> [ReportLine; 2] {
    let what = format!("{} / constant {} B", kind.name, grouped(kind.size));
    let rounds = &kind.ceiling;
    [
        ReportLine::ratio(row, format!("{what}: req/s"), rate_ratio(rounds))
            .figures(rates(rounds))
            .at_least(rate[0], rate[1]),
        ReportLine::ratio(row, format!("{what}: CPU"), cost_ratio(rounds))
            .figures(costs(rounds))
            .at_most(cost[0], cost[1]),
    ]
}

fn growth(row: u8, kind: &ReadKind, many: u64, few: u64) -> ReportLine {
    let what = format!("{}: CPU at {} rows / at {}", kind.name, grouped(many), grouped(few));
    ReportLine::ratio(row, what, cost_ratio(&kind.growth)).figures(costs(&kind.growth))
}

/// Row 13: a single reader at a deep offset, then the effect of deep readers on others.
fn deep(settings: &Settings, many: &Site) -> Result<[ReportLine; 2]> {
    progress("deep offsets");
    let offset = DEEP.min(many.count.saturating_sub(100));
    let (first, far, gets) = (many.list(0), many.list(offset), many.gets());
    let span = Span::slice(settings.slice / 2);
    let mut alone = Vec::new();
    let mut beside = Vec::new();
    for _ in 0..settings.rounds {
        let near = many.run(&[Group::closed(1, &first)], span)?;
        let far_one = many.run(&[Group::closed(1, &far)], span)?;
        alone.push((millis(near.groups[0].quantile(0.5)), millis(far_one.groups[0].quantile(0.5))));
        let mixed = many.run(&[Group::closed(16, &gets), Group::closed(2, &far)], span)?;
        beside.push((millis(mixed.groups[0].quantile(0.99)), mixed.rate()));
    }
    let what = format!("list at offset {}: p50, 1 connection", grouped(offset));
    let figures = format!("{:.2} ms at offset 0", middle(&alone, |(near, _)| *near));
    let held_up = middle(&beside, |(p99, _)| *p99);
    Ok([
        ReportLine::new(13, what, middle(&alone, |(_, far)| *far), Unit::Millis)
            .figures(figures)
            .at_most(30.0, 100.0),
        ReportLine::new(13, "p99 of 16 GET one beside 2 such lists", held_up, Unit::Millis)
            .figures(format!("{} req/s", grouped(middle(&beside, |(_, rate)| *rate))))
            .at_most(3.0, 8.0),
    ])
}

/// Row 14: reads during writes.
fn beside_writers(settings: &Settings, few: &Site) -> Result<[ReportLine; 2]> {
    let (gets, creates) = (few.gets(), few.creates());
    let span = Span::slice(settings.slice);
    let readers = Group::closed(CONNECTIONS, &gets);
    let writers = Group::closed(16, &creates).expecting(201);
    let rounds = repeat(settings, "reads beside writers", || {
        let alone = few.run(&[readers], span)?;
        Ok((few.run(&[readers, writers], span)?, alone))
    })?;
    let writes = middle(&rounds, |(beside, _)| beside.groups[1].rate);
    let [beside, alone] = p99(&rounds);
    Ok([
        ReportLine::ratio(14, "reads beside 16 writers / reads alone", rate_ratio(&rounds))
            .figures(format!("{}, {} writes/s", rates(&rounds), grouped(writes)))
            .at_least(0.40, 0.30),
        ReportLine::new(14, "p99 of reads beside 16 writers", beside, Unit::Millis)
            .figures(format!("{alone:.2} ms alone"))
            .at_most(3.0, 8.0),
    ])
}

/// Row 15: latency at a fixed rate.
fn open_loop(settings: &Settings, few: &Site, ceiling: &Reference) -> Result<ReportLine> {
    let gets = few.gets();
    let group = [Group::closed(CONNECTIONS, &gets).paced(OPEN_RATE)];
    let span = Span::slice(settings.slice.max(Duration::from_secs(1)));
    let rounds = repeat(settings, "open loop", || {
        let top = run(ceiling.address, ceiling.pid(), &group, span)?;
        Ok((few.run(&group, span)?, top))
    })?;
    let [own, top] = p99(&rounds);
    let half = middle(&rounds, |(own, _)| millis(own.groups[0].quantile(0.5)));
    let what = format!("p99 of GET one at {} req/s, open loop", grouped(OPEN_RATE));
    Ok(ReportLine::new(15, what, own, Unit::Millis)
        .figures(format!("p50 {half:.3} ms; ceiling's p99 {top:.3} ms"))
        .at_most(1.0, 3.0))
}
