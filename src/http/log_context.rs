//! What the guard of a route learns for the request's log line.

use std::time::{Duration, Instant};

use axum::response::Response;

use crate::ids::{ApiKeyId, OrganizationId};

/// Requests that take longer are logged as warnings.
pub(super) const SLOW_REQUEST: Duration = Duration::from_secs(1);

/// The log target of request lines: `--log info,request=debug` logs every request.
pub(super) const LOG_TARGET: &str = "request";

/// The API key and organization of a request, for its log line.
#[derive(Clone)]
pub(super) struct LogContext {
    pub(super) key: ApiKeyId,
    /// The organization in the path.
    pub(super) organization: Option<OrganizationId>,
    started: Instant,
}

impl LogContext {
    pub(super) fn of(key: ApiKeyId) -> Self {
        Self { key, organization: None, started: Instant::now() }
    }

    /// Attaches the context to a response whose log line will be written.
    pub(super) fn attach(self, response: &mut Response) {
        let shown = response.status().is_server_error()
            || tracing::enabled!(target: LOG_TARGET, tracing::Level::DEBUG)
            || self.started.elapsed() > SLOW_REQUEST;
        if shown {
            response.extensions_mut().insert(self);
        }
    }
}
