//! Rows 36-42: a service on a shared database compared with one on a data file, with PostgreSQL alone, and beside writers on
//! another node.
//!
//! PostgreSQL runs on the core of the load, and all nodes run on that of the servers.

use std::thread;
use std::time::Duration;

use super::{cost_ratio, costs, p99, rate_ratio, rates, repeat};
use crate::database::{self, Connection};
use crate::load::run;
use crate::plan::{Group, Run, Span};
use crate::postgres::{ROLE, Schema};
use crate::report::{ReportLine, Unit, middle, millis};
use crate::service::Service;
use crate::site::{CONNECTIONS, Site};
use crate::straight::{RECORDED, Straight};
use crate::{Result, Settings, fail, grouped};

/// These rows.
const ROWS: [u8; 7] = [36, 37, 38, 39, 40, 41, 42];

/// The connections that write to the other node.
const WRITERS: usize = 16;

/// How much longer than the readers the writers on the other node run.
const WRITERS_LONGER: Duration = Duration::from_millis(300);

/// Measures a shared database, if PostgreSQL is installed.
pub fn shared(settings: &Settings) -> Result<Vec<ReportLine>> {
    if !settings.wants(&ROWS) {
        return Ok(Vec::new());
    }
    // Dropped last, after the nodes and the connections.
    let Some(server) = database::start("36-42")? else { return Ok(Vec::new()) };
    let url = server.url(ROLE);
    let (schema, own) = (Schema::on(&url), Schema::on(&url));
    let connection = Connection::open(&own.url())?;
    let site = Site::shared(settings, "shared", &schema.url())?;
    let mut lines = Vec::new();
    if settings.wants(&[36, 37, 38]) {
        lines.extend(reads(settings, &site, &connection)?);
    }
    if settings.wants(&[39, 40, 41]) {
        let creates = site.creates();
        let create = || create_exactly(&site, &creates, RECORDED);
        let mut straight = Straight::record(&connection, &own, &schema, create)?;
        lines.extend(writes(settings, &site, &connection, &mut straight)?);
    }
    if settings.wants(&[42]) {
        let node = site.another_node(settings, "shared-other", &schema.url())?;
        lines.extend(beside_another_node(settings, &site, &node)?);
    }
    Ok(lines)
}

/// Rows 36-38: reads compared with those of a data file.
fn reads(settings: &Settings, site: &Site, connection: &Connection) -> Result<Vec<ReportLine>> {
    let file = Site::few(settings, "shared-file")?;
    let sites = [site, &file];
    let (gets, lists) = (sites.map(Site::gets), sites.map(|site| site.list(0)));
    let mut lines = Vec::new();
    if settings.wants(&[36]) {
        let rounds = alternate(settings, "GET one", sites, &gets)?;
        lines.push(
            ReportLine::ratio(36, "GET one, shared / file: req/s", rate_ratio(&rounds))
                .figures(rates(&rounds))
                .at_least(0.65, 0.45),
        );
        lines.push(
            ReportLine::ratio(36, "GET one, shared / file: CPU", cost_ratio(&rounds))
                .figures(costs(&rounds))
                .at_most(1.5, 1.9),
        );
    }
    if settings.wants(&[37]) {
        let rounds = alternate(settings, "list of 100", sites, &lists)?;
        lines.push(
            ReportLine::ratio(37, "list of 100, shared / file: req/s", rate_ratio(&rounds))
                .figures(rates(&rounds))
                .at_least(0.85, 0.6),
        );
    }
    if settings.wants(&[38]) {
        lines.push(one_reader(settings, sites, &gets, connection)?);
    }
    Ok(lines)
}

/// Measures reads of the shared database and of the file at 64 connections.
fn alternate(
    settings: &Settings,
    what: &str,
    sites: [&Site; 2],
    requests: &[Vec<Vec<u8>>; 2],
) -> Result<Vec<(Run, Run)>> {
    let span = Span::slice(settings.slice);
    let run = |at: usize| sites[at].run(&[Group::closed(CONNECTIONS, &requests[at])], span);
    repeat(settings, &format!("{what}, shared and file"), || Ok((run(0)?, run(1)?)))
}

/// Row 38: how much longer one reader waits than with a data file, in round trips.
fn one_reader(
    settings: &Settings,
    sites: [&Site; 2],
    requests: &[Vec<Vec<u8>>; 2],
    connection: &Connection,
) -> Result<ReportLine> {
    let span = Span::slice(settings.slice);
    let median = |at: usize| -> Result<f64> {
        let run = sites[at].run(&[Group::closed(1, &requests[at])], span)?;
        Ok(millis(run.groups[0].quantile(0.5)))
    };
    let rounds = repeat(settings, "GET one at 1 connection", || {
        let (shared, file) = (median(0)?, median(1)?);
        // On the service's core, so that wake-up times are comparable to those of its connection.
        let trip = settings.cores.on_server(|| connection.round_trip(settings.slice / 2))??;
        Ok([shared, file, millis(trip)])
    })?;
    let micros = |at: usize| middle(&rounds, |round| round[at] * 1e3);
    let ratio = middle(&rounds, |[shared, file, trip]| (shared - file) / trip);
    let figures =
        format!("p50 {:.0} and {:.0} us; SELECT 1 {:.0} us", micros(0), micros(1), micros(2));
    let what = "GET one at 1 connection: (shared - file) / SELECT 1";
    Ok(ReportLine::ratio(38, what, ratio).figures(figures).at_most(2.5, 4.0))
}

