//! The TXT record that verifies a domain, and what a look-up of it found.

use std::cmp::Reverse;

use crate::net::dns::{LookupError, TxtRecord};
use crate::resources::shared::prelude::*;

use super::Fields;

/// The maximum number of records that a response shows.
const MAX_FOUND: usize = 20;
/// The maximum number of characters of a record that a response shows. One string has at most 255 bytes.
const MAX_TEXT_LENGTH: usize = 300;

impl Fields {
    /// Checks that the domain is not yet verified.
    ///
    /// # Errors
    /// 400 if it is verified.
    pub fn require_unverified(&self) -> Result<()> {
        if self.is_verified {
            let detail = "This domain has already been verified.";
            return Err(Error::invalid("already_verified", detail));
        }
        Ok(())
    }

    /// Returns the DNS name of the TXT record, without a dot at its end.
    pub fn challenge_name(&self, prefix: &str) -> String {
        format!("{prefix}.{}", self.domain)
    }

    /// Returns whether one of these TXT records verifies the domain.
    pub fn is_verified_by(&self, records: &[TxtRecord]) -> bool {
        records.iter().any(|strings| self.is_challenge_in(strings))
    }

    /// Returns whether the first string of a TXT record equals the challenge, as in PostHog. The challenge is not a
    /// secret, so the comparison need not take constant time.
    fn is_challenge_in(&self, strings: &TxtRecord) -> bool {
        strings.first().is_some_and(|first| first == self.verification_challenge.as_bytes())
    }

    /// Returns what a look-up of `name`, the name of the TXT record, found.
    ///
    /// # Errors
    /// 503 if the server could not ask: too many look-ups wait, or no name server is configured.
    pub fn findings(
        self,
        name: String,
        answer: Result<Vec<TxtRecord>, LookupError>,
    ) -> Result<DomainLookup> {
        let (mut records, error) = match answer {
            Ok(records) => (records, None),
            Err(LookupError::TimedOut(limit)) => {
                let limit = humantime::format_duration(limit);
                (Vec::new(), Some(format!("No name server answered within {limit}.")))
            }
            Err(LookupError::Failed(_)) => {
                (Vec::new(), Some("All name servers failed or refused to answer.".to_owned()))
            }
            Err(error @ (LookupError::QueueFull | LookupError::NoServer(_))) => {
                return Err(error.into());
            }
        };
        records.sort_by_key(|strings| Reverse(self.is_challenge_in(strings)));
        let matches = self.is_verified_by(&records);
        let found = records.iter().take(MAX_FOUND).map(shown).collect();
        Ok(DomainLookup { name, expected: self.verification_challenge, found, matches, error })
    }
}

output! {
    /// What the DNS answers for the TXT record that verifies a domain.
    pub struct DomainLookup {
        /// The DNS name of the TXT record.
        name: String,
        /// The text that the record must contain.
        expected: String,
        /// The TXT records of the name, the matching ones first: at most 20, each cut to 300 characters. A record of several
        /// strings is shown with each string in quotes. Bytes that are not text are shown as U+FFFD.
        found: Vec<String>,
        /// Whether one of the records verifies the domain: its first string equals `expected`.
        matches: bool,
        /// Why there is no answer; null if a name server answered.
        error: Option<String>,
    }
}

/// Returns the text of a TXT record: its string, or several strings in quotes as in a zone file.
fn shown(strings: &TxtRecord) -> String {
    let mut texts = strings.iter().map(|bytes| String::from_utf8_lossy(bytes));
    let text = match (strings.len(), texts.next()) {
        (0 | 1, only) => only.unwrap_or_default().into_owned(),
        (_, first) => {
            let quoted: Vec<_> =
                first.into_iter().chain(texts).map(|text| format!("\"{text}\"")).collect();
            quoted.join(" ")
        }
    };
    text.chars()
        .take(MAX_TEXT_LENGTH)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_any_bytes_are_shown_as_text() {
        let record = |strings: &[&[u8]]| strings.iter().map(|bytes| bytes.to_vec()).collect();
        for (strings, text) in [
            (record(&[]), ""),
            (record(&[b"a\xffb"]), "a\u{fffd}b"),
            (record(&[b"", b"\x00 "]), "\"\" \"\u{fffd} \""),
        ] {
            assert_eq!(shown(&strings), text);
        }
        assert_eq!(shown(&vec![vec![b'x'; 255], vec![b'y'; 255]]).chars().count(), MAX_TEXT_LENGTH);
    }
}
