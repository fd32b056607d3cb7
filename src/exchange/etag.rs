//! Entity tags: the version of one object in `ETag`, `If-Match` and `If-None-Match`. See `docs/spec/requests.md`.
//!
//! A tag is `"<record version>-<hash of the body>"`. A conditional read compares the whole tag, because the body also
//! depends on the caller. A conditional write compares the version alone, because it changes the record and not the
//! body.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::error::{Error, Result};
use crate::store::{Record, WriteTx};

/// The body of one object, with the version of its record.
#[derive(Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The record's version, or 0 if the object has no record yet.
    pub version: u64,
    /// The JSON text.
    pub json: Vec<u8>,
    /// The hash of `json`.
    hash: u64,
}

/// Leaves out the text, which may contain a secret.
impl fmt::Debug for Versioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versioned").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Versioned {
    /// Creates a body and hashes its text. Large texts are rendered off the request threads, so hashing belongs here
    /// and not into [`etag`](Self::etag).
    pub fn new(version: u64, json: Vec<u8>) -> Self {
        Self { version, hash: xxh3_64(&json), json }
    }

    /// Returns the strong entity tag, in quotes.
    pub fn etag(&self) -> String {
        format!("\"{}-{:016x}\"", self.version, self.hash)
    }
}

/// Iterates over the tags in a header value like `"a", W/"b"`, up to the first malformed tag: whether a tag is weak, and the
/// text between its quotes.
fn parse_tags(mut header: &str) -> impl Iterator<Item = (bool, &str)> {
    std::iter::from_fn(move || {
        let text = header.trim_start_matches([' ', '\t', ',']);
        let strong = text.strip_prefix("W/");
        let (opaque, rest) = strong.unwrap_or(text).strip_prefix('"')?.split_once('"')?;
        header = rest;
        Some((strong.is_some(), opaque))
    })
}

/// Returns whether `If-None-Match` matches `tag`, so that the answer is 304. The comparison is weak (RFC 9110,
/// 13.1.2); `*` matches every tag.
pub fn matches_any(if_none_match: &str, tag: &str) -> bool {
    if_none_match.trim() == "*"
        || parse_tags(if_none_match).any(|(_, sent)| {
            Some(sent.strip_suffix(GZIP_SUFFIX).unwrap_or(sent)) == opaque_part(tag)
        })
}

/// The suffix of the tag of a compressed body.
const GZIP_SUFFIX: &str = "-gzip";

/// Returns the tag of the same body after compression: a strong tag must differ, because the bytes differ.
pub fn gzip_tag(tag: &str) -> String {
    opaque_part(tag).map_or_else(|| tag.to_owned(), |opaque| format!("\"{opaque}{GZIP_SUFFIX}\""))
}

fn opaque_part(tag: &str) -> Option<&str> {
    tag.strip_prefix('"')?.strip_suffix('"')
}

/// The versions that `If-Match` allows the changed record to have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum IfMatch {
    /// Any version: the header was not sent or is `*`. The rule already answers 404 if the object does not exist.
    #[default]
    Anything,
    /// One of these versions. An empty list matches no record.
    Versions(Vec<u64>),
}

impl IfMatch {
    /// Parses `If-Match`. Weak tags and tags of other services match no version (RFC 9110, 13.1.1).
    pub fn parse(if_match: &str) -> Self {
        if if_match.trim() == "*" {
            return Self::Anything;
        }
        let strong = parse_tags(if_match).filter(|(is_weak, _)| !is_weak);
        Self::Versions(
            strong.filter_map(|(_, sent)| sent.split_once('-')?.0.parse().ok()).collect(),
        )
    }

    /// Checks the version that the record under `key` had before this write. Call this after the rule, because every
    /// other error takes precedence (RFC 9110, 13.2.1).
    ///
    /// # Errors
    /// 412 if the version is not an expected one.
    pub fn require<R: Record>(&self, tx: &WriteTx<'_>, key: &R::Key) -> Result<()> {
        match self {
            Self::Anything => Ok(()),
            Self::Versions(versions) if versions.contains(&tx.version_before::<R>(key)?) => Ok(()),
            Self::Versions(_) => Err(Error::precondition_failed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_none_match_accepts_lists_weak_tags_and_wildcard() {
        let tag = Versioned::new(3, b"{}".to_vec()).etag();
        let weak = format!("W/{tag}");
        for named in
            [&tag, &weak, "*", " * ", &format!("\"x\", {tag}"), &format!("\"a,b\" ,,{weak}")]
        {
            assert!(matches_any(named, &tag), "{named}");
        }
        assert!(matches_any(&gzip_tag(&tag), &tag));
        let other = Versioned::new(3, b"[]".to_vec()).etag();
        for named in [&*other, "", "3", "\"3\"", tag.trim_matches('"'), "\"", "\"3-", "**"] {
            assert!(!matches_any(named, &tag), "{named}");
        }
    }

    #[test]
    fn if_match_reads_versions_from_strong_tags_only() {
        for (header, versions) in [
            ("\"3-0123456789abcdef\"", vec![3]),
            ("\"3-a\",\"4-b\" , \"5-c\"", vec![3, 4, 5]),
            ("W/\"3-a\", \"4-b\"", vec![4]),
            ("W/\"3-a\"", vec![]),
            ("\"x\", \"-\", \"3\"", vec![]),
            ("\"3-a\" no tag \"4-b\"", vec![3]),
            ("3-a", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(IfMatch::parse(header), IfMatch::Versions(versions), "{header}");
        }
        assert_eq!(IfMatch::parse(" *"), IfMatch::Anything);
    }
}
