//! The only list of nouns, and the order of what surrounds them.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::access::Needs;
use crate::error::Error;
use crate::http::around::{Around, Terms};
use crate::http::cors;
use crate::http::negotiate::Negotiate;
use crate::http::openapi;
use crate::http::routes::Routes;
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
    let config = app.config();
    let secure = config.link_base().starts_with("https:");
    let around = Around::new(Terms {
        timeout: config.request_timeout,
        proxies: app.proxies().clone(),
        limits: Arc::clone(app.limits()),
        secure,
        cors: cors::layer(&config.cors_origins),
    });
    let negotiate = Negotiate { proxies: app.proxies().clone() };
    routes().into_router().with_state(app).layer(negotiate).layer(around)
}

async fn livez() -> &'static str {
    "ok\n"
}

async fn readyz(State(app): State<App>) -> Response {
    if app.store().ready() {
        "ok\n".into_response()
    } else {
        Error::unavailable(1, "the data file is closed").into_response()
    }
}
