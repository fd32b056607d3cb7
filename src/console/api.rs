//! Requests of a page to the API: its operations, and the client that sends them in this process, with the rights of the
//! page's session.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Builder;
use axum::http::{HeaderValue, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::http::in_process::{AccessProbe, InProcessClient, Reply};
use crate::http::routes::{RouteSpec, RouteTable};
use crate::resources::sessions::VerifiedSession;

use super::model::Key;

/// The characters of a segment that are not encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'@');

/// An operation of the API with the values of the parameters in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation {
    id: &'static str,
    values: Vec<String>,
}

impl Operation {
    /// Names an operation by its `operationId` in the OpenAPI document. `values` replace the parameters of its path, in
    /// the order of the path.
    pub(super) fn new<const N: usize>(id: &'static str, values: [&str; N]) -> Self {
        Self { id, values: values.map(str::to_owned).to_vec() }
    }

    /// Returns the row of the route table.
    pub(super) fn spec<'t>(&self, table: &'t RouteTable) -> Result<&'t RouteSpec> {
        let found = table.specs().iter().find(|spec| spec.operation == self.id);
        found.ok_or_else(|| Error::internal(format!("the API has no operation {}", self.id)))
    }

    /// Returns the method and the path.
    pub(super) fn target(&self, table: &RouteTable) -> Result<(Method, String)> {
        let spec = self.spec(table)?;
        let mut values = self.values.iter();
        let segments = spec.path.split('/').map(|segment| {
            let value = if segment.starts_with('{') { values.next() } else { None };
            value.map_or_else(
                || segment.to_owned(),
                |value| utf8_percent_encode(value, SEGMENT).to_string(),
            )
        });
        let path = segments.collect::<Vec<_>>().join("/");
        if path.contains('{') || values.next().is_some() {
            return Err(Error::internal(format!("{} has other path parameters", self.id)));
        }
        Ok((spec.method.clone(), path))
    }

    /// Returns the id and the tenant. The API admits a session alike to operations with the same ones.
    pub(super) fn gate(&self) -> (&'static str, String) {
        (self.id, self.values.first().cloned().unwrap_or_default())
    }

    /// Returns the schema of the request body, or null if the operation has none.
    pub(super) fn body_schema(&self, table: &RouteTable) -> Result<Value> {
        let body = self.spec(table)?.body.as_ref();
        Ok(body.map_or(Value::Null, |body| json!((body.schema)())))
    }
}

/// A request that changes something. Not `Debug`, because the body may contain secrets.
#[derive(Clone)]
pub(super) struct Write {
    pub(super) operation: Operation,
    pub(super) body: Option<Value>,
    /// The version that the object must have, for `If-Match`.
    pub(super) version: Option<String>,
    /// The `Idempotency-Key` of a POST.
    pub(super) key: Option<String>,
}

impl Write {
    /// Creates a request without a body.
    pub(super) fn new<const N: usize>(id: &'static str, values: [&str; N]) -> Self {
        Self { operation: Operation::new(id, values), body: None, version: None, key: None }
    }

    /// Sets the body.
    pub(super) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Sets the `Idempotency-Key`, unless it is empty. Other methods than POST ignore it.
    pub(super) fn once(mut self, key: &str) -> Self {
        self.key = (!key.is_empty()).then(|| key.to_owned());
        self
    }

