//! Changes with large responses. Such a response is rendered after the commit, from the snapshot of that commit, on a
//! thread of its own.
//!
//! A small response is rendered inside the write. A large one needs a slot and reserved memory, which are acquired before
//! the write is queued. So a request that waits for a slot, or fails for lack of memory, has changed nothing and holds no
//! snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::auth::authorize::AuthContext;
use crate::auth::{Authorization, Caller, Tenant};
use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;
use crate::exchange::etag::Versioned;
use crate::exchange::idempotency::{IdempotencyRequest, IdempotentResponse};
use crate::exchange::response::ApiResponse;
use crate::fair::fair_queue::{Consumer, FairQueue, FairQueueLimits, Slot};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::fair::memory_budget::RequestMemory;
use crate::store::{Raw, Record, Snapshot, WriteTx};

use super::changes::{Author, RuleOutcome, WriteAccess, WriteOptions};
use super::idempotent::{idempotency_key, run_idempotent};
use super::{App, fair_limits};

/// The `Retry-After` of a response without a slot or memory, in seconds.
const RETRY_AFTER: u32 = 2;
/// The maximum number of requests that wait for a slot: of one consumer, and in total.
const MAX_WAITING: (usize, usize) = (256, 2048);
/// By how many bytes a response may exceed its reservation: as much as one request can add to a dashboard.
const MAX_GROWTH: usize = 2 * 1024 * 1024;
/// The maximum number of attempts of a change: its response may grow while the change waits for a slot.
const MAX_ATTEMPTS: usize = 4;

/// Returns the queue for the slots of large responses and other heavy work, with one slot for each core.
pub(super) fn heavy_work_queue(cores: usize, time_limit: Duration) -> FairQueue {
    let (waiting_per_consumer, waiting) = MAX_WAITING;
    let limits = fair_limits(cores, time_limit);
    FairQueue::new(FairQueueLimits { waiting_per_consumer, waiting, ..limits })
}

/// Runs `render` on a thread of its own. Releases the slot when `render` returns, even if the client has disconnected. The
/// future is boxed, because every change would have room for it and few run it.
fn run_blocking(
    slot: Option<Slot>,
    render: impl FnOnce() -> Result<Versioned> + Send + 'static,
) -> BoxFuture<'static, Result<Versioned>> {
    let rendered = run_low_priority(Priority::Answer, move || {
        let _slot = slot;
        render()
    });
    async { rendered.await? }.boxed()
}

/// What an attempt of a change has reserved for a large response.
#[derive(Debug, Default)]
pub struct LargeResponse {
    /// The reserved bytes; `None` if the attempt has no slot.
    reserved: Option<usize>,
    /// The bytes that the response needs; 0 if the reservation is sufficient.
    needed: AtomicUsize,
}

impl LargeResponse {
    /// Requires a slot, and memory for a response of about `bytes` bytes; nothing if the response is small (`None`). If the
    /// attempt lacks one of them, it fails, and the change runs again with both. A rule calls this before it writes
    /// anything, if it knows the size by then.
    ///
    /// # Errors
    /// 503 if the slot or the memory is missing. The rule must return this error, which starts the next attempt.
    pub fn require_reserved(&self, bytes: Option<usize>) -> Result<()> {
        let Some(bytes) = bytes else { return Ok(()) };
        if self.reserved.is_some_and(|reserved| bytes <= reserved.saturating_add(MAX_GROWTH)) {
            return Ok(());
        }
        self.needed.store(bytes.max(1), Ordering::Relaxed);
        Err(Error::overloaded(RETRY_AFTER, "a large response needs a slot and memory"))
    }
}

/// An object that a POST created or an update changed, and its response.
#[derive(Debug)]
struct CreatedObject {
    /// The status of the response: 200 or 201.
    status: u16,
    id: u64,
    /// The rendered object; `None` if it is large.
    body: Option<Versioned>,
}