/// Creates exactly `number` dashboards.
fn create_exactly(site: &Site, creates: &[Vec<u8>], number: u64) -> Result<()> {
    let group = Group::closed(CONNECTIONS, creates).expecting(201);
    let run = site.run(&[group], Span::exactly(number, Duration::from_secs(60)))?;
    let answers = run.groups[0].answers;
    if answers == number { Ok(()) } else { fail(format!("{answers} of {number} creates in 60 s")) }
}

/// The rates of one round of writes, a second.
struct WriteRates {
    /// Creates at 64 connections, and at one.
    group: f64,
    alone: f64,
    p99: f64,
    /// Creates whose rows are put straight into PostgreSQL.
    straight: f64,
    /// Commits of one row.
    commits: f64,
}

/// Rows 39-41: creates compared with the same rows put straight into PostgreSQL, with each other and with commits of one
/// row.
fn writes(
    settings: &Settings,
    site: &Site,
    connection: &Connection,
    straight: &mut Straight<'_>,
) -> Result<[ReportLine; 3]> {
    let creates = site.creates();
    let run = |connections: usize| {
        let group = Group::closed(connections, &creates).expecting(201);
        site.run(&[group], Span::slice(settings.slice))
    };
    let rounds = repeat(settings, "creates, shared", || {
        let group = run(CONNECTIONS)?;
        let straight = settings.cores.on_server(|| straight.put_all())??;
        let alone = run(1)?.rate();
        let time = settings.slice / 2;
        let commits = settings.cores.on_server(|| connection.single_commits(time))??;
        let p99 = millis(group.groups[0].quantile(0.99));
        Ok(WriteRates { group: group.rate(), alone, p99, straight, commits })
    })?;
    Ok(write_lines(&rounds, straight))
}

fn write_lines(rounds: &[WriteRates], straight: &Straight<'_>) -> [ReportLine; 3] {
    let line = |row, what: &str, own: fn(&WriteRates) -> f64, other: fn(&WriteRates) -> f64| {
        let ratio = middle(rounds, |round| own(round) / other(round));
        let [own, other] = [own, other].map(|rate| grouped(middle(rounds, rate)));
        (ReportLine::ratio(row, what, ratio), format!("{own} of {other} /s"))
    };
    let p99 = middle(rounds, |round| round.p99);
    let commit = format!(
        "{:.0} rows of {:.0} creates a commit",
        straight.rows_of_a_commit(),
        straight.creates_of_a_commit()
    );
    let (limit, limit_rates) = line(
        39,
        "create at 64, shared / the same rows straight into PostgreSQL",
        |round| round.group,
        |round| round.straight,
    );
    let (many, many_rates) = line(
        40,
        "create at 64 / at 1 connection, shared",
        |round| round.group,
        |round| round.alone,
    );
    let (one, one_rates) = line(
        41,
        "create at 1 connection, shared / single-row commits of PostgreSQL",
        |round| round.alone,
        |round| round.commits,
    );
    [
        limit.figures(format!("{limit_rates}, p99 {p99:.1} ms; {commit}")).at_least(0.5, 0.3),
        many.figures(many_rates).at_least(3.5, 2.5),
        one.figures(one_rates).at_least(0.4, 0.25),
    ]
}

/// Row 42: reads during writes at another node.
fn beside_another_node(
    settings: &Settings,
    site: &Site,
    node: &Service,
) -> Result<[ReportLine; 2]> {
    let (gets, creates) = (site.gets(), site.creates());
    let span = Span::slice(settings.slice);
    let readers = [Group::closed(CONNECTIONS, &gets)];
    let writers = [Group::closed(WRITERS, &creates).expecting(201)];
    let writing = Span::slice(settings.slice + WRITERS_LONGER);
    let mut writes = Vec::new();
    let rounds = repeat(settings, "reads beside another node", || {
        let alone = site.run(&readers, span)?;
        let (beside, written) = thread::scope(|scope| {
            let written = scope.spawn(|| run(node.address, node.pid(), &writers, writing));
            (site.run(&readers, span), written.join())
        });
        writes.push(written.map_err(|_| "the writers panicked")??.rate());
        Ok((beside?, alone))
    })?;
    let [beside, alone] = p99(&rounds);
    let rates = format!("{}, {} writes/s", rates(&rounds), grouped(middle(&writes, |rate| *rate)));
    let what = "GET one beside 16 writers on another node / alone, shared";
    Ok([
        ReportLine::ratio(42, what, rate_ratio(&rounds)).figures(rates).at_least(0.4, 0.3),
        ReportLine::new(42, "p99 of GET one beside these writers", beside, Unit::Millis)
            .figures(format!("{alone:.2} ms alone"))
            .at_most(10.0, 25.0),
    ])
}
