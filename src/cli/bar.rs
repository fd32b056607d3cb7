//! The bar that shows on a terminal how far something long is.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::store::{Progress, Stage};

/// What takes less shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is drawn, at the least.
const TICK: Duration = Duration::from_millis(200);

/// Draws a bar on stderr where that is a terminal, once it has taken a second; is quiet elsewhere.
pub(super) fn bar() -> Progress {
    if !std::io::stderr().is_terminal() {
        return Progress::unheard();
    }
    let shown = Shown::after(PATIENCE);
    Progress::new(move |stage| shown.show(stage))
}

/// A bar, gone when this is dropped.
struct Shown {
    bar: ProgressBar,
    /// The thread that waits for the moment to draw it hears when this is gone.
    _waited_for: Sender<()>,
}

impl Shown {
    fn after(patience: Duration) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let (waited_for, gone) = channel();
        let drawn = bar.clone();
        thread::spawn(move || {
            if gone.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                drawn.set_draw_target(ProgressDrawTarget::stderr());
                drawn.enable_steady_tick(TICK);
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

impl Drop for Shown {
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
