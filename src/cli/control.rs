//! The control socket, through which commands reach the server that has the data file open.
//!
//! The protocol is lines of JSON: one request, then replies. Long operations send `{"progress": {...}}`. The last reply
//! is `{"done": ...}` or `{"refused": "..."}`. The server answers only the user that it runs as.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io::{self, BufRead};
use std::os::unix::fs::PermissionsExt;
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

use crate::http::logging::LogFilter;
use crate::operator::{Operation, perform};
use crate::state::App;
use crate::store::{Progress, Stage};

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
                        if let Err(error) = answer(stream, closed, &slots, &app, &filter).await {
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
    if let Ok(Request::Stream) = request {
        app.store().refresh().await.map_err(io::Error::other)?;
        return app.store().stream(into_blocking(stream)?).await.map_err(io::Error::other);
    }
    let (read, mut stream) = stream.into_split();
    let (tell, mut stages) = watch::channel(Stage::default());
    if let Ok(Request::ImportOrganization { .. }) = request {
        // The command may send the export.
        send(&mut stream, &Reply::Progress(Stage::default())).await?;
    }
    let progress = Progress::new(move |stage| {
        tell.send_replace(stage.clone());
    });
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
    let mut performing = pin!(performing);
    loop {
        tokio::select! {
            reply = &mut performing => return send(&mut stream, &reply).await,
            Ok(()) = stages.changed() => {
                let stage = stages.borrow_and_update().clone();
                send(&mut stream, &Reply::Progress(stage)).await?;
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
    let server = server.into_std()?;
    server.set_nonblocking(false)?;
    import_stream::send(server, export, progress).await
}

/// Asks the server to stream its current state.
pub(super) async fn stream(mut server: UnixStream) -> io::Result<std::os::unix::net::UnixStream> {
    send(&mut server, &Request::Stream).await?;
    into_blocking(server)
}

/// Converts the stream for blocking reads and writes, with a timeout.
fn into_blocking(stream: UnixStream) -> io::Result<std::os::unix::net::UnixStream> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(STREAM_TIMEOUT))?;
    stream.set_write_timeout(Some(STREAM_TIMEOUT))?;
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
