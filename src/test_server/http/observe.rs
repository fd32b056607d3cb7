//! Looks at each request of the service on its way: adds it to the journal, and does what faults ask for.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_LENGTH, COOKIE, EXPECT, Entry, HeaderValue, RETRY_AFTER,
};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;
use tokio::task::yield_now;
use tokio::time::timeout;
use uuid::Uuid;

use crate::app::App;
use crate::base::error::Error;
use crate::base::time::Timestamp;
use crate::http::client::RejectedRequest;
use crate::http::request_log::REQUEST_ID;
use crate::http::route_guard::bearer_token;
use crate::http::routes::{RouteSpec, find_operation};
use crate::resources::api_keys::ApiKey;
use crate::resources::users::User;
use crate::store::Tx;
use crate::test_server::captured::{Captured, MAX_BODY};
use crate::test_server::faults::{Asked, Effect, Failure, Faults};
use crate::test_server::journal::{self, Caller, Journal};
use crate::test_server::notes;

use super::{Ending, Passing};

/// How many of the last characters of a key are shown.
const SHOWN: usize = 4;

/// What the observation of a request needs. Clones share it.
#[derive(Clone)]
pub(super) struct Observer {
    pub(super) app: App,
    /// The operations of the service.
    pub(super) specs: Arc<[RouteSpec]>,
    pub(super) journal: Arc<Journal>,
    pub(super) faults: Arc<Faults>,
    /// Whether unknown fields and parameters are refused.
    pub(super) is_strict: bool,
    /// How many requests began since the state was last replaced.
    pub(super) begun: Arc<AtomicU64>,
}

impl Observer {
    /// Gives a request the id that its response has, its number, unless its client gave it one.
    fn number(&self, request: &mut Request) {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let id = HeaderValue::try_from(Uuid::from_u128(number.into()).to_string());
        if let (Entry::Vacant(missing), Ok(id)) = (request.headers_mut().entry(REQUEST_ID), id) {
            missing.insert(id);
        }
    }
}

/// The layer around the service.
pub(super) async fn observe(
    State(observer): State<Observer>,
    mut request: Request,
    next: Next,
) -> Response {
    let seen = Seen::of(&observer, &request);
    observer.number(&mut request);
    let asked = Asked {
        method: seen.head.method.as_str(),
        path: seen.head.uri.path(),
        operation: seen.spec.as_ref().map(|spec| spec.operation),
        caller: seen
            .caller
            .as_ref()
            .map(|caller| [caller.email.as_str(), caller.key_label.as_str()]),
    };
    let (fault, effect) = observer.faults.of_request(&asked).unzip();
    let captured = observer.journal.capture();
    let ending = request.extensions().get::<Ending>().cloned();
    let (request, refused) = seen.receive(&observer, request, &captured).await;
    match &effect {
        Some(Effect::Fails(failure)) => {
            let refused = run_refused(next, request, failure.error()).await;
            let response = with_failure(refused, failure);
            return seen.finish(&observer, captured, fault, response);
        }
        Some(Effect::DropsBefore) => {
            seen.add_to(&observer, (captured, fault), None);
            end_connection();
        }
        Some(Effect::Waits(delay)) => tokio::select! {
            () = tokio::time::sleep(*delay) => {}
            () = ended(ending.clone()) => {}
        },
        _ => {}
    }
    let response = match refused {
        None => next.run(request).await,
        Some(refused) => run_refused(next, request, refused).await,
    };
    match effect {
        Some(Effect::DropsAfter) => {
            seen.add_to(&observer, (captured, fault), None);
            end_connection();
        }
        Some(Effect::Truncates(bytes)) => {
            let response = response.map(|body| truncated(body, bytes));
            seen.finish(&observer, captured, fault, response)
        }
        Some(Effect::Stalls) => {
            let response = response.map(|_| stalled(ending));
            seen.finish(&observer, captured, fault, response)
        }
        _ => seen.finish(&observer, captured, fault, response),
    }
}

/// Waits until requests in progress are to end.
async fn ended(ending: Option<Ending>) {
    if let Some(Ending(mut ending)) = ending {
        let _ = ending.changed().await;
    }
}

/// Ends the connection of this request without a response: hyper's task of the connection ends with it.
fn end_connection() -> ! {
    resume_unwind(Box::new("a fault that a test asked for"))
}

/// A request when it arrived.
struct Seen {
    head: Head,
    at: Timestamp,
    begun: Instant,
    spec: Option<RouteSpec>,
    caller: Option<Caller>,
}

/// The head of a request, without its extensions.
struct Head {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Seen {
    fn of(observer: &Observer, request: &Request) -> Self {
        let matched = request.extensions().get::<MatchedPath>();
        let spec = matched
            .and_then(|path| find_operation(&observer.specs, request.method(), path.as_str()));
        let caller = caller(&observer.app, request.headers());
        let mut headers = request.headers().clone();
        hide_secrets(&mut headers);
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let (at, begun) = (observer.app.now(), Instant::now());
        Self { head: Head { method, uri, headers }, at, begun, spec: spec.cloned(), caller }
    }

