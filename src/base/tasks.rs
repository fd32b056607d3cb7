//! Tasks and threads. What the runtime does with a future or a function is compiled once, because each is boxed, and not
//! for each type.

use std::io;
use std::thread;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use super::erased::{AnyValue, erase, typed};
use super::error::{Error, Result};

/// Starts a task, which ends with the runtime.
pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task.boxed())
}

/// Starts a task of a runtime, from any thread.
pub fn spawn_on(runtime: &Handle, task: impl Future<Output = ()> + Send + 'static) {
    drop(runtime.spawn(task.boxed()));
}

/// Runs `task` to its end, even if the caller stops waiting.
///
/// # Errors
/// 500 if the task panics.
pub fn run_to_end<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = Result<T>> + Send {
    let task = tokio::spawn(task.map(erase).boxed());
    typed(task.map(|done| done.map_err(Error::internal)))
}

/// Runs `work` on a thread that may block. The work continues if the caller stops waiting.
///
/// # Errors
/// 500 if `work` panics.
pub fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T>> + Send {
    typed(run_erased(Box::new(move || erase(work()))))
}

async fn run_erased(work: Box<dyn FnOnce() -> AnyValue + Send>) -> Result<AnyValue> {
    spawn_blocking(work).await.map_err(Error::internal)
}

/// Starts a thread with a name.
///
/// # Errors
/// When the operating system starts no thread.
pub fn spawn_thread(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<thread::JoinHandle<()>> {
    let run: Box<dyn FnOnce() + Send> = Box::new(run);
    thread::Builder::new().name(name.to_owned()).spawn(run)
}
