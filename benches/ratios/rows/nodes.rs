//! Rows 43-46: a database far away, three nodes, a node that follows another, and the start of a node.
//!
//! As in rows 36-42, PostgreSQL runs on the core of the load, and all nodes run on that of the servers.

use std::thread;
use std::time::Duration;

use super::{rate_ratio, rates, repeat};
use crate::database::{self, Connection};
use crate::line::Line;
use crate::load::run;
use crate::plan::{Group, Run, Span};
use crate::postgres::{ROLE, Schema};
use crate::process::cpu_seconds;
use crate::report::{ReportLine, Unit, middle, millis};
use crate::service::Service;
use crate::site::{CONNECTIONS, Site};
use crate::{Result, Settings, grouped, progress};

/// These rows.
const ROWS: [u8; 4] = [43, 44, 45, 46];

/// The connections of the second measurement of row 43.
const MANY_CONNECTIONS: usize = 256;

/// How long the line of row 43 holds what it receives. With the time that it takes itself, a round trip takes about 0.7 ms.
const DELAY: Duration = Duration::from_micros(200);

/// Measures several nodes, if PostgreSQL is installed.
pub fn nodes(settings: &Settings) -> Result<Vec<ReportLine>> {
    if !settings.wants(&ROWS) {
        return Ok(Vec::new());
    }
    // Dropped last, after the nodes and the connections.
    let Some(server) = database::start("43-46")? else { return Ok(Vec::new()) };
    let schema = Schema::on(&server.url(ROLE));
    let site = Site::shared(settings, "nodes", &schema.url())?;
    let mut lines = Vec::new();
    if settings.wants(&[43]) {
        let line = Line::to(server.folder());
        line.slow_down(DELAY);
        lines.extend(far(settings, &site, &schema.url_at(&line.url(ROLE)))?);
    }
    let other = |name: &str| site.another_node(settings, name, &schema.url());
    if settings.wants(&[44]) {
        lines.extend(three(settings, &site, &[other("nodes-b")?, other("nodes-c")?])?);
    }
    if settings.wants(&[45]) {
        lines.push(following(settings, &site, &other("nodes-d")?)?);
    }
    if settings.wants(&[46]) {
        let connection = Connection::open(&schema.url())?;
        lines.extend(starts(settings, &site, &schema, &connection)?);
    }
    Ok(lines)
}

/// Row 43: reads of a node whose database is far away.
fn far(settings: &Settings, site: &Site, url: &str) -> Result<Vec<ReportLine>> {
    let node = site.another_node(settings, "nodes-far", url)?;
    let trip = Connection::open(url)?.round_trip(settings.slice / 2)?;
    let (gets, span) = (site.gets(), Span::slice(settings.slice));
    let measure = |(connections, goal, floor): (usize, f64, f64)| {
        let groups = [Group::closed(connections, &gets)];
        let rounds = repeat(settings, &format!("reads far away at {connections}"), || {
            Ok((run(node.address, node.pid(), &groups, span)?, site.run(&groups, span)?))
        })?;
        let what = format!("GET one at {connections}, database {:.2} ms away / near", millis(trip));
        Ok(ReportLine::ratio(43, what, rate_ratio(&rounds))
            .figures(rates(&rounds))
            .at_least(goal, floor))
    };
    [(CONNECTIONS, 0.25, 0.15), (MANY_CONNECTIONS, 0.5, 0.35)].into_iter().map(measure).collect()
}

