//! Where Prometheus reads the service's numbers: a listener of its own serves this, never the API's.

use axum::Router;
use axum::extract::State;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::error::Error;
use crate::meters;
use crate::state::App;

/// `/metrics`, and nothing else.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/metrics", get(numbers))
        .method_not_allowed_fallback(other_method)
        .fallback(|| async { Error::not_found_as("Write /metrics.") })
        .with_state(app)
}

async fn other_method(method: Method) -> Error {
    Error::method_not_allowed(method.as_str())
}

async fn numbers(State(app): State<App>) -> Response {
    match app.numbers().await {
        Ok(text) => {
            let text = String::from(&*text);
            ([(CONTENT_TYPE, meters::CONTENT_TYPE)], text).into_response()
        }
        Err(error) => error.into_response(),
    }
}
