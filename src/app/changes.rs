//! Writes of callers and of the operator. One transaction contains the authorization check, the rule and the activity
//! entry.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::auth::authorize::AuthContext;
use crate::auth::{Authorization, Caller, PublicAccess, Tenant};
use crate::base::erased::{AnyValue, downcast, erase, typed};
use crate::base::error::Result;
use crate::base::secret::Seed;
use crate::base::time::Timestamp;
use crate::exchange::dry_run::DryRun;
use crate::exchange::etag::{IfMatch, Versioned};
use crate::exchange::idempotency::{self, IdempotencyKey, IdempotencyRequest};
use crate::exchange::response::ApiResponse;
use crate::fair::fair_queue::Consumer;
use crate::fair::memory_budget::RequestMemory;
use crate::mail::worker::MailWorker;
use crate::resources::{activity, users};
use crate::store::{Record, Snapshot, WakeOnCommit, WriteTx};

use super::idempotent::{idempotency_key, is_not_bad_request, run_idempotent};
use super::quota::Allowance;
use super::{App, ReadAccess};

/// Proof that the caller is authorized to change something. It holds no snapshot: the body may have arrived slowly, and the
/// write authorizes the caller again.
pub struct WriteAccess<P> {
    /// The service that makes the change.
    pub app: App,
    /// The check, to repeat it inside the write.
    pub auth: Arc<Authorization>,
    /// The versions that `If-Match` expects.
    pub if_match: IfMatch,
    /// The idempotent request, if it has an idempotency key.
    pub idempotency: Option<IdempotencyRequest>,
    /// Set if the request asks for a dry run.
    pub dry_run: Option<DryRun>,
    /// The tenant that the request counts towards.
    pub consumer: Consumer,
    /// The memory of the request, in which a large response is reserved.
    pub memory: Option<RequestMemory>,
    /// The tenant of the route.
    pub tenant: PhantomData<P>,
}

impl<P: Tenant> WriteAccess<P> {
    /// Authorizes the caller again in a new snapshot, to read after the body has arrived: no snapshot may be held until then.
    ///
    /// # Errors
    /// The errors of the authorization.
    pub(crate) fn read_access(&self) -> Result<ReadAccess<P>> {
        let snapshot = self.app.store().snapshot()?;
        let context = self.auth.renew(&*snapshot, self.app.now())?;
        let (app, tenant, consumer) = (self.app.clone(), P::of(&context)?, self.consumer);
        Ok(ReadAccess { app, caller: context.caller.clone(), tenant, consumer, snapshot })
    }

