//! Catches redb's panics on invalid files. A caught panic is an ordinary error and prints no backtrace, so
//! that a command on a damaged file prints a single line.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether [`catch_panic`] catches a panic on this thread.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `work`, or `None` if it panics.
pub(in crate::store) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    silence_expected();
    let outer = EXPECTED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work)).ok();
    EXPECTED.set(outer);
    outcome
}

/// Installs a panic hook that reports only panics that are not caught.
fn silence_expected() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if EXPECTED.get() {
                tracing::debug!(%panic, "redb panicked");
            } else {
                report(panic);
            }
        }));
    });
}
