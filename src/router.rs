//! The routes of all resources, and the layers around them.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;

use crate::app::App;
use crate::app::rate_limit::RateLimits;
use crate::auth::Requirements;
use crate::base::error::Result;
use crate::config::Config;
use crate::console;
use crate::fair::memory_budget::MemoryBudget;
use crate::http::compression::GzipLayer;
use crate::http::delivery::ResponseDelivery;
use crate::http::metrics::{self, RequestMetrics};
use crate::http::openapi;
use crate::http::request_layer::{RequestLayer, RequestLayerConfig};
use crate::http::routes::Routes;
use crate::http::security_headers::cors_layer;
use crate::http::swappable_router::{OK, livez, startup_router};
use crate::net::TrustedProxies;
use crate::resources::shared::list::for_each_resource;

macro_rules! list_routes {
    (logged: $($resource:ident)*; log: $log:ident) => {
        /// Adds the routes of each resource.
        const ROUTES: &[fn(&mut Routes)] = &[
            $(crate::resources::$resource::http::routes,)*
            crate::resources::$log::http::routes,
        ];
    };
}

for_each_resource!(list_routes);

/// Returns all routes of the service: those of the API and those of the console.
pub fn routes() -> Routes {
    let mut routes = api_routes();
    console::routes(&mut routes, api);
    routes
}

/// Returns the router of the API alone, to which the console sends requests in process.
fn api(app: App) -> Router {
    api_routes().into_router().with_state(app)
}

fn api_routes() -> Routes {
    let mut routes = Routes::default();
    for add_to in ROUTES {
        add_to(&mut routes);
    }
    routes.resource("probes", "Health checks.");
    routes
        .get("/_livez", "livez", Requirements::public("reveals only that the process runs"), livez)
        .summary("Check whether the process runs.")
        .media_types(&["text/plain"]);
    let needs = Requirements::public("reveals only whether the service accepts writes");
    routes
        .get("/_readyz", "readyz", needs, readyz)
        .summary("Check whether the service accepts writes.")
        .media_types(&["text/plain"]);
    let needs = Requirements::public("reveals only whether the service answers reads");
    routes
        .get("/_readyz/reads", "readyz_reads", needs, readyz_reads)
        .summary("Check whether the service answers reads.")
        .media_types(&["text/plain"]);
    openapi::routes(&mut routes);
    routes
}

/// Returns the service as a tower service, for a server or for in-process calls.
pub fn router(app: App) -> Router {
    let routes = if app.config().console.is_on() { routes() } else { api_routes() };
    let metrics = RequestMetrics::of(&routes, &app.config().metrics);
    let terms =
        layer_config(app.config(), app.proxies(), app.rate_limiter(), app.transfer_memory());
    let around = RequestLayer::new(RequestLayerConfig { metrics, ..terms });
    let negotiate = GzipLayer { proxies: app.proxies().clone() };
    // As one layer: axum boxes the service and its future once for each layer.
    routes.into_router().with_state(app).layer((around, negotiate))
}

/// Returns the router of a server that has not yet opened its data file. `/_livez` answers 200, all other paths 503.
pub fn startup(config: &Config) -> Router {
    let proxies = config.trusted_proxies.iter().copied().collect();
    let limits = Arc::new(RateLimits::new(&[], &config.peer_limits, &config.clock));
    let budget = MemoryBudget::new(config.transfer_memory);
    startup_router().layer(RequestLayer::new(layer_config(config, &proxies, &limits, &budget)))
}

/// Returns the router of the metrics, for a listener of its own.
pub fn metrics(app: App) -> Router {
    let none = Arc::new(RateLimits::new(&[], &[], &app.config().clock));
    // The metrics have a budget of their own, so that they stay readable while the service is under load.
    let budget = MemoryBudget::new(app.config().transfer_memory);
    let terms = layer_config(app.config(), app.proxies(), &none, &budget);
    metrics::router(app).layer(RequestLayer::new(RequestLayerConfig { cors: None, ..terms }))
}

fn layer_config(
    config: &Config,
    proxies: &TrustedProxies,
    limits: &Arc<RateLimits>,
    budget: &MemoryBudget,
) -> RequestLayerConfig {
    RequestLayerConfig {
        timeout: config.request_timeout,
        trusted_proxies: proxies.clone(),
        rate_limiter: Arc::clone(limits),
        is_https: config.link_base().starts_with("https:"),
        cors: cors_layer(&config.cors_origins),
        metrics: None,
        delivery: ResponseDelivery::new(budget.clone()),
    }
}

async fn readyz(State(app): State<App>) -> Result<&'static str> {
    app.require_ready().await.map(|()| OK)
}

async fn readyz_reads(State(app): State<App>) -> Result<&'static str> {
    app.require_ready_for_reads().await.map(|()| OK)
}
