//! The only list of nouns, and the order of what surrounds them.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::access::Needs;
use crate::config::Config;
use crate::http::around::{Around, Terms};
use crate::http::budget::MemoryBudget;
use crate::http::client::TrustedProxies;
use crate::http::cors;
use crate::http::delivery::Delivery;
use crate::http::limits::Limits;
use crate::http::metered::Requests;
use crate::http::negotiate::Negotiate;
use crate::http::opening::{self, livez};
use crate::http::routes::Routes;
use crate::http::{exposition, openapi};
use crate::resources::{
    access_controls, activity, api_keys, batch_exports, collaborators, dashboards, domains,
    invites, members, organizations, projects, sharing, signup, users,
};
use crate::state::App;

/// Every route of the service.
pub fn routes() -> Routes {
    let mut routes = Routes::default();
    users::http::routes(&mut routes);
    organizations::http::routes(&mut routes);
    members::http::routes(&mut routes);
    projects::http::routes(&mut routes);
    api_keys::http::routes(&mut routes);
    access_controls::http::routes(&mut routes);
    dashboards::http::routes(&mut routes);
    collaborators::http::routes(&mut routes);
    sharing::http::routes(&mut routes);
    domains::http::routes(&mut routes);
    batch_exports::http::routes(&mut routes);
    invites::http::routes(&mut routes);
    signup::http::routes(&mut routes);
    activity::http::routes(&mut routes);
    routes.noun("probes", "Whether the service runs.");
    routes
        .get("/_livez", "livez", Needs::nothing("tells only that the process runs"), livez)
        .summary("Ask whether the process runs.")
        .media(&["text/plain"]);
    routes
        .get("/_readyz", "readyz", Needs::nothing("tells only whether writes are taken"), readyz)
        .summary("Ask whether the service takes writes.")
        .media(&["text/plain"]);
    openapi::routes(&mut routes);
    routes
}

/// The service as a tower service, for a server or for calling it in-process.
pub fn router(app: App) -> Router {
    let routes = routes();
    let requests = Requests::of(&routes, &app.config().meters);
    let terms = terms(app.config(), app.proxies(), app.limits(), app.transfer_memory());
    let around = Around::new(Terms { requests, ..terms });
    let negotiate = Negotiate { proxies: app.proxies().clone() };
    routes.into_router().with_state(app).layer(negotiate).layer(around)
}

/// What a server answers before it has opened its data file: that it runs, and 503.
pub fn opening(config: &Config) -> Router {
    let proxies = config.trusted_proxies.iter().copied().collect();
    let limits = Arc::new(Limits::new(&[], &config.peer_limits, &config.clock));
    let budget = MemoryBudget::new(config.transfer_memory);
    opening::router().layer(Around::new(terms(config, &proxies, &limits, &budget)))
}

/// The numbers of the service, for a listener of its own.
pub fn numbers(app: App) -> Router {
    let none = Arc::new(Limits::new(&[], &[], &app.config().clock));
    // A budget of its own: the numbers are read above all while the service is under load.
    let budget = MemoryBudget::new(app.config().transfer_memory);
    let terms = terms(app.config(), app.proxies(), &none, &budget);
    exposition::router(app).layer(Around::new(Terms { cors: None, ..terms }))
}

fn terms(
    config: &Config,
    proxies: &TrustedProxies,
    limits: &Arc<Limits>,
    budget: &MemoryBudget,
) -> Terms {
    Terms {
        timeout: config.request_timeout,
        proxies: proxies.clone(),
        limits: Arc::clone(limits),
        secure: config.link_base().starts_with("https:"),
        cors: cors::layer(&config.cors_origins),
        requests: None,
        delivery: Delivery::new(budget.clone()),
    }
}

async fn readyz(State(app): State<App>) -> Response {
    match app.require_ready().await {
        Ok(()) => "ok\n".into_response(),
        Err(error) => error.into_response(),
    }
}
