//! Threads for long work, of low priority: the threads that serve requests run first.

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// What long work gives way to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// To requests that are answered at once: work for an answer that takes long.
    Answer,
    /// To all answers: upkeep of the file, and Argon2 for keys that are created.
    Upkeep,
}

impl Priority {
    /// How much lower the priority of such a thread is, in steps of `nice`.
    const fn niceness(self) -> i32 {
        match self {
            Self::Answer => 10,
            Self::Upkeep => 15,
        }
    }
}

/// Runs `work` on a thread of its own, of low priority. The work goes on if the caller stops waiting.
///
/// # Errors
/// 500 if no thread can be started, or `work` panicked.
pub(crate) async fn in_background<T: Send + 'static>(
    priority: Priority,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let (reply, answer) = oneshot::channel();
    let run = move || {
        // On Linux this is of the calling thread alone.
        if let Err(error) = setpriority_process(None, priority.niceness()) {
            tracing::debug!(%error, "a thread's priority was not lowered");
        }
        let _ = reply.send(work());
    };
    let thread = std::thread::Builder::new().name("background".to_owned());
    thread.spawn(run).map_err(Error::internal)?;
    answer.await.map_err(Error::internal)
}
