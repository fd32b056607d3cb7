//! The machine: its description, its disk's sync rate, and the load of other processes.

use std::fmt;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::thread::sched_getaffinity;

use crate::process::{read, ticks};
use crate::{Context, Result};

/// Returns how many times per second 4 KiB can be overwritten and synced in `folder`. Takes about `time`.
pub fn sync_rate(folder: &Path, time: Duration) -> Result<f64> {
    const PAGE: usize = 4096;
    const PAGES: u64 = 1024;
    let path = folder.join("sync-rate");
    let file = fs::File::create(&path).context("the file of the sync rate")?;
    // Allocate the file first, so that no sync includes a change of its length.
    file.write_all_at(&vec![0; PAGE * PAGES as usize], 0)
        .context("filling the file of the sync rate")?;
    file.sync_all().context("syncing")?;
    let begin = Instant::now();
    let mut syncs = 0_u64;
    while begin.elapsed() < time {
        file.write_all_at(&[syncs as u8; PAGE], syncs % PAGES * PAGE as u64).context("writing")?;
        file.sync_data().context("syncing")?;
        syncs += 1;
    }
    let rate = syncs as f64 / begin.elapsed().as_secs_f64();
    fs::remove_file(&path).context("removing the file of the sync rate")?;
    Ok(rate)
}

/// A description of the machine.
#[derive(Debug)]
pub struct Machine {
    cores: usize,
    model: String,
    kernel: String,
    filesystem: String,
}

impl Machine {
    /// Describes this machine and the file system of `folder`.
    pub fn describe(folder: &Path) -> Result<Self> {
        let info = read("/proc/cpuinfo")?;
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let allowed = sched_getaffinity(None).context("the allowed cores")?;
        Ok(Self {
            cores: allowed.count() as usize,
            model: model.map_or("unknown CPU", |(_, name)| name.trim()).to_owned(),
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            filesystem: filesystem(folder)?,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, model, kernel, filesystem } = self;
        write!(f, "{cores} cores, {model}, Linux {kernel}, data on {filesystem}")
    }
}

/// Returns the type of the file system that holds `folder`: the longest matching mount path, the last one if
/// several are equal.
pub fn filesystem(folder: &Path) -> Result<String> {
    let folder = folder.canonicalize().context("the data folder")?;
    let mounts = read("/proc/self/mounts")?;
    let mount = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let best = mount.filter(|(at, _)| folder.starts_with(at)).max_by_key(|(at, _)| at.len());
    Ok(best.map_or("an unknown filesystem", |(_, kind)| kind).to_owned())
}

/// Measures the load of other processes. Repeat a benchmark that was disturbed by a high load.
pub struct Neighbours {
    begin: Instant,
    busy: u64,
    stolen: u64,
    own: u64,
}

impl Neighbours {
    /// Starts measuring.
    pub fn watch() -> Result<Self> {
        let [busy, stolen] = machine_ticks()?;
        Ok(Self { begin: Instant::now(), busy, stolen, own: ticks("self")?.iter().sum() })
    }

    /// Returns the average number of cores used by other processes, and of cores that the host withheld. Children
    /// that are still running count as other processes.
    pub fn cores(&self) -> Result<(f64, f64)> {
        let [busy, stolen] = machine_ticks()?;
        let own: u64 = ticks("self")?.iter().sum();
        let others = (busy - self.busy).saturating_sub(own - self.own);
        let all =
            self.begin.elapsed().as_secs_f64() * rustix::param::clock_ticks_per_second() as f64;
        Ok((others as f64 / all, (stolen - self.stolen) as f64 / all))
    }
}

/// Returns the busy and the stolen ticks of all cores together.
fn machine_ticks() -> Result<[u64; 2]> {
    let stat = read("/proc/stat")?;
    let fields = stat.lines().next().unwrap_or("").split_whitespace();
    let numbers: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    match numbers[..] {
        // user nice system idle iowait irq softirq steal
        [user, nice, system, _, _, irq, softirq, steal, ..] => {
            Ok([user + nice + system + irq + softirq, steal])
        }
        _ => crate::fail("/proc/stat has an unknown form"),
    }
}
