//! The checks before a handler: the key, its rate limit, and its access to what the path names. Extractors give handlers
//! the result.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::response::Response;

use crate::app::rate_limit::RateLimitStatus;
use crate::app::{App, ReadAccess, WriteAccess};
use crate::auth::{Authorization, Credential, PathTarget, PublicAccess, Requirements, Tenant};
use crate::base::error::{Error, Result};
use crate::exchange::dry_run::DryRun;
use crate::exchange::idempotency::IdempotencyRequest;
use crate::fair::fair_queue::Consumer;
use crate::fair::memory_budget::{Payer, RequestMemory};
use crate::resources::sessions::VerifiedSession;
use crate::store::Snapshot;

use super::body::MAX_BODY_WITHOUT_KEY;
use super::client;
use super::delivery::is_large;
use super::extract::{Extract, ReceivedRequest};
use super::in_process::AccessProbe;
use super::path::parameter_of;
use super::request_headers::{
    attach_dry_run, attach_idempotency_key, has_idempotency_key, if_match,
};
use super::request_log::LogContext;
use super::response::add_rate_limit_headers;

/// Facts about a request that are added to its response, even to an error.
#[derive(Default)]
pub(super) struct ResponseExtras {
    /// The rate limit state of the key, or of the address without a valid key.
    rate_limit: Option<RateLimitStatus>,
    log_context: Option<LogContext>,
    /// The tenant of a request with a key.
    consumer: Option<Consumer>,
    /// The request's memory. `None` for a read without a body.
    memory: Option<RequestMemory>,
    /// Whether the request may write.
    is_unsafe: bool,
    /// Set if the request asks for a dry run.
    pub(super) dry_run: Option<DryRun>,
}

impl ResponseExtras {
    /// Attaches what the handler of an authorized request extracts besides its access: its dry run, and memory for a
    /// body of at most `max_bytes`.
    fn attach_to(&mut self, app: &App, max_bytes: usize, request: &mut Request) -> Result<()> {
        self.dry_run = attach_dry_run(request)?;
        self.is_unsafe = !request.method().is_safe();
        if self.is_unsafe || request.body().size_hint().upper() != Some(0) {
            let client = client::address(request.extensions(), request.headers(), app.proxies());
            let payer = Payer { client, tenant: self.consumer };
            let memory = app.transfer_memory().for_request(payer, max_bytes);
            request.extensions_mut().insert(memory.clone());
            self.memory = Some(memory);
        }
        Ok(())
    }

    /// Adds them to the response.
    pub(super) fn apply(self, response: &mut Response) {
        if is_large(response) {
            let memory = self.memory.filter(|_| self.is_unsafe && response.status().is_success());
            let extensions = response.extensions_mut();
            memory.map(|memory| extensions.insert(memory));
            self.consumer.map(|tenant| extensions.insert(tenant));
        }
        // A 401 reveals nothing about the key, so it must not show the key's rate limit.
        if let Some(status) = self.rate_limit
            && response.status() != StatusCode::UNAUTHORIZED
        {
            add_rate_limit_headers(status, response.headers_mut());
        }
        if let Some(log_context) = self.log_context {
            log_context.attach(response);
        }
    }
}

/// The checks before a handler.
#[derive(Clone, Copy)]
pub(super) struct RouteGuard {
    pub(super) requirements: Requirements,
    pub(super) target: PathTarget,
    /// Whether an `Idempotency-Key` applies to this route.
    pub(super) idempotent: bool,
}

/// The authorization of a request, attached for the extractors.
#[derive(Clone)]
struct AuthorizedRequest {
    auth: Arc<Authorization>,
    /// The snapshot of the check, until the body is read.
    snapshot: Option<Arc<Snapshot>>,
}

/// Drops the snapshot of the check: no snapshot is held while a slow body arrives.
pub(super) fn release_snapshot(parts: &mut Parts) {
    if let Some(authorized) = parts.extensions.get_mut::<AuthorizedRequest>() {
        authorized.snapshot = None;
    }
}

/// Authorizes a request and attaches what its handler extracts. Records the caller and the rate limit state in
/// `extras` as soon as they are known. A public route that ignores keys is not counted.
pub(super) async fn check_access(
    app: &App,
    RouteGuard { requirements, target, idempotent }: RouteGuard,
    mut request: Request,
    extras: &mut ResponseExtras,
) -> Result<Request> {
    if requirements.public.is_some() && !requirements.optional {
        extras.attach_to(app, MAX_BODY_WITHOUT_KEY, &mut request)?;
        return Ok(request);
    }
    let once = idempotent && has_idempotency_key(&request);
    // Without credentials, nothing is read yet.
    let fresh = if app.store().is_shared() && !sends_credential(&request) {
        app.store().snapshot()
    } else {
        app.store().fresh().await
    };
    let Some((credential, mut snapshot)) = authenticate(app, &request, fresh, extras)? else {
        if !requirements.optional {
            return Err(Error::not_authenticated());
        }
        extras.attach_to(app, MAX_BODY_WITHOUT_KEY, &mut request)?;
        return if once {
            attach_idempotency_key(app, request, extras.dry_run.is_some()).await
        } else {
            Ok(request)
        };
    };
    let now = app.now();
    let auth = {
        let ids = ["organization_id", "project_id"].map(|name| parameter_of(&request, name));
        let [organization, project] = ids.each_ref().map(Option::as_deref);
        let (route, ids) = ((requirements, target), (organization, project));
        app.authorizations().authorize(&*snapshot, credential, route, ids, now)?
    };
    let context = auth.context();
    if let Some(log_context) = &mut extras.log_context {
        log_context.organization = context.member.as_ref().map(|member| member.organization);
    }
    if let Some(recorded) = app.record_use(auth.credential(), now) {
        recorded.await;
    }
    extras.consumer = Some(context.consumer());
    extras.attach_to(app, app.config().max_body, &mut request)?;
    if once {
        // Do not hold a snapshot while a slow body arrives.
        drop(snapshot);
        request = attach_idempotency_key(app, request, extras.dry_run.is_some()).await?;
        snapshot = app.store().snapshot()?;
    }
    request.extensions_mut().insert(AuthorizedRequest { auth, snapshot: Some(snapshot) });
    Ok(request)
}

