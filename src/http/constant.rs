//! Long answers that are the same for everybody: each form of them, plain and compressed, is made once.

use std::io::{Read, Write};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use hyper::body::{Frame, SizeHint};

use crate::error::{Error, Result};

/// An answer that is the same for everybody. It is also an extension of its own response, by which
/// [`Negotiate`](super::negotiate::Negotiate) finds the compressed form. Clones share both forms.
#[derive(Clone)]
pub(super) struct Constant(Arc<Forms>);

struct Forms {
    /// The size of the plain form, in bytes.
    size: u64,
    plain: OnceLock<Result<Bytes>>,
    gzip: OnceLock<Result<Bytes>>,
}

impl Constant {
    /// The answer with this text, which is compressed when a client first asks for that.
    pub(super) fn new(plain: Bytes) -> Self {
        let size = plain.len() as u64;
        Self(Arc::new(Forms { size, plain: OnceLock::from(Ok(plain)), gzip: OnceLock::new() }))
    }

    /// The answer whose gzip file this is; it is unpacked when a client first asks for the plain form.
    ///
    /// # Errors
    /// 500 for less than a gzip file.
    pub(super) fn packed(gzip: Bytes) -> Result<Self> {
        // A gzip file ends with the size of what is in it (RFC 1952).
        let size = gzip.last_chunk().ok_or_else(|| Error::internal("no gzip file"))?;
        let size = u32::from_le_bytes(*size).into();
        let forms = Forms { size, plain: OnceLock::new(), gzip: OnceLock::from(Ok(gzip)) };
        Ok(Self(Arc::new(forms)))
    }

    /// The plain form. The first call may unpack it.
    fn plain(&self) -> Result<Bytes> {
        self.0.plain.get_or_init(|| unpack(self.0.gzip.get())).clone()
    }

    /// The compressed form. The first call may compress, which takes milliseconds: not for request threads.
    ///
    /// # Errors
    /// 500 where it cannot be compressed.
    pub(super) fn gzip(&self) -> Result<Bytes> {
        self.0.gzip.get_or_init(|| pack(self.0.plain.get())).clone()
    }

    /// The compressed form, if it is there.
    pub(super) fn known_gzip(&self) -> Option<Result<Bytes>> {
        self.0.gzip.get().cloned()
    }

    /// The plain form as a body, which is not unpacked before it is read.
    pub(super) fn into_body(self) -> Body {
        Body::new(Plain(Some(self)))
    }

    /// The size of the plain form, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.0.size
    }
}

/// What a form that is made of another says where that is missing; one of the two is always there.
fn other(form: Option<&Result<Bytes>>) -> Result<Bytes> {
    form.cloned().unwrap_or_else(|| Err(Error::internal("an answer without a form")))
}

fn unpack(gzip: Option<&Result<Bytes>>) -> Result<Bytes> {
    let gzip = other(gzip)?;
    let mut plain = Vec::new();
    GzDecoder::new(&*gzip).read_to_end(&mut plain).map_err(Error::internal)?;
    Ok(plain.into())
}

fn pack(plain: Option<&Result<Bytes>>) -> Result<Bytes> {
    let plain = other(plain)?;
    let mut packing = GzEncoder::new(Vec::new(), Compression::best());
    packing.write_all(&plain).map_err(Error::internal)?;
    packing.finish().map(Bytes::from).map_err(Error::internal)
}

impl IntoResponse for Constant {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.clone().into_body());
        response.extensions_mut().insert(self);
        response
    }
}

/// The plain form as a body, which nobody unpacks before it is read.
struct Plain(Option<Constant>);

impl HttpBody for Plain {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        let form = self.0.take().map(|constant| constant.plain().map(Frame::data));
        Poll::Ready(form)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, Constant::size))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn each_form_is_made_of_the_other_and_once() {
        let text = Bytes::from("text ".repeat(1000));
        let one = Constant::new(text.clone());
        assert!(one.known_gzip().is_none(), "nobody asked yet");
        let gzip = one.gzip().unwrap();
        assert_eq!(gzip.as_ptr(), one.clone().gzip().unwrap().as_ptr(), "it is the same buffer");

        let other = Constant::packed(gzip).unwrap();
        assert_eq!(other.size(), text.len() as u64);
        let response = other.clone().into_response();
        assert_eq!(response.body().size_hint().exact(), Some(text.len() as u64));
        assert!(other.0.plain.get().is_none(), "nobody read it yet");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), text);
        assert_eq!(other.plain().unwrap().as_ptr(), other.plain().unwrap().as_ptr());
    }

    #[test]
    fn what_is_no_gzip_file_is_an_error() {
        assert!(Constant::packed(Bytes::from_static(b"abc")).is_err());
        assert!(Constant::packed(Bytes::from_static(b"abcdef")).unwrap().plain().is_err());
    }
}
