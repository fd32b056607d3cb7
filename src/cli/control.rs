//! The control socket: how a command reaches the server that holds the data file.
//!
//! One line of JSON in, the request; lines out, the last of them `{"done": ...}` or `{"refused": "..."}`,
//! before it `{"progress": {...}}` where it takes long. Only the user who runs the server is answered.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Display;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::http::logging::Filter;
use crate::operator::{Operation, perform};
use crate::state::App;
use crate::store::{Progress, Stage, beside};

use super::Failure;

/// The longest path that a socket's address holds, with room to spare.
const LONGEST: usize = 100;
/// The largest operation.
const LARGEST: u64 = 64 * 1024;
/// How long a command may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections whose request has not arrived yet.
const REQUESTS: usize = 16;
/// Commands under way, and as many queries.
const COMMANDS: usize = 16;
/// Sockets that the server may have open for commands: the listener, and a connection each.
pub(super) const MAX_CONTROL_SOCKETS: usize = 1 + REQUESTS + 2 * COMMANDS;
/// How long the other end of a stream may take for a piece of it.
const STALLED: Duration = Duration::from_secs(30);

#[derive(Serialize, Deserialize)]
enum Request {
    /// Do it, and tell how it went.
    Perform(Operation),
    /// Write the present state, for a backup; in place of a reply.
    Stream,
    /// Tell whether the service takes writes.
    Ready,
    /// Log what this filter asks for.
    Log(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// How far it is.
    Progress(Stage),
    Done(Value),
    Refused(String),
}

/// Where the socket of a data file is.
enum SocketPath {
    /// In the folder of the data file.
    Beside(PathBuf),
    /// Under the runtime folder, if the path beside the data file is too long for a socket. Only a folder that is
    /// [private](require_private) may hold it.
    Runtime { folder: PathBuf, path: PathBuf },
}

impl SocketPath {
    fn of(data: &Path) -> io::Result<Self> {
        let data = std::path::absolute(data)?;
        let path = beside(&data, "sock");
        if path.as_os_str().len() <= LONGEST {
            return Ok(Self::Beside(path));
        }
        let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => std::env::temp_dir().join(format!("steward-{}", geteuid().as_raw())),
        };
        let name = blake3::hash(data.as_os_str().as_encoded_bytes()).to_hex();
        let path = folder.join(format!("steward-{}.sock", &name[..16]));
        Ok(Self::Runtime { folder, path })
    }

    /// The path for a server, which creates the folder if there is none.
    fn into_bindable(self) -> io::Result<PathBuf> {
        if let Self::Runtime { folder, .. } = &self {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).or_else(|error| {
                // A file or a broken link in its place is reported with what is wrong with it.
                if folder.symlink_metadata().is_ok() { Ok(()) } else { Err(error) }
            })?;
        }
        self.into_checked()
    }

    /// The path for a command.
    fn into_checked(self) -> io::Result<PathBuf> {
        match self {
            Self::Beside(path) => Ok(path),
            Self::Runtime { folder, path } => {
                require_private(&folder)?;
                Ok(path)
            }
        }
    }
}

