//! Counts the instructions of single operations, so that a change which makes an operation dearer is noticed.
//!
//! Times on a shared machine vary by more than 10 %; instruction counts vary by less than 1 %. The operations run in
//! process under valgrind, and the counts are compared with `counts.txt`.
//! `docs/performance.md` says how to read and record them.

#![allow(
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::missing_errors_doc,
    missing_docs,
    unreachable_pub,
    reason = "a benchmark program with small numbers, not a library"
)]

mod callgrind;
mod counts;
mod operations;
#[path = "../shared/result.rs"]
mod result;
#[path = "../shared/sample.rs"]
mod sample;
mod site;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use counts::{Counts, Environment};
use operations::per_operation;
pub use result::{Context, Result, fail, grouped};
use site::Site;

/// The allocator of packages. The cost of an allocation hardly depends on earlier ones, and not on the C library.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USAGE: &str = "\
cargo bench --features jemalloc --profile instructions --bench instructions -- [OPTIONS]
  --update       record the operations that differ by more than the tolerance
  --keep DIR     keep callgrind's files in this folder, for callgrind_annotate";

/// The flag that runs this executable as the measured process. The folder of the data file follows it.
const MEASURED: &str = "--measured";

/// The parsed command line.
#[derive(Debug, Default)]
struct Settings {
    update: bool,
    keep: Option<PathBuf>,
}

impl Settings {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut settings = Self::default();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--bench" => {}
                "--update" => settings.update = true,
                "--keep" => {
                    let folder = args.next().ok_or_else(|| format!("{arg} takes a value"))?;
                    settings.keep = Some(folder.into());
                }
                _ => return fail(format!("unknown argument {arg}\n{USAGE}")),
            }
        }
        Ok(settings)
    }
}

/// Counts every operation, then compares the counts with the recorded ones or records them.
fn count(settings: &Settings) -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions/counts.txt");
    let folder = tempfile::tempdir().context("a temporary folder")?;
    Site::create(folder.path())?;
    let output = settings.keep.as_deref().unwrap_or(folder.path());
    let dumps = callgrind::run(&[MEASURED.as_ref(), folder.path().as_os_str()], output)?;
    let measured = Counts::of(Environment::current()?, per_operation(&dumps)?);
    if settings.update {
        let updated = Counts::read(&file)?.updated(measured);
        return std::fs::write(&file, updated.to_string()).context(file.display());
    }
    let comparison = Counts::read(&file)?.compare(&measured);
    println!("{comparison}");
    if comparison.passes() { Ok(()) } else { fail(counts::ADVICE) }
}

fn dispatch(args: &[String]) -> Result<()> {
    if let [flag, folder] = args
        && flag == MEASURED
    {
        return operations::run(&Site::open(Path::new(folder))?);
    }
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    // `cargo test --all-targets` runs this program without `--bench`. A benchmark is not a test.
    if !args.iter().any(|arg| arg == "--bench") {
        println!(
            "nothing counted: run `cargo bench --features jemalloc --profile instructions --bench instructions`"
        );
        return Ok(());
    }
    count(&Settings::parse(args.iter().cloned())?)
}

fn main() -> ExitCode {
    let args: Vec<_> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}