impl CreatedObject {
    fn to_stored(&self) -> IdempotentResponse {
        let (version, body) = match &self.body {
            Some(one) => (Some(one.version), one.json.clone()),
            None => (None, Vec::new()),
        };
        IdempotentResponse { status: self.status, version, body, object: Some(self.id) }
    }
}

/// A rule that creates or updates an object. Returns its id, and whether its response is large.
type CreateRule = Box<
    dyn Fn(&mut WriteTx<'_>, &AuthContext, Timestamp, &LargeResponse) -> Result<(u64, bool)>
        + Send
        + Sync,
>;

/// Renders the object with an id.
type Render = Arc<dyn Fn(&dyn Raw, &AuthContext, u64) -> Result<Versioned> + Send + Sync>;

/// The object that an attempt wrote, or the response of an earlier request, with the authorization.
type Outcome = (Result<CreatedObject, IdempotentResponse>, Arc<AuthContext>);

/// A write that may need to be repeated with a slot and memory.
type Attempt = Arc<
    dyn Fn(&mut WriteTx<'_>, Timestamp, &LargeResponse) -> Result<RuleOutcome<Outcome>>
        + Send
        + Sync,
>;

impl<P: Tenant> WriteAccess<P> {
    /// Updates an object for a caller, as [`update`](Self::update) does, and returns the body that `render` renders. `rule`
    /// returns the key of the updated record, and whether the body is large: then it is rendered from the snapshot of the
    /// commit.
    ///
    /// # Errors
    /// The errors of [`update`](Self::update) and `render`; 503 if too many large responses wait.
    pub(crate) fn update_and_render<R: Record>(
        &self,
        rule: impl Fn(
            &mut WriteTx<'_>,
            &Caller,
            &P,
            Timestamp,
            &LargeResponse,
        ) -> Result<(R::Key, bool)>
        + Send
        + Sync
        + 'static,
        render: impl Fn(&dyn Raw, &Caller, &P) -> Result<Versioned> + Send + Sync + 'static,
    ) -> impl Future<Output = Result<ApiResponse>> + Send {
        let expected = self.if_match.clone();
        let rule =
            move |tx: &mut WriteTx<'_>, caller: &Caller, tenant: &P, now, large: &LargeResponse| {
                let (key, is_large) = rule(tx, caller, tenant, now, large)?;
                expected.require::<R>(tx, &key)?;
                // Only the repetition of a POST looks for its object.
                Ok((0, is_large))
            };
        self.post_and_render(200, rule, move |tx, caller, tenant, _| render(tx, caller, tenant))
    }

    /// Runs a POST for a caller, as [`post`](Self::post) does, and returns the object that `rule` created, which `render`
    /// renders as in [`update_and_render`](Self::update_and_render). `rule` returns the object's id, and whether its body is
    /// large. If a request is repeated with its idempotency key and its response was large, the response is the object as it
    /// is now. `status` is 200 or 201.
    ///
    /// # Errors
    /// As [`update_and_render`](Self::update_and_render); 422 if the idempotency key was used with another body.
    pub(crate) fn post_and_render(
        &self,
        status: u16,
        rule: impl Fn(&mut WriteTx<'_>, &Caller, &P, Timestamp, &LargeResponse) -> Result<(u64, bool)>
        + Send
        + Sync
        + 'static,
        render: impl Fn(&dyn Raw, &Caller, &P, u64) -> Result<Versioned> + Send + Sync + 'static,
    ) -> impl Future<Output = Result<ApiResponse>> + Send {
        // Allocated here, so that the future does not have room for the parsed body several times.
        let rule: CreateRule = Box::new(move |tx, context, now, large| {
            rule(tx, &context.caller, &P::of(context)?, now, large)
        });
        let render: Render =
            Arc::new(move |tx, context, id| render(tx, &context.caller, &P::of(context)?, id));
        let change = LargeChange {
            app: self.app.clone(),
            auth: Arc::clone(&self.auth),
            key: self.idempotency.clone(),
            options: WriteOptions::of(self),
            consumer: self.consumer,
            memory: self.memory.clone(),
        };
        change.run(status, rule, render)
    }
}

/// A change of a caller whose response may be large.
struct LargeChange {
    app: App,
    auth: Arc<Authorization>,
    key: Option<IdempotencyRequest>,
    options: WriteOptions,
    consumer: Consumer,
    /// The memory of the request, in which the response is reserved.
    memory: Option<RequestMemory>,
}

impl LargeChange {
    async fn run(self, status: u16, rule: CreateRule, render: Render) -> Result<ApiResponse> {
        let (auth, key) = (Arc::clone(&self.auth), self.key.clone());
        let (is_dry_run, render_small) = (self.options.dry_run.is_some(), Arc::clone(&render));
        let write: Attempt = Arc::new(move |tx, now, large| {
            let context = auth.renew(tx, now)?;
            let key = idempotency_key(key.as_ref(), &context)?;
            let rule = &mut |tx: &mut WriteTx<'_>| {
                let (id, is_large) = rule(tx, &context, now, large)?;
                if is_large {
                    // The snapshot of the commit, from which the response is rendered, has no later write.
                    tx.end_batch();
                    if !is_dry_run {
                        return Ok(CreatedObject { status, id, body: None });
                    }
                    // A dry run commits nothing, so its response is rendered here.
                    tx.count_as_large();
                }
                let body = Some(render_small(tx, &context, id)?);
                Ok(CreatedObject { status, id, body })
            };
            let done = run_idempotent(tx, key.as_ref(), now, rule, CreatedObject::to_stored)?;
            let is_repeated = matches!(&done, Err(IdempotentResponse { object: Some(_), .. }));
            large.require_reserved(is_repeated.then_some(0))?;
            Ok((Author::of(Arc::clone(&context)), (done, context)))
        });
        let (((done, context), snapshot), slot) = self.with_slot(write).await?;
        let render = |id| run_blocking(slot, move || render(&*snapshot, &context, id));
        match done {
            Ok(CreatedObject { status, id, body }) => {
                let body = match body {
                    Some(body) => body,
                    None => render(id).await?,
                };
                Ok(if status == 201 {
                    ApiResponse::Created(body)
                } else {
                    ApiResponse::Object(body)
                })
            }
            Err(IdempotentResponse { status, object: Some(id), .. }) => {
                // The object as it is now.
                let Versioned { version, json, .. } = render(id).await?;
                let reply =
                    IdempotentResponse { status, version: Some(version), body: json, object: None };
                Ok(ApiResponse::Replayed(reply))
            }
            Err(reply) => Ok(ApiResponse::Replayed(reply)),
        }
    }

    /// Runs a write. If its response is large, acquires a slot and memory, and runs the write again.
    async fn with_slot(&self, write: Attempt) -> Result<((Outcome, Arc<Snapshot>), Option<Slot>)> {
        let (mut slot, mut reserved) = (None, None);
        for _ in 1..MAX_ATTEMPTS {
            let large = Arc::new(LargeResponse { reserved, ..LargeResponse::default() });
            let (write, response) = (Arc::clone(&write), Arc::clone(&large));
            let write = move |tx: &mut WriteTx<'_>, now| write(tx, now, &response);
            let written = self.app.write(self.options.clone(), write).await;
            let wanted = large.needed.load(Ordering::Relaxed);
            if written.is_ok() || wanted == 0 {
                return Ok((written?, slot));
            }
            if slot.is_none() {
                let full = |_| Error::overloaded(RETRY_AFTER, "too many large responses wait");
                let acquired = self.app.0.heavy_work.acquire(self.consumer).boxed().await;
                slot = Some(acquired.map_err(full)?);
            }
            if let Some(memory) = &self.memory {
                memory.reserve(wanted)?;
            }
            reserved = Some(wanted);
        }
        Err(Error::overloaded(RETRY_AFTER, "the response grew while memory was reserved for it"))
    }
}
