//! Email addresses and URLs.

use std::borrow::Cow;
use std::cell::Cell;

use email_address::{EmailAddress, Options};
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use serde_json::Value;
use url::Url;
use utoipa::openapi::schema::Type;

use super::spec::{formatted, string};
use super::{FieldType, Name, Schema, Text};
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
        formatted(Type::String, "idn-email").max_length(Some(MAX_LENGTH)).into()
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

/// An approximate pattern for the schema. Only the parser decides whether a URL is valid.
const PATTERN: &str =
    r"^([Hh][Tt][Tt][Pp][Ss]?://[^\s\x00-\x20\x7f\\@/?#]+([/?#][^\s\x00-\x20\x7f\\]*)?)?$";

/// An absolute `http` or `https` URL of at most `MAX` characters, stored as sent. It may be blank.
///
/// URLs that browsers accept but other parsers read differently are invalid: backslashes, inner spaces and
/// tabs, a missing slash, or a user name or password. Fails with the codes of [`Text`], then with
/// `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct WebUrl<const MAX: usize>;

impl<const MAX: usize> FieldType for WebUrl<MAX> {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Text::<MAX>::read(value)?;
        if text.is_empty() || is_web_url(&text) {
            return Ok(text);
        }
        Err(Error::invalid("invalid_input", "Enter a valid URL."))
    }

    fn schema() -> Schema {
        string().max_length(Some(MAX)).pattern(Some(PATTERN)).into()
    }
}

fn is_web_url(text: &str) -> bool {
    let clean = Cell::new(true);
    let note = |_| clean.set(false);
    let parsed = Url::options().syntax_violation_callback(Some(&note)).parse(text);
    clean.get() && parsed.is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;
    use serde_json::json;

    use super::super::testing::{assert_invalid, assert_reads, assert_refused, read_field};
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
        assert_invalid::<Email>(wrong, "Enter a valid email address.");
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

    #[test]
    fn absolute_web_urls_are_kept_unchanged() {
        let urls = [
            "https://idp.example/saml/acs?tenant=1&x=%2F#top",
            "HTTP://IDP.example",
            "http://localhost:8080/a//b/../c",
            "https://192.0.2.1/",
            "https://[2001:db8::1]:8443/",
            "https://bücher.example/ä",
            "https://a.example./",
        ];
        assert_reads::<WebUrl<64>>(urls.map(|url| (json!(url), url.to_owned())));
        assert_reads::<WebUrl<64>>([
            (json!(" https://a.example/ \n"), "https://a.example/".to_owned()),
            (json!("  "), String::new()),
        ]);
    }

    #[test]
    fn invalid_web_urls_are_rejected() {
        let wrong = [
            "idp.example/saml",
            "/saml/acs",
            "//idp.example/saml",
            "https:",
            "https://",
            "https:///",
            "https:///a.example",
            "https:a.example",
            "https:/a.example",
            "https:\\\\a.example",
            "https://a.example\\b",
            "https://a b.example/",
            "https://a.example/a b",
            "https://a.exa\tmple/",
            "ht\ntps://a.example/",
            "https://a.example/%zz",
            "https://a.example:99999/",
            "https://user:secret@a.example/",
            "https://user@a.example/",
            "https://a.example@b.example@c.example/",
            "https://[::1/",
            "https://256.1.1.1/",
            "https://a.example/<script>",
            "javascript:alert(1)",
            "javascript://a.example/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "ftp://a.example/",
            "ws://a.example/",
            "mailto:a@b.example",
            "urn:a:b",
            "https",
            "😀",
        ];
        assert_invalid::<WebUrl<64>>(wrong, "Enter a valid URL.");
        assert_refused::<WebUrl<64>>([
            (json!(5), "invalid_input", "Enter a valid URL."),
            (json!(true), "invalid_input", "Not a valid string."),
            (json!(["https://a.example/"]), "invalid_input", "Not a valid string."),
            (json!(null), "null", "This field may not be null."),
            (
                json!("https://a.example/\u{0}"),
                "null_characters_not_allowed",
                "Null characters are not allowed.",
            ),
            (
                json!(format!("https://a.example/{}", "a".repeat(47))),
                "max_length",
                "Ensure this field has no more than 64 characters.",
            ),
        ]);
    }

    #[test]
    fn url_schema_pattern_accepts_every_valid_url() {
        let pattern = Regex::new(PATTERN).unwrap();
        for text in
            ["", "http://a", "HTTPS://a.example:8443/x?y=%20#z", "http://[::1]/", "http://a/%é"]
        {
            assert!(pattern.is_match(text), "{text}");
        }
        for text in
            ["a", "ftp://a", "http:/a", "http://", "http://a@b", "http://a b", "http://a\\b"]
        {
            assert!(!pattern.is_match(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsed_url_matches_the_schema_pattern(rest in "[!-~é]{1,12}") {
            if let Ok(Some(url)) = read_field::<WebUrl<200>>(&json!(format!("https://{rest}"))) {
                prop_assert!(Regex::new(PATTERN).unwrap().is_match(&url), "{url}");
            }
        }
    }
}
