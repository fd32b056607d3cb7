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
    /// By each spelling of a path.
    routes: HashMap<String, Arc<RouteMetrics>>,
    unmatched: RouteMetrics,
}

/// The metrics of a path, by method.
struct RouteMetrics {
    methods: Vec<(Method, MethodMetrics)>,
    /// The metrics of methods that the path does not have.
    other: MethodMetrics,
}

/// The metrics of one method of one path, created on the first request so that unused routes take no memory.
struct MethodMetrics {
    method: String,
    route: &'static str,
    handles: OnceLock<(Histogram, [Counter; STATUS_CLASSES.len()])>,
}

impl MethodMetrics {
    fn of(method: &str, route: &'static str) -> Self {
        Self { method: method.to_owned(), route, handles: OnceLock::new() }
    }

    fn record(&self, metrics: &Metrics, status: u16, time: Duration) {
        let (times, counts) = self.handles.get_or_init(|| {
            let (method, route) = (self.method.as_str(), self.route);
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
                let numbers = MethodMetrics::of(method.as_str(), path);
                by_path.entry(path).or_default().push((method.clone(), numbers));
            }
            let mut known = HashMap::new();
            for (path, methods) in by_path {
                let route =
                    Arc::new(RouteMetrics { methods, other: MethodMetrics::of("other", path) });
                let spelled = super::routes::spellings(path).into_iter();
                known.extend(spelled.map(|path| (path, Arc::clone(&route))));
            }
            Arc::new(Self {
                in_flight: metrics.gauge(Series::IN_FLIGHT, &[]),
                overloads: metrics.counter(Series::OVERLOADS, &[]),
                metrics: metrics.clone(),
                routes: known,
                unmatched: RouteMetrics {
                    methods: Vec::new(),
                    other: MethodMetrics::of("other", "unmatched"),
                },
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
        let route = route.and_then(|route| self.routes.get(route).map(AsRef::as_ref));
        let route = route.unwrap_or(&self.unmatched);
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let known = route.methods.iter().find(|(known, _)| known == method);
        known.map_or(&route.other, |(_, numbers)| numbers).record(&self.metrics, status, time);
    }
}
