use std::convert::Infallible;
use std::io;

use axum::http::Method;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::*;

/// With a time limit that no test reaches.
const LIMITS: BodyLimits = BodyLimits { max_bytes: 64, timeout: Duration::from_hours(1) };

impl FromRef<()> for BodyLimits {
    fn from_ref((): &()) -> Self {
        LIMITS
    }
}

fn request(content_type: Option<&str>, body: impl Into<axum::body::Body>) -> Request {
    let mut request = Request::new(body.into());
    *request.method_mut() = Method::POST;
    if let Some(content_type) = content_type {
        request.headers_mut().insert(CONTENT_TYPE, content_type.parse().unwrap());
    }
    request
}

async fn extract(
    content_type: Option<&str>,
    body: impl Into<axum::body::Body>,
) -> Result<JsonBody> {
    JsonBody::from_request(request(content_type, body), &()).await
}

async fn refusal(
    content_type: Option<&str>,
    body: impl Into<axum::body::Body>,
) -> (u16, &'static str, String) {
    let error = extract(content_type, body).await.unwrap_err();
    (error.status(), error.code(), error.detail().to_owned())
}

/// A body without an announced length.
fn streamed(parts: &'static [&'static str]) -> axum::body::Body {
    axum::body::Body::from_stream(
        stream::iter(parts).map(|part| Ok::<_, Infallible>(Bytes::from_static(part.as_bytes()))),
    )
}

#[tokio::test]
async fn json_content_type_is_accepted_with_any_charset_and_case() {
    for name in
        ["application/json", "Application/JSON ; charset=UTF-8", "application/json;charset=x"]
    {
        let JsonBody(map) = extract(Some(name), r#"{"b":1,"a":2}"#).await.unwrap();
        assert_eq!(map.keys().collect::<Vec<_>>(), ["b", "a"], "{name}");
    }
}

#[tokio::test]
async fn empty_request_body_is_read_as_an_empty_object() {
    for name in [None, Some(""), Some("application/json")] {
        assert!(extract(name, "").await.unwrap().0.is_empty());
        assert!(extract(name, streamed(&[])).await.unwrap().0.is_empty());
    }
    assert_eq!(read_json(request(None, ""), LIMITS).await.unwrap(), None);
}

#[tokio::test]
async fn other_content_types_are_rejected_with_415() {
    for name in ["text/plain", "application/ld+json", "application/x-www-form-urlencoded"] {
        let expected = format!("Unsupported media type \"{name}\" in request.");
        let refused = (415, "unsupported_media_type", expected);
        assert_eq!(refusal(Some(name), "{}").await, refused);
        assert_eq!(refusal(Some(name), "").await, refused);
    }
}

#[tokio::test]
async fn request_body_without_content_type_is_rejected_with_415() {
    let text = "Unsupported media type \"\" in request.".to_owned();
    assert_eq!(refusal(None, "{}").await, (415, "unsupported_media_type", text.clone()));
    assert_eq!(refusal(None, streamed(&["{}"])).await, (415, "unsupported_media_type", text));
}

#[tokio::test]
async fn too_large_request_body_is_rejected_with_or_without_content_length() {
    let exact = format!("{{\"a\":\"{}\"}}", "x".repeat(56));
    assert_eq!(exact.len(), 64);
    assert!(extract(Some("application/json"), exact.clone()).await.is_ok());
    let refused =
        (413, "payload_too_large", "The request body is larger than 64 bytes.".to_owned());
    assert_eq!(refusal(Some("application/json"), exact + " ").await, refused);
    let parts = &["{\"a\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}"];
    assert_eq!(refusal(Some("application/json"), streamed(parts)).await, refused);
}

#[tokio::test]
async fn endless_request_body_times_out_with_408() {
    let endless = axum::body::Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    let limits = BodyLimits { timeout: Duration::from_millis(1), ..LIMITS };
    let error = read_json(request(Some("application/json"), endless), limits).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (408, "request_timeout"));
}

#[tokio::test]
async fn interrupted_request_body_is_a_parse_error() {
    let parts = [Ok(Bytes::from_static(b"{\"a\":")), Err(io::Error::other("reset"))];
    let cut = axum::body::Body::from_stream(stream::iter(parts));
    let (status, code, detail) = refusal(Some("application/json"), cut).await;
    assert_eq!((status, code), (400, "parse_error"));
    assert_eq!(detail, "JSON parse error - the body could not be read completely");
}

#[tokio::test]
async fn invalid_json_is_a_parse_error_with_the_parser_message() {
    for (body, text) in [
        (&b"{\"a\""[..], "EOF while parsing an object at line 1 column 4"),
        (b"{\"a\":\"\xff\"}", "invalid unicode code point at line 1 column 7"),
        (b"  ", "EOF while parsing a value at line 1 column 2"),
        (b"{} {}", "trailing characters at line 1 column 4"),
        (b"NaN", "expected value at line 1 column 1"),
    ] {
        let expected = (400, "parse_error", format!("JSON parse error - {text}"));
        assert_eq!(refusal(Some("application/json"), body).await, expected);
    }
}

#[tokio::test]
async fn too_deeply_nested_json_is_a_parse_error() {
    let limits = BodyLimits { max_bytes: 1 << 20, ..LIMITS };
    let deep = request(Some("application/json"), "[".repeat(1 << 20));
    let error = read_json(deep, limits).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (400, "parse_error"));
    assert!(error.detail().contains("recursion limit"), "{}", error.detail());
}

#[tokio::test]
async fn request_body_that_is_not_an_object_is_rejected_with_its_type() {
    for (body, name) in
        [("[]", "list"), ("\"s\"", "str"), ("1", "int"), ("1.5", "float"), ("true", "bool")]
    {
        let text = format!("Invalid data. Expected a dictionary, but got {name}.");
        assert_eq!(refusal(Some("application/json"), body).await, (400, "invalid_input", text));
    }
    let refused = refusal(Some("application/json"), "null").await;
    assert_eq!(refused, (400, "null", "No data provided".to_owned()));
}
