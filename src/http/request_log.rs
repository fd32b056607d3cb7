//! The lines of the request log: the id of a request, what the guard of its route learns, and requests that were refused
//! because a limit was reached.

use std::time::{Duration, Instant, SystemTime};
use std::{fmt, mem};

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use rand::Rng;
use uuid::{Builder, Uuid};

use crate::ids::{ApiKeyId, OrganizationId, SessionId};

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
    pub(super) fn new(key: Option<ApiKeyId>, session: Option<SessionId>) -> Self {
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

/// The shortest time between two lines.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// What was refused since the last line of the log.
#[derive(Default)]
pub(super) struct Refusals {
    /// The requests or connections refused since the last line.
    count: u64,
    /// The time of the last line.
    logged: Option<Instant>,
}

impl Refusals {
    /// Counts a refusal. Returns the count if a line is due.
    pub(super) fn add(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged.is_some_and(|logged| now.duration_since(logged) < LOG_INTERVAL) {
            return None;
        }
        self.logged = Some(now);
        Some(mem::take(&mut self.count))
    }
}

/// The header of a request id, in requests and responses.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id that a client quotes and an operator searches the log for.
pub(super) enum RequestId {
    FromClient(HeaderValue),
    Generated(Uuid),
}

impl RequestId {
    pub(super) fn of(request: &Request) -> Self {
        match request.headers().get(REQUEST_ID) {
            Some(sent) if is_request_id(sent.as_bytes()) => Self::FromClient(sent.clone()),
            _ => Self::Generated(generate_id()),
        }
    }

    pub(super) fn to_header(&self) -> HeaderValue {
        match self {
            Self::FromClient(value) => value.clone(),
            Self::Generated(id) => {
                let mut buffer = Uuid::encode_buffer();
                let text = id.as_hyphenated().encode_lower(&mut buffer);
                HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
            }
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromClient(value) => f.write_str(value.to_str().unwrap_or_default()),
            Self::Generated(id) => id.fmt(f),
        }
    }
}

pub(super) fn is_request_id(value: &[u8]) -> bool {
    (1..=128).contains(&value.len())
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

/// Returns a version 7 UUID. `Uuid::now_v7` would make a system call for randomness.
fn generate_id() -> Uuid {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let millis = u64::try_from(since.as_millis()).unwrap_or_default();
    let mut random = [0; 10];
    rand::rng().fill_bytes(&mut random);
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn generated_request_ids_are_unique_and_contain_the_time() {
        let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let begun = now();
        let generated: HashSet<_> = (0..1000).map(|_| generate_id()).collect();
        assert_eq!(generated.len(), 1000);
        let (seconds, _) = generate_id().get_timestamp().unwrap().to_unix();
        assert!((begun..=now()).contains(&seconds));
    }

    #[test]
    fn overload_is_logged_at_once_and_then_at_most_once_a_second() {
        let (mut refusals, start) = (Refusals::default(), Instant::now());
        let due = [0, 0, 999, 1000, 1999, 5000]
            .map(|millis| refusals.add(start + Duration::from_millis(millis)));
        assert_eq!(due, [Some(1), None, None, Some(3), None, Some(2)]);
    }
}
