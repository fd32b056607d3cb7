//! Files that are embedded in the binary. A URL with the current version may be cached permanently.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

use super::static_response::StaticResponse;

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
    /// 500 if `gzip` is too short to be a gzip file.
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
