//! Processes: CPU affinity, termination, CPU time and memory.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::{Context, Result, fail};

/// The cores for servers and for load. They are equal if there is only one core.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    pub server: usize,
    pub load: usize,
}

impl Cores {
    /// Returns the first and the last core that this process may use.
    pub fn find() -> Result<Self> {
        let allowed = sched_getaffinity(None).context("the allowed cores")?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let server = cores.next().ok_or("no core is allowed")?;
        Ok(Self { server, load: cores.next_back().unwrap_or(server) })
    }

    /// Whether servers and load share one core, so that only CPU figures are meaningful.
    pub fn shared(self) -> bool {
        self.server == self.load
    }

    /// Runs `work` on the servers' core, then moves the thread back to the load's core. Children started in
    /// `work` inherit the core for all their threads, which no later call could achieve.
    pub fn on_server<T>(self, work: impl FnOnce() -> T) -> Result<T> {
        pin(self.server)?;
        let outcome = work();
        pin(self.load)?;
        Ok(outcome)
    }
}

/// Pins the calling thread and its future children to one core.
pub fn pin(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).context(format!("moving to core {core}"))
}

/// A child process that is killed when this is dropped.
pub struct Guard(Child);

impl Guard {
    /// Starts `command` on the servers' core with stdin and stdout piped.
    pub fn spawn(command: &mut Command, cores: Cores) -> Result<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = cores.on_server(|| command.spawn())?;
        Ok(Self(child.context(format!("starting {}", command.get_program().display()))?))
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Kills the process without any cleanup.
    pub fn kill(&mut self) -> Result<()> {
        self.0.kill().context("killing the server")?;
        self.0.wait().context("waiting for the killed server")?;
        Ok(())
    }

    /// Sends SIGTERM and waits for at most 30 s.
    pub fn stop(&mut self) -> Result<()> {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::TERM).context("sending SIGTERM")?;
        let asked = Instant::now();
        while asked.elapsed() < Duration::from_secs(30) {
            if self.0.try_wait().context("waiting for the server")?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        fail("the server did not exit within 30 s of SIGTERM")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // An error means that the process has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the user and system time of a process, in seconds.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let [user, system, ..] = ticks(&pid.to_string())?;
    Ok((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Returns the ticks of a process and of the children that it has waited for: user, system, user and system.
pub fn ticks(process: &str) -> Result<[u64; 4]> {
    let path = format!("/proc/{process}/stat");
    let stat = read(&path)?;
    // The second field is the name in parentheses and may contain spaces; utime to cstime are the fields from 14 on.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let ticks: Vec<u64> = fields.skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
    ticks.try_into().map_err(|_| format!("{path} has an unknown form").into())
}

/// Returns the CPU time of the threads of a process with this name, in seconds.
pub fn thread_seconds(pid: u32, name: &str) -> Result<f64> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).context("the threads")?.flatten() {
        let of = |file: &str| fs::read_to_string(task.path().join(file));
        // A thread may end meanwhile.
        if let (Ok(found), Ok(times)) = (of("comm"), of("schedstat"))
            && found.trim() == name
        {
            let first = times.split(' ').next().unwrap_or_default();
            nanos += first.parse::<u64>().context("the time of a thread")?;
        }
    }
    Ok(Duration::from_nanos(nanos).as_secs_f64())
}

/// The resident memory of a process.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The current size, in bytes.
    pub now: u64,
    /// The peak since [`forget_peak`] or since the start, in bytes.
    pub peak: u64,
    /// The part of `now` without files, such as the executable, in bytes.
    pub anonymous: u64,
}

impl Memory {
    /// Reads `VmRSS`, `VmHWM` and `RssAnon`.
    pub fn of(pid: u32) -> Result<Self> {
        let status = read(&format!("/proc/{pid}/status"))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
            let kib = line.trim().trim_end_matches("kB").trim().parse::<u64>();
            kib.map(|kib| kib * 1024).context(format!("{name} of process {pid}"))
        };
        Ok(Self { now: field("VmRSS:")?, peak: field("VmHWM:")?, anonymous: field("RssAnon:")? })
    }
}

/// Resets the peak of a process to its current size.
pub fn forget_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("resetting the memory peak")
}

/// Reads a file of `/proc`.
pub fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).context(path)
}
