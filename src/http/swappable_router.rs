//! A router that can be replaced while the server runs, because a server listens before its data file is open, and the
//! router until then.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::routing::{any, get};

use crate::base::error::Error;
use crate::metrics::{Counter, Gauge, Metrics, Series};

/// The replaceable router of a listener, with the metrics of its connections. Clones share the router.
#[derive(Clone)]
pub struct SwappableRouter {
    router: Arc<ArcSwap<Router>>,
    open: Gauge,
    /// Connections that were refused because no slot was free.
    pub(super) refused: Counter,
    /// Idle connections that were closed to make room for another.
    pub(super) closed: Counter,
}

/// An open connection, counted until this is dropped.
pub(super) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

impl SwappableRouter {
    /// Creates the router of a listener. It serves `router` first, and records connections in `metrics`.
    pub fn new(router: Router, metrics: &Metrics) -> Self {
        Self {
            router: Arc::new(ArcSwap::from_pointee(router)),
            open: metrics.gauge(Series::CONNECTIONS, &[]),
            refused: metrics.counter(Series::CONNECTIONS_REFUSED, &[]),
            closed: metrics.counter(Series::CONNECTIONS_CLOSED, &[]),
        }
    }

    /// Replaces the router. Open connections use the new router from their next request.
    pub fn replace(&self, router: Router) {
        self.router.store(Arc::new(router));
    }

    /// Returns the router for the next request.
    pub(super) fn router(&self) -> Router {
        Router::clone(&self.router.load())
    }

    /// Counts an open connection until the returned value is dropped.
    pub(super) fn count_open(&self) -> OpenConnection {
        self.open.increment(1);
        OpenConnection(self.open.clone())
    }
}

impl From<Router> for SwappableRouter {
    fn from(router: Router) -> Self {
        Self::new(router, &Metrics::default())
    }
}

/// The `Retry-After` of such a response, in seconds.
const RETRY_AFTER: u32 = 1;

/// Returns a router that serves `/_livez` and answers everything else with 503.
pub fn startup_router() -> Router {
    Router::new()
        .route("/_livez", get(livez))
        .route("/_livez/", get(livez))
        .route("/_readyz", any(not_ready))
        .route("/_readyz/", any(not_ready))
        .method_not_allowed_fallback(not_ready)
        .fallback(not_ready)
}

async fn not_ready() -> Error {
    Error::unavailable(RETRY_AFTER, "the data file is not open yet")
}

/// The body of a probe that succeeds.
pub const OK: &str = "ok\n";

/// The liveness probe. It always succeeds while the process runs.
pub async fn livez() -> &'static str {
    OK
}
