//! The commands' end of the control socket.

use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::geteuid;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::base::error::Error;
use crate::store::{Place, Progress, SentCopy};

use super::Failure;
use super::control::{Reply, Request, STREAM_TIMEOUT, into_blocking, send};
use super::socket_paths::SocketPaths;

/// How long the server may take to answer a health check.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

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
    let server = connect(place.file()).await.map_err(|error| match error.kind() {
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
    tokio::task::spawn_blocking(wait).await.map_err(Error::internal)?
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
    tokio::task::spawn_blocking(wait).await.map_err(Error::internal)?
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
    tokio::task::spawn_blocking(exchange).await.map_err(Error::internal)?
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
