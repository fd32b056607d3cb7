//! Metrics of the process, under the names that every Prometheus client library uses.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::{Metrics, Series, to_f64};

/// Sets the time at which the process started, which does not change.
pub(super) fn record_start(metrics: &Metrics) {
    if let (Some(boot_time), Some(stat)) = (boot_time(), Stat::read()) {
        let start_time = (boot_time + stat.start_time).floor();
        metrics.gauge(Series::PROCESS_START, &[]).set(start_time);
    }
}

/// Sets the other metrics of the process to their current values. Those that the system does not report keep their last
/// values.
pub(super) fn update(metrics: &Metrics) {
    let set = |series, number: f64| metrics.gauge(series, &[]).set(number);
    if let Some(stat) = Stat::read() {
        metrics.counter(Series::PROCESS_CPU, &[]).absolute(stat.cpu_seconds);
        set(Series::PROCESS_VIRTUAL, stat.virtual_memory);
        set(Series::PROCESS_RESIDENT, stat.resident_memory);
        set(Series::PROCESS_THREADS, stat.threads);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        set(Series::PROCESS_FDS, to_f64(open.count() as u64));
    }
    // Without a limit the value is 0.
    let limit = |resource| to_f64(getrlimit(resource).current.unwrap_or_default());
    set(Series::PROCESS_MAX_FDS, limit(Resource::Nofile));
    set(Series::PROCESS_MAX_VIRTUAL, limit(Resource::As));
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
        let metrics = Metrics::enabled();
        update(&metrics);
        let value = |series| metrics.gauge(series, &[]).0.expect("a gauge").get();
        for series in [
            Series::PROCESS_FDS,
            Series::PROCESS_MAX_FDS,
            Series::PROCESS_RESIDENT,
            Series::PROCESS_THREADS,
        ] {
            assert!(value(series) >= 1.0);
        }
        assert!(value(Series::PROCESS_VIRTUAL) > value(Series::PROCESS_RESIDENT));
        assert!(value(Series::PROCESS_START) > 1.7e9, "{}", value(Series::PROCESS_START));
    }
}
