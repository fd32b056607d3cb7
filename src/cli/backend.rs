//! The process that performs a command: this one, or the server that has the data open. The commands' end of the control socket.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::Either;
use rustix::process::geteuid;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::app::App;
use crate::base::tasks::run_blocking;
use crate::config::Config;
use crate::operator::{Operation, perform};
use crate::store::{OpenError, Place, Progress, SentCopy, Store};

use super::Failure;
use super::control::{Reply, Request, STREAM_TIMEOUT, into_blocking, send};
use super::output::progress_bar;
use super::socket_paths::SocketPaths;

/// How long a command waits if another command holds the file, or if a server holds it but does not yet answer
/// commands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// How long the server may take to answer a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// The process that performs a command.
pub(super) enum Backend {
    /// This process, which has opened the file or the copy. A copy that only this command needs is in a temporary folder.
    File(Store, Option<TempDir>),
    /// The server that has the file open.
    Server(UnixStream),
}

/// What a command does with the data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It only reads. A data file stays as it is, byte for byte.
    Read,
    Write,
}

/// Opens the file or the copy, or connects to the server that has it open.
pub(super) async fn connect(place: &Place, access: Access) -> Result<Backend, Failure> {
    let (opened, folder) = temporary_copy(place)?;
    Ok(match open_or_connect(place.file(), || open(&opened, access)).await? {
        Either::Left(store) => Backend::File(store, folder),
        Either::Right(server) => Backend::Server(server),
    })
}

/// Returns the output of `open`, or connects to the server that has the file open.
pub(super) async fn open_or_connect<T>(
    data: &Path,
    open: impl AsyncFn() -> Result<T, OpenError>,
) -> Result<Either<T, UnixStream>, Failure> {
    let begun = Instant::now();
    loop {
        let held = match open().await {
            Ok(opened) => return Ok(Either::Left(opened)),
            Err(held @ OpenError::InUse(_)) => held,
            Err(error) => return Err(error.into()),
        };
        match connect_to_server(data).await {
            Ok(server) => return Ok(Either::Right(server)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(error.into());
            }
            Err(_) if begun.elapsed() < CONNECT_TIMEOUT => tokio::time::sleep(RETRY_INTERVAL).await,
            Err(_) => return Err(held.into()),
        }
    }
}

/// Opens the data off the threads of the runtime: a shared database may take a while to answer.
async fn open(place: &Place, access: Access) -> Result<Store, OpenError> {
    let (place, Config { file_system, page_cache, .. }) = (place.clone(), Config::default());
    let open = move || match (&place, access) {
        (Place::File(path), Access::Read) => Store::open_to_read(path, page_cache),
        _ => Store::open_at(file_system, &place, page_cache),
    };
    run_blocking(open).await?
}

/// Returns a place with a temporary copy if a shared database has no copy here, and the folder of that copy.
fn temporary_copy(place: &Place) -> Result<(Place, Option<TempDir>), Failure> {
    match place {
        Place::Shared { url, copy, ca, node } if !copy.exists() => {
            let folder = TempDir::new()?;
            let (url, copy) = (url.clone(), folder.path().join("copy.redb"));
            Ok((Place::Shared { url, copy, ca: ca.clone(), node: node.clone() }, Some(folder)))
        }
        place => Ok((place.clone(), None)),
    }
}

/// Performs the operation on the file, or through the server that has it open.
pub(super) async fn run_operation(
    place: &Place,
    operation: Operation,
    config: Config,
) -> Result<Value, Failure> {
    let access = if operation.only_reads() { Access::Read } else { Access::Write };
    match connect(place, access).await? {
        Backend::File(store, _folder) => {
            let app = App::new_for_command(store, config)?;
            let answer = perform(&app, operation, progress_bar()).await;
            app.close().await;
            Ok(answer?)
        }
        Backend::Server(server) => {
            request(server, &Request::Perform(operation), progress_bar()).await
        }
    }
}

