//! The Prometheus endpoint. It has a listener of its own and is never part of the API.

use axum::Router;
use axum::extract::State;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::error::Error;
use crate::metrics;
use crate::state::App;

/// Returns a router that serves only `/metrics`.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .method_not_allowed_fallback(other_method)
        .fallback(|| async { Error::not_found_as("Only /metrics is served here.") })
        .with_state(app)
}

async fn other_method(method: Method) -> Error {
    Error::method_not_allowed(method.as_str())
}

async fn metrics(State(app): State<App>) -> Response {
    match app.metrics().await {
        Ok(text) => {
            let text = String::from(&*text);
            ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
        }
        Err(error) => error.into_response(),
    }
}
