//! Versions on the wire: the entity tag of one object, and what a request expects of it (decisions §1).
//!
//! A tag is `"<record version>-<hash of the body>"`. A reader compares all of it, because what is shown also
//! depends on who reads; a writer compares the version alone, because what it is about to change is the record.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::store::{Record, WriteTx};

/// One object as an answer shows it, and the version of its record.
#[derive(Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The version: 0 of what has no record yet.
    pub version: u64,
    /// The JSON text.
    pub json: Vec<u8>,
    /// The hash of the text.
    hash: u64,
}

/// Leaves the text out: it may show a secret, this once.
impl fmt::Debug for Versioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versioned").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Versioned {
    /// An object. Hashes the text, here and not when the tag is written: a large text is rendered on a thread that
    /// serves no requests.
    pub fn new(version: u64, json: Vec<u8>) -> Self {
        Self { version, hash: xxh3_64(&json), json }
    }

    /// Its strong entity tag, with its quotes.
    pub fn tag(&self) -> String {
        format!("\"{}-{:016x}\"", self.version, self.hash)
    }
}

/// An entity tag that a request sent.
struct Sent<'h> {
    weak: bool,
    /// What stands between the quotes.
    opaque: &'h str,
}

/// The tags of a header: `"a", W/"b"`. What is no tag ends them.
fn sent(mut header: &str) -> impl Iterator<Item = Sent<'_>> {
    std::iter::from_fn(move || {
        let text = header.trim_start_matches([' ', '\t', ',']);
        let strong = text.strip_prefix("W/");
        let (opaque, rest) = strong.unwrap_or(text).strip_prefix('"')?.split_once('"')?;
        header = rest;
        Some(Sent { weak: strong.is_some(), opaque })
    })
}

/// Whether `If-None-Match` names `tag`, so that the reader has this very answer. It is compared weakly (RFC
/// 9110, 13.1.2); `*` names every tag.
pub fn names(if_none_match: &str, tag: &str) -> bool {
    if_none_match.trim() == "*"
        || sent(if_none_match).any(|sent| {
            let plain = sent.opaque.strip_suffix(COMPRESSED).unwrap_or(sent.opaque);
            Some(plain) == opaque(tag)
        })
}

/// What ends the tag of a compressed answer.
const COMPRESSED: &str = "-gzip";

/// The tag of the same answer, compressed: another text, the same version.
pub fn compressed(tag: &str) -> String {
    opaque(tag).map_or_else(|| tag.to_owned(), |opaque| format!("\"{opaque}{COMPRESSED}\""))
}

fn opaque(tag: &str) -> Option<&str> {
    tag.strip_prefix('"')?.strip_suffix('"')
}

/// What `If-Match` says of the record that a request is to change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Expected {
    /// Nothing: the header was not sent, or is `*`, which asks for what the rule asks anyway.
    #[default]
    Anything,
    /// One of these versions.
    Versions(Vec<u64>),
}

impl Expected {
    /// Reads `If-Match`. A weak tag, and one that is not of this service, names no version (RFC 9110, 13.1.1).
    pub fn of(if_match: &str) -> Self {
        if if_match.trim() == "*" {
            return Self::Anything;
        }
        let strong = sent(if_match).filter(|sent| !sent.weak);
        Self::Versions(
            strong.filter_map(|sent| sent.opaque.split_once('-')?.0.parse().ok()).collect(),
        )
    }

    /// Asks that the record under `key` stood at an expected version before this write touched it. Called when
    /// the rule has done its part: whatever else refuses a request goes first (RFC 9110, 13.2.1).
    ///
    /// # Errors
    /// 412 where it stood at another.
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
    fn a_reader_has_what_it_names_whole() {
        let tag = Versioned::new(3, b"{}".to_vec()).tag();
        let weak = format!("W/{tag}");
        for named in
            [&tag, &weak, "*", " * ", &format!("\"x\", {tag}"), &format!("\"a,b\" ,,{weak}")]
        {
            assert!(names(named, &tag), "{named}");
        }
        assert!(names(&compressed(&tag), &tag));
        let other = Versioned::new(3, b"[]".to_vec()).tag();
        for named in [&*other, "", "3", "\"3\"", tag.trim_matches('"'), "\"", "\"3-", "**"] {
            assert!(!names(named, &tag), "{named}");
        }
    }

    #[test]
    fn a_writer_names_versions_by_strong_tags() {
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
            assert_eq!(Expected::of(header), Expected::Versions(versions), "{header}");
        }
        assert_eq!(Expected::of(" *"), Expected::Anything);
    }
}
