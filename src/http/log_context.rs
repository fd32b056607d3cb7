//! What the guard of a route learns for the request's log line.

use std::time::{Duration, Instant};

use axum::response::Response;

use crate::ids::{ApiKeyId, OrganizationId, SessionId};
use crate::resources::sessions::VerifiedSession;

/// Requests that take longer are logged as warnings.
pub(super) const SLOW_REQUEST: Duration = Duration::from_secs(1);

/// The log target of request lines: `--log info,request=debug` logs every request.
pub(super) const LOG_TARGET: &str = "request";

/// The API key, session and organization of a request, for its log line.
#[derive(Clone)]
pub(super) struct LogContext {
    /// The key, or the key that the session is bound to.
    pub(super) key: Option<ApiKeyId>,
    /// The console session.
    pub(super) session: Option<SessionId>,
    /// The organization in the path.
    pub(super) organization: Option<OrganizationId>,
    started: Instant,
}

impl LogContext {
    pub(super) fn of_key(key: ApiKeyId) -> Self {
        Self::new(Some(key), None)
    }

    pub(super) fn of_session(session: &VerifiedSession) -> Self {
        Self::new(session.key(), Some(session.id()))
    }

    fn new(key: Option<ApiKeyId>, session: Option<SessionId>) -> Self {
        Self { key, session, organization: None, started: Instant::now() }
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
