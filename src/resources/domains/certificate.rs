//! The signing certificate of an identity provider.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use x509_parser::parse_x509_certificate;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

use crate::input::Text;
use crate::resources::shared::prelude::*;

/// The text of a certificate. Its length is checked before decoding.
type CertificateText = Text<16_384>;

/// The maximum number of characters of a name that a response shows.
const MAX_NAME_LENGTH: usize = 1_000;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// The beginning of a PEM block of any type.
const BEGIN_ANY: &str = "-----BEGIN ";

/// One X.509 certificate, as PEM or as its base64, stored as sent without surrounding whitespace. Blank is allowed. Text
/// around the PEM is allowed, as RFC 7468 says. White space in the base64 is ignored. An expired certificate is valid.
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
    matches!(parse_x509_certificate(&decoded(text).unwrap_or_default()), Ok(([], _)))
}

/// What the SAML certificate of a domain says. All fields are null if the domain has no certificate.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = DomainCertificate)]
pub struct CertificateBody {
    /// The name of the certificate's holder, at most 1,000 characters.
    pub subject: Option<String>,
    /// The name of the certificate's issuer, at most 1,000 characters.
    pub issuer: Option<String>,
    /// When the certificate becomes valid.
    pub not_before: Option<Timestamp>,
    /// When the certificate expires.
    pub not_after: Option<Timestamp>,
    /// Whether the certificate has expired. Sign-in systems then refuse it.
    pub is_expired: Option<bool>,
}

/// Returns what a stored certificate says at `now`.
pub fn describe(text: &str, now: Timestamp) -> CertificateBody {
    let der = decoded(text).unwrap_or_default();
    let Ok(([], certificate)) = parse_x509_certificate(&der) else {
        return CertificateBody::default();
    };
    let validity = certificate.validity();
    let not_after = moment(validity.not_after);
    CertificateBody {
        subject: Some(shown(certificate.subject())),
        issuer: Some(shown(certificate.issuer())),
        not_before: Some(moment(validity.not_before)),
        not_after: Some(not_after),
        is_expired: Some(not_after < now),
    }
}

/// A certificate cannot name a time that [`Timestamp`] cannot show.
fn moment(time: ASN1Time) -> Timestamp {
    Timestamp::from_micros(time.timestamp().saturating_mul(1_000_000))
}

fn shown(name: &X509Name<'_>) -> String {
    let text = name.to_string();
    let shown = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    shown.take(MAX_NAME_LENGTH).collect()
}

/// Decodes the base64 between the PEM markers, or the whole text if it has no markers. Returns `None` if the text around
/// the markers has another PEM block or certificate: a chain, or a key that does not belong here.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let Some((before, rest)) = text.split_once(BEGIN) else { return from_base64(text) };
    let (base64, after) = rest.split_once(END)?;
    let line = before.trim_end_matches([' ', '\t']);
    let is_own_line = line.is_empty() || line.ends_with(['\n', '\r', '\u{feff}']);
    let is_other = |around: &str| {
        let der = from_base64(around).unwrap_or_default();
        around.contains(BEGIN_ANY) || parse_x509_certificate(&der).is_ok()
    };
    if !is_own_line || is_other(before) || is_other(after) {
        return None;
    }
    from_base64(base64)
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let base64: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(base64).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;
    use rcgen::generate_simple_self_signed;

    use super::*;

    fn issued() -> Vec<u8> {
        generate_simple_self_signed(vec!["idp.example".to_owned()]).unwrap().cert.der().to_vec()
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
            let text = STANDARD.encode(der);
            prop_assert_eq!(is_certificate(&text), describe(&text, Timestamp::MIN).subject.is_some());
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
