//! Email addresses.

use std::borrow::Cow;

use email_address::{EmailAddress, Options};
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use serde_json::Value;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};

use super::{FieldType, Name, Schema};
use crate::base::error::{Error, Result};

const MAX_LENGTH: usize = 254;

/// An email address of at most 254 characters. The domain is normalized to lower case and Unicode. The local part is
/// kept as sent.
///
/// UTS 46 decides which domains are valid, in any script and spelling. A domain needs at least two labels. The local part
/// is ASCII. Display names, IP literals and quoted local parts are invalid; quotes would give one mailbox several
/// spellings. Fails with the codes of [`Name`], then with `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct Email;

impl FieldType for Email {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Name::<MAX_LENGTH>::read(value)?;
        normalize(&text)
            .ok_or_else(|| Error::invalid("invalid_input", "Enter a valid email address."))
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::IdnEmail)))
            .max_length(Some(MAX_LENGTH))
            .into()
    }
}

fn normalize(text: &str) -> Option<String> {
    let (local, domain) = text.rsplit_once('@')?;
    let domain = ascii_domain(domain)?;
    let options =
        Options::default().with_required_tld().without_domain_literal().without_display_text();
    EmailAddress::parse_with_options(&format!("{local}@{domain}"), options).ok()?;
    let top = domain.rsplit('.').next()?;
    // Clients that connect to a name treat it as an IP address if its last label begins with a digit.
    let named = top.len() > 1 && !top.starts_with(|c: char| c.is_ascii_digit());
    let plain = local.is_ascii() && !local.contains(|c: char| c.is_ascii_control() || c == '"');
    let (unicode, valid) = idna::domain_to_unicode(&domain);
    (plain && named && valid.is_ok()).then(|| format!("{local}@{unicode}"))
}

/// Returns a domain in lower case and in ASCII. As in Django, hyphens may be anywhere but at the ends of a label.
fn ascii_domain(domain: &str) -> Option<String> {
    let ascii = Uts46::new().to_ascii(
        domain.as_bytes(),
        AsciiDenyList::STD3,
        Hyphens::CheckFirstLast,
        DnsLength::Verify,
    );
    ascii.ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{assert_reads, assert_refused};
    use super::*;

    const HINDI: &str = "a@उदाहरण.परीक्षा";

    #[test]
    fn email_domain_is_normalized_and_local_part_kept() {
        let cases = [
            (" Ann.B+x@Example.COM ", "Ann.B+x@example.com"),
            ("a@b-c.d3.io", "a@b-c.d3.io"),
            ("a@BÜCHER.de", "a@bücher.de"),
            ("a@xn--bcher-kva.de", "a@bücher.de"),
            ("a@ｅxample.com", "a@example.com"),
            ("a@ſ.io", "a@s.io"),
            ("a@xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g", HINDI),
            (HINDI, HINDI),
            ("a@bu\u{308}cher.de", "a@bücher.de"),
            ("a@مثال.إختبار", "a@مثال.إختبار"),
            ("a@例え。テスト", "a@例え.テスト"),
            ("a@실례.테스트", "a@실례.테스트"),
            ("a@\u{1109}\u{1175}\u{11af}\u{1105}\u{1168}.com", "a@실례.com"),
            ("a@இந்தியா.இந்தியா", "a@இந்தியா.இந்தியா"),
            ("a@ไทย.ไทย", "a@ไทย.ไทย"),
            ("a@נס.קום", "a@נס.קום"),
            ("a@İ.io", "a@i\u{307}.io"),
            ("a@ශ්\u{200d}රී.com", "a@ශ්\u{200d}රී.com"),
            ("a@نامه\u{200c}ای.com", "a@نامه\u{200c}ای.com"),
            ("a@straße.de", "a@straße.de"),
            ("a@ab--cd.com", "a@ab--cd.com"),
            ("o'neil_!@example.com", "o'neil_!@example.com"),
        ];
        assert_reads::<Email>(cases.map(|(sent, kept)| (json!(sent), kept.to_owned())));
    }

    #[test]
    fn invalid_email_addresses_are_rejected() {
        let wrong = [
            "bad",
            "a@",
            "@b.io",
            "a@localhost",
            "a@b",
            "a@b.c",
            "a@b..io",
            "a@-b.io",
            "a@b-.io",
            "a@b_c.io",
            "a@b!c.io",
            "a@b c.io",
            "a b@c.io",
            "a@b.io, c@d.io",
            "Ann <a@b.io>",
            "<a@b.io>",
            "a@[127.0.0.1]",
            "a\nb@c.io",
            ".a@b.io",
            "a..b@c.io",
            "\"a\r\nb\"@c.io",
            "\"a@b\"@c.io",
            "\"ab\"@c.io",
            "\"a\\b\"@c.io",
            "\"\\\"a\"@c.io",
            "ä@b.io",
            "a@a\u{200d}b.io",
            "a@\u{200c}a.io",
            "a@\u{301}a.io",
            "a@xn--a.io",
            "a@אa.io",
            "a@-ab--cd.com",
            "a@b.io.",
            "\"a\tb\"@c.io",
            "a@1.2.3.44",
            "a@0x7f.11",
            "a@xn--.io",
            "a@xn--a-ecp.ru-.io",
        ];
        assert_refused::<Email>(
            wrong.map(|text| (json!(text), "invalid_input", "Enter a valid email address.")),
        );
        assert_refused::<Email>([
            (json!(5), "invalid_input", "Enter a valid email address."),
            (json!(""), "blank", "This field may not be blank."),
            (json!([]), "invalid_input", "Not a valid string."),
            (
                json!(format!("a@{}.io", "b".repeat(260))),
                "max_length",
                "Ensure this field has no more than 254 characters.",
            ),
        ]);
    }
}
