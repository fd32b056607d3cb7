//! The one route table. A line of it is a path's spellings, its gate, its OpenAPI entry and its row
//! in the authorization test.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::handler::Handler;
use axum::http::header::{ALLOW, AUTHORIZATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::access::gate::{Granted, authorize};
use crate::access::matches::Match;
use crate::access::{Admitted, Ask, Changing, Needs, PathIds, Place, Target, Visitor};
use crate::error::{Error, Result};
use crate::fair::Consumer;
use crate::idempotency::Sent;
use crate::state::App;
use crate::store::Snapshot;

use super::around::Passage;
use super::body::KEYLESS_MAX_BYTES;
use super::budget::Payer;
use super::client;
use super::delivery::{Changed, is_large};
use super::limits::Standing;
use super::path::parameter;
use super::request_memory::RequestMemory;
use super::{conditional, once};

pub use super::row::{Noun, Row};

/// The routes of the service, as the nouns declare them.
#[derive(Default)]
pub struct Routes {
    rows: Vec<Row>,
    noun: Noun,
    paths: BTreeMap<&'static str, MethodRouter<App>>,
}

macro_rules! methods {
    ($($name:ident $method:ident $status:literal,)*) => {$(
        /// Adds an operation of this method.
        pub fn $name<H, T>(
            &mut self,
            path: &'static str,
            operation: &'static str,
            needs: Needs,
            handler: H,
        ) -> &mut Row
        where
            H: Handler<T, App>,
            T: 'static,
        {
            self.add(Method::$method, MethodFilter::$method, $status, path, operation, needs, handler)
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

    #[expect(clippy::too_many_arguments, reason = "private, and called from one macro")]
    fn add<H, T>(
        &mut self,
        method: Method,
        filter: MethodFilter,
        status: u16,
        path: &'static str,
        operation: &'static str,
        needs: Needs,
        handler: H,
    ) -> &mut Row
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let door = Door { needs, target: Target::of(path), once: method == Method::POST };
        let guarded = move |State(app): State<App>, request: Request| {
            let handler = handler.clone();
            async move {
                let known = conditional::known(request.method(), request.headers());
                let mut noted = Noted::default();
                let mut response = match enter(&app, door, request, &mut noted).await {
                    Ok(request) => handler.call(request, app).await,
                    Err(error) => error.into_response(),
                };
                noted.tell(&mut response);
                match known {
                    Some(known) => conditional::unless_known(response, &known),
                    None => response,
                }
            }
        };
        let methods = self.paths.remove(path).unwrap_or_default().merge(on(filter, guarded));
        self.paths.insert(path, methods);
        let row = Row::new((method, path), operation, self.noun, needs, status);
        self.rows.push_mut(row)
    }

    /// Says what the operations that follow are about.
    pub fn noun(&mut self, name: &'static str, about: &'static str) {
        self.noun = Noun { name, about };
    }

    /// Every operation, in the order of declaration.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The router over all of them: each path in all its spellings, other methods answered with 405 and
    /// `Allow`, other paths with 404.
    pub fn into_router(self) -> Router<App> {
        let mut router = Router::new();
        for (path, methods) in self.paths {
            let allow = allow(self.rows.iter().filter(|row| row.path == path && row.status != 405));
            let target = Target::of(path);
            let public = self.rows.iter().filter(|row| row.path == path).all(Row::is_public);
            let needs = if public { Needs::nothing("public") } else { Needs::any_key() };
            let door = Door { needs, target, once: false };
            let methods = methods.fallback(move |State(app): State<App>, request: Request| {
                other_method(app, request, door, allow.clone())
            });
            for spelling in spellings(path) {
                router = router.route(&spelling, methods.clone());
            }
        }
        router.fallback(no_endpoint)
    }
}

/// Answers a path that no route has with 404. Where keys have limits, the request is counted as on any route.
async fn no_endpoint(State(app): State<App>, request: Request) -> Response {
    let mut noted = Noted::default();
    if app.limits().limits_keys() {
        let (parts, _) = request.into_parts();
        if let Err(error) = identify(&app, &parts, &mut noted).await
            && error.status() == 429
        {
            return error.into_response();
        }
    }
    let mut response = Error::not_found_as("API endpoint not found.").into_response();
    noted.tell(&mut response);
    response
}

/// How a path is written: with and without its trailing slash, and an `@` also as PostHog's clients send it, which
/// put each part through `encodeURIComponent`. What stands for a parameter is decoded where it is read.
pub(super) fn spellings(path: &str) -> BTreeSet<String> {
    let plain = [path, path.strip_suffix('/').unwrap_or(path)].map(str::to_owned);
    let encoded = plain.clone().map(|path| path.replace('@', "%40"));
    plain.into_iter().chain(encoded).collect()
}

fn allow<'r>(rows: impl Iterator<Item = &'r Row>) -> String {
    let mut methods: Vec<&str> = rows.map(|row| row.method.as_str()).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.push("OPTIONS");
    methods.join(", ")
}

/// OPTIONS is open to everybody; any other method that the path lacks is refused only after the caller's
/// key, and its way into the path's organization or project, held (decisions §1).
async fn other_method(app: App, request: Request, door: Door, allow: String) -> Response {
    let (method, mut noted) = (request.method().clone(), Noted::default());
    let mut response = if method == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        match enter(&app, door, request, &mut noted).await {
            Ok(_) => Error::method_not_allowed(method.as_str()).into_response(),
            Err(error) => error.into_response(),
        }
    };
    noted.tell(&mut response);
    if let Ok(allow) = HeaderValue::try_from(allow) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

/// What is noted of a request on its way in, and told whatever came of it.
#[derive(Default)]
struct Noted {
    /// Where its key, or its address where it has no right key, stands with the limits.
    standing: Option<Standing>,
    passage: Option<Passage>,
    /// The tenant that a request with a key works for.
    tenant: Option<Consumer>,
    /// Its memory; none for a request without a body that changes nothing.
    memory: Option<RequestMemory>,
    /// Whether it may change something.
    is_unsafe: bool,
}

impl Noted {
    /// Allows the request a body of at most `max_bytes`, and memory for it.
    fn allow_body(&mut self, app: &App, max_bytes: usize, request: &mut Request) -> Result<()> {
        self.is_unsafe = !request.method().is_safe();
        if RequestMemory::is_needed(request) {
            let client = client::address(request.extensions(), request.headers(), app.proxies());
            let payer = self.tenant.map_or(Payer::Visitor, Payer::Tenant);
            let charge = app.transfer_memory().take(client, payer, 0)?;
            let memory = RequestMemory::new(max_bytes, charge);
            request.extensions_mut().insert(memory.clone());
            self.memory = Some(memory);
        }
        Ok(())
    }

    fn tell(self, response: &mut Response) {
        if is_large(response) {
            let memory = self.memory.filter(|_| self.is_unsafe && response.status().is_success());
            let changed = memory.map(|memory| Changed { reserved: memory.into_answer() });
            let extensions = response.extensions_mut();
            changed.map(|changed| extensions.insert(changed));
            self.tenant.map(|tenant| extensions.insert(Payer::Tenant(tenant)));
        }
        // A 401 is the same whatever is wrong with the key, so it does not tell where the key stands.
        if let Some(standing) = self.standing
            && response.status() != StatusCode::UNAUTHORIZED
        {
            standing.write(response.headers_mut());
        }
        if let Some(passage) = self.passage {
            passage.note(response);
        }
    }
}

/// What stands before a handler.
#[derive(Clone, Copy)]
struct Door {
    needs: Needs,
    target: Target,
    /// Whether what comes with an `Idempotency-Key` is done once behind it.
    once: bool,
}

/// Whom the gate let in; left with the request for the handler to take.
#[derive(Clone)]
struct Entry {
    granted: Arc<Granted>,
    ask: Arc<Ask>,
    tx: Arc<Snapshot>,
}

/// Lets a request in; answers it with what its handler takes, and notes who comes, and where the key stands with the
/// limits, as soon as that is known. A public route that looks at no key is counted by nothing here.
async fn enter(
    app: &App,
    Door { needs, target, once }: Door,
    mut request: Request,
    noted: &mut Noted,
) -> Result<Request> {
    if needs.public.is_some() && !needs.optional {
        noted.allow_body(app, KEYLESS_MAX_BYTES, &mut request)?;
        return Ok(request);
    }
    let once = once && once::is_asked(&request);
    let (parts, body) = request.into_parts();
    let Some((presented, mut tx)) = identify(app, &parts, noted).await? else {
        if !needs.optional {
            return Err(Error::not_authenticated());
        }
        let mut request = Request::from_parts(parts, body);
        noted.allow_body(app, KEYLESS_MAX_BYTES, &mut request)?;
        return if once { once::note(app, request).await } else { Ok(request) };
    };
    let ids = PathIds {
        organization: parameter(&parts, "organization_id").map(Into::into),
        project: parameter(&parts, "project_id").map(Into::into),
    };
    let now = app.now();
    let ask = Ask { presented, needs, target, ids };
    let granted = authorize(&*tx, &ask, now)?;
    if let Some(passage) = &mut noted.passage {
        passage.organization = granted.member.as_ref().map(|member| member.organization);
    }
    app.record_use(&ask.presented, now);
    noted.tenant = Some(granted.consumer());
    let mut request = Request::from_parts(parts, body);
    noted.allow_body(app, app.config().max_body, &mut request)?;
    if once {
        // No snapshot is held while a slow body arrives.
        drop(tx);
        request = once::note(app, request).await?;
        tx = app.store().snapshot()?;
    }
    let entry = Entry { granted: Arc::new(granted), ask: Arc::new(ask), tx };
    request.extensions_mut().insert(entry);
    Ok(request)
}

/// The key of a request, and the snapshot in which it was found right; none if no key was sent. Counts the request by
/// its key, or by its address if the key is missing or wrong: whatever it is refused for afterwards, it was counted.
///
/// # Errors
/// 401 for a key that is wrong; 429 for one request too many; 503 while the data file is closed.
async fn identify(
    app: &App,
    parts: &Parts,
    noted: &mut Noted,
) -> Result<Option<(Match, Arc<Snapshot>)>> {
    let count_address = |noted: &mut Noted| -> Result<()> {
        let address = || client::address(&parts.extensions, &parts.headers, app.proxies());
        noted.standing = app.limits().count_keyless(address)?;
        Ok(())
    };
    let sent =
        parts.headers.get(AUTHORIZATION).map(|sent| String::from_utf8_lossy(sent.as_bytes()));
    let Some(text) = sent.as_deref().and_then(bearer) else {
        count_address(noted)?;
        return Ok(None);
    };
    let tx = app.store().snapshot()?;
    let presented = match app.matches().check(&tx, text).await {
        Ok(presented) => presented,
        Err(error) => {
            if error.status() == 401 {
                count_address(noted)?;
            }
            return Err(error);
        }
    };
    noted.passage = Some(Passage::of(presented.key()));
    noted.standing = app.limits().count_key(presented.key())?;
    Ok(Some((presented, tx)))
}

/// The key of `Authorization: Bearer <key>`; any other form is no key at all (facts-crosscutting §a).
fn bearer(header: &str) -> Option<&str> {
    let rest = header.strip_prefix("Bearer")?;
    let token = rest.trim();
    (rest.starts_with([' ', '\t']) && token.len() >= 2 && !token.starts_with("pha_"))
        .then_some(token)
}

impl<P: Place> FromRequestParts<App> for Admitted<P> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        let Entry { granted, tx, .. } = Entry::take(parts)?;
        let (place, consumer) = (P::of(&granted)?, granted.consumer());
        Ok(Self { caller: granted.caller.clone(), place, consumer, tx })
    }
}

