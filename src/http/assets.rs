//! Responses that are the same for every client, among them files that are embedded in the binary. A URL with the current
//! version of a file may be cached permanently.

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use xxhash_rust::xxh3::xxh3_64;

use crate::base::error::{Error, Result};

/// A response that is the same for every client. It is also an extension of its own response, so that
/// [`GzipLayer`](super::compression::GzipLayer) finds the compressed form. Clones share both forms.
#[derive(Clone)]
pub(super) struct StaticResponse {
    plain: Bytes,
    gzip: Arc<OnceLock<Result<Bytes>>>,
}

impl StaticResponse {
    /// Creates a response from its text. It is compressed when a client first asks for gzip.
    pub(super) fn new(plain: Bytes) -> Self {
        Self { plain, gzip: Arc::default() }
    }

    /// Creates a response from its gzip form.
    ///
    /// # Errors
    /// 500 if `gzip` is not a gzip file.
    pub(super) fn from_gzip(gzip: Bytes) -> Result<Self> {
        let mut plain = Vec::new();
        GzDecoder::new(&*gzip).read_to_end(&mut plain).map_err(Error::internal)?;
        Ok(Self { plain: plain.into(), gzip: Arc::new(OnceLock::from(Ok(gzip))) })
    }

    /// Returns the plain form.
    pub(super) fn plain(&self) -> Bytes {
        self.plain.clone()
    }

    /// Returns the compressed form. The first call may take milliseconds, so do not call it on a request
    /// thread.
    ///
    /// # Errors
    /// 500 if the compression fails.
    pub(super) fn gzip(&self) -> Result<Bytes> {
        self.gzip.get_or_init(|| compress(&self.plain)).clone()
    }

    /// Returns the compressed form if it exists already.
    pub(super) fn cached_gzip(&self) -> Option<Result<Bytes>> {
        self.gzip.get().cloned()
    }
}

fn compress(plain: &[u8]) -> Result<Bytes> {
    let mut packing = GzEncoder::new(Vec::new(), Compression::best());
    packing.write_all(plain).map_err(Error::internal)?;
    packing.finish().map(Bytes::from).map_err(Error::internal)
}

impl IntoResponse for StaticResponse {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.plain()));
        response.extensions_mut().insert(self);
        response
    }
}

/// The query parameter with the version of a file.
pub const VERSION: &str = "v";

/// An embedded file.
pub struct Asset {
    name: &'static str,
    media: String,
    content: StaticResponse,
    /// A hash of the content, so that browsers never use a cached file of another version.
    version: String,
}

impl Asset {
    /// Creates a file from its text.
    pub fn new(name: &'static str, media: &str, text: impl Into<Bytes>) -> Self {
        let text = text.into();
        let version = version_of(&text);
        Self { name, media: media.to_owned(), content: StaticResponse::new(text), version }
    }

    /// Creates a file from its gzip form.
    ///
    /// # Errors
    /// 500 if `gzip` is not a gzip file.
    pub fn from_gzip(name: &'static str, media: String, gzip: Bytes) -> Result<Self> {
        let version = version_of(&gzip);
        Ok(Self { name, media, content: StaticResponse::from_gzip(gzip)?, version })
    }
}

fn version_of(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// The embedded files below one path.
pub struct Assets {
    folder: &'static str,
    files: Vec<Asset>,
}

impl Assets {
    /// Creates the set of files that are served below `folder`, which ends in a slash.
    pub fn new(folder: &'static str, files: Vec<Asset>) -> Self {
        Self { folder, files }
    }

    fn find(&self, name: &str) -> Result<&Asset> {
        self.files.iter().find(|file| file.name == name).ok_or_else(Error::not_found)
    }

    /// Returns the URL of a file, with its version.
    ///
    /// # Errors
    /// 404 if there is no such file.
    pub fn url(&self, name: &str) -> Result<String> {
        let Asset { name, version, .. } = self.find(name)?;
        Ok(format!("{}{name}?{VERSION}={version}", self.folder))
    }

    /// Returns the response with a file. It may be cached permanently if `version` is the current one.
    ///
    /// # Errors
    /// 404 if there is no such file.
    pub fn response(&self, name: &str, version: Option<&str>) -> Result<Response> {
        let file = self.find(name)?;
        let is_current = version == Some(file.version.as_str());
        let caching = if is_current { "public, max-age=31536000, immutable" } else { "no-cache" };
        let headers = [
            (CONTENT_TYPE, file.media.as_str()),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, caching),
            (VARY, "accept-encoding"),
        ];
        Ok((headers, file.content.clone()).into_response())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_response_is_compressed_once_and_on_demand() {
        let text = Bytes::from("text ".repeat(1000));
        let one = StaticResponse::new(text.clone());
        assert!(one.cached_gzip().is_none(), "it is compressed on demand");
        let gzip = one.gzip().unwrap();
        assert_eq!(gzip.as_ptr(), one.clone().gzip().unwrap().as_ptr(), "it is the same buffer");

        let other = StaticResponse::from_gzip(gzip.clone()).unwrap();
        assert_eq!((other.plain(), other.gzip().unwrap().as_ptr()), (text, gzip.as_ptr()));
    }

    #[test]
    fn invalid_gzip_file_is_an_error() {
        assert!(StaticResponse::from_gzip(Bytes::from_static(b"abc")).is_err());
        assert!(StaticResponse::from_gzip(Bytes::from_static(b"abcdef")).is_err());
    }
}
