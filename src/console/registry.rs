//! Adds pages to the route table. Each page is wrapped by the checks that all pages share.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;

use crate::error::{Error, Result};
use crate::http::client::Client;
use crate::http::routes::{PageAccess, PageSpec, Routes};
use crate::state::App;

use super::api::ApiRouter;
use super::as_command::AsCommand;
use super::entrance::Entrance;
use super::failure::Failure;
use super::headers;
use super::origin;
use super::visit::{SignedIn, Visit};

/// The response of a page.
pub(super) type PageResult = Result<Response, Failure>;

/// A page of any type, with what it is given. What is around a page is compiled once, not for each of them.
type ErasedPage<V> =
    Arc<dyn Fn(V) -> Pin<Box<dyn Future<Output = PageResult> + Send>> + Send + Sync>;

fn erase<V, F, R>(page: F) -> ErasedPage<V>
where
    F: Fn(V) -> R + Send + Sync + 'static,
    R: Future<Output = PageResult> + Send + 'static,
{
    Arc::new(move |visit| Box::pin(page(visit)))
}

/// The pages of the console, to be added to the route table.
pub(super) struct Pages<'r> {
    routes: &'r mut Routes,
    api: ApiRouter,
}

impl<'r> Pages<'r> {
    pub(super) fn new(routes: &'r mut Routes, api: ApiRouter) -> Self {
        Self { routes, api }
    }

    /// Adds a page that needs no session.
    pub(super) fn public<F, R>(&mut self, method: Method, path: &'static str, page: F)
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = PageResult> + Send + 'static,
    {
        self.add(method, path, PageAccess::Public, erase(page));
    }

    /// Adds a page that needs a session. Without one, a GET leads to the sign-in page.
    pub(super) fn signed_in<F, R>(&mut self, method: Method, path: &'static str, page: F)
    where
        F: Fn(SignedIn) -> R + Send + Sync + 'static,
        R: Future<Output = PageResult> + Send + 'static,
    {
        self.with_session(method, path, PageAccess::Session, erase(page));
    }

    /// Adds a page that needs an operator's session.
    pub(super) fn operator<F, R>(&mut self, method: Method, path: &'static str, page: F)
    where
        F: Fn(SignedIn) -> R + Send + Sync + 'static,
        R: Future<Output = PageResult> + Send + 'static,
    {
        self.with_session(method, path, PageAccess::Operator, erase(page));
    }

    fn with_session(
        &mut self,
        method: Method,
        path: &'static str,
        access: PageAccess,
        page: ErasedPage<SignedIn>,
    ) {
        let api = self.api.clone();
        let with_session = erase(move |visit: Visit| {
            let (page, api) = (Arc::clone(&page), api.clone());
            async move {
                let entrance = Entrance::of(&visit);
                let signed_in = match SignedIn::of(visit, &api) {
                    Ok(signed_in) => signed_in,
                    Err(error) if error.status() == 401 => return Ok(entrance.response()?),
                    Err(error) => return Ok(entrance.keep_form(&error)?),
                };
                if access == PageAccess::Operator && !signed_in.session.is_operator() {
                    return Err(Error::denied(OPERATOR_ONLY).into());
                }
                let as_command = AsCommand::of(&signed_in);
                let client = signed_in.api.client();
                let has_written = signed_in.api.has_written();
                let response = page(signed_in).await;
                let response = match as_command {
                    Some(asked) => asked.replace(response),
                    None => response,
                };
                let response = match response {
                    Err(failure) if has_written.load(Ordering::Relaxed) => {
                        Err(failure.after_change())
                    }
                    // The session ended while the page was built.
                    Err(failure) if failure.status() == 401 => Ok(entrance.response()?),
                    // A later attempt may succeed.
                    Err(failure) if matches!(failure.status(), 429 | 503) => {
                        entrance.keep_form(failure.error()).map_err(Failure::from)
                    }
                    response => response,
                };
                let mut response = response.unwrap_or_else(IntoResponse::into_response);
                client.attach_to(&mut response);
                Ok(response)
            }
        });
        self.add(method, path, access, with_session);
    }

    fn add(
        &mut self,
        method: Method,
        path: &'static str,
        access: PageAccess,
        page: ErasedPage<Visit>,
    ) {
        let filter = if method == Method::POST { MethodFilter::POST } else { MethodFilter::GET };
        let handler = move |State(app): State<App>, request: Request| {
            let page = Arc::clone(&page);
            async move {
                let response = match Visit::admit(app, request, access).await {
                    Ok(visit) => page(visit).await,
                    Err(error) => Err(error.into()),
                };
                let mut response = response.unwrap_or_else(IntoResponse::into_response);
                headers::add(&mut response);
                response
            }
        };
        self.routes.page(PageSpec { method, path, access, other_method }, filter, handler);
    }
}

/// Answers a method that a page lacks.
fn other_method(app: &App, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let client = Client::of(&head, app.proxies());
    let response = match origin::require_own_host(&client, app.config()) {
        Ok(()) if head.method == Method::OPTIONS => Ok(StatusCode::NO_CONTENT.into_response()),
        Ok(()) => Err(Error::method_not_allowed(head.method.as_str())),
        Err(error) => Err(error),
    };
    let mut response = response.unwrap_or_else(|error| Failure::from(error).into_response());
    headers::add(&mut response);
    response
}

/// Why a page for the operator is refused.
const OPERATOR_ONLY: &str = "This page is open to the sessions of links that the command steward console --operator prints.";
