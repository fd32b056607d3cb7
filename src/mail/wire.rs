//! The connection to a mail server, below the SMTP dialogue: TLS from the first byte or after STARTTLS. Also the reason why a
//! mail was not sent: for the operator, and for the users that may see the state of the mail.

use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::{fmt, io};

use lettre::transport::smtp::Error as Trouble;
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::commands::Starttls;
use lettre::transport::smtp::extension::{ClientId, Extension};
use lettre::transport::smtp::response::Code;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::{Protection, SmtpUrl};

use super::compose::to_ascii_address;
use super::mailbox::mask;

/// An error of the SMTP dialogue.
#[derive(Debug)]
pub(super) enum Failure {
    /// The network or the certificate failed.
    Network(io::Error),
    /// The server has no STARTTLS.
    NoStartTls,
    /// The server refused the connection or the sign-in, or did not speak SMTP.
    Connection(Trouble),
    /// The transaction of a mail failed.
    Mail(Trouble),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Network(error)
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Connection(trouble)
    }
}

/// Connects to a server and greets it. Nothing else is sent before the connection has the protection that `url` demands.
pub(super) async fn connect(
    url: &SmtpUrl,
    tls: Option<&TlsConnector>,
    hello: &ClientId,
) -> Result<AsyncSmtpConnection, Failure> {
    let stream = TcpStream::connect((url.host.as_str(), url.port)).await?;
    let peer = stream.peer_addr()?;
    let Some(tls) = tls else { return open(Wire::new(stream, peer), hello).await };
    let name = ServerName::try_from(url.host.clone()).map_err(io::Error::other)?;
    if url.protection == Protection::Tls {
        return open(Wire::new(tls.connect(name, stream).await?, peer), hello).await;
    }
    let plain = Wire::new(stream, peer);
    let shared = Arc::clone(&plain.stream);
    let mut plain = open(plain, hello).await?;
    if !plain.server_info().supports_feature(Extension::StartTls) {
        return Err(Failure::NoStartTls);
    }
    plain.command(Starttls).await?;
    // What the server sent before the handshake stays unread in the connection that ends here.
    drop(plain);
    let stream = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    let stream = stream.ok_or(io::ErrorKind::NotConnected).map_err(io::Error::from)?;
    let secured = Wire::new(tls.connect(name, stream).await?, peer);
    open(secured.greeted(), hello).await
}

async fn open(wire: Wire, hello: &ClientId) -> Result<AsyncSmtpConnection, Failure> {
    Ok(AsyncSmtpConnection::connect_with_transport(Box::new(wire), hello).await?)
}

trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin + fmt::Debug + 'static {}
impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin + fmt::Debug + 'static> Stream for S {}

/// A stream whose replies to EHLO have their keywords in upper case, as lettre expects them: their case is the server's.
#[derive(Debug)]
struct Wire {
    /// `None` once TLS begins on it.
    stream: Arc<Mutex<Option<Box<dyn Stream>>>>,
    peer: SocketAddr,
    keywords: Keywords,
    /// What is read before anything of the stream.
    first: &'static [u8],
}

impl Wire {
    fn new(stream: impl Stream, peer: SocketAddr) -> Self {
        let stream: Box<dyn Stream> = Box::new(stream);
        let stream = Arc::new(Mutex::new(Some(stream)));
        Self { stream, peer, keywords: Keywords::default(), first: b"" }
    }

    /// After STARTTLS the server sends no second greeting, but lettre waits for one.
    fn greeted(self) -> Self {
        Self { first: b"220 \r\n", ..self }
    }

    fn with_stream<T>(
        &self,
        poll: impl FnOnce(Pin<&mut dyn Stream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut *self.stream.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(stream) => poll(Pin::new(&mut **stream)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncTokioStream for Wire {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.first.is_empty() {
            let (now, later) = self.first.split_at(self.first.len().min(out.remaining()));
            out.put_slice(now);
            self.first = later;
            return Poll::Ready(Ok(()));
        }
        let before = out.filled().len();
        let polled = self.with_stream(|stream| stream.poll_read(context, out));
        self.keywords.raise(out.filled_mut().get_mut(before..).unwrap_or_default());
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.starts_with(b"EHLO ") {
            self.keywords = Keywords { is_ehlo: true, line: Vec::new() };
        }
        self.with_stream(|stream| stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with_stream(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with_stream(|stream| stream.poll_shutdown(context))
    }
}

/// Whether the reply to EHLO is being read.
#[derive(Debug, Default)]
struct Keywords {
    is_ehlo: bool,
    /// The first characters of the line that is being read: the code, and what follows it.
    line: Vec<u8>,
}

impl Keywords {
    /// Changes the lines of a positive reply to EHLO to upper case, up to its last line.
    fn raise(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if !self.is_ehlo {
                return;
            }
            if *byte == b'\n' {
                self.is_ehlo = self.line.get(3) == Some(&b'-');
                self.line.clear();
                continue;
            }
            if self.line.len() < 4 {
                self.line.push(*byte);
            }
            if self.line.starts_with(b"250") {
                byte.make_ascii_uppercase();
            }
        }
    }
}

impl Failure {
    /// Returns the code of the server's reply, if it replied.
    pub(super) fn status(&self) -> Option<Code> {
        match self {
            Self::Connection(trouble) | Self::Mail(trouble) => trouble.status(),
            Self::Network(_) | Self::NoStartTls => None,
        }
    }

    /// Returns the innermost cause: the server's reply, or the error of the network or the certificate.
    pub(super) fn text(&self) -> String {
        let mut deepest: &dyn Error = match self {
            Self::Connection(trouble) | Self::Mail(trouble) => trouble,
            Self::Network(error) => error,
            Self::NoStartTls => return "STARTTLS is not supported on this server".to_owned(),
        };
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        deepest.to_string()
    }
}

/// The reason why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendError {
    /// The server's reply or the connection's error, in one line, for the operator.
    pub(super) line: String,
    /// The reason for the members of the organization that sends the mail, in one line: without addresses, and without
    /// details of the mail server.
    pub(super) reason: String,
    /// Whether the server has received the whole mail but its last reply is missing: it may have sent the mail on.
    pub may_be_delivered: bool,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl SendError {
    /// Creates the error of a mail that was surely not accepted.
    pub fn not_delivered(line: impl Into<String>, reason: &str) -> Self {
        Self { line: line.into(), reason: reason.to_owned(), may_be_delivered: false }
    }

    /// Returns the line for the log, with the recipient's address masked.
    pub fn redacted(&self, to: &str) -> String {
        let written = to_ascii_address(to).map(|address| address.to_string());
        let known = written.as_deref().into_iter().chain([to]).filter(|known| !known.is_empty());
        known.fold(self.line.clone(), |line, address| mask(&line, address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(text: &str, piece: usize) -> String {
        let mut keywords = Keywords { is_ehlo: true, line: Vec::new() };
        let mut bytes = text.as_bytes().to_vec();
        bytes.chunks_mut(piece).for_each(|piece| keywords.raise(piece));
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn keywords_of_a_reply_to_ehlo_are_in_upper_case() {
        let reply = "250-mail.example\r\n250-starttls\r\n250-Auth login plain\r\n250 8bitmime\r\n";
        let next = "250 2.0.0 Ok: queued as abc\r\n";
        for piece in [1, 2, 3, 7, 1000] {
            let text = raised(&format!("{reply}{next}"), piece);
            assert_eq!(text, format!("{}{next}", reply.to_ascii_uppercase()));
        }
        let refused = "550-not\r\n550 today\r\n";
        assert_eq!(raised(refused, 5), refused);
    }
}
