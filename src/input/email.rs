//! E-mail addresses.

use email_address::{EmailAddress, Options};
use serde_json::Value;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};

use super::{Kind, Name, Schema};
use crate::error::{Error, Result};

const MAX: usize = 254;

/// An e-mail address of at most 254 characters: the domain in lower case and, whichever way it was spelled,
/// in Unicode; the local part as it was typed (facts-org §3.1).
///
/// The domain has at least two labels of letters, digits and inner hyphens; the local part is ASCII. A
/// display name, an IP literal or a local part in quotes is refused: quotes give one mailbox many spellings. Refused with the codes of [`Name`] and then `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct Email;

impl Kind for Email {
    type Value = String;

    fn read(value: &Value) -> Result<String> {
        let text = Name::<MAX>::read(value)?;
        normalized(&text)
            .ok_or_else(|| Error::invalid("invalid_input", "Enter a valid email address."))
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::IdnEmail)))
            .max_length(Some(MAX))
            .into()
    }
}

fn normalized(text: &str) -> Option<String> {
    let options =
        Options::default().with_required_tld().without_domain_literal().without_display_text();
    EmailAddress::parse_with_options(text, options).ok()?;
    let (local, domain) = text.rsplit_once('@')?;
    let domain = one_spelling(domain)?;
    // The crate lets a label hold whatever an atom may, such as `!` and `_`.
    let host = domain.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.'));
    let top = domain.rsplit('.').next()?;
    // A name whose last label begins with a digit is an IP address to those who connect to it.
    let named = top.chars().count() > 1 && !top.starts_with(|c: char| c.is_ascii_digit());
    let plain = local.is_ascii() && !local.contains(|c: char| c.is_ascii_control() || c == '"');
    (plain && host && named).then(|| format!("{local}@{domain}"))
}

/// The one spelling of a domain: in lower case, in Unicode, whichever of its spellings was sent.
fn one_spelling(domain: &str) -> Option<String> {
    let ascii = idna::domain_to_ascii_strict(domain).ok()?;
    let (unicode, valid) = idna::domain_to_unicode(&ascii);
    valid.ok().map(|()| unicode)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::testing::{any_json, read, reads, refuses};
    use super::*;

    #[test]
    fn the_domain_is_folded_and_the_local_part_kept() {
        let cases = [
            (" Ann.B+x@Example.COM ", "Ann.B+x@example.com"),
            ("a@b-c.d3.io", "a@b-c.d3.io"),
            ("a@BÜCHER.de", "a@bücher.de"),
            ("a@xn--bcher-kva.de", "a@bücher.de"),
            ("a@ｅxample.com", "a@example.com"),
            ("a@ſ.io", "a@s.io"),
            ("o'neil_!@example.com", "o'neil_!@example.com"),
        ];
        reads::<Email>(cases.map(|(sent, kept)| (json!(sent), kept.to_owned())));
    }

    #[test]
    fn what_is_no_address_is_refused() {
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
            "a@İ.io",
            "a@b.io.",
            "\"a\tb\"@c.io",
            "a@1.2.3.44",
            "a@0x7f.11",
            "a@xn--.io",
            "a@xn--a-ecp.ru-.io",
        ];
        refuses::<Email>(
            wrong.map(|text| (json!(text), "invalid_input", "Enter a valid email address.")),
        );
        refuses::<Email>([
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

    proptest! {
        #[test]
        fn reading_what_was_read_changes_nothing(value in any_json()) {
            if let Ok(Some(email)) = read::<Email>(&value) {
                prop_assert!(!email.contains(char::is_control));
                prop_assert_eq!(read::<Email>(&json!(email)), Ok(Some(email)));
            }
        }
    }
}
