//! The HTTP of a test run: the service, each request of which is observed, and the control plane beside it.

mod control;
mod embedded;
mod handlers;
mod inspector;
mod observe;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{LOCATION, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;
use tower::ServiceExt;
use url::Host;

use crate::base::error::{Error, Result};
use crate::console::assets;
use crate::exchange::dry_run::DryRun;
use crate::http::client::Client;
use crate::http::extract::{Extract, ReceivedRequest};
use crate::http::routes::{RouteSpec, prefers_html};
use crate::net::{TrustedProxies, is_loopback};
use crate::router::{self, routes};

use super::stage::Entered;
use super::{Ready, Stage};

use control::ROOT;
pub use embedded::TestServer;
use observe::{Observer, observe};

/// What a request of the control plane controls, and what it says of it.
#[derive(Clone)]
struct Control {
    stage: Stage,
    ready: Arc<Ready>,
}

impl Extract for Control {
    fn extract(request: &mut ReceivedRequest) -> Result<Self> {
        if request.parts.extensions.get::<DryRun>().is_some() {
            let detail = "The control plane has no dry runs.";
            return Err(Error::field("Dry-Run", "invalid_input", detail));
        }
        let control = request.parts.extensions.get().cloned();
        control.ok_or_else(|| Error::internal("a request of the control plane lacks it"))
    }
}

/// What all requests share.
#[derive(Clone)]
struct Front {
    control: Control,
    /// The operations of the service.
    specs: Arc<[RouteSpec]>,
    /// The routers of the service that was used last.
    last: Arc<Mutex<Option<Routers>>>,
}

/// The routers of a service.
#[derive(Clone)]
struct Routers {
    /// Of which service they are.
    generation: u64,
    service: Router,
    control: Router,
}

/// Returns the routes of the service, and those of the control plane.
pub(crate) fn router(stage: Stage, ready: Ready) -> Router {
    let control = Control { stage, ready: Arc::new(ready) };
    let front = Front { control, specs: routes().specs().into(), last: Arc::default() };
    Router::new().fallback(answer).with_state(front)
}

/// A request extension that changes when requests in progress are to end.
#[derive(Clone)]
struct Ending(watch::Receiver<()>);

async fn answer(State(front): State<Front>, mut request: Request) -> Response {
    let path = request.uri().path();
    if path.starts_with(ROOT) || path == ROOT.trim_end_matches('/') {
        return front.answer_program(request).await;
    }
    // The files of pages do not count as requests of a test, and are there without the console.
    if path.starts_with(assets::FOLDER) {
        return front.answer_control(request).await;
    }
    let entered = front.control.stage.enter().await;
    let service = front.routers(&entered).service;
    let Entered { mut ending, in_progress, .. } = entered;
    request.extensions_mut().insert(Ending(ending.clone()));
    tokio::select! {
        Ok(response) = service.oneshot(request) => {
            response.map(|body| Passing::of(body, move |_| _ = &in_progress))
        }
        _ = ending.changed() => {
            Error::unavailable(1, "the state was replaced during the request").into_response()
        }
    }
}

impl Front {
    /// Answers a request below the root of the control plane.
    async fn answer_program(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        if let Err(refused) = require_program(&head) {
            return refused.into_response();
        }
        if opens_first_page(&head) {
            return (StatusCode::SEE_OTHER, [(LOCATION, inspector::ROOT)]).into_response();
        }
        self.answer_control(Request::from_parts(head, body)).await
    }

    /// Answers a request of the control plane. It is not in progress: it may replace the state.
    async fn answer_control(&self, mut request: Request) -> Response {
        request.extensions_mut().insert(self.control.clone());
        let control = self.routers(&self.control.stage.enter().await).control;
        let Ok(response) = control.oneshot(request).await;
        response
    }

    /// Returns the routers of a service.
    fn routers(&self, entered: &Entered) -> Routers {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(routers) if routers.generation == entered.generation => routers.clone(),
            _ => last.insert(self.new_routers(entered)).clone(),
        }
    }

    fn new_routers(&self, Entered { app, generation, .. }: &Entered) -> Routers {
        let environment = self.control.stage.environment();
        let observer = Observer {
            app: app.clone(),
            specs: Arc::clone(&self.specs),
            journal: Arc::clone(&environment.journal),
            faults: Arc::clone(&environment.faults),
            is_strict: environment.is_strict,
            begun: Arc::default(),
        };
        let service = router::router(app.clone()).layer(from_fn_with_state(observer, observe));
        let control = control::routes().into_router().with_state(app.clone());
        Routers { generation: *generation, service, control }
    }
}

/// Returns whether a browser opens the root of the control plane.
fn opens_first_page(head: &Parts) -> bool {
    head.method == Method::GET
        && head.uri.path().trim_end_matches('/') == ROOT.trim_end_matches('/')
        && prefers_html(&head.headers)
}

/// Requires a request that a program of this machine sent. It names a loopback host, so it is not a page of another name that
/// resolves to this address, and it has no `Origin`, so it is not the script or the form of a page.
///
/// # Errors
/// 403 for any other request.
fn require_program(head: &Parts) -> Result<()> {
    let client = Client::of(head, &TrustedProxies::default());
    let is_local = Host::parse(client.host.host()).is_ok_and(|host| is_loopback(&host));
    if is_local && !head.headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let detail = "The control plane of steward test answers programs of this machine only.";
    Err(Error::denied(detail))
}

/// A body, each piece of which is seen on its way. What sees it is dropped with the body.
struct Passing {
    body: Body,
    see: Box<dyn FnMut(&Bytes) + Send>,
}

impl Passing {
    fn of(body: Body, see: impl FnMut(&Bytes) + Send + 'static) -> Body {
        Body::new(Self { body, see: Box::new(see) })
    }
}

impl HttpBody for Passing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            (self.see)(data);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