    /// Returns the headers of the request, which has this method.
    pub(super) fn headers(&self, method: &Method) -> Vec<(&'static str, &str)> {
        let key = self.key.as_deref().filter(|_| *method == Method::POST);
        let json = self.body.as_ref().map(|_| "application/json");
        let all = [
            ("If-Match", self.version.as_deref()),
            ("Idempotency-Key", key),
            ("Content-Type", json),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The router of the API. It is built on the first use. Clones share it.
#[derive(Clone)]
pub(super) struct ApiRouter {
    build: fn(App) -> Router,
    router: Arc<OnceLock<Router>>,
    table: RouteTable,
}

impl ApiRouter {
    pub(super) fn new(build: fn(App) -> Router, table: RouteTable) -> Self {
        Self { build, router: Arc::default(), table }
    }

    /// Returns the client of a session for one request to a page, from this address. With a recorder, the client changes
    /// nothing.
    pub(super) fn client(
        &self,
        app: &App,
        address: IpAddr,
        session: VerifiedSession,
        recorder: Option<Recorder>,
    ) -> Api {
        let router = self.router.get_or_init(|| (self.build)(app.clone())).clone();
        let budget = app.transfer_memory().clone();
        let client = InProcessClient::new(router, address, budget);
        let (table, has_written) = (self.table.clone(), Arc::default());
        Api { client, session, table, has_written, recorder }
    }
}

/// Sends requests to the API as a session. A client cannot set a request extension, so no other request has the session.
pub(super) struct Api {
    /// The client, whose outcome belongs to the page's response.
    pub(super) client: InProcessClient,
    session: VerifiedSession,
    /// The operations of the API.
    pub(super) table: RouteTable,
    /// Whether a request of this client has changed something.
    pub(super) has_written: Arc<AtomicBool>,
    /// Receives the requests that would change something, instead of the API.
    pub(super) recorder: Option<Recorder>,
}

/// The requests of a client that only records them. Clones share the requests.
#[derive(Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<Vec<Write>>>);

impl Recorder {
    fn record(&self, write: &Write) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(write.clone());
    }

    /// Returns the requests in their order.
    pub(super) fn writes(&self) -> Vec<Write> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An object of the API with its version.
#[derive(Default)]
pub(super) struct Versioned {
    pub(super) body: Value,
    /// The version for `If-Match`.
    pub(super) version: Option<String>,
}

impl Versioned {
    /// Reads the object as a `T`, from its text: serde reads no flattened struct from a value that has a number beyond 64 bits
    /// anywhere.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.body.to_string()).map_err(Error::internal)
    }
}

/// The answer to a request that reads an object.
pub(super) struct Answer(Result<Reply>);

impl Answer {
    /// Reads the object.
    ///
    /// # Errors
    /// The error of the API; 500 if the response has another form.
    pub(super) fn read<T: DeserializeOwned>(self) -> Result<T> {
        serde_json::from_slice(&self.0?.body).map_err(Error::internal)
    }

    /// Reads an object that the session may lack the scope for. Returns `None` in that case.
    ///
    /// # Errors
    /// The other errors of [`read`](Self::read).
    pub(super) fn read_if_allowed<T: DeserializeOwned>(self) -> Result<Option<T>> {
        if_allowed(self.read())
    }
}

impl Api {
    /// Requests an object. `path` begins with `/api/` and is percent-encoded.
    pub(super) async fn get(&self, path: &str) -> Answer {
        Answer(self.send(self.request(Method::GET, path), Body::empty()).await)
    }

    /// Reads the key of the session. Returns `None` in a session without a key.
    ///
    /// # Errors
    /// As [`Answer::read_if_allowed`].
    pub(super) async fn key(&self) -> Result<Option<Key>> {
        self.get("/api/personal_api_keys/@current/").await.read_if_allowed()
    }

    /// Reads an object with its version.
    ///
    /// # Errors
    /// As [`Answer::read`].
    pub(super) async fn get_versioned(&self, path: &str) -> Result<Versioned> {
        let reply = self.get(path).await.0?;
        let body = serde_json::from_slice(&reply.body).map_err(Error::internal)?;
        Ok(Versioned { body, version: reply.etag })
    }

    /// Sends a request that changes something. Returns the body of the response, or null if it is empty. A client that only
    /// records requests returns null: the response of the page is not used.
    ///
    /// # Errors
    /// The error of the API; 500 if the response has another form.
    pub(super) async fn write(&self, write: &Write) -> Result<Value> {
        if let Some(recorder) = &self.recorder {
            recorder.record(write);
            return Ok(Value::Null);
        }
        let (request, body) = self.write_request(write)?;
        let reply = self.send(request, body).await?;
        self.has_written.store(true, Ordering::Relaxed);
        value_of(&reply)
    }

    /// Sends a request with a body that only reads. Returns the body of the response, or null if it is empty.
    ///
    /// # Errors
    /// The error of the API; 500 if the response has another form.
    pub(super) async fn query(&self, query: &Write) -> Result<Value> {
        let (request, body) = self.write_request(query)?;
        value_of(&self.send(request, body).await?)
    }

    /// Sends a request that changes something. The inner error is one that the page shows, beside what it offers.
    ///
    /// # Errors
    /// 401 if the session has ended; 500.
    pub(super) async fn attempt(&self, write: &Write) -> Result<Result<Value>> {
        match self.write(write).await {
            Err(error) if matches!(error.status(), 401 | 500) => Err(error),
            outcome => Ok(outcome),
        }
    }

    /// Returns the error that a request would get now, or `None` if it would succeed. The request is a dry run. Also 503 is
    /// such an error: a page can be read while writes are refused, for example because the disk is nearly full.
    ///
    /// # Errors
    /// 401 if the session has ended; 429; 500.
    pub(super) async fn dry_run(&self, write: &Write) -> Result<Option<Error>> {
        let (request, body) = self.write_request(write)?;
        match self.send(request.header("dry-run", "true"), body).await {
            Ok(_) => Ok(None),
            Err(error) if matches!(error.status(), 401 | 429 | 500) => Err(error),
            Err(error) => Ok(Some(error)),
        }
    }

    /// Returns why the API would refuse a request now, or `None` if it would succeed.
    ///
    /// # Errors
    /// As [`dry_run`](Self::dry_run).
    pub(super) async fn refusal(&self, write: &Write) -> Result<Option<String>> {
        Ok(self.dry_run(write).await?.map(|error| error.detail().to_owned()))
    }

    fn write_request(&self, write: &Write) -> Result<(Builder, Body)> {
        let (method, path) = write.operation.target(&self.table)?;
        let headers = write.headers(&method);
        let mut request = self.request(method, &path);
        for (name, value) in headers {
            request = request.header(name, header_value(value)?);
        }
        let body = write.body.as_ref().map_or_else(Body::empty, |body| body.to_string().into());
        Ok((request, body))
    }

    /// Returns whether the API would admit the session to an operation. The operation itself may still refuse, for example
    /// because of the object's own access level.
    ///
    /// # Errors
    /// 401 if the session has ended.
    pub(super) async fn may(&self, operation: &Operation) -> Result<bool> {
        let (method, path) = operation.target(&self.table)?;
        let request = self.request(method, &path).extension(AccessProbe);
        Ok(if_allowed(self.send(request, Body::empty()).await)?.is_some())
    }

    fn request(&self, method: Method, path: &str) -> Builder {
        Request::builder().method(method).uri(path).extension(self.session.clone())
    }

    async fn send(&self, request: Builder, body: Body) -> Result<Reply> {
        self.client.send(request.body(body).map_err(Error::internal)?).await
    }
}

/// Returns the outcome of a request that the session may lack the rights for. Returns `None` in that case.
pub(super) fn if_allowed<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.status(), 403 | 404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the body of a response, or null if it is empty.
fn value_of(reply: &Reply) -> Result<Value> {
    if reply.body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&reply.body).map_err(Error::internal)
}

/// Returns a header of a form's hidden field, which a browser can change.
fn header_value(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text)
        .map_err(|_| Error::invalid_request("invalid_form", "The form is not valid."))
}
