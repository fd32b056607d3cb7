//! Sends an export through the control socket to the server that imports it.
//!
//! The command sends its request and waits for a first line. Then it sends the export until its end, and reads the replies
//! meanwhile.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as BlockingStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::base::error::Error;
use crate::store::Progress;

use super::Failure;
use super::messages::{Reply, STOPPED, STREAM_TIMEOUT};

/// The size of a piece of an export, in bytes.
const PIECE_SIZE: usize = 64 * 1024;
/// How many pieces wait in memory.
const WAITING_PIECES: usize = 4;

/// The export that a command sends.
pub(super) struct ReceivedExport {
    pieces: Receiver<Vec<u8>>,
    piece: io::Cursor<Vec<u8>>,
}

impl ReceivedExport {
    /// Begins to receive an export. All of it is read, so that a command whose export is refused can read the reply.
    pub(super) fn begin(from: impl AsyncRead + Unpin + Send + 'static) -> BufReader<Self> {
        let (send, pieces) = sync_channel(WAITING_PIECES);
        tokio::spawn(receive(from, send));
        BufReader::with_capacity(PIECE_SIZE, Self { pieces, piece: io::Cursor::default() })
    }
}

async fn receive(mut from: impl AsyncRead + Unpin, send: SyncSender<Vec<u8>>) {
    let mut send = Some(send);
    let mut piece = vec![0; PIECE_SIZE];
    // An export that breaks off is refused, because its last line is cut or its counts do not fit.
    while let Ok(Ok(length @ 1..)) = timeout(STREAM_TIMEOUT, from.read(&mut piece)).await {
        let received = piece.get(..length).unwrap_or_default().to_vec();
        let Some(sender) = send.take() else { continue };
        let sent = tokio::task::spawn_blocking(move || sender.send(received).ok().map(|()| sender));
        send = sent.await.ok().flatten();
    }
}

impl Read for ReceivedExport {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            match Read::read(&mut self.piece, to)? {
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

/// Sends an export to a server that has been asked to import it, and returns its last reply.
pub(super) async fn send(
    server: BlockingStream,
    export: impl BufRead + Send + 'static,
    progress: Progress,
) -> Result<Value, Failure> {
    let exchange = move || {
        let mut replies = BufReader::new(server.try_clone()?).lines();
        let mut next = move || match replies.next() {
            Some(line) => Ok(serde_json::from_str(&line?).map_err(io::Error::other)?),
            None => Err(Failure::Other(STOPPED.to_owned())),
        };
        // The server is ready for the export, or refuses the command.
        if let Reply::Refused(text) = next()? {
            return Err(Failure::Other(text));
        }
        let sending = thread::spawn(move || send_all(export, server));
        loop {
            let last = match next()? {
                Reply::Progress(stage) => {
                    progress.report(&stage);
                    continue;
                }
                Reply::Done(answer) => Ok(answer),
                Reply::Refused(text) => Err(Failure::Other(text)),
            };
            return match sending.join() {
                Ok(Err(unread)) => Err(unread.into()),
                _ => last,
            };
        }
    };
    tokio::task::spawn_blocking(exchange).await.map_err(Error::internal)?
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
