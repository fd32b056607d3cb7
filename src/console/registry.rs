//! Adds pages to the route table. Each page is wrapped by the checks that all pages share. For a form that asks for its
//! commands, the wrapper replaces the response of the page.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::http::client::Client;
use crate::http::form::Form;
use crate::http::routes::{PageAccess, PageSpec, RouteTable, Routes};

use super::api::{ApiRouter, Recorder};
use super::assets::icon;
use super::failure::{Entrance, Failure};
use super::layout::{Command, card};
use super::urls::Next;
use super::visit::{SHOW, SignedIn, Visit};
use super::{headers, origin};

/// The response of a page.
pub(crate) type PageResult = Result<Response, Failure>;

/// A response to come.
type PageFuture = Pin<Box<dyn Future<Output = PageResult> + Send>>;

/// A function that answers a request to a page. What is around a page is compiled once for all of them.
pub(crate) trait Page<V>: Send + Sync {
    fn answer(&self, visit: V) -> PageFuture;
}

impl<V, F, R> Page<V> for F
where
    F: Fn(V) -> R + Send + Sync,
    R: Future<Output = PageResult> + Send + 'static,
{
    fn answer(&self, visit: V) -> PageFuture {
        Box::pin(self(visit))
    }
}

/// A function that answers a request to a page, and shows feedback on its forms and buttons.
pub(super) trait PageWithFeedback<B>: Send + Sync {
    fn show(&self, request: SignedIn, feedback: B) -> PageFuture;
}

impl<B, F, R> PageWithFeedback<B> for F
where
    F: Fn(SignedIn, B) -> R + Send + Sync,
    R: Future<Output = PageResult> + Send + 'static,
{
    fn show(&self, request: SignedIn, feedback: B) -> PageFuture {
        Box::pin(self(request, feedback))
    }
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
    pub(super) fn public(
        &mut self,
        method: Method,
        path: &'static str,
        page: &'static dyn Page<Visit>,
    ) {
        public_page(self.routes, method, path, page);
    }

    /// Adds a page that needs a session. Without one, it leads to the sign-in page.
    pub(super) fn get(&mut self, path: &'static str, page: &'static dyn Page<SignedIn>) {
        let page = move |request| page.answer(request);
        self.with_session(Method::GET, path, PageAccess::Session, Arc::new(page));
    }

    /// Adds an action that needs a session. Without one, a page keeps the form.
    pub(super) fn post(&mut self, path: &'static str, action: &'static dyn Page<SignedIn>) {
        let action = move |request| action.answer(request);
        self.with_session(Method::POST, path, PageAccess::Session, Arc::new(action));
    }

    /// Adds a page with one form or one question, and its action. One function answers both.
    pub(super) fn form(&mut self, path: &'static str, page: &'static dyn Page<SignedIn>) {
        self.get(path, page);
        self.post(path, page);
    }

    /// Adds a page that shows feedback on its forms and buttons, and their action. A page that is only opened has no feedback.
    pub(super) fn page<B: Default + 'static>(
        &mut self,
        path: &'static str,
        page: &'static dyn PageWithFeedback<B>,
        action: &'static dyn Page<SignedIn>,
    ) {
        let open = move |request| page.show(request, B::default());
        self.with_session(Method::GET, path, PageAccess::Session, Arc::new(open));
        self.post(path, action);
    }

    /// Adds a page that needs an operator's session.
    pub(super) fn operator(&mut self, path: &'static str, page: &'static dyn Page<SignedIn>) {
        let page = move |request| page.answer(request);
        self.with_session(Method::GET, path, PageAccess::Operator, Arc::new(page));
    }

    fn with_session(
        &mut self,
        method: Method,
        path: &'static str,
        access: PageAccess,
        page: Arc<dyn Page<SignedIn>>,
    ) {
        let api = self.api.clone();
        let with_session = move |visit: Visit| {
            let (page, api) = (Arc::clone(&page), api.clone());
            async move {
                let entrance = Entrance::of(&visit);
                let signed_in = match SignedIn::of(visit, &api) {
                    Ok(signed_in) => signed_in,
                    Err(error) if error.status() == 401 => return Ok(entrance.response()?),
                    Err(error) => return Ok(entrance.keep_form(&error)?),
                };
                if access == PageAccess::Operator && !signed_in.session.is_operator {
                    return Err(Error::denied(OPERATOR_ONLY).into());
                }
                let as_command = AsCommand::of(&signed_in);
                let client = signed_in.api.client.clone();
                let has_written = Arc::clone(&signed_in.api.has_written);
                let response = page.answer(signed_in).await;
                let response = match as_command {
                    Some(asked) => asked.replace(response, &entrance),
                    None => response,
                };
                let response = match response {
                    Err(failure) if has_written.load(Ordering::Relaxed) => {
                        Err(Failure { has_changed: true, ..failure })
                    }
                    // The session ended while the page was built.
                    Err(failure) if failure.error.status() == 401 => Ok(entrance.response()?),
                    // A later attempt may succeed.
                    Err(failure) if matches!(failure.error.status(), 429 | 503) => {
                        entrance.keep_form(&failure.error).map_err(Failure::from)
                    }
                    response => response,
                };
                let mut response = response.unwrap_or_else(IntoResponse::into_response);
                client.attach_to(&mut response);
                Ok::<_, Failure>(response)
            }
        };
        add(self.routes, (method, path), access, Arc::new(with_session));
    }
}

