//! The route table. Each entry has the spellings of a path, its access rules, its OpenAPI entry and its row in the
//! authorization test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, ALLOW, LOCATION};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::app::App;
use crate::auth::{PathTarget, Requirements};
use crate::base::error::Error;

use super::handler::{AnyHandler, Handler};
use super::in_process::AccessProbe;
use super::path::{ENVIRONMENTS, PROJECTS};
use super::request_headers::{describe_dry_run, if_none_match, not_modified_if_known};
use super::route_guard::{ResponseExtras, RouteGuard, authenticate, check_access};

pub use super::route_spec::{
    Cardinality, PageAccess, PageSpec, PathParameter, ResourceInfo, RouteSpec,
};

/// The routes of the service, as the resources and the console declare them.
#[derive(Default)]
pub struct Routes {
    specs: Vec<RouteSpec>,
    pages: Vec<PageSpec>,
    resource: ResourceInfo,
    paths: BTreeMap<&'static str, MethodRouter<App>>,
    table: RouteTable,
    /// The page to which `/` leads browsers.
    start_page: Option<&'static str>,
}

/// The whole route table, for handlers that read it. It is complete once the router is built.
#[derive(Clone, Default)]
pub struct RouteTable(Arc<OnceLock<Vec<RouteSpec>>>);

impl RouteTable {
    /// Returns every operation in the order of declaration.
    pub fn specs(&self) -> &[RouteSpec] {
        self.0.get().map(Vec::as_slice).unwrap_or_default()
    }
}

macro_rules! methods {
    ($($name:ident $method:ident $status:literal,)*) => {$(
        /// Adds an operation of this method.
        pub fn $name<T>(
            &mut self,
            path: &'static str,
            operation: &'static str,
            needs: Requirements,
            handler: impl Handler<T>,
        ) -> &mut RouteSpec {
            let method = (Method::$method, MethodFilter::$method, $status);
            self.add(method, (path, operation), needs, AnyHandler::new::<T, _>(handler))
        }
    )*};
}

impl Routes {
    methods! {
        get GET 200,
        post POST 201,
        put PUT 200,
        patch PATCH 200,
        delete DELETE 204,
    }

    fn add(
        &mut self,
        (method, filter, status): (Method, MethodFilter, u16),
        (path, operation): (&'static str, &'static str),
        needs: Requirements,
        handler: AnyHandler,
    ) -> &mut RouteSpec {
        let row = RouteSpec::new((method, path), operation, self.resource, needs, status);
        let guard = RouteGuard {
            requirements: row.requirements,
            target: PathTarget::of(row.path),
            idempotent: row.method == Method::POST,
        };
        let guarded = move |State(app): State<App>, request: Request| {
            let handler = handler.clone();
            async move {
                let known = if_none_match(request.method(), request.headers());
                let mut extras = ResponseExtras::default();
                let mut response = match check_access(&app, guard, request, &mut extras).await {
                    Ok(request) if request.extensions().get::<AccessProbe>().is_some() => {
                        StatusCode::NO_CONTENT.into_response()
                    }
                    Ok(request) => handler.respond(app, request).await,
                    Err(error) => error.into_response(),
                };
                if let Some(dry_run) = extras.dry_run.take() {
                    response = Box::pin(describe_dry_run(dry_run, response)).await;
                }
                extras.apply(&mut response);
                match known {
                    Some(known) => not_modified_if_known(response, &known),
                    None => response,
                }
            }
        };
        let methods = self.paths.remove(row.path).unwrap_or_default().merge(on(filter, guarded));
        self.paths.insert(row.path, methods);
        self.specs.push_mut(row)
    }

    /// Adds a page or an action of the console. The handler itself checks the session.
    pub fn page<H, T>(&mut self, spec: PageSpec, filter: MethodFilter, handler: H)
    where
        H: axum::handler::Handler<T, App>,
        T: 'static,
    {
        let methods = self.paths.remove(spec.path).unwrap_or_default();
        self.paths.insert(spec.path, methods.merge(on(filter, handler)));
        self.pages.push(spec);
    }

    /// Leads browsers from `/` to this page. Other clients get 404 there, as for every unknown path.
    pub fn lead_browsers_to(&mut self, page: &'static str) {
        self.start_page = Some(page);
    }

    /// Sets the resource of the operations that follow, as the document describes it.
    pub fn resource(&mut self, name: &'static str, description: &'static str) {
        self.resource = ResourceInfo { name, description };
    }

    /// Returns every operation of the API in the order of declaration.
    pub fn specs(&self) -> &[RouteSpec] {
        &self.specs
    }

    /// Declares that no operation of this table can be run dry.
    pub fn without_dry_runs(&mut self) {
        self.specs.iter_mut().for_each(|row| row.no_dry_run = true);
    }

    /// Returns every page and action of the console in the order of declaration.
    pub fn pages(&self) -> &[PageSpec] {
        &self.pages
    }

    /// Returns the methods with their paths, of the API and of the console.
    pub fn methods(&self) -> impl Iterator<Item = (&Method, &'static str)> {
        let operations = self.specs.iter().map(|row| (&row.method, row.path));
        operations.chain(self.pages.iter().map(|row| (&row.method, row.path)))
    }

    /// Returns the route table, for a handler.
    pub fn table(&self) -> RouteTable {
        self.table.clone()
    }

