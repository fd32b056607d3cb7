//! What handlers take from requests.

use axum::extract::State;
use axum::http::request::Parts;
use serde_json::Value;

use crate::app::App;
use crate::base::error::Result;

/// A request that was authorized, with its body if the handler takes it.
pub struct ReceivedRequest {
    /// The service.
    pub app: App,
    /// The head, with the results of the checks.
    pub parts: Parts,
    /// The body; null if the handler does not take it.
    pub body: Value,
}

/// A parameter of a handler.
pub trait Extract: Sized {
    /// The maximum size, in bytes, of the body that the parameter is; `None` if it is of the head.
    const MAX_BODY: Option<usize> = None;

    /// Takes the parameter from a request.
    ///
    /// # Errors
    /// The response of the request, if it has no such parameter.
    fn extract(request: &mut ReceivedRequest) -> Result<Self>;
}

impl Extract for State<App> {
    fn extract(request: &mut ReceivedRequest) -> Result<Self> {
        Ok(Self(request.app.clone()))
    }
}
