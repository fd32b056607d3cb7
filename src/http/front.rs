//! What answers a server's requests, which may change while it runs: a server listens before its data file is open.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;

use crate::meters::{Counter, Gauge, Meters, Series};

/// What answers requests.
#[derive(Clone)]
pub struct Front {
    router: Arc<ArcSwap<Router>>,
    connections: ConnectionMetrics,
}

/// What a listener counts of its connections.
#[derive(Clone)]
pub struct ConnectionMetrics {
    open: Gauge,
    refused: Counter,
    closed: Counter,
}

impl ConnectionMetrics {
    /// The series of the listener of the API.
    pub fn of(meters: &Meters) -> Self {
        Self {
            open: meters.gauge(Series::CONNECTIONS, &[]),
            refused: meters.counter(Series::CONNECTIONS_REFUSED, &[]),
            closed: meters.counter(Series::CONNECTIONS_CLOSED, &[]),
        }
    }

    /// Counts nothing.
    pub fn none() -> Self {
        Self::of(&Meters::default())
    }
}

/// A connection that is open, until this is dropped.
pub(super) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

impl Front {
    /// Answers with `router`; counts connections in `connections`.
    pub fn new(router: Router, connections: ConnectionMetrics) -> Self {
        Self { router: Arc::new(ArcSwap::from_pointee(router)), connections }
    }

    /// Answers with `router` from now on, on connections that are open already too.
    pub fn show(&self, router: Router) {
        self.router.store(Arc::new(router));
    }

    /// What answers the next request.
    pub(super) fn router(&self) -> Router {
        Router::clone(&self.router.load())
    }

    /// Counts a connection.
    pub(super) fn open(&self) -> Open {
        self.connections.open.increment(1);
        Open(self.connections.open.clone())
    }

    /// Counts a connection that was refused because no slot was free.
    pub(super) fn count_refused(&self) {
        self.connections.refused.increment(1);
    }

    /// Counts an idle connection that was closed for another one.
    pub(super) fn count_closed(&self) {
        self.connections.closed.increment(1);
    }
}

impl From<Router> for Front {
    fn from(router: Router) -> Self {
        Self::new(router, ConnectionMetrics::none())
    }
}
