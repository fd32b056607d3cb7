//! Threads of low priority for long work, so that the threads that serve requests run first.

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use crate::base::erased::{AnyValue, erase, typed};
use crate::base::error::{Error, Result};
use crate::base::tasks::spawn_thread;

/// The priority of long work, below that of the threads that serve requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Work for a response that takes long.
    Answer,
    /// Work that also yields to long responses: maintenance of the file.
    Upkeep,
}

impl Priority {
    /// Returns the `nice` value of the thread.
    const fn niceness(self) -> i32 {
        match self {
            Self::Answer => 10,
            Self::Upkeep => 15,
        }
    }
}

/// Runs `work` on its own thread of low priority. The work continues if the caller stops waiting.
///
/// # Errors
/// 500 if no thread can be started, or `work` panicked.
pub(crate) fn run_low_priority<T: Send + 'static>(
    priority: Priority,
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T>> + Send {
    typed(run_erased(priority, Box::new(move || erase(work()))))
}

async fn run_erased(
    priority: Priority,
    work: Box<dyn FnOnce() -> AnyValue + Send>,
) -> Result<AnyValue> {
    let (reply, answer) = oneshot::channel();
    let run = move || {
        // On Linux this changes the calling thread only. Unoptimized builds are for tests, which wait for this work: beside
        // other programs on the machine it would hardly run.
        if !cfg!(debug_assertions)
            && let Err(error) = setpriority_process(None, priority.niceness())
        {
            tracing::debug!(%error, "cannot lower the priority of a thread");
        }
        let _ = reply.send(work());
    };
    spawn_thread("background", run).map(drop).map_err(Error::internal)?;
    answer.await.map_err(Error::internal)
}
