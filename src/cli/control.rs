//! The control socket, through which commands reach the server that has the data file open.
//!
//! The protocol is lines of JSON: one request, then replies. Long operations send `{"progress": {...}}`. The last reply
//! is `{"done": ...}` or `{"refused": "..."}`. The bytes of a copy follow the last reply. The server answers only the user
//! that it runs as.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{self, BufRead};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::geteuid;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::app::App;
use crate::base::error::Error;
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::http::logging::LogFilter;
use crate::operator::{Operation, perform};
use crate::store::{Progress, SentCopy, Stage};

use super::Failure;
use super::import_stream::{self, ReceivedExport};
use super::messages::{Reply, Request, STOPPED, STREAM_TIMEOUT};
use super::socket_paths::SocketPaths;

/// The maximum size of a request, in bytes.
const MAX_REQUEST_SIZE: u64 = 64 * 1024;
/// How long a command may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of open connections without a complete request.
const MAX_UNREAD_REQUESTS: usize = 16;
/// The maximum number of commands, and of queries, that run at the same time.
const MAX_COMMANDS: usize = 16;
/// The maximum number of sockets that are open for commands: the listener, and one per connection.
pub(super) const MAX_CONTROL_SOCKETS: usize = 1 + MAX_UNREAD_REQUESTS + 2 * MAX_COMMANDS;

