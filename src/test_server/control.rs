//! The control plane: `/_test/`, beside the routes of the service.

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, State};
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use url::Host;

use crate::app::App;
use crate::base::error::Error;
use crate::http::client::Client;
use crate::net::{TrustedProxies, is_loopback};
use crate::router::router as service_router;

use super::Ready;

/// What the routes share.
#[derive(Clone)]
struct Control {
    app: App,
    ready: Arc<Ready>,
}

/// Returns the routes of the service, and those of the control plane.
pub(crate) fn router(app: App, ready: Ready) -> Router {
    let control = Control { app: app.clone(), ready: Arc::new(ready) };
    Router::new()
        .route("/_test/", get(show))
        .route("/_test", any(unknown))
        .route("/_test/{*path}", any(unknown))
        .method_not_allowed_fallback(unknown)
        .with_state(control)
        .fallback_service(service_router(app))
}

/// A request that a program of this machine sent. It names a loopback host, so it is not a page of another name that resolves to
/// this address, and it has no `Origin`, so it is not the script or the form of a page.
struct FromProgram;

impl<S: Sync> FromRequestParts<S> for FromProgram {
    type Rejection = Error;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Error> {
        let client = Client::of(head, &TrustedProxies::default());
        let is_local = Host::parse(client.host.host()).is_ok_and(|host| is_loopback(&host));
        if is_local && !head.headers.contains_key(ORIGIN) {
            return Ok(Self);
        }
        Err(Error::denied(
            "The control plane of steward test answers programs of this machine only.",
        ))
    }
}

/// Shows the ready line, with the time of now.
async fn show(_: FromProgram, State(control): State<Control>) -> Response {
    let ready = control.ready.to_json(control.app.now());
    ([(CONTENT_TYPE, "application/json")], ready).into_response()
}

async fn unknown(_: FromProgram) -> Error {
    Error::not_found()
}