    /// Writes for a caller. One transaction authorizes the caller again, runs `rule` and writes the activity entry.
    /// Returns once the transaction is on disk.
    ///
    /// # Errors
    /// The errors of the authorization and of `rule`; 503 if the transaction cannot be committed.
    pub(crate) fn change<T: Send + 'static>(
        &self,
        rule: impl Fn(&mut WriteTx<'_>, &Caller, &P, Timestamp) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        let rule: AuthorizedRule<AnyValue> = Box::new(move |tx, context, now| {
            rule(tx, &context.caller, &P::of(context)?, now).map(erase)
        });
        typed(self.app.change(WriteOptions::of(self), Arc::clone(&self.auth), rule))
    }

    /// Updates an object for a caller, as [`change`](Self::change) does. `rule` returns the key of the updated record, whose
    /// version the request's `If-Match` must allow, and the body of the response.
    ///
    /// # Errors
    /// As [`change`](Self::change), and 412 for another version.
    pub(crate) fn update<R: Record>(
        &self,
        rule: impl Fn(&mut WriteTx<'_>, &Caller, &P, Timestamp) -> Result<(R::Key, Versioned)>
        + Send
        + 'static,
    ) -> impl Future<Output = Result<ApiResponse>> + Send {
        let expected = self.if_match.clone();
        self.change(move |tx, caller, tenant, now| {
            let (key, body) = rule(tx, caller, tenant, now)?;
            expected.require::<R>(tx, &key)?;
            Ok(ApiResponse::Object(body))
        })
    }

    /// Deletes an object for a caller, as [`change`](Self::change) does. `rule` returns the key of the deleted record, whose
    /// version the request's `If-Match` must allow.
    ///
    /// # Errors
    /// As [`change`](Self::change), and 412 for another version.
    pub(crate) fn delete<R: Record>(
        &self,
        rule: impl Fn(&mut WriteTx<'_>, &Caller, &P, Timestamp) -> Result<R::Key> + Send + 'static,
    ) -> impl Future<Output = Result<ApiResponse>> + Send {
        let expected = self.if_match.clone();
        self.change(move |tx, caller, tenant, now| {
            let key = rule(tx, caller, tenant, now)?;
            expected.require::<R>(tx, &key).map(|()| ApiResponse::NoContent)
        })
    }

    /// Writes for a POST as [`change`](Self::change) does. If the idempotency key was used before, returns the stored
    /// response and writes nothing.
    ///
    /// # Errors
    /// The errors of the authorization and of `rule`; 422 if the idempotency key was used with another body; 503 if
    /// the transaction cannot be committed.
    pub(crate) fn post(
        &self,
        rule: impl Fn(&mut WriteTx<'_>, &Caller, &P, Timestamp) -> Result<ApiResponse> + Send + 'static,
    ) -> impl Future<Output = Result<ApiResponse>> + Send {
        let rule: AuthorizedRule<ApiResponse> =
            Box::new(move |tx, context, now| rule(tx, &context.caller, &P::of(context)?, now));
        let (auth, key) = (Arc::clone(&self.auth), self.idempotency.clone());
        self.app.post(WriteOptions::of(self), auth, key, rule)
    }

    /// Returns the stored response of the request's idempotency key, if there is one. For a handler that reads data
    /// before it posts. The caller is authorized again. `rule` fails if the request would fail now. Its errors about
    /// rights always take precedence. Its other errors count only if no response is stored.
    ///
    /// # Errors
    /// The errors of the authorization and of `rule`; 422 if the idempotency key was used with another body.
    pub(crate) fn find_stored_response(
        &self,
        rule: impl FnOnce(&Snapshot, &Caller, Timestamp) -> Result<()>,
    ) -> Result<Option<ApiResponse>> {
        let (tx, now) = (self.app.store().snapshot()?, self.app.now());
        let context = self.auth.renew(&*tx, now)?;
        let key = idempotency_key(self.idempotency.as_ref(), &context)?;
        let kept = key.map_or(Ok(None), |key| idempotency::find(&*tx, &key, now));
        match (kept, rule(&tx, &context.caller, now)) {
            (Ok(None), ruled) => ruled.map(|()| None),
            (_, Err(refused)) if is_not_bad_request(&refused) => Err(refused),
            (kept, _) => Ok(kept?.map(ApiResponse::Replayed)),
        }
    }
}

impl App {
    async fn change(
        &self,
        options: WriteOptions,
        auth: Arc<Authorization>,
        rule: AuthorizedRule<AnyValue>,
    ) -> Result<AnyValue> {
        let rule: TimedRule = Box::new(move |tx, now| {
            let context = auth.renew(tx, now)?;
            let response = rule(tx, &context, now)?;
            Ok((Author::of(context), response))
        });
        self.write_erased(options, rule).await.map(|(changed, _)| changed)
    }

    async fn post(
        &self,
        options: WriteOptions,
        auth: Arc<Authorization>,
        key: Option<IdempotencyRequest>,
        rule: AuthorizedRule<ApiResponse>,
    ) -> Result<ApiResponse> {
        let write = self.write(options, move |tx, now| {
            let context = auth.renew(tx, now)?;
            let key = idempotency_key(key.as_ref(), &context)?;
            let rule = &mut |tx: &mut WriteTx<'_>| rule(tx, &context, now);
            let done = run_idempotent(tx, key.as_ref(), now, rule, ApiResponse::to_stored)?;
            Ok((Author::of(context), done))
        });
        Ok(write.await?.0.unwrap_or_else(ApiResponse::Replayed))
    }

    /// As [`WriteAccess::find_stored_response`], for a route where a key is optional, without a rule.
    ///
    /// # Errors
    /// As [`WriteAccess::find_stored_response`].
    pub(crate) fn find_stored_response_public(
        &self,
        access: &PublicAccess,
        key: Option<&IdempotencyKey>,
    ) -> Result<Option<ApiResponse>> {
        let Some(key) = key else { return Ok(None) };
        let (tx, now) = (self.store().snapshot()?, self.now());
        if let Some(auth) = &access.auth {
            auth.renew(&*tx, now)?;
        }
        Ok(idempotency::find(&*tx, key, now)?.map(ApiResponse::Replayed))
    }

    /// Returns a stored response once a failover of a shared database keeps the change that it shows.
    ///
    /// # Errors
    /// 503 if the database does not answer in time.
    pub(crate) async fn repeat(&self, stored: ApiResponse) -> Result<ApiResponse> {
        self.store().confirm().await?;
        Ok(stored)
    }

    /// Writes for a POST on a route where a key is optional. If a key was sent, the caller is authorized again in the
    /// transaction. `rule` also returns the user for the activity entry.
    ///
    /// # Errors
    /// As [`WriteAccess::post`].
    pub(crate) async fn post_public(
        &self,
        access: &PublicAccess,
        key: Option<IdempotencyKey>,
        rule: impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<(users::Meta, ApiResponse)>
        + Send
        + 'static,
    ) -> Result<ApiResponse> {
        let auth = access.auth.clone();
        let (consumer, allowance) = (Some(access.consumer), Some(self.allowance(None)));
        let options = WriteOptions { consumer, allowance, dry_run: access.dry_run.clone() };
        let write = self.write(options, move |tx, now| {
            let context = auth.as_ref().map(|auth| auth.renew(tx, now)).transpose()?;
            let mut user = None;
            let rule = &mut |tx: &mut WriteTx<'_>| {
                let (who, response) = rule(tx, now)?;
                user = Some(who);
                Ok(response)
            };
            let done = run_idempotent(tx, key.as_ref(), now, rule, ApiResponse::to_stored)?;
            Ok((Author { user, context }, done))
        });
        Ok(write.await?.0.unwrap_or_else(ApiResponse::Replayed))
    }

    /// Writes for the operator. One transaction runs `rule` and writes the activity entry.
    ///
    /// # Errors
    /// The errors of `rule`; 503 if the transaction cannot be committed.
    #[doc(hidden)]
    pub fn operate<T: Send + 'static>(
        &self,
        rule: impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        self.operate_boxed(Box::new(move |tx, now| Ok((Author::default(), erase(rule(tx, now)?)))))
    }

    async fn operate_boxed<T: 'static>(&self, rule: TimedRule) -> Result<T> {
        let operator = WriteOptions { consumer: None, allowance: None, dry_run: None };
        downcast(self.write_erased(operator, rule).await?.0)
    }

    /// Runs `rule`, which also returns the author for the activity entry, and writes that entry. Fails if the write
    /// exceeds the tenant's allowance. Wakes the mail worker if the write queued a mail, and the maintenance if it
    /// left something to complete. Returns the result of `rule` and the state after the commit.
    ///
    /// A dry run does all of this, keeps the activity entries for its response, and is undone.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        options: WriteOptions,
        rule: impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<RuleOutcome<T>> + Send + 'static,
    ) -> Result<(T, Arc<Snapshot>)> {
        let rule: TimedRule = Box::new(move |tx, now| {
            let (author, response) = rule(tx, now)?;
            Ok((author, erase(response)))
        });
        let (response, snapshot) = self.write_erased(options, rule).await?;
        Ok((downcast(response)?, snapshot))
    }

    async fn write_erased(
        &self,
        WriteOptions { consumer, allowance, dry_run }: WriteOptions,
        rule: TimedRule,
    ) -> Result<(AnyValue, Arc<Snapshot>)> {
        let now = self.now();
        let mail = self.0.mail_worker.as_ref().map(MailWorker::on_commit);
        let wakes = [Some(self.0.maintenance.on_commit()), mail];
        let end = WriteEnd { seed: self.seed(), now, allowance, dry_run, wakes };
        let write = move |tx: &mut WriteTx<'_>| {
            let (author, response) = rule(tx, now)?;
            end.run(tx, &author)?;
            Ok(response)
        };
        self.store().write_erased(consumer, Box::new(write)).await
    }
}