/// A server's control socket. The socket file is deleted on drop.
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Control {
    /// Opens the socket. The caller must hold the lock of the data file: any existing socket file was then left
    /// behind by a dead process.
    pub(super) fn open(data: &Path) -> io::Result<Self> {
        let (listener, path) = SocketPaths::of(data)?.bind()?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(Self { listener, path })
    }

    /// Serves each connection in a task of its own, until this future is dropped. With more than
    /// [`MAX_UNREAD_REQUESTS`] connections without a complete request, closes the oldest.
    pub(super) async fn serve(self, app: App, filter: LogFilter) {
        let slots = Slots::default();
        let mut waiting = VecDeque::<oneshot::Sender<Infallible>>::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (app, filter, slots) = (app.clone(), filter.clone(), slots.clone());
                    let (wait, closed) = oneshot::channel();
                    waiting.retain(|wait| !wait.is_closed());
                    waiting.push_back(wait);
                    if waiting.len() > MAX_UNREAD_REQUESTS {
                        waiting.pop_front();
                    }
                    tokio::spawn(async move {
                        let answered = answer(stream, closed, &slots, &app, &filter);
                        if let Err(error) = Box::pin(answered).await {
                            tracing::warn!(%error, "could not answer a command");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection on the control socket");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

/// Limits on the commands that run at the same time.
#[derive(Clone)]
struct Slots {
    commands: Arc<Semaphore>,
    /// For short requests, so that a health check does not wait for commands.
    queries: Arc<Semaphore>,
}

impl Default for Slots {
    fn default() -> Self {
        let slots = || Arc::new(Semaphore::new(MAX_COMMANDS));
        Self { commands: slots(), queries: slots() }
    }
}

impl Slots {
    fn of(&self, request: &serde_json::Result<Request>) -> &Semaphore {
        match request {
            Ok(Request::Ready | Request::Log(_)) => &self.queries,
            _ => &self.commands,
        }
    }
}

/// Reads the request line. Returns `None` if `closed` resolves first.
async fn receive(
    stream: &mut UnixStream,
    closed: oneshot::Receiver<Infallible>,
) -> io::Result<Option<String>> {
    let mut line = String::new();
    let mut read = BufReader::new(stream.take(MAX_REQUEST_SIZE));
    tokio::select! {
        read = tokio::time::timeout(REQUEST_TIMEOUT, read.read_line(&mut line)) => { read??; }
        _ = closed => return Ok(None),
    }
    Ok(Some(line))
}

/// Answers one command. Connections of other users are closed without an answer.
async fn answer(
    mut stream: UnixStream,
    closed: oneshot::Receiver<Infallible>,
    slots: &Slots,
    app: &App,
    filter: &LogFilter,
) -> io::Result<()> {
    if stream.peer_cred()?.uid() != geteuid().as_raw() {
        return Ok(());
    }
    let Some(line) = receive(&mut stream, closed).await? else { return Ok(()) };
    let request = serde_json::from_str::<Request>(&line);
    let Ok(_slot) = slots.of(&request).try_acquire() else {
        let text = format!("{MAX_COMMANDS} commands are running; try again when one has finished");
        return send(&mut stream, &Reply::Refused(text)).await;
    };
    if let Ok(Request::Copy) = request {
        return send_copy(stream, app).await;
    }
    let (read, mut stream) = stream.into_split();
    let (progress, stages) = watched_progress();
    if let Ok(Request::ImportOrganization { .. }) = request {
        // The command may send the export.
        send(&mut stream, &Reply::Progress(Stage::default())).await?;
    }
    let performing = async {
        match request {
            Ok(Request::Perform(operation)) => match perform(app, operation, progress).await {
                Ok(answer) => Reply::Done(answer),
                Err(error) => Reply::Refused(error.to_string()),
            },
            Ok(Request::ImportOrganization { existing }) => {
                let export = ReceivedExport::begin(read);
                match app.import_organization(export, existing, progress).await {
                    Ok(imported) => to_done(&imported),
                    Err(error) => Reply::Refused(error.to_string()),
                }
            }
            Ok(Request::Ready) => to_reply(app.require_ready().await, json!({ "ready": true })),
            Ok(Request::Log(wanted)) => {
                let changed = filter.change(&wanted);
                if changed.is_ok() {
                    tracing::info!(filter = wanted, "changed the log filter");
                }
                to_reply(changed, json!({ "log": wanted }))
            }
            _ => Reply::Refused(
                "the server does not know this command; it may be a different release".to_owned(),
            ),
        }
    };
    let reply = send_progress(&mut stream, stages, performing).await?;
    send(&mut stream, &reply).await
}

/// Replies with the size of a copy of the data, and sends its bytes.
async fn send_copy(mut stream: UnixStream, app: &App) -> io::Result<()> {
    let (progress, stages) = watched_progress();
    let copying = async {
        app.require_room_for_copy()?;
        app.store().refresh().await?;
        app.store().copy_to_unnamed(progress).await
    };
    let mut copy = match send_progress(&mut stream, stages, copying).await? {
        Ok(copy) => copy,
        Err(error) => return send(&mut stream, &Reply::Refused(error.to_string())).await,
    };
    let size = copy.metadata()?.len();
    send(&mut stream, &Reply::Done(size.into())).await?;
    let mut stream = into_blocking(stream)?;
    stream.set_write_timeout(Some(STREAM_TIMEOUT))?;
    let sending = move || io::copy(&mut copy, &mut stream);
    run_low_priority(Priority::Upkeep, sending).await.map_err(io::Error::other)?.map(drop)
}

/// Returns a progress and what receives its stages.
fn watched_progress() -> (Progress, watch::Receiver<Stage>) {
    let (tell, stages) = watch::channel(Stage::default());
    let progress = Progress::new(move |stage| {
        tell.send_replace(stage.clone());
    });
    (progress, stages)
}

/// Sends the stages of `work` until it ends, and returns its output.
async fn send_progress<T>(
    stream: &mut (impl AsyncWrite + Unpin),
    mut stages: watch::Receiver<Stage>,
    work: impl Future<Output = T>,
) -> io::Result<T> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            Ok(()) = stages.changed() => {
                let stage = stages.borrow_and_update().clone();
                send(stream, &Reply::Progress(stage)).await?;
            }
        }
    }
}

fn to_done(done: &impl Serialize) -> Reply {
    match serde_json::to_value(done) {
        Ok(done) => Reply::Done(done),
        Err(error) => Reply::Refused(error.to_string()),
    }
}

fn to_reply<T, E: Display>(outcome: Result<T, E>, done: Value) -> Reply {
    match outcome {
        Ok(_) => Reply::Done(done),
        Err(error) => Reply::Refused(error.to_string()),
    }
}

async fn send(write: &mut (impl AsyncWrite + Unpin), line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    write.write_all(&text).await
}

/// Connects to the server that has the data file open.
///
/// Fails with `PermissionDenied` if the server runs as another user: it would not answer, and in a shared folder it
/// could be an impostor that collects secrets.
pub(super) async fn connect(data: &Path) -> io::Result<UnixStream> {
    let server = SocketPaths::of(data)?.connect().await?;
    let user = server.peer_cred()?.uid();
    if user == geteuid().as_raw() {
        return Ok(server);
    }
    let text = format!("the server runs as user {user}; run the command as that user");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Asks the server to perform an operation.
pub(super) async fn request_operation(
    server: UnixStream,
    operation: &Operation,
    progress: &Progress,
) -> Result<Value, Failure> {
    request(server, Request::Perform(operation.clone()), progress).await
}

/// Asks the server whether the service accepts writes.
pub(super) async fn ready(server: UnixStream) -> Result<Value, Failure> {
    request(server, Request::Ready, &Progress::silent()).await
}

/// Asks the server to change its log filter.
pub(super) async fn log(server: UnixStream, filter: String) -> Result<Value, Failure> {
    request(server, Request::Log(filter), &Progress::silent()).await
}

async fn request(
    server: UnixStream,
    request: Request,
    progress: &Progress,
) -> Result<Value, Failure> {
    match send_request(server, &request, progress).await {
        Ok(Reply::Done(answer)) => Ok(answer),
        Ok(Reply::Refused(text)) => Err(Failure::Other(text)),
        Ok(Reply::Progress(..)) | Err(_) => Err(Failure::Other(STOPPED.to_owned())),
    }
}

/// Asks the server to import the organization in an export.
pub(super) async fn import_organization(
    mut server: UnixStream,
    export: impl BufRead + Send + 'static,
    existing: bool,
    progress: Progress,
) -> Result<Value, Failure> {
    send(&mut server, &Request::ImportOrganization { existing }).await?;
    import_stream::send(into_blocking(server)?, export, progress).await
}

/// Asks the server for a copy of the data, and returns when it begins to arrive.
pub(super) async fn request_copy(
    mut server: UnixStream,
    progress: Progress,
) -> Result<SentCopy<io::BufReader<BlockingStream>>, Failure> {
    send(&mut server, &Request::Copy).await?;
    let server = into_blocking(server)?;
    let wait = move || -> Result<_, Failure> {
        let mut replies = io::BufReader::new(server);
        loop {
            let mut line = String::new();
            replies.read_line(&mut line)?;
            match serde_json::from_str(&line) {
                Ok(Reply::Progress(stage)) => progress.report(&stage),
                Ok(Reply::Refused(text)) => return Err(Failure::Other(text)),
                Ok(Reply::Done(size)) => {
                    replies.get_ref().set_read_timeout(Some(STREAM_TIMEOUT))?;
                    let unknown = || Failure::Other(STOPPED.to_owned());
                    let size = size.as_u64().ok_or_else(unknown)?;
                    return Ok(SentCopy { from: replies, size });
                }
                Err(_) => return Err(Failure::Other(STOPPED.to_owned())),
            }
        }
    };
    tokio::task::spawn_blocking(wait).await.map_err(Error::internal)?
}

/// Converts the stream for blocking reads and writes.
fn into_blocking(stream: UnixStream) -> io::Result<BlockingStream> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Sends a request, reports progress and returns the last reply.
async fn send_request(
    server: UnixStream,
    request: &Request,
    progress: &Progress,
) -> io::Result<Reply> {
    let (read, mut write) = server.into_split();
    send(&mut write, request).await?;
    let mut read = BufReader::new(read);
    loop {
        let mut line = String::new();
        read.read_line(&mut line).await?;
        match serde_json::from_str(&line)? {
            Reply::Progress(stage) => progress.report(&stage),
            last => return Ok(last),
        }
    }
}