/// Row 44: creates at three nodes compared with those at one.
fn three(settings: &Settings, site: &Site, others: &[Service; 2]) -> Result<[ReportLine; 2]> {
    let (creates, span) = (site.creates(), Span::slice(settings.slice));
    let groups = [Group::closed(CONNECTIONS, &creates).expecting(201)];
    let nodes = [&site.service, &others[0], &others[1]];
    let rounds = repeat(settings, "creates at three nodes", || {
        let alone = site.run(&groups, span)?.rate();
        let at_once: Vec<Result<Run>> = thread::scope(|scope| {
            let write = |node: &'_ Service| run(node.address, node.pid(), &groups, span);
            let writing = nodes.map(|node| scope.spawn(move || write(node)));
            let joined = writing.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|one| one.unwrap_or_else(|_| Err("the writers panicked".into()))).collect()
        });
        let each = at_once.into_iter().map(|one| Ok(one?.rate())).collect::<Result<Vec<_>>>()?;
        let slowest = each.iter().copied().fold(f64::INFINITY, f64::min);
        Ok([each.iter().sum(), alone, slowest])
    })?;
    let [sum, alone] = [0, 1].map(|at| grouped(middle(&rounds, |round| round[at])));
    let ratio = middle(&rounds, |[sum, alone, _]| sum / alone);
    let share = middle(&rounds, |[sum, _, slowest]| slowest * 3.0 / sum);
    Ok([
        ReportLine::ratio(44, "create at three nodes x 64 / at one x 64", ratio)
            .figures(format!("{sum} of {alone} /s"))
            .at_least(0.5, 0.35),
        ReportLine::ratio(44, "the slowest of these nodes / their mean", share).at_least(0.5, 0.3),
    ])
}

/// Row 45: the CPU time of a node without clients for each PATCH at another.
fn following(settings: &Settings, site: &Site, node: &Service) -> Result<ReportLine> {
    let patches = site.patches();
    let groups = [Group::closed(CONNECTIONS, &patches)];
    let rounds = repeat(settings, "a node that follows", || {
        let before = cpu_seconds(node.pid())?;
        let run = site.run(&groups, Span::slice(settings.slice))?;
        // The node asks once a second.
        thread::sleep(Duration::from_millis(1100));
        let took = cpu_seconds(node.pid())? - before;
        Ok((took * 1e6 / run.groups[0].answers as f64, run.rate()))
    })?;
    let micros = middle(&rounds, |(micros, _)| *micros);
    let rate = grouped(middle(&rounds, |(_, rate)| *rate));
    Ok(ReportLine::new(45, "CPU of a node for a PATCH at another", micros, Unit::Micros)
        .figures(format!("at {rate} PATCHes/s"))
        .at_most(60.0, 100.0))
}

/// Row 46: the start of a node, with its copy and without one.
fn starts(
    settings: &Settings,
    site: &Site,
    schema: &Schema,
    connection: &Connection,
) -> Result<[ReportLine; 2]> {
    let path = site.first_path();
    let rows: f64 = schema.execute("SELECT count(*) FROM steward_rows")[0][0].parse()?;
    let mut file = Site::few(settings, "nodes-file")?;
    let mut rounds = Vec::new();
    for round in 1..=settings.rounds {
        progress(&format!("starts of a node: round {round} of {}", settings.rounds));
        let (node, without) = site.timed_node(settings, "nodes-start", &schema.url())?;
        let copied = settings.cores.on_server(|| connection.copy_rows())??;
        let node = node.restarted(settings.cores)?;
        let with = node.first_answer(&path, &site.key)?;
        node.stop()?;
        file = file.restarted(settings)?;
        let of_file = file.first_answer()?;
        rounds.push([without, copied, with, of_file].map(millis));
    }
    let [without, copied, with, of_file] =
        [0, 1, 2, 3].map(|at| middle(&rounds, |round| round[at]));
    let rows = grouped(rows);
    Ok([
        ReportLine::new(46, "start with a copy - start of a file", with - of_file, Unit::Millis)
            .figures(format!("{with:.1} and {of_file:.1} ms"))
            .at_most(1.0, 500.0),
        ReportLine::ratio(46, "start without a copy / COPY of all rows", without / copied)
            .figures(format!("{without:.0} of {copied:.0} ms, {rows} rows"))
            .at_most(2.5, 4.0),
    ])
}