impl<P: Place> FromRequestParts<App> for Changing<P> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self> {
        let Entry { granted, ask, .. } = Entry::take(parts)?;
        P::of(&granted)?;
        let expected = conditional::expected(&parts.headers);
        let (once, consumer) = (parts.extensions.remove(), granted.consumer());
        let reserve = RequestMemory::reserving(parts.extensions.get().cloned());
        Ok(Self { ask, expected, once, consumer, reserve, place: PhantomData })
    }
}

impl FromRequestParts<App> for Visitor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        let entry = parts.extensions.remove::<Entry>();
        let address = || client::address(&parts.extensions, &parts.headers, app.proxies());
        let consumer = entry
            .as_ref()
            .map_or_else(|| Consumer::address(address()), |entry| entry.granted.consumer());
        let caller = entry.as_ref().map(|entry| entry.granted.caller.clone());
        let sent = parts.extensions.remove::<Sent>();
        let once = sent.map(|sent| match &caller {
            Some(caller) => sent.meaning(caller.user.uuid.0.as_bytes()),
            None => sent,
        });
        Ok(Self { ask: entry.map(|entry| entry.ask), caller, once, consumer })
    }
}

impl Entry {
    fn take(parts: &mut Parts) -> Result<Self> {
        let entry = parts.extensions.remove();
        entry.ok_or_else(|| Error::internal("a public route has no caller"))
    }
}
