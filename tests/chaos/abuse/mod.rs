//! Tests what one tenant, or a client without a key, can do to others. Each test asserts counts, bytes, or a ratio to
//! an unloaded run of the same test, never absolute times.

mod addresses;
mod answers;
mod caps;
mod client_turns;
mod connections;
mod keys;
mod long_reads;
mod mail;
mod members;
mod neighbours;
mod pages;
mod quota;
mod tells;
mod writer;

use crate::prelude::*;

/// Creates a workspace whose service counts what it does.
async fn metered() -> Workspace {
    Workspace::configured(|config| config.metrics = Metrics::enabled()).await
}
