use std::convert::Infallible;
use std::io;

use axum::extract::Request;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::*;

/// With a time limit that no test reaches.
const LIMITS: BodyLimits = BodyLimits { max_bytes: 64, timeout: Duration::from_hours(1) };

async fn read(content_type: Option<&str>, body: impl Into<Body>) -> Result<Option<Value>> {
    let (mut parts, body) = Request::new(body.into()).into_parts();
    if let Some(content_type) = content_type {
        parts.headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
    }
    read_json(&parts, body, LIMITS).await
}

async fn refusal(content_type: Option<&str>, body: impl Into<Body>) -> (u16, &'static str, String) {
    let error = read(content_type, body).await.unwrap_err();
    (error.status(), error.code(), error.detail().to_owned())
}

/// A body without an announced length.
fn streamed(parts: &'static [&'static str]) -> Body {
    Body::from_stream(
        stream::iter(parts).map(|part| Ok::<_, Infallible>(Bytes::from_static(part.as_bytes()))),
    )
}

#[tokio::test]
async fn request_may_have_no_body() {
    for name in [None, Some(""), Some("application/json")] {
        assert_eq!(read(name, "").await.unwrap(), None);
        assert_eq!(read(name, streamed(&[])).await.unwrap(), None);
    }
}

#[tokio::test]
async fn request_body_without_content_type_is_rejected_with_415() {
    let text = "Unsupported media type \"\" in request.".to_owned();
    assert_eq!(refusal(None, "{}").await, (415, "unsupported_media_type", text.clone()));
    assert_eq!(refusal(None, streamed(&["{}"])).await, (415, "unsupported_media_type", text));
}

#[tokio::test]
async fn interrupted_request_body_is_a_parse_error() {
    let parts = [Ok(Bytes::from_static(b"{\"a\":")), Err(io::Error::other("reset"))];
    let cut = Body::from_stream(stream::iter(parts));
    let (status, code, detail) = refusal(Some("application/json"), cut).await;
    assert_eq!((status, code), (400, "parse_error"));
    assert_eq!(detail, "JSON parse error - the body could not be read completely");
}
