//! The command that a server serves, and the process that started the server: it outlives neither.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitStatus;
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::process::set_parent_process_death_signal;
use rustix::process::{Pid, Signal, getpgrp, getppid, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::base::tasks::spawn_thread;

/// How often to look whether the process that started this one is gone.
const PARENT_INTERVAL: Duration = Duration::from_millis(200);
/// The time that a command has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// The exit code of a shell for a command that it does not find.
const NOT_FOUND: u8 = 127;
/// The exit code of a shell for a command that it cannot run.
const NOT_EXECUTABLE: u8 = 126;

/// Waits until the process that started this one is gone. Call it at the start: it is the parent of that moment.
pub(crate) fn parent_gone() -> impl Future<Output = ()> {
    let parent = getppid();
    async move {
        let mut looks = interval(PARENT_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while getppid() == parent {
            looks.tick().await;
        }
    }
}

/// Waits until stdin is at its end.
pub(crate) fn stdin_closed() -> io::Result<impl Future<Output = ()>> {
    let (open, closed) = oneshot::channel::<()>();
    spawn_thread("stdin", move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(open);
    })?;
    Ok(async move { drop(closed.await) })
}

/// The signals that a command gets when this process gets them.
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(crate) fn listen() -> io::Result<Self> {
        let kinds = [
            (Signal::INT, SignalKind::interrupt()),
            (Signal::TERM, SignalKind::terminate()),
            (Signal::HUP, SignalKind::hangup()),
            (Signal::QUIT, SignalKind::quit()),
            (Signal::USR1, SignalKind::user_defined1()),
            (Signal::USR2, SignalKind::user_defined2()),
        ];
        let listen = |(sent, kind)| Ok((sent, signal(kind)?));
        kinds.into_iter().map(listen).collect::<io::Result<_>>().map(Self)
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (sent, signals) in &mut self.0 {
                if signals.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*sent);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

/// Whether the terminal sends its signals to this process, and so to the commands that it started.
fn is_in_foreground() -> bool {
    File::open("/dev/tty")
        .is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// Becomes the command. It ends when the server with this process id ends: on Linux also if that is killed.
///
/// Returns why it cannot become the command, and the exit code that a shell would have.
pub(crate) fn become_command(server: u32, words: &[OsString]) -> (String, u8) {
    let Some((program, args)) = words.split_first() else {
        return ("no command was named".to_owned(), NOT_FOUND);
    };
    #[cfg(target_os = "linux")]
    let is_bound = set_parent_process_death_signal(Some(Signal::TERM)).is_ok();
    #[cfg(not(target_os = "linux"))]
    let is_bound = true;
    let has_server = getppid().is_some_and(|parent| parent.as_raw_pid().cast_unsigned() == server);
    if !(is_bound && has_server) {
        return ("the server has ended".to_owned(), NOT_EXECUTABLE);
    }
    let cause = std::process::Command::new(program).args(args).exec();
    let is_absent = cause.kind() == io::ErrorKind::NotFound;
    let text = format!("cannot start {}: {cause}", program.display());
    (text, if is_absent { NOT_FOUND } else { NOT_EXECUTABLE })
}

/// A running command.
pub(crate) struct TestCommand {
    child: Child,
    /// When it is killed, once it was asked to end.
    killed_at: Option<Instant>,
    interrupts: u32,
}

impl TestCommand {
    /// Starts a command with these variables. Call it on the main thread: the command gets a signal when the thread that started
    /// it ends.
    ///
    /// # Errors
    /// When this program cannot be started again. It then [becomes](become_command) the command.
    pub(crate) fn start(
        words: &[OsString],
        variables: Vec<(&'static str, String)>,
    ) -> io::Result<Self> {
        // The path of the program names another one after an upgrade.
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        let child = Command::new(program)
            .args(["test", "--become", &std::process::id().to_string(), "--"])
            .args(words)
            .envs(variables)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { child, killed_at: None, interrupts: 0 })
    }

    /// Waits for the end of the command, which gets the signals of this process, and ends when `orphaned` resolves. Returns its
    /// exit code, as a shell would.
    pub(crate) async fn finish(
        mut self,
        signals: &mut Signals,
        mut orphaned: Pin<&mut impl Future<Output = ()>>,
    ) -> u8 {
        let mut is_orphaned = false;
        loop {
            let killed_at = self.killed_at;
            let overdue = async {
                match killed_at {
                    Some(moment) => sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = self.child.wait() => return ended.map_or(1, exit_code),
                signal = signals.next() => self.pass_on(signal),
                () = orphaned.as_mut(), if !is_orphaned => {
                    is_orphaned = true;
                    self.send(Signal::TERM);
                    self.end_soon();
                }
                () = overdue => {
                    let _ = self.child.start_kill();
                    self.killed_at = None;
                }
            }
        }
    }

    /// Passes a signal on, unless the terminal has sent it to the command, too. A command that does not end after a second
    /// interrupt or another signal to end is killed.
    fn pass_on(&mut self, signal: Signal) {
        let is_of_terminal = signal == Signal::INT || signal == Signal::QUIT;
        if !(is_of_terminal && is_in_foreground()) {
            self.send(signal);
        }
        self.interrupts += u32::from(signal == Signal::INT);
        if [Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal) || self.interrupts > 1 {
            self.end_soon();
        }
    }

    fn end_soon(&mut self) {
        self.killed_at.get_or_insert_with(|| Instant::now() + GRACE);
    }

    fn send(&self, signal: Signal) {
        // The id is known until the end of the process was waited for.
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Returns the code with which a shell shows how a command ended.
fn exit_code(status: ExitStatus) -> u8 {
    let of_signal = |signal: i32| 128_i32.saturating_add(signal);
    let code = status.code().or_else(|| status.signal().map(of_signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
