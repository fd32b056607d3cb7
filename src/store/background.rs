//! Threads for what takes long, which give way to those that serve.

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// By how much such a thread is nicer than the others, as `nice` counts.
const NICENESS: i32 = 10;

/// Runs `work` on a thread of its own, of low priority.
///
/// # Errors
/// 500 when there is no thread to be had, or `work` panicked.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (reply, answer) = oneshot::channel();
    let run = move || {
        // On Linux this is of the calling thread alone.
        if let Err(error) = setpriority_process(None, NICENESS) {
            tracing::debug!(%error, "a thread's priority was not lowered");
        }
        let _ = reply.send(work());
    };
    let thread = std::thread::Builder::new().name("background".to_owned());
    thread.spawn(run).map_err(Error::internal)?;
    answer.await.map_err(Error::internal)
}
