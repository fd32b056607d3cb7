//! Request metrics by route, and the Prometheus endpoint. It has a listener of its own and is never part of the API.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::metrics::{self, Counter, Gauge, Histogram, Metrics, Series, record_seconds};

use super::routes::Routes;

/// Returns a router that serves only `/metrics`.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .method_not_allowed_fallback(other_method)
        .fallback(|| async { Error::not_found_as("Only /metrics is served here.") })
        .with_state(app)
}

async fn other_method(method: Method) -> Error {
    Error::method_not_allowed(method.as_str())
}

async fn metrics(State(app): State<App>) -> Result<impl IntoResponse> {
    let text = String::from(&*app.metrics().await?);
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text))
}

/// The status classes. A request whose client disconnected counts as 4xx.
const STATUS_CLASSES: [(u16, &str); 4] = [(2, "2xx"), (3, "3xx"), (4, "4xx"), (5, "5xx")];

/// The request metrics. Label values come from the route table, so clients cannot add any.
pub struct RequestMetrics {
    metrics: Metrics,
    in_flight: Gauge,
    /// Requests that were refused because a limit was reached.
    pub(super) overloads: Counter,
    /// The methods of a path, by each of its spellings.
    routes: HashMap<String, Arc<[MethodMetrics]>>,
    unmatched: MethodMetrics,
}

/// The metrics of one method of one path, created on the first request so that unused routes take no memory.
struct MethodMetrics {
    /// `None` for the methods that the path does not have. It is the last of a path.
    method: Option<Method>,
    route: &'static str,
    handles: OnceLock<(Histogram, [Counter; STATUS_CLASSES.len()])>,
}

impl MethodMetrics {
    fn of(method: Option<Method>, route: &'static str) -> Self {
        Self { method, route, handles: OnceLock::new() }
    }

    fn record(&self, metrics: &Metrics, status: u16, time: Duration) {
        let (times, counts) = self.handles.get_or_init(|| {
            let method = self.method.as_ref().map_or("other", Method::as_str);
            let route = self.route;
            let count = |(_, class)| metrics.counter(Series::REQUESTS, &[method, route, class]);
            (metrics.histogram(Series::REQUEST_TIME, &[method, route]), STATUS_CLASSES.map(count))
        });
        record_seconds(times, time);
        let class = STATUS_CLASSES.iter().position(|(class, _)| *class == status / 100);
        if let Some(count) = class.and_then(|at| counts.get(at)) {
            count.increment(1);
        }
    }
}

impl RequestMetrics {
    /// Returns metrics for the requests of `routes`, or `None` if metrics are disabled.
    pub fn of(routes: &Routes, metrics: &Metrics) -> Option<Arc<Self>> {
        metrics.is_enabled().then(|| {
            let mut by_path: HashMap<_, Vec<_>> = HashMap::new();
            for (method, path) in routes.methods() {
                let numbers = MethodMetrics::of(Some(method.clone()), path);
                by_path.entry(path).or_default().push(numbers);
            }
            let mut known = HashMap::new();
            for (path, mut methods) in by_path {
                methods.push(MethodMetrics::of(None, path));
                let methods: Arc<[_]> = methods.into();
                let spelled = super::routes::spellings(path).into_iter();
                known.extend(spelled.map(|path| (path, Arc::clone(&methods))));
            }
            Arc::new(Self {
                in_flight: metrics.gauge(Series::IN_FLIGHT, &[]),
                overloads: metrics.counter(Series::OVERLOADS, &[]),
                metrics: metrics.clone(),
                routes: known,
                unmatched: MethodMetrics::of(None, "unmatched"),
            })
        })
    }

    /// Counts the start of a request.
    pub(super) fn begin(&self) {
        self.in_flight.increment(1);
    }

    /// Counts the end of a request. `route` is the spelling that it matched. HEAD counts as GET.
    pub(super) fn end(&self, route: Option<&str>, method: &Method, status: u16, time: Duration) {
        self.in_flight.decrement(1);
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let is_named =
            |one: &&MethodMetrics| one.method.as_ref().is_none_or(|known| known == method);
        let known = route.and_then(|route| self.routes.get(route)?.iter().find(is_named));
        known.unwrap_or(&self.unmatched).record(&self.metrics, status, time);
    }
}
