//! A progress bar for long operations.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::store::{Progress, Stage};

/// Operations shorter than this show no bar.
const SHOW_AFTER: Duration = Duration::from_secs(1);
/// The maximum time between two redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Returns a progress bar on stderr that appears after one second. If stderr is not a terminal, it shows nothing.
pub(super) fn progress_bar() -> Progress {
    if !std::io::stderr().is_terminal() {
        return Progress::silent();
    }
    let shown = ProgressBarGuard::show_after(SHOW_AFTER);
    Progress::new(move |stage| shown.show(stage))
}

/// A progress bar that disappears when it is dropped.
struct ProgressBarGuard {
    bar: ProgressBar,
    /// Dropping this sender ends the thread that waits to show the bar.
    _waited_for: Sender<()>,
}

impl ProgressBarGuard {
    fn show_after(patience: Duration) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let (waited_for, gone) = channel();
        let drawn = bar.clone();
        thread::spawn(move || {
            if gone.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                drawn.set_draw_target(ProgressDrawTarget::stderr());
                drawn.enable_steady_tick(REDRAW_INTERVAL);
            }
        });
        Self { bar, _waited_for: waited_for }
    }

    fn show(&self, stage: &Stage) {
        if stage.done == 0 {
            self.bar.reset();
            self.bar.set_style(style(stage.of));
            self.bar.set_message(stage.doing.to_string());
        }
        self.bar.set_length(stage.of);
        self.bar.set_position(stage.done);
    }
}

impl Drop for ProgressBarGuard {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(of: u64) -> ProgressStyle {
    let template = match of {
        0 => "{spinner} {msg}, {elapsed}",
        _ => "{msg} {wide_bar} {percent}% of {human_len} values, {eta} left",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
