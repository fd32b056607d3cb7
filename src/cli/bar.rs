//! The bar that shows on a terminal how far something long is.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::store::Progress;

/// What takes less shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Draws a bar on stderr where that is a terminal, once it has taken a second; is quiet elsewhere.
pub(super) fn bar() -> Progress {
    let (begun, bar) = (Instant::now(), OnceLock::new());
    Progress::new(move |done, of| {
        if begun.elapsed() < PATIENCE {
            return;
        }
        let bar = bar.get_or_init(|| ProgressBar::new(of).with_style(style()));
        bar.set_position(done);
        if done == of {
            bar.finish_and_clear();
        }
    })
}

fn style() -> ProgressStyle {
    let template = "{wide_bar} {percent}% of {len} values, {eta} left";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