/// Connects to the server that has the data file open.
///
/// Fails with `PermissionDenied` if the server runs as another user: it would not answer, and in a shared folder it
/// could be an impostor that collects secrets.
async fn connect_to_server(data: &Path) -> io::Result<UnixStream> {
    let server = SocketPaths::of(data)?.connect().await?;
    let user = server.peer_cred()?.uid();
    if user == geteuid().as_raw() {
        return Ok(server);
    }
    let text = format!("the server runs as user {user}; run the command as that user");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Asks over the control socket, so that the addresses of the server do not matter.
pub(super) async fn healthcheck(place: &Place) -> Result<Value, Failure> {
    let answered = timeout(HEALTH_TIMEOUT, request_at(place, &Request::Ready)).await;
    let silent = |_| Failure::Other(format!("the server did not answer within {HEALTH_TIMEOUT:?}"));
    answered.map_err(silent)?
}

/// Changes the running server's log filter.
pub(super) async fn log(place: &Place, filter: String) -> Result<Value, Failure> {
    request_at(place, &Request::Log(filter)).await
}

async fn request_at(place: &Place, request: &Request) -> Result<Value, Failure> {
    let server = connect_to_server(place.file()).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Failure::Other(format!("no server is serving {place}"))
        }
        _ => error.into(),
    })?;
    self::request(server, request, Progress::silent()).await
}

/// Sends a request, reports progress and returns the result.
pub(super) async fn request(
    server: UnixStream,
    request: &Request,
    progress: Progress,
) -> Result<Value, Failure> {
    let server = begin(server, request).await.map_err(|_| stopped())?;
    let wait = move || last_reply(&mut BufReader::new(server), &progress);
    run_blocking(wait).await?
}

/// Asks the server for a copy of the data, and returns when it begins to arrive.
pub(super) async fn request_copy(
    server: UnixStream,
    progress: Progress,
) -> Result<SentCopy<BufReader<BlockingStream>>, Failure> {
    let server = begin(server, &Request::Copy).await?;
    let wait = move || -> Result<_, Failure> {
        let mut replies = BufReader::new(server);
        let size = last_reply(&mut replies, &progress)?.as_u64().ok_or_else(stopped)?;
        replies.get_ref().set_read_timeout(Some(STREAM_TIMEOUT))?;
        Ok(SentCopy { from: replies, size })
    };
    run_blocking(wait).await?
}

/// Asks the server to import the organization in an export, and sends the export until its end.
pub(super) async fn import_organization(
    server: UnixStream,
    export: impl BufRead + Send + 'static,
    existing: bool,
    progress: Progress,
) -> Result<Value, Failure> {
    let server = begin(server, &Request::ImportOrganization { existing }).await?;
    let exchange = move || -> Result<_, Failure> {
        let mut replies = BufReader::new(server.try_clone()?);
        // The server is ready for the export, or refuses the command.
        if let Reply::Refused(text) = next_reply(&mut replies)? {
            return Err(Failure::Other(text));
        }
        let sending = thread::spawn(move || send_all(export, server));
        let last = last_reply(&mut replies, &progress);
        if last.is_err() && !sending.is_finished() {
            return last;
        }
        match sending.join() {
            Ok(Err(unread)) => Err(unread.into()),
            _ => last,
        }
    };
    run_blocking(exchange).await?
}

/// Sends a request. Returns the stream of the replies.
async fn begin(mut server: UnixStream, request: &Request) -> io::Result<BlockingStream> {
    send(&mut server, request).await?;
    into_blocking(server)
}

/// Reads the replies up to the last one, and reports the progress in the others.
fn last_reply(replies: &mut impl BufRead, progress: &Progress) -> Result<Value, Failure> {
    loop {
        match next_reply(replies)? {
            Reply::Progress(stage) => progress.report(&stage),
            Reply::Done(answer) => return Ok(answer),
            Reply::Refused(text) => return Err(Failure::Other(text)),
        }
    }
}

fn next_reply(replies: &mut impl BufRead) -> Result<Reply, Failure> {
    let mut line = String::new();
    let read = replies.read_line(&mut line).ok();
    read.and_then(|_| serde_json::from_str(&line).ok()).ok_or_else(stopped)
}

/// Returns the error of a command whose server stopped before its last reply.
fn stopped() -> Failure {
    let text = "the server stopped before it answered; check whether the command took effect";
    Failure::Other(text.to_owned())
}

/// Sends the whole export. Fails only if the export cannot be read: if the server is gone, it does not reply.
fn send_all(mut export: impl BufRead, mut server: BlockingStream) -> io::Result<()> {
    loop {
        let piece = export.fill_buf()?;
        if piece.is_empty() || server.write_all(piece).is_err() {
            let _ = server.shutdown(Shutdown::Write);
            return Ok(());
        }
        let length = piece.len();
        export.consume(length);
    }
}
