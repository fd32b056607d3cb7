//! Metrics of the process, under the names that every Prometheus client library uses.

use std::fs;

use prometheus::{Counter, Gauge, Registry, Result};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::{registered, to_f64};

/// The metrics of the process.
pub(super) struct Process {
    cpu_seconds: Counter,
    open_fds: Gauge,
    max_fds: Gauge,
    virtual_memory: Gauge,
    max_virtual_memory: Gauge,
    resident_memory: Gauge,
    start_time: Gauge,
    threads: Gauge,
}

impl Process {
    /// Registers the metrics, or returns `None` if the system has no `/proc`.
    pub(super) fn registered(registry: &Registry) -> Result<Option<Self>> {
        let Some(boot_time) = boot_time() else { return Ok(None) };
        let Some(stat) = Stat::read() else { return Ok(None) };
        let counter = |name, help| registered(registry, Counter::new(name, help)?);
        let gauge = |name, help| registered(registry, Gauge::new(name, help)?);
        let process = Self {
            cpu_seconds: counter(
                "process_cpu_seconds_total",
                "Total user and system CPU time spent in seconds.",
            )?,
            open_fds: gauge("process_open_fds", "Number of open file descriptors.")?,
            max_fds: gauge("process_max_fds", "Maximum number of open file descriptors.")?,
            virtual_memory: gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.")?,
            max_virtual_memory: gauge(
                "process_virtual_memory_max_bytes",
                "Maximum amount of virtual memory available in bytes.",
            )?,
            resident_memory: gauge(
                "process_resident_memory_bytes",
                "Resident memory size in bytes.",
            )?,
            start_time: gauge(
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
            )?,
            threads: gauge("process_threads", "Number of OS threads in the process.")?,
        };
        process.start_time.set((boot_time + stat.start_time).floor());
        Ok(Some(process))
    }

    /// Reads the current values.
    pub(super) fn update(&self) {
        if let Some(stat) = Stat::read() {
            self.cpu_seconds.inc_by((stat.cpu_seconds - self.cpu_seconds.get()).max(0.0));
            self.virtual_memory.set(stat.virtual_memory);
            self.resident_memory.set(stat.resident_memory);
            self.threads.set(stat.threads);
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            self.open_fds.set(to_f64(open.count() as u64));
        }
        // Without a limit the value is 0.
        let limit = |resource| to_f64(getrlimit(resource).current.unwrap_or_default());
        self.max_fds.set(limit(Resource::Nofile));
        self.max_virtual_memory.set(limit(Resource::As));
    }
}

/// Values from `/proc/self/stat`: times in seconds, memory in bytes.
struct Stat {
    cpu_seconds: f64,
    threads: f64,
    /// Since the system booted.
    start_time: f64,
    virtual_memory: f64,
    resident_memory: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Fields are numbered as in `man proc_pid_stat`. The name of the program may contain spaces and parentheses.
    fn parse(text: &str) -> Option<Self> {
        let (_, after_name) = text.rsplit_once(')')?;
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let ticks = to_f64(clock_ticks_per_second());
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / ticks,
            threads: field(20)?,
            start_time: field(22)? / ticks,
            virtual_memory: field(23)?,
            resident_memory: field(24)? * to_f64(page_size() as u64),
        })
    }
}

/// Returns the resident memory of this process in bytes, or `None` if the system has no `/proc`.
pub fn resident_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns the time at which the system booted, in seconds since the Unix epoch.
fn boot_time() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_stat_is_parsed_with_any_program_name() {
        let numbers = (4..=52).map(|field| (field * 100).to_string()).collect::<Vec<_>>().join(" ");
        let stat = Stat::parse(&format!("7 (a) R 1 (b) R {numbers}\n")).expect("a line");
        let ticks = to_f64(clock_ticks_per_second());
        let is = |found: f64, expected: f64| (found - expected).abs() < 0.001;
        assert!(is(stat.cpu_seconds, 2_900.0 / ticks) && is(stat.start_time, 2_200.0 / ticks));
        assert!(is(stat.threads, 2_000.0) && is(stat.virtual_memory, 2_300.0));
        assert!(is(stat.resident_memory, 2_400.0 * to_f64(page_size() as u64)));
        assert!(Stat::parse("7 (a) R 1").is_none());
    }

    #[test]
    fn process_metrics_have_values() {
        let registry = Registry::new();
        let process = Process::registered(&registry).expect("registered").expect("Linux");
        process.update();
        for gauge in
            [&process.open_fds, &process.max_fds, &process.resident_memory, &process.threads]
        {
            assert!(gauge.get() >= 1.0);
        }
        assert!(process.virtual_memory.get() > process.resident_memory.get());
        assert!(process.start_time.get() > 1.7e9, "{}", process.start_time.get());
    }
}
