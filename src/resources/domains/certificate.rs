//! The signing certificate of an identity provider.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::parse_x509_certificate;

use crate::error::{Error, Result};
use crate::input::{FieldType, Schema, Text};

/// The text of a certificate. Its length is checked before decoding.
type CertificateText = Text<16_384>;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// One X.509 certificate, as PEM or as its base64, stored as sent. Blank is allowed. White space in the base64 is
/// ignored. An expired certificate is valid.
pub struct Certificate;

impl FieldType for Certificate {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = CertificateText::read(value)?;
        if text.is_empty() || is_certificate(&text) {
            return Ok(text);
        }
        let detail = "Enter one valid X.509 certificate, as PEM or as its base64.";
        Err(Error::invalid("invalid_input", detail))
    }

    fn schema() -> Schema {
        CertificateText::schema()
    }
}

fn is_certificate(text: &str) -> bool {
    let Some(der) = decoded(text) else { return false };
    matches!(parse_x509_certificate(&der), Ok((rest, _)) if rest.is_empty())
}

/// Decodes the base64 between the PEM markers, or the whole text if it has no markers.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let base64 = match text.strip_prefix(BEGIN) {
        Some(rest) => rest.strip_suffix(END)?,
        None => text,
    };
    let base64: Vec<u8> = base64.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(base64).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;
    use rcgen::generate_simple_self_signed;

    use super::*;

    fn issued() -> Vec<u8> {
        let names = vec!["idp.example".to_owned()];
        generate_simple_self_signed(names).unwrap().cert.der().to_vec()
    }

    proptest! {
        #[test]
        fn parsing_a_corrupted_certificate_does_not_panic(
            flips in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..8),
        ) {
            let mut der = issued();
            for (at, byte) in flips {
                let at = at.index(der.len());
                der[at] = byte;
            }
            let _ = is_certificate(&STANDARD.encode(der));
        }

        #[test]
        fn part_of_a_certificate_is_rejected(at in any::<Index>()) {
            let der = issued();
            let (meta, tail) = der.split_at(at.index(der.len()));
            prop_assert!(!is_certificate(&STANDARD.encode(meta)));
            prop_assert!(tail.len() == der.len() || !is_certificate(&STANDARD.encode(tail)));
            prop_assert!(is_certificate(&STANDARD.encode(&der)));
        }

        #[test]
        fn text_that_is_not_a_certificate_is_rejected(text in ".*", within in any::<bool>()) {
            let text = if within { format!("{BEGIN}{text}{END}") } else { text };
            prop_assert!(!is_certificate(&text));
        }
    }
}
