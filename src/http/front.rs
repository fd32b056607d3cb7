//! What answers a server's requests, which may change while it runs: a server listens before its data file is open.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;

use crate::meters::Gauge;

/// What answers requests.
#[derive(Clone)]
pub struct Front {
    router: Arc<ArcSwap<Router>>,
    connections: Gauge,
}

/// A connection that is open, until this is dropped.
pub(super) struct Open(Gauge);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

impl Front {
    /// Answers with `router`; tells `connections` how many are open.
    pub fn new(router: Router, connections: Gauge) -> Self {
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
        self.connections.increment(1);
        Open(self.connections.clone())
    }
}

impl From<Router> for Front {
    fn from(router: Router) -> Self {
        Self::new(router, Gauge::noop())
    }
}
