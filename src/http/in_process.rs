//! Requests to a router on behalf of another request. They pass no layer: the other request has passed them.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::header::ETAG;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use tower::ServiceExt;

use crate::base::error::{Error, Result};
use crate::fair::fair_queue::Consumer;
use crate::fair::memory_budget::{Charge, MemoryBudget, Payer, RequestMemory};

use super::client::Peer;
use super::delivery::is_large;
use super::request_log::LogContext;

/// The largest response, in bytes. Roles with 5,000 members, the most of a response, take about 5 MiB.
const MAX_RESPONSE: usize = 8 * 1024 * 1024;
/// The memory of a parsed response, as a multiple of its text.
const PARSED_FACTOR: usize = 3;

/// Sends requests to a router on behalf of one request. Clones belong to the same request.
#[derive(Clone)]
pub struct InProcessClient {
    router: Router,
    address: IpAddr,
    budget: MemoryBudget,
    outcome: Arc<Mutex<Outcome>>,
}

/// A request extension that asks only whether the caller may send the request. An admitted request gets 204, and its
/// handler does not run. It does not count against the rate limit of its session.
#[derive(Clone, Copy)]
pub struct AccessProbe;

/// A successful response.
pub struct Reply {
    /// The version of the object in the body.
    pub etag: Option<String>,
    /// The body, which is empty for some statuses.
    pub body: Bytes,
}

/// What the responses leave for the response to the other request.
#[derive(Default)]
struct Outcome {
    /// The caller, for the log line.
    context: Option<LogContext>,
    /// The tenant that pays for large responses.
    tenant: Option<Consumer>,
    /// The memory of large responses, until the request ends.
    charges: Vec<Charge>,
}

impl InProcessClient {
    /// Creates the client of a request from this address.
    pub fn new(router: Router, address: IpAddr, budget: MemoryBudget) -> Self {
        Self { router, address, budget, outcome: Arc::default() }
    }

    /// Sends a request and returns the successful response.
    ///
    /// # Errors
    /// The error of the response; 400 if the response is larger than 8 MiB; 503 if there is no memory for it now.
    pub async fn send(&self, mut request: Request) -> Result<Reply> {
        request.extensions_mut().insert(Peer(SocketAddr::new(self.address, 0)));
        let Ok(mut response) = self.router.clone().oneshot(request).await;
        self.keep(&mut response)?;
        if let Some(error) = response.extensions_mut().remove::<Error>() {
            return Err(error);
        }
        if !response.status().is_success() {
            return Err(Error::internal(format!("an unexpected status: {}", response.status())));
        }
        let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        let etag = etag.map(str::to_owned);
        let body = Limited::new(response.into_body(), MAX_RESPONSE).collect().await;
        Ok(Reply { etag, body: body.map_err(|_| too_large())?.to_bytes() })
    }

    fn keep(&self, response: &mut Response) -> Result<()> {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let extensions = response.extensions_mut();
        if let Some(context) = extensions.remove() {
            outcome.context = Some(context);
        }
        if let Some(tenant) = extensions.remove() {
            outcome.tenant = Some(tenant);
        }
        // A large response is charged here at its parsed size.
        extensions.remove::<RequestMemory>();
        if is_large(response) {
            let size = response.body().size_hint().exact();
            let size = size.and_then(|size| usize::try_from(size).ok());
            let size = size.filter(|size| *size <= MAX_RESPONSE).ok_or_else(too_large)?;
            let payer = Payer { client: self.address, tenant: outcome.tenant };
            let charge = self.budget.charge(payer, PARSED_FACTOR * size)?;
            outcome.charges.push(charge);
        }
        Ok(())
    }

    /// Adds the caller and the tenant to the response of the other request.
    pub fn attach_to(&self, response: &mut Response) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = outcome.tenant.filter(|_| is_large(response)) {
            response.extensions_mut().insert(tenant);
        }
        if let Some(context) = outcome.context.take() {
            context.attach(response);
        }
    }
}

fn too_large() -> Error {
    Error::invalid_request(
        "too_large",
        "The response of the API is larger than 8 MiB, which the console does not show.",
    )
}
