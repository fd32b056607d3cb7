//! The certificate of an identity provider.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::parse_x509_certificate;

use crate::error::{Error, Result};
use crate::input::{Kind, Schema, Text};

/// A text that may hold this many characters: the length is looked at before anything is decoded.
type Written = Text<16_384>;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Exactly one X.509 certificate, as PEM or as its bare base64, kept as it was sent; it may be blank
/// (decisions §4, Domain). White space in the base64 does not matter, nor that the certificate has expired.
pub struct Certificate;

impl Kind for Certificate {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Written::read(value)?;
        if text.is_empty() || is_certificate(&text) {
            return Ok(text);
        }
        let detail = "Enter one valid X.509 certificate, as PEM or as its base64.";
        Err(Error::invalid("invalid_input", detail))
    }

    fn schema() -> Schema {
        Written::schema()
    }
}

fn is_certificate(text: &str) -> bool {
    let Some(der) = decoded(text) else { return false };
    matches!(parse_x509_certificate(&der), Ok((rest, _)) if rest.is_empty())
}

/// The bytes between the two marks, or of the whole text where there is neither.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let base64 = match text.strip_prefix(BEGIN) {
        Some(rest) => rest.strip_suffix(END)?,
        None => text,
    };
    let base64: Vec<u8> = base64.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(base64).ok()
}
