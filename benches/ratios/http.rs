//! The benchmark's HTTP/1.1 client: requests rendered in advance, a response parser for status and
//! `Content-Length`, and a blocking client for requests outside of the measured load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::{Context, Result, fail};

/// The largest accepted response head, in bytes.
pub const MAX_HEAD: usize = 16 * 1024;

/// The parsed head of a response.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead {
    pub status: u16,
    /// The length of the head, including the blank line.
    pub head: usize,
    /// The length of the body.
    pub body: usize,
}

/// Parses the head of a response. Returns `None` if it is incomplete.
pub fn parse_head(bytes: &[u8]) -> Result<Option<ResponseHead>> {
    let mut at = 0;
    let mut status = None;
    let mut body = None;
    while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        let line = bytes[at..at + length].trim_ascii_end();
        at += length + 1;
        if line.is_empty() {
            let status = status.ok_or("a response without a status line")?;
            // Chunked responses are not supported.
            let body =
                body.or((status == 204).then_some(0)).ok_or("a response without Content-Length")?;
            return Ok(Some(ResponseHead { status, head: at, body }));
        }
        if status.is_none() {
            status = Some(parse_status(line)?);
        } else if let Some(length) = content_length(line)? {
            body = Some(length);
        }
    }
    if bytes.len() > MAX_HEAD { fail("a response head exceeds 16 KiB") } else { Ok(None) }
}

fn parse_status(line: &[u8]) -> Result<u16> {
    let digits = line.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| "a response that is not HTTP/1.1".into())
}

fn content_length(line: &[u8]) -> Result<Option<usize>> {
    const NAME: &[u8] = b"content-length:";
    match line.split_at_checked(NAME.len()) {
        Some((name, value)) if name.eq_ignore_ascii_case(NAME) => {
            let value = std::str::from_utf8(value.trim_ascii()).context("Content-Length")?;
            Ok(Some(value.parse().context("Content-Length")?))
        }
        _ => Ok(None),
    }
}

/// Returns the bytes of a keep-alive request. An empty body has no `Content-Type`.
pub fn render(method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
    let mut text =
        format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n");
    if !body.is_empty() {
        text += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    text += "\r\n";
    text += body;
    text.into_bytes()
}

/// A blocking keep-alive connection with timeouts.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects. `patience` is the timeout for connecting, reading and writing.
    pub fn connect(address: SocketAddr, patience: Duration) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, patience).context("connecting")?;
        stream.set_nodelay(true).context("TCP_NODELAY")?;
        stream.set_read_timeout(Some(patience)).context("read timeout")?;
        stream.set_write_timeout(Some(patience)).context("write timeout")?;
        Ok(Self { stream, buffer: vec![0; 256 * 1024] })
    }

    /// Sends a rendered request and returns the status and the body of the response.
    pub fn send(&mut self, request: &[u8]) -> Result<(u16, &[u8])> {
        self.stream.write_all(request).context("sending")?;
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                self.buffer.resize(filled * 2, 0);
            }
            let read = self.stream.read(&mut self.buffer[filled..]).context("receiving")?;
            if read == 0 {
                return fail("the server closed the connection");
            }
            filled += read;
            if let Some(head) = parse_head(&self.buffer[..filled])?
                && filled >= head.head + head.body
            {
                return Ok((head.status, &self.buffer[head.head..head.head + head.body]));
            }
        }
    }

    /// Sends a rendered request and returns the head of the response.
    pub fn head_of(&mut self, request: &[u8]) -> Result<String> {
        self.send(request)?;
        let end = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or_default();
        Ok(String::from_utf8_lossy(&self.buffer[..end]).into_owned())
    }

    /// Sends a GET and returns its body. Fails unless the status is 200.
    pub fn get(&mut self, path: &str, key: &str) -> Result<Vec<u8>> {
        match self.send(&render("GET", path, key, ""))? {
            (200, body) => Ok(body.to_vec()),
            (status, body) => {
                fail(format!("GET {path} returned {status}: {}", String::from_utf8_lossy(body)))
            }
        }
    }

    /// Sends a GET and returns its JSON. Fails unless the status is 200.
    pub fn get_json(&mut self, path: &str, key: &str) -> Result<Value> {
        serde_json::from_slice(&self.get(path, key)?).context(format!("the JSON of {path}"))
    }
}
