//! redb panics over some of what it does not expect in a file. Where that is caught it is an answer like any other:
//! nothing is reported, so that a command about a damaged file prints its one line.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread is caught by [`caught`].
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// What `work` answers; none where it panics.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    hush_expected();
    let outer = EXPECTED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work)).ok();
    EXPECTED.set(outer);
    outcome
}

/// Has all other panics reported as before.
fn hush_expected() {
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