/// Refuses a folder in which another user could put a socket of their own: it must be a real folder, not a symbolic
/// link to one, belong to the user of this process, and be closed to all others.
fn require_private(folder: &Path) -> io::Result<()> {
    let found = folder.symlink_metadata()?;
    let problem = if !found.is_dir() {
        "is not a folder, or is a symbolic link".to_owned()
    } else if found.uid() != geteuid().as_raw() {
        format!("belongs to user {}", found.uid())
    } else if found.mode() & 0o777 != 0o700 {
        format!("has mode {:04o}", found.mode() & 0o777)
    } else {
        return Ok(());
    };
    let text = format!(
        "{} {problem}; the control socket needs a folder of user {} with mode 0700 (set XDG_RUNTIME_DIR)",
        folder.display(),
        geteuid().as_raw(),
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// The socket of a server; removed when the server is done.
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
    /// Opens the socket. Only the holder of the data file's lock may: a socket that is there already
    /// was left by one who is gone.
    pub(super) fn open(data: &Path) -> io::Result<Self> {
        let path = SocketPath::of(data)?.into_bindable()?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(Self { listener, path })
    }

    /// Serves commands, each on its own, until it is dropped. Of more than [`REQUESTS`] connections whose request has
    /// not arrived, the oldest is closed.
    pub(super) async fn serve(self, app: App, filter: Filter) {
        let slots = Slots::default();
        let mut waiting = VecDeque::<oneshot::Sender<Infallible>>::new();
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (app, filter, slots) = (app.clone(), filter.clone(), slots.clone());
                    let (wait, closed) = oneshot::channel();
                    waiting.retain(|wait| !wait.is_closed());
                    waiting.push_back(wait);
                    if waiting.len() > REQUESTS {
                        waiting.pop_front();
                    }
                    tokio::spawn(async move {
                        if let Err(error) = answer(stream, closed, &slots, &app, &filter).await {
                            tracing::warn!(%error, "a command was not served");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the control socket refuses");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

/// What bounds the commands under way.
#[derive(Clone)]
struct Slots {
    commands: Arc<Semaphore>,
    /// For requests that only ask or set something, so that a health check waits for no command.
    queries: Arc<Semaphore>,
}

impl Default for Slots {
    fn default() -> Self {
        let slots = || Arc::new(Semaphore::new(COMMANDS));
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

/// The line that a command sends. None if it is not there before `closed` is ready.
async fn receive(
    stream: &mut UnixStream,
    closed: oneshot::Receiver<Infallible>,
) -> io::Result<Option<String>> {
    let mut line = String::new();
    let mut read = BufReader::new(stream.take(LARGEST));
    tokio::select! {
        read = tokio::time::timeout(PATIENCE, read.read_line(&mut line)) => { read??; }
        _ = closed => return Ok(None),
    }
    Ok(Some(line))
}

/// Answers one command. Whoever is not the user who runs the server hears nothing.
async fn answer(
    mut stream: UnixStream,
    closed: oneshot::Receiver<Infallible>,
    slots: &Slots,
    app: &App,
    filter: &Filter,
) -> io::Result<()> {
    if stream.peer_cred()?.uid() != geteuid().as_raw() {
        return Ok(());
    }
    let Some(line) = receive(&mut stream, closed).await? else { return Ok(()) };
    let request = serde_json::from_str::<Request>(&line);
    let Ok(_slot) = slots.of(&request).try_acquire() else {
        let text = format!("{COMMANDS} commands are under way; try again when one is done");
        return send(&mut stream, &Reply::Refused(text)).await;
    };
    if let Ok(Request::Stream) = request {
        return app.store().stream(blocking(stream)?).await.map_err(io::Error::other);
    }
    let (tell, mut told) = watch::channel(Stage::default());
    let performing = async {
        match request {
            Ok(Request::Perform(operation)) => {
                let progress = Progress::new(move |stage| {
                    tell.send_replace(stage.clone());
                });
                match perform(app, operation, progress).await {
                    Ok(answer) => Reply::Done(answer),
                    Err(error) => Reply::Refused(error.to_string()),
                }
            }
            Ok(Request::Ready) => reply(app.require_ready().await, json!({ "ready": true })),
            Ok(Request::Log(wanted)) => {
                let changed = filter.change(&wanted);
                if changed.is_ok() {
                    tracing::info!(filter = wanted, "the log was changed");
                }
                reply(changed, json!({ "log": wanted }))
            }
            _ => Reply::Refused(
                "the server does not know this command; is it another release?".to_owned(),
            ),
        }
    };
    let mut performing = pin!(performing);
    loop {
        tokio::select! {
            reply = &mut performing => return send(&mut stream, &reply).await,
            Ok(()) = told.changed() => {
                let stage = told.borrow_and_update().clone();
                send(&mut stream, &Reply::Progress(stage)).await?;
            }
        }
    }
}

fn reply<T, E: Display>(outcome: Result<T, E>, done: Value) -> Reply {
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

/// Reaches the server that holds the data file.
///
/// `PermissionDenied` where another user answers: that one would not listen, and under a shared folder
/// it may be somebody who waits to be told secrets.
pub(super) async fn connect(data: &Path) -> io::Result<UnixStream> {
    let server = UnixStream::connect(SocketPath::of(data)?.into_checked()?).await?;
    let user = server.peer_cred()?.uid();
    if user == geteuid().as_raw() {
        return Ok(server);
    }
    let text = format!("the server runs as user {user}; run the command as that user");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Has the server do it.
pub(super) async fn ask(
    server: UnixStream,
    operation: &Operation,
    progress: &Progress,
) -> Result<Value, Failure> {
    request(server, Request::Perform(operation.clone()), progress).await
}

/// Asks the server whether the service takes writes.
pub(super) async fn ready(server: UnixStream) -> Result<Value, Failure> {
    request(server, Request::Ready, &Progress::unheard()).await
}

/// Has the server log what `filter` asks for.
pub(super) async fn log(server: UnixStream, filter: String) -> Result<Value, Failure> {
    request(server, Request::Log(filter), &Progress::unheard()).await
}

async fn request(
    server: UnixStream,
    request: Request,
    progress: &Progress,
) -> Result<Value, Failure> {
    match exchange(server, &request, progress).await {
        Ok(Reply::Done(answer)) => Ok(answer),
        Ok(Reply::Refused(text)) => Err(Failure::Other(text)),
        Ok(Reply::Progress(..)) | Err(_) => Err(Failure::Other(
            "the server went away before it answered; look whether it was done".to_owned(),
        )),
    }
}

/// Has the server write its present state.
pub(super) async fn stream(mut server: UnixStream) -> io::Result<std::os::unix::net::UnixStream> {
    send(&mut server, &Request::Stream).await?;
    blocking(server)
}

/// The same stream for a thread that may wait, though not for ever.
fn blocking(stream: UnixStream) -> io::Result<std::os::unix::net::UnixStream> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(STALLED))?;
    stream.set_write_timeout(Some(STALLED))?;
    Ok(stream)
}

/// The last reply.
async fn exchange(server: UnixStream, request: &Request, progress: &Progress) -> io::Result<Reply> {
    let (read, mut write) = server.into_split();
    send(&mut write, request).await?;
    let mut read = BufReader::new(read);
    loop {
        let mut line = String::new();
        read.read_line(&mut line).await?;
        match serde_json::from_str(&line)? {
            Reply::Progress(stage) => progress.tell(&stage),
            last => return Ok(last),
        }
    }
}
