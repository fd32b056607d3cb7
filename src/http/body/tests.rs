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
async fn empty_request_body_is_read_as_an_empty_object() {
    for name in [None, Some(""), Some("application/json")] {
        assert!(extract(name, "").await.unwrap().0.is_empty());
        assert!(extract(name, streamed(&[])).await.unwrap().0.is_empty());
    }
    assert_eq!(read_json(request(None, ""), LIMITS).await.unwrap(), None);
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
    let cut = axum::body::Body::from_stream(stream::iter(parts));
    let (status, code, detail) = refusal(Some("application/json"), cut).await;
    assert_eq!((status, code), (400, "parse_error"));
    assert_eq!(detail, "JSON parse error - the body could not be read completely");
}