    /// Captures the body of the request: before the service sees it if it is small, because the service may not read it, and
    /// otherwise on its way. Returns the error of a body that cannot be read and, in strict mode, of what is unknown in it.
    async fn receive(
        &self,
        observer: &Observer,
        request: Request,
        captured: &Captured,
    ) -> (Request, Option<Error>) {
        let (head, body) = request.into_parts();
        let is_strict = observer.is_strict && self.spec.is_some();
        let is_small = body.size_hint().exact().is_some_and(|length| length <= MAX_BODY as u64);
        if !is_strict && (!is_small || head.headers.contains_key(EXPECT)) {
            let captured = captured.clone();
            let body = Passing::of(body, move |data| captured.add(data));
            return (Request::from_parts(head, body), None);
        }
        let config = observer.app.config();
        let reading = Limited::new(body, config.max_body).collect();
        let read = match timeout(config.body_timeout, reading).await {
            Ok(Ok(read)) => Ok(read.to_bytes()),
            Ok(Err(cause)) if cause.is::<LengthLimitError>() => {
                Err(Error::payload_too_large(config.max_body))
            }
            Ok(Err(_)) => Err(Error::parse("the body could not be read completely")),
            Err(_) => Err(Error::body_timeout()),
        };
        match read {
            Ok(bytes) => {
                captured.add(&bytes);
                let unknown = if is_strict { self.unknown(&bytes) } else { None };
                (Request::from_parts(head, bytes.into()), unknown)
            }
            Err(refused) => (Request::from_parts(head, Body::empty()), Some(refused)),
        }
    }

    /// Returns the error of the first field or parameter that the operation does not know.
    fn unknown(&self, body: &[u8]) -> Option<Error> {
        let json = serde_json::from_slice::<Value>(body).ok();
        let notes = notes::unknown(self.spec.as_ref()?, self.head.uri.query(), json.as_ref());
        let note = notes.into_iter().next()?;
        Some(Error::field(note.attr.unwrap_or_default(), note.code, note.detail))
    }

    /// Adds the request to the journal, and captures the body of its response on its way.
    fn finish(
        self,
        observer: &Observer,
        captured: Captured,
        fault: Option<u64>,
        response: Response,
    ) -> Response {
        let sent = observer.journal.capture();
        let status = response.status();
        self.add_to(observer, (captured, fault), Some((status, sent.clone())));
        response.map(|body| Passing::of(body, move |data| sent.add(data)))
    }

    fn add_to(
        self,
        observer: &Observer,
        (body, fault): (Captured, Option<u64>),
        answer: Option<(StatusCode, Captured)>,
    ) {
        let Head { method, uri, headers } = self.head;
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let (status, response) = answer.unzip();
        observer.journal.add(journal::Entry {
            at: self.at,
            method: method.to_string(),
            path: uri.path().to_owned(),
            query: uri.query().map(str::to_owned),
            headers,
            body,
            spec: self.spec,
            caller: self.caller,
            status: status.map(|status| status.as_u16()),
            response: response.unwrap_or_else(|| observer.journal.capture()),
            duration: self.begun.elapsed(),
            fault,
        });
    }
}

/// Returns the user and the key of a valid key in the headers.
fn caller(app: &App, headers: &HeaderMap) -> Option<Caller> {
    let sent = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let tx = app.store().snapshot().ok()?;
    let key = app.key_cache().verify(&tx, bearer_token(sent)?).ok()?.key();
    let key = tx.get::<ApiKey>(&key).ok()?;
    let user = tx.get::<User>(&key.meta.user).ok()?;
    Some(Caller { email: user.fields.email, key_label: key.fields.label })
}

/// Leaves the last characters of a key, and nothing of a session.
fn hide_secrets(headers: &mut HeaderMap) {
    if let Some(sent) = headers.get_mut(AUTHORIZATION) {
        let text = sent.to_str().unwrap_or_default();
        let last = text.len().checked_sub(SHOWN).and_then(|at| text.get(at..)).unwrap_or_default();
        let shown = HeaderValue::try_from(format!("Bearer ...{last}"));
        *sent = shown.unwrap_or(HeaderValue::from_static("..."));
    }
    if let Some(sent) = headers.get_mut(COOKIE) {
        *sent = HeaderValue::from_static("...");
    }
}

/// Lets the service refuse a request with an error, before anything is done.
async fn run_refused(next: Next, mut request: Request, error: Error) -> Response {
    request.extensions_mut().insert(RejectedRequest(error));
    next.run(request).await
}

/// Returns the response of an error with what a fault says of it.
fn with_failure(response: Response, failure: &Failure) -> Response {
    let (mut head, _) = response.into_parts();
    head.status = failure.status.try_into().unwrap_or(head.status);
    head.headers.remove(CONTENT_LENGTH);
    // Only these two have one without being asked.
    if failure.status != 429 && failure.status != 503 {
        head.headers.remove(RETRY_AFTER);
    }
    if let Some(wait) = failure.retry_after {
        head.headers.insert(RETRY_AFTER, HeaderValue::from(wait));
    }
    Response::from_parts(head, failure.body().to_string().into())
}

/// Returns the first bytes of a body, and then an error, which ends the connection.
fn truncated(body: Body, bytes: usize) -> Body {
    let pieces = (body.into_data_stream(), Some(bytes));
    Body::from_stream(stream::try_unfold(pieces, |(mut pieces, left)| async move {
        let Some(left) = left else {
            // What came before leaves first.
            yield_now().await;
            return Err(axum::Error::new("a fault that a test asked for"));
        };
        let Some(piece) = pieces.try_next().await? else { return Ok(None) };
        if piece.len() <= left {
            let left = left - piece.len();
            return Ok(Some((piece, (pieces, Some(left)))));
        }
        Ok(Some((piece.slice(..left), (pieces, None))))
    }))
}

/// Returns a body that never arrives, until requests in progress are to end.
fn stalled(ending: Option<Ending>) -> Body {
    Body::from_stream(stream::once(async move {
        ended(ending).await;
        Err::<Bytes, _>(axum::Error::new("a fault that a test asked for"))
    }))
}
