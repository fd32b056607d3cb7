//! Threads for long work, of low priority: the threads that serve requests run first.

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// How much lower the priority of such a thread is, in steps of `nice`.
const NICENESS: i32 = 10;

/// Runs `work` on a thread of its own, of low priority. The work goes on if the caller stops waiting.
///
/// # Errors
/// 500 if no thread can be started, or `work` panicked.
pub(crate) async fn in_background<T: Send + 'static>(
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
