//! Runs this executable under callgrind, and reads the counts that callgrind writes.
//!
//! Callgrind writes the instructions since the last dump, of all threads, whenever the process calls [`dump`]. So the
//! start of the process, the warm-up and the preparation of requests are left out.

use std::ffi::OsStr;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Context, Result, fail};

/// Part of the symbol of [`dump`].
const DUMP: &str = "callgrind*dump";

/// Options of the allocator. By default it returns memory, and shrinks its caches, at certain times.
const ALLOCATOR: &str =
    "narenas:1,dirty_decay_ms:-1,muzzy_decay_ms:-1,tcache_gc_incr_bytes:1073741824";

/// Options of the C library. By default it copies large blocks with one instruction that callgrind counts for each byte.
const C_LIBRARY: &str = "glibc.cpu.hwcaps=-ERMS";

/// The function of redb that commits a transaction. It does not call itself.
const COMMIT: &str = "redb::transactions::WriteTransaction::commit";

/// Callgrind writes a dump before it enters this function.
#[inline(never)]
pub fn dump() {
    // Otherwise the compiler removes the call to an empty function.
    black_box(());
}

/// The instructions between two dumps.
#[derive(Debug, Clone, Copy)]
pub struct Dump {
    /// All instructions.
    pub total: u64,
    /// The instructions of redb's commits.
    pub commits: u64,
}

/// Runs this executable with `args` under callgrind, and returns the dumps in order. Callgrind's files are written to
/// `output`.
pub fn run(args: &[&OsStr], output: &Path) -> Result<Vec<Dump>> {
    let this = std::env::current_exe().context("this executable")?;
    std::fs::create_dir_all(output).context(output.display())?;
    let file = output.join("callgrind.out");
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--quiet", "--fair-sched=yes", "--compress-strings=no"])
        .arg(format!("--dump-before=*{DUMP}*"))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(this)
        .args(args)
        .stdin(Stdio::null());
    // The size of the environment moves the stack.
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("_RJEM_MALLOC_CONF", ALLOCATOR).env("GLIBC_TUNABLES", C_LIBRARY);
    let status = command.status().context("valgrind (is it installed?)")?;
    if !status.success() {
        return fail(format!("the measured process: {status}"));
    }
    let mut dumps = Vec::new();
    loop {
        let path = output.join(format!("callgrind.out.{}", dumps.len() + 1));
        if !path.exists() {
            return Ok(dumps);
        }
        let text = std::fs::read_to_string(&path).context(path.display())?;
        let dump = parse(&text).ok_or_else(|| format!("{}: no totals", path.display()))?;
        dumps.push(dump);
    }
}

/// Reads a dump. A call is a line with the called function, a line with the number of calls, and a line whose last
/// number is the instructions that the calls took.
fn parse(text: &str) -> Option<Dump> {
    let mut commits = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(total) = line.strip_prefix("totals: ") {
            return Some(Dump { total: total.trim().parse().ok()?, commits });
        }
        if line.strip_prefix("cfn=") == Some(COMMIT) {
            let cost = lines.nth(1)?.split(' ').next_back()?;
            commits += cost.parse::<u64>().ok()?;
        }
    }
    None
}