/// The tenant of a write, whose turn it takes and whose limits apply.
#[derive(Clone)]
pub(super) struct WriteOptions {
    /// `None` for the operator.
    consumer: Option<Consumer>,
    /// `None` if nothing is limited.
    allowance: Option<Allowance>,
    /// Set if the write is undone.
    pub(super) dry_run: Option<DryRun>,
}

impl WriteOptions {
    /// The tenant that a request works for.
    pub(super) fn of<P>(access: &WriteAccess<P>) -> Self {
        Self {
            consumer: Some(access.consumer),
            allowance: Some(access.app.allowance(Some(access.consumer))),
            dry_run: access.dry_run.clone(),
        }
    }

    /// The client of a write whose rule bounds what it stores, so that it succeeds even if the disk is nearly full.
    pub(super) const fn of_small_write(consumer: Consumer) -> Self {
        Self { consumer: Some(consumer), allowance: None, dry_run: None }
    }
}

/// What every write does after its rule.
struct WriteEnd {
    seed: Seed,
    now: Timestamp,
    allowance: Option<Allowance>,
    dry_run: Option<DryRun>,
    wakes: [Option<WakeOnCommit>; 2],
}

impl WriteEnd {
    fn run(&self, tx: &mut WriteTx<'_>, author: &Author) -> Result<()> {
        activity::record(tx, author.user.as_ref(), &mut self.seed.rng(), self.now)?;
        self.allowance.as_ref().map_or(Ok(()), |allowance| allowance.require(tx))?;
        if let Some(dry_run) = &self.dry_run {
            dry_run.set_activity(activity::recorded(tx, author.context.as_deref())?);
            tx.discard();
            return Ok(());
        }
        if let Some(allowance) = &self.allowance {
            allowance.note_growth(tx);
        }
        self.wakes.iter().flatten().for_each(|wake| wake.note(tx));
        Ok(())
    }
}

/// The author of a change.
#[derive(Default)]
pub(super) struct Author {
    /// The user for the activity entries; `None` for the operator.
    user: Option<users::Meta>,
    /// The caller; `None` without a key. A dry run shows the entries that the caller may read.
    context: Option<Arc<AuthContext>>,
}

impl Author {
    pub(super) fn of(context: Arc<AuthContext>) -> Self {
        Self { user: Some(context.caller.user.clone()), context: Some(context) }
    }
}

/// The author of a change, and the result of its rule.
pub(super) type RuleOutcome<T> = (Author, T);

/// A rule that returns the author too.
type TimedRule = Box<dyn Fn(&mut WriteTx<'_>, Timestamp) -> Result<RuleOutcome<AnyValue>> + Send>;

/// A rule that gets the authorization of its caller.
type AuthorizedRule<T> = Box<dyn Fn(&mut WriteTx<'_>, &AuthContext, Timestamp) -> Result<T> + Send>;