/// Adds a page that needs no session.
pub(crate) fn public_page(
    routes: &mut Routes,
    method: Method,
    path: &'static str,
    page: &'static dyn Page<Visit>,
) {
    let page = Arc::new(move |visit| page.answer(visit));
    add(routes, (method, path), PageAccess::Public, page);
}

fn add(
    routes: &mut Routes,
    (method, path): (Method, &'static str),
    access: PageAccess,
    page: Arc<dyn Page<Visit>>,
) {
    let filter = if method == Method::POST { MethodFilter::POST } else { MethodFilter::GET };
    let handler = move |State(app): State<App>, request: Request| {
        let page = Arc::clone(&page);
        async move {
            let response = match Visit::admit(app, request, access).await {
                Ok(visit) => page.answer(visit).await,
                Err(error) => Err(error.into()),
            };
            let mut response = response.unwrap_or_else(IntoResponse::into_response);
            headers::add(&mut response);
            response
        }
    };
    routes.page(PageSpec { method, path, access, other_method }, filter, handler);
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

/// A form that asks for its command.
struct AsCommand {
    recorder: Recorder,
    base_url: String,
    table: RouteTable,
}

impl AsCommand {
    /// Returns `None` for a request that does not ask for a command.
    fn of(request: &SignedIn) -> Option<Self> {
        Some(Self {
            recorder: request.api.recorder.clone()?,
            base_url: request.visit.base_url().into_owned(),
            table: request.api.table.clone(),
        })
    }

    /// Replaces the response of the page by the commands of its requests. The response remains if the form has to be
    /// corrected first, or if it shows something else.
    ///
    /// # Errors
    /// The error of the page.
    fn replace(&self, response: PageResult, entrance: &Entrance) -> PageResult {
        let writes = self.recorder.writes();
        let is_done = match &response {
            Ok(page) => page.status() == StatusCode::SEE_OTHER,
            Err(failure) => failure.instead.is_some(),
        };
        if writes.is_empty() && !is_done {
            return response;
        }
        let commands = writes.iter().map(|write| Command::of(&self.base_url, &self.table, write));
        let fields = entrance.form.iter().flat_map(Form::fields).filter(|(name, _)| *name != SHOW);
        let page = AsCommandPage {
            commands: commands.collect::<Result<_>>()?,
            action: &entrance.url,
            fields: fields.collect(),
        };
        Ok(card("As a command", &page)?.into_response())
    }
}

#[derive(Template)]
#[template(path = "console/as_command.html")]
struct AsCommandPage<'f> {
    /// One for each request. None if the form would send no request.
    commands: Vec<Command>,
    /// Where the browser sends the form.
    action: &'f Next,
    fields: Vec<(&'f str, &'f str)>,
}