    /// Builds the router. Every spelling of a path is served. Other methods get 405 with `Allow`, other paths get
    /// 404.
    pub fn into_router(self) -> Router<App> {
        let mut router = Router::new();
        let Self { specs, pages, paths, table, start_page, .. } = self;
        for (path, methods) in paths {
            let served = specs.iter().filter(|row| row.path == path && row.status != 405);
            let pages: Vec<_> = pages.iter().filter(|page| page.path == path).collect();
            let methods_of_pages = pages.iter().map(|page| &page.method);
            let allow = allow_header(served.map(|row| &row.method).chain(methods_of_pages));
            let of_page = pages.first().map(|page| page.other_method);
            let target = PathTarget::of(path);
            let public = specs.iter().filter(|row| row.path == path).all(RouteSpec::is_public);
            let requirements =
                if public { Requirements::public("public") } else { Requirements::any_key() };
            let guard = RouteGuard { requirements, target, idempotent: false };
            let methods = methods.fallback(move |State(app): State<App>, request: Request| {
                let allow = allow.clone();
                async move {
                    let mut response = match of_page {
                        Some(answer) => answer(&app, request),
                        None => other_method(app, request, guard).await,
                    };
                    response.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
                    response
                }
            });
            for spelling in spellings(path) {
                router = router.route(&spelling, methods.clone());
            }
        }
        table.0.get_or_init(|| specs);
        router.fallback(move |State(app): State<App>, request: Request| async move {
            no_endpoint(&app, &request, start_page)
        })
    }
}

/// Returns 404 for an unknown path, or leads a browser from `/` to the start page. If keys have rate limits, the request is
/// counted.
fn no_endpoint(app: &App, request: &Request, start_page: Option<&'static str>) -> Response {
    let mut extras = ResponseExtras::default();
    if app.rate_limiter().limits_keys()
        && let Err(error) = authenticate(app, request, app.store().snapshot(), &mut extras)
        && error.status() == 429
    {
        return error.into_response();
    }
    let mut response = match start_page.filter(|_| is_browser_at_the_root(request)) {
        Some(page) => (StatusCode::SEE_OTHER, [(LOCATION, page)]).into_response(),
        None => Error::not_found_as("API endpoint not found.").into_response(),
    };
    extras.apply(&mut response);
    response
}

/// Returns whether a browser opens `/`.
fn is_browser_at_the_root(request: &Request) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
        && request.uri().path() == "/"
        && prefers_html(request.headers())
}

/// Returns whether a client prefers HTML to JSON, as browsers do.
pub fn prefers_html(headers: &HeaderMap) -> bool {
    accepted_quality(headers, "text/html") > accepted_quality(headers, "application/json")
}

/// Returns the quality with which a client accepts a media type by its name; 0 if it does not name it.
fn accepted_quality(headers: &HeaderMap, wanted: &str) -> f32 {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let qualities = lines.flat_map(|line| line.split(',')).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_wanted = parts.next()?.eq_ignore_ascii_case(wanted);
        let quality = parts.find_map(|part| part.strip_prefix(['q', 'Q'])?.strip_prefix('='));
        is_wanted.then(|| quality.map_or(1.0, |text| text.parse::<f32>().unwrap_or(0.0)))
    });
    qualities.fold(0.0, f32::max)
}

/// Returns the spellings of a path: below [`ENVIRONMENTS`] as below [`PROJECTS`], with and without the trailing slash, and
/// with `%40` for `@`, because PostHog's clients encode each segment with `encodeURIComponent`. Parameters are decoded
/// when they are read.
pub(super) fn spellings(path: &str) -> BTreeSet<String> {
    let alias = path.strip_prefix(PROJECTS).map(|rest| format!("{ENVIRONMENTS}{rest}"));
    let roots = [path.to_owned()].into_iter().chain(alias);
    let plain = roots.flat_map(|path| [path.strip_suffix('/').unwrap_or(&path).to_owned(), path]);
    plain.flat_map(|path| [path.replace('@', "%40"), path]).collect()
}

/// Returns the operation that a method and a spelling of its path lead to.
pub fn find_operation<'s>(
    specs: &'s [RouteSpec],
    method: &Method,
    spelling: &str,
) -> Option<&'s RouteSpec> {
    let plain = spelling.replace("%40", "@");
    let path = match plain.strip_prefix(ENVIRONMENTS) {
        Some(rest) => format!("{PROJECTS}{rest}"),
        None => plain,
    };
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let path = path.trim_end_matches('/');
    specs.iter().find(|row| row.method == *method && row.path.trim_end_matches('/') == path)
}

fn allow_header<'m>(methods: impl Iterator<Item = &'m Method>) -> Option<HeaderValue> {
    let mut methods: Vec<&str> = methods.map(Method::as_str).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.push("OPTIONS");
    HeaderValue::try_from(methods.join(", ")).ok()
}

/// Answers OPTIONS without a key. Any other method that the path lacks gets 405, but only after the checks of the key
/// and of the path's organization or project. See `docs/spec/authentication.md`.
async fn other_method(app: App, request: Request, guard: RouteGuard) -> Response {
    let (method, mut extras) = (request.method().clone(), ResponseExtras::default());
    let mut response = if method == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        match check_access(&app, guard, request, &mut extras).await {
            Ok(_) => Error::method_not_allowed(method.as_str()).into_response(),
            Err(error) => error.into_response(),
        }
    };
    extras.apply(&mut response);
    response
}
