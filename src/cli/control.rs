//! The control socket, through which commands reach the server that has the data file open.
//!
//! The protocol is lines of JSON: one request, then replies. Long operations send `{"progress": {...}}`. The last reply
//! is `{"done": ...}` or `{"refused": "..."}`. The bytes of a copy follow the last reply. A command that imports an
//! organization waits for a first reply, then sends the export until its end and reads the replies meanwhile. The server
//! answers only the user that it runs as.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::timeout;

use crate::app::App;
use crate::base::tasks::{run_blocking, spawn};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::http::logging::LogFilter;
use crate::operator::{Operation, perform};
use crate::store::{Progress, Stage};

use super::socket_paths::SocketPaths;

/// How long the other end of a stream may take to read or write one piece.
pub(super) const STREAM_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of a request, in bytes.
const MAX_REQUEST_SIZE: u64 = 64 * 1024;
/// How long a command may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of open connections without a complete request.
const MAX_UNREAD_REQUESTS: usize = 16;
/// The maximum number of commands, and of queries, that run at the same time.
const MAX_COMMANDS: usize = 16;
/// The size of a piece of an export, in bytes.
const PIECE_SIZE: usize = 64 * 1024;
/// How many pieces wait in memory.
const WAITING_PIECES: usize = 4;
/// The maximum number of sockets that are open for commands: the listener, and one per connection.
pub(super) const MAX_CONTROL_SOCKETS: usize = 1 + MAX_UNREAD_REQUESTS + 2 * MAX_COMMANDS;

/// The request of a command.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// Perform the operation and reply with its result.
    Perform(Operation),
    /// Reply with the size of a copy of the data, and send the copy after that.
    Copy,
    /// Import the organization in the export that follows. The command sends it after a first reply of progress.
    ImportOrganization {
        /// Whether unverified accounts are accepted.
        existing: bool,
    },
    /// Reply whether the service accepts writes.
    Ready,
    /// Set the log filter.
    Log(String),
}

/// A reply of the server. All but the last one are progress.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The progress of the operation.
    Progress(Stage),
    Done(Value),
    Refused(String),
}

impl Reply {
    fn of(outcome: Result<Value, impl Display>) -> Self {
        match outcome {
            Ok(answer) => Self::Done(answer),
            Err(error) => Self::Refused(error.to_string()),
        }
    }
}

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
                    spawn(async move {
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
        read = timeout(REQUEST_TIMEOUT, read.read_line(&mut line)) => { read??; }
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
            Ok(Request::Perform(operation)) => Reply::of(perform(app, operation, progress).await),
            Ok(Request::ImportOrganization { existing }) => {
                let export = ReceivedExport::begin(read);
                let imported = app.import_organization(export, existing, progress).await;
                Reply::of(imported.map(|imported| json!(imported)))
            }
            Ok(Request::Ready) => {
                Reply::of(app.require_ready().await.map(|()| json!({ "ready": true })))
            }
            Ok(Request::Log(wanted)) => {
                let changed = filter.change(&wanted);
                if changed.is_ok() {
                    tracing::info!(filter = wanted, "changed the log filter");
                }
                Reply::of(changed.map(|()| json!({ "log": wanted })))
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

pub(super) async fn send(
    write: &mut (impl AsyncWrite + Unpin),
    line: &impl Serialize,
) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    write.write_all(&text).await
}

/// Converts the stream for blocking reads and writes.
pub(super) fn into_blocking(stream: UnixStream) -> io::Result<BlockingStream> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The export that a command sends.
struct ReceivedExport {
    pieces: Receiver<Vec<u8>>,
    piece: io::Cursor<Vec<u8>>,
}

impl ReceivedExport {
    /// Begins to receive an export. All of it is read, so that a command whose export is refused can read the reply.
    fn begin(from: impl AsyncRead + Unpin + Send + 'static) -> Box<dyn io::BufRead + Send> {
        let (send, pieces) = sync_channel(WAITING_PIECES);
        spawn(receive_pieces(from, send));
        let export = Self { pieces, piece: io::Cursor::default() };
        Box::new(io::BufReader::with_capacity(PIECE_SIZE, export))
    }
}

async fn receive_pieces(mut from: impl AsyncRead + Unpin, send: SyncSender<Vec<u8>>) {
    let mut send = Some(send);
    let mut piece = vec![0; PIECE_SIZE];
    // An export that breaks off is refused, because its last line is cut or its counts do not fit.
    while let Ok(Ok(length @ 1..)) = timeout(STREAM_TIMEOUT, from.read(&mut piece)).await {
        let received = piece.get(..length).unwrap_or_default().to_vec();
        let Some(sender) = send.take() else { continue };
        let sent = run_blocking(move || sender.send(received).ok().map(|()| sender));
        send = sent.await.ok().flatten();
    }
}

impl io::Read for ReceivedExport {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            match io::Read::read(&mut self.piece, to)? {
                0 => {}
                read => return Ok(read),
            }
            match self.pieces.recv() {
                Ok(piece) => self.piece = io::Cursor::new(piece),
                Err(_) => return Ok(0),
            }
        }
    }
}
