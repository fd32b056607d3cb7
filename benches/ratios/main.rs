//! Measures the ratios in `docs/performance.md`: the service compared with the limits of the same machine, in the same run.
//!
//! `cargo bench` prints the table, `cargo bench -- --quick` a coarser one. A missed goal is shown but is not an
//! error, because the speed of shared machines varies by half within minutes. For the same reason both figures of a
//! ratio are measured in alternation.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    clippy::duration_suboptimal_units,
    clippy::format_push_string,
    clippy::indexing_slicing,
    clippy::missing_errors_doc,
    clippy::similar_names,
    clippy::struct_field_names,
    missing_docs,
    unreachable_pub,
    reason = "a benchmark program with small numbers, not a library"
)]

mod browser;
mod ceiling;
#[path = "../../tests/support/chromedriver.rs"]
mod chromedriver;
mod database;
mod http;
#[expect(clippy::expect_used, dead_code, reason = "a helper of the tests")]
#[path = "../../tests/support/line.rs"]
mod line;
mod load;
mod machine;
#[cfg(feature = "sqlite-peer")]
mod peer;
mod plan;
#[expect(clippy::expect_used, clippy::panic, dead_code, reason = "a helper of the tests")]
#[path = "../../tests/support/postgres.rs"]
mod postgres;
mod process;
mod reference;
mod report;
#[path = "../shared/result.rs"]
mod result;
mod rows;
#[path = "../shared/sample.rs"]
mod sample;
mod service;
mod site;
mod straight;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use machine::{Machine, Neighbours};
use process::Cores;
use report::table;
pub use result::{Context, Result, fail, grouped};
use site::Resource;

/// Prints progress to stderr, because stdout is for the table.
pub fn progress(text: &str) {
    eprintln!("{text}");
}

const USAGE: &str = "\
cargo bench -- [OPTIONS]
  --quick          about a minute: short slices, 100,000 rows instead of a million
  --rows 1,2,7-9   only these rows of the table
  --markdown       print a Markdown table
  --reseed         recreate the large data file
  --before BINARY  an older build, to compare with in rows 31-35
  --data-dir DIR   folder of the data files (default: target/bench-data)
The service is the binary that cargo built, or STEWARD_BIN. Rows 36-42 start PostgreSQL, if it is installed.";

/// The parsed command line.
#[derive(Debug)]
pub struct Settings {
    quick: bool,
    markdown: bool,
    reseed: bool,
    /// An older build of the service.
    pub before: Option<PathBuf>,
    chosen: BTreeSet<u8>,
    pub folder: PathBuf,
    pub cores: Cores,
    /// The number of rows in the large file.
    pub many: u64,
    /// The number of alternating measurements of the service and its reference.
    pub rounds: usize,
    /// The length of one measurement.
    pub slice: Duration,
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().ok_or("no target folder")?;
        let mut settings = Self {
            quick: false,
            markdown: false,
            reseed: false,
            before: None,
            chosen: rows::ALL.into(),
            folder: target.join("bench-data"),
            cores: Cores::find()?,
            many: 1_000_000,
            rounds: 5,
            slice: Duration::from_millis(1_500),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} takes a value\n{USAGE}"));
            match arg.as_str() {
                "--bench" => {}
                "--quick" => {
                    (settings.quick, settings.many) = (true, 100_000);
                    (settings.rounds, settings.slice) = (3, Duration::from_millis(500));
                }
                "--markdown" => settings.markdown = true,
                "--reseed" => settings.reseed = true,
                "--before" => settings.before = Some(value()?.into()),
                "--rows" => settings.chosen = parse_rows(&value()?)?,
                "--data-dir" => settings.folder = value()?.into(),
                _ => return fail(format!("unknown argument {arg}\n{USAGE}")),
            }
        }
        Ok(settings)
    }

    /// Returns the folder of the large file.
    pub fn large_file(&self, resource: Resource) -> PathBuf {
        self.folder.join(format!("{}-{}", resource.name(), self.many))
    }

    /// Whether any of these rows was selected.
    pub fn wants(&self, rows: &[u8]) -> bool {
        rows.iter().any(|row| self.chosen.contains(row))
    }
}

fn parse_rows(text: &str) -> Result<BTreeSet<u8>> {
    let mut rows = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u8>().context(format!("--rows {part}"));
        rows.extend(number(first)?..=number(last)?);
    }
    match rows.iter().find(|row| !rows::ALL.contains(row)) {
        Some(row) => fail(format!("unknown row {row}; the rows are {:?}", rows::ALL)),
        None => Ok(rows),
    }
}

fn bench(settings: &Settings) -> Result<()> {
    let begin = Instant::now();
    std::fs::create_dir_all(&settings.folder).context("the data folder")?;
    if settings.reseed {
        for resource in [Resource::Dashboards, Resource::Insights] {
            site::remove(&settings.large_file(resource))?;
        }
    }
    // Read this before pinning to one core, which hides the other cores.
    let machine = Machine::describe(&settings.folder)?;
    process::pin(settings.cores.load)?;
    let neighbours = Neighbours::watch()?;
    let mut lines = rows::reads(settings)?;
    lines.extend(rows::writes(settings)?);
    lines.extend(rows::peers(settings)?);
    lines.extend(rows::builds(settings)?);
    lines.extend(rows::shared(settings)?);
    lines.extend(rows::nodes(settings)?);
    lines.extend(rows::keys(settings)?);
    lines.extend(rows::life(settings)?);
    lines.extend(rows::backups(settings)?);
    lines.extend(rows::insights(settings)?);
    lines.extend(rows::console(settings)?);
    lines.extend(rows::test_runs(settings)?);
    lines.retain(|line| settings.wants(&[line.row]));
    let (others, stolen) = neighbours.cores()?;
    println!("{machine}.\n{}", conditions(settings));
    println!(
        "Meanwhile other processes used {others:.2} cores and the host withheld {stolen:.2}.\n"
    );
    println!("{}", table(lines, settings.markdown));
    progress(&format!("took {:.0} s", begin.elapsed().as_secs_f64()));
    Ok(())
}

fn conditions(settings: &Settings) -> String {
    let Settings { cores, rounds, slice, many, .. } = settings;
    let placed = if cores.shared() {
        format!(
            "Servers and load SHARE core {}: only CPU and memory figures are meaningful",
            cores.server
        )
    } else {
        format!("Servers on core {}, load on core {}", cores.server, cores.load)
    };
    let quick = if settings.quick {
        " Quick run: shorter slices and fewer rows than the goals assume."
    } else {
        ""
    };
    format!(
        "{placed}; loopback, keep-alive, 64 connections; medians of {rounds} rounds of {:.1} s in alternation; \
         large file {} rows, page cache {} MiB.{quick}",
        slice.as_secs_f64(),
        grouped(*many),
        service::PAGE_CACHE >> 20,
    )
}

fn dispatch(args: Vec<OsString>) -> Result<()> {
    if let [flag, one, list] = &args[..]
        && flag == ceiling::FLAG
    {
        return ceiling::serve(Path::new(one), Path::new(list));
    }
    #[cfg(feature = "sqlite-peer")]
    if let [flag, data, body] = &args[..]
        && flag == peer::FLAG
    {
        return peer::serve(Path::new(data), Path::new(body));
    }
    let args: Vec<String> =
        args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    // `cargo test --all-targets` runs this program without `--bench`. A benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        println!("nothing measured: run `cargo bench`");
        return Ok(());
    }
    bench(&Settings::parse(args.into_iter())?)
}

fn main() -> ExitCode {
    match dispatch(std::env::args_os().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
