//! URLs.

use std::cell::Cell;

use serde_json::Value;
use url::Url;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::{FieldType, Schema, Text};
use crate::base::error::{Error, Result};

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
        ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(MAX))
            .pattern(Some(PATTERN))
            .into()
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

    use super::super::testing::{assert_reads, assert_refused, read_field};
    use super::*;

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
        assert_refused::<WebUrl<64>>(
            wrong.map(|text| (json!(text), "invalid_input", "Enter a valid URL.")),
        );
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