fn sends_credential(request: &Request) -> bool {
    request.headers().contains_key(AUTHORIZATION)
        || request.extensions().get::<VerifiedSession>().is_some()
}

/// Verifies the request's key in `snapshot`, or takes the session that the console attached. Returns it with that snapshot, or
/// `None` if no key was sent. Counts the request against its key or session, or against its address if
/// the key is missing or invalid, even if it fails later.
///
/// # Errors
/// 401 for an invalid key, 429 if the request exceeds a limit, 503 while the data file is closed.
pub(super) fn authenticate(
    app: &App,
    request: &Request,
    snapshot: Result<Arc<Snapshot>>,
    extras: &mut ResponseExtras,
) -> Result<Option<(Credential, Arc<Snapshot>)>> {
    let (headers, extensions) = (request.headers(), request.extensions());
    if let Some(session) = extensions.get::<VerifiedSession>() {
        extras.log_context = Some(LogContext::new(session.key, Some(session.id)));
        extras.rate_limit = match session.key {
            _ if extensions.get::<AccessProbe>().is_some() => None,
            Some(key) => app.rate_limiter().check_key(key)?,
            None => app.rate_limiter().check_session(session.id)?,
        };
        return Ok(Some((Credential::Session(session.clone()), snapshot?)));
    }
    let count_address = |extras: &mut ResponseExtras| -> Result<()> {
        let address = || client::address(extensions, headers, app.proxies());
        extras.rate_limit = app.rate_limiter().check_keyless(address)?;
        Ok(())
    };
    let sent = headers.get(AUTHORIZATION).map(|sent| String::from_utf8_lossy(sent.as_bytes()));
    let Some(text) = sent.as_deref().and_then(bearer_token) else {
        count_address(extras)?;
        return Ok(None);
    };
    let tx = snapshot?;
    let presented = match app.key_cache().verify(&tx, text) {
        Ok(presented) => presented,
        Err(error) => {
            if error.status() == 401 {
                count_address(extras)?;
            }
            return Err(error);
        }
    };
    extras.log_context = Some(LogContext::new(Some(presented.key()), None));
    extras.rate_limit = app.rate_limiter().check_key(presented.key())?;
    Ok(Some((Credential::Key(presented), tx)))
}

/// Returns the key of `Authorization: Bearer <key>`. PostHog treats every other form as a missing key.
pub fn bearer_token(header: &str) -> Option<&str> {
    let rest = header.strip_prefix("Bearer")?;
    let token = rest.trim();
    (rest.starts_with([' ', '\t']) && token.len() >= 2 && !token.starts_with("pha_"))
        .then_some(token)
}

impl<P: Tenant> Extract for ReadAccess<P> {
    fn extract(ReceivedRequest { app, parts, .. }: &mut ReceivedRequest) -> Result<Self> {
        let AuthorizedRequest { auth, snapshot } = AuthorizedRequest::take(parts)?;
        let snapshot = snapshot.ok_or_else(|| Error::internal("a read takes no body"))?;
        let context = auth.context();
        let (app, tenant, consumer) = (app.clone(), P::of(context)?, context.consumer());
        Ok(Self { app, caller: context.caller.clone(), tenant, consumer, snapshot })
    }
}

impl<P: Tenant> Extract for WriteAccess<P> {
    fn extract(ReceivedRequest { app, parts, .. }: &mut ReceivedRequest) -> Result<Self> {
        let AuthorizedRequest { auth, .. } = AuthorizedRequest::take(parts)?;
        P::of(auth.context())?;
        let (app, tenant) = (app.clone(), PhantomData);
        let if_match = if_match(&parts.headers);
        let (idempotency, consumer) = (parts.extensions.remove(), auth.context().consumer());
        let (memory, dry_run) = (parts.extensions.get().cloned(), parts.extensions.remove());
        Ok(Self { app, auth, if_match, idempotency, dry_run, consumer, memory, tenant })
    }
}

impl Extract for PublicAccess {
    fn extract(ReceivedRequest { app, parts, .. }: &mut ReceivedRequest) -> Result<Self> {
        let entry = parts.extensions.remove::<AuthorizedRequest>();
        let address = || client::address(&parts.extensions, &parts.headers, app.proxies());
        let consumer = entry.as_ref().map_or_else(
            || Consumer::from_address(address()),
            |entry| entry.auth.context().consumer(),
        );
        let caller = entry.as_ref().map(|entry| entry.auth.context().caller.clone());
        let sent = parts.extensions.remove::<IdempotencyRequest>();
        let idempotency = sent.map(|sent| match &caller {
            Some(caller) => sent.with_context(caller.user.uuid.0.as_bytes()),
            None => sent,
        });
        let dry_run = parts.extensions.remove();
        Ok(Self { auth: entry.map(|entry| entry.auth), caller, idempotency, dry_run, consumer })
    }
}

impl AuthorizedRequest {
    fn take(parts: &mut Parts) -> Result<Self> {
        let entry = parts.extensions.remove();
        entry.ok_or_else(|| Error::internal("an extractor needs a caller on a public route"))
    }
}
