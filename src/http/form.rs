//! Reads the bodies of HTML forms, with limits on their size and on the number of fields.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use percent_encoding::percent_decode;

use crate::base::error::{Error, Result};
use crate::fair::memory_budget::RequestMemory;

use super::body::receive;

/// The limits on the size of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormLimits {
    /// The largest form, in bytes.
    pub max_bytes: usize,
    /// The maximum number of fields.
    pub max_fields: usize,
}

impl FormLimits {
    /// The limits of pages that are open to everybody.
    pub const PUBLIC: Self = Self { max_bytes: 16 * 1024, max_fields: 100 };
    /// The limits of pages that need a session, also for requests without one. The places of a dashboard's tiles are four
    /// fields for each of at most 1,000 tiles.
    pub const SIGNED_IN: Self = Self { max_bytes: 1024 * 1024, max_fields: 5000 };
}

/// The media type of forms without files.
const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// The fields of a form. Not `Debug`, so that logs cannot contain the key of a sign-in. Clones share the fields.
#[derive(Clone, Default)]
pub struct Form(Arc<Fields>);

#[derive(Default)]
struct Fields {
    pairs: Vec<(String, String)>,
    /// Held until the last clone is dropped.
    #[expect(dead_code, reason = "the charge ends when it is dropped")]
    memory: Option<RequestMemory>,
}

impl Form {
    /// Reads the form of a request.
    ///
    /// # Errors
    /// - 415 if the media type or its `charset` is another one
    /// - 413 if the form is larger than the limit, or there is never memory for it
    /// - 408 if it does not arrive within `timeout`
    /// - 400 if it has too many fields, is not UTF-8, or contains a NUL character
    /// - 503 if there is no memory for it now
    pub async fn read(
        request: Request,
        limits: FormLimits,
        timeout: Duration,
        memory: RequestMemory,
    ) -> Result<Self> {
        require_form(request.headers())?;
        let body = receive(request.into_body(), limits.max_bytes, Some(memory.clone()));
        let bytes = tokio::time::timeout(timeout, body);
        let bytes = bytes.await.map_err(|_| Error::body_timeout())??;
        memory.count_body(bytes.capacity() + parsed_size(&bytes, limits.max_fields))?;
        let pairs = parse(&bytes, limits.max_fields)?;
        Ok(Self(Arc::new(Fields { pairs, memory: Some(memory) })))
    }

    /// Parses the text of a form with at most `max_fields` fields.
    ///
    /// # Errors
    /// 400 as in [`read`](Self::read).
    pub fn parse(text: &[u8], max_fields: usize) -> Result<Self> {
        Ok(Self(Arc::new(Fields { pairs: parse(text, max_fields)?, memory: None })))
    }

    /// Returns the names and values in the order of the form.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns all values of a field.
    pub fn values<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f str> {
        self.fields().filter(move |(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Whether the form has the field, even if it is empty.
    pub fn has(&self, name: &str) -> bool {
        self.fields().any(|(known, _)| known == name)
    }

    /// Returns the last value of a field, or an empty text.
    pub fn value(&self, name: &str) -> &str {
        let found = self.0.pairs.iter().rev().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// Returns an upper bound, in bytes, for the memory of the fields of a form.
fn parsed_size(text: &[u8], max_fields: usize) -> usize {
    /// A field, in a list that doubles as it grows.
    const FIELD: usize = 2 * size_of::<(String, String)>();
    let fields = text.split(|byte| *byte == b'&').take(max_fields).count();
    text.len() + FIELD * fields
}

fn parse(text: &[u8], max_fields: usize) -> Result<Vec<(String, String)>> {
    let pairs = text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    let mut fields = Vec::new();
    for pair in pairs {
        if fields.len() == max_fields {
            return Err(invalid(format!("The form has more than {max_fields} fields.")));
        }
        let mut parts = pair.splitn(2, |byte| *byte == b'=');
        let name = decode(parts.next().unwrap_or_default())?;
        fields.push((name, decode(parts.next().unwrap_or_default())?));
    }
    Ok(fields)
}

fn invalid(detail: impl Into<Cow<'static, str>>) -> Error {
    Error::invalid_request("invalid_form", detail)
}

fn decode(text: &[u8]) -> Result<String> {
    let spaced: Vec<u8> =
        text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    let decoded = percent_decode(&spaced).decode_utf8();
    let decoded = decoded.map_err(|_| invalid("The form is not UTF-8."))?;
    if decoded.contains('\0') {
        return Err(invalid("The form contains a NUL character."));
    }
    Ok(decoded.into_owned())
}

fn require_form(headers: &HeaderMap) -> Result<()> {
    let sent = headers.get(CONTENT_TYPE).map_or(&[][..], |value| value.as_bytes());
    let text = String::from_utf8_lossy(sent);
    let mut parts = text.split(';').map(str::trim);
    let is_form = parts.next().is_some_and(|media| media.eq_ignore_ascii_case(MEDIA_TYPE));
    let is_utf8 = parts.all(|parameter| parameter.eq_ignore_ascii_case("charset=utf-8"));
    if is_form && is_utf8 { Ok(()) } else { Err(Error::unsupported_media_type(&text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &[u8]) -> (u16, String) {
        let error = Form::parse(text, 100).err().expect("an error");
        (error.status(), error.detail().to_owned())
    }

    #[test]
    fn form_fields_are_decoded() {
        let form = Form::parse(b"a=1&b=x+y%2B%26%C3%A9&a=2&c&=&&d=e=f", 100).expect("a form");
        let values = ["a", "b", "c", "d", "e"].map(|name| form.value(name));
        assert_eq!(values, ["2", "x y+&é", "", "e=f", ""]);
        assert_eq!(form.values("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((form.has("c"), form.has("f")), (true, false));
    }

    #[test]
    fn forms_with_other_encodings_or_nul_are_rejected() {
        assert_eq!(error(b"a=%ff"), (400, "The form is not UTF-8.".to_owned()));
        assert_eq!(error(b"%c3=1"), (400, "The form is not UTF-8.".to_owned()));
        assert_eq!(error(b"a=b%00c"), (400, "The form contains a NUL character.".to_owned()));
    }

    #[test]
    fn media_type_of_a_form_is_accepted_in_any_case_and_with_its_charset() {
        for media in [MEDIA_TYPE, "Application/X-WWW-Form-Urlencoded; charset=UTF-8"] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, media.parse().unwrap());
            assert!(require_form(&headers).is_ok(), "{media}");
        }
    }

    #[test]
    fn number_of_form_fields_is_limited() {
        assert!(Form::parse("a=1&".repeat(100).as_bytes(), 100).is_ok());
        let expected = (400, "The form has more than 100 fields.".to_owned());
        assert_eq!(error("a=1&".repeat(101).as_bytes()), expected);
    }
}
