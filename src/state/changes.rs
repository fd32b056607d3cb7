//! How callers and the operator change things: one transaction with the gate's answer, the rule and the activity
//! entry.

use std::sync::Arc;

use crate::access::gate::{Caller, Granted, authorize};
use crate::access::{Changing, Place, Visitor};
use crate::error::{Error, Result};
use crate::fair::Consumer;
use crate::http::answer::Answer;
use crate::idempotency::{self, Once, Reply, Sent};
use crate::ids::RequesterId;
use crate::mail::postman::Bell;
use crate::resources::api_keys::Holdings;
use crate::resources::{activity, users};
use crate::secret::Seed;
use crate::store::{Snapshot, WriteTx};
use crate::time::Timestamp;

use super::App;
use super::quota::Allowance;

impl App {
    /// Reads something for a caller who is to change something later: asks the gate once more, in a snapshot
    /// that is let go before this answers.
    ///
    /// # Errors
    /// What the gate or `read` refuses.
    pub fn look<P: Place, T>(
        &self,
        asked: &Changing<P>,
        read: impl FnOnce(&Snapshot, &P) -> Result<T>,
    ) -> Result<T> {
        let tx = self.store().snapshot()?;
        let granted = authorize(&*tx, &asked.ask, self.now())?;
        read(&tx, &P::of(&granted)?)
    }

    /// Changes something for a caller: asks the gate once more inside the write, runs `rule`, and writes
    /// the activity entry, all in one transaction. Answers once that is on disk.
    ///
    /// # Errors
    /// What the gate or the rule refuses; 503 when the change could not be committed.
    pub async fn change<P: Place, T: Send + 'static>(
        &self,
        asked: &Changing<P>,
        rule: impl Fn(&mut WriteTx<'_>, &Caller, &P, Timestamp) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let ask = Arc::clone(&asked.ask);
        let tenant = Tenant::of(self, asked.consumer);
        let written = self.write(tenant, move |tx, now| {
            let granted = authorize(tx, &ask, now)?;
            let answer = rule(tx, &granted.caller, &P::of(&granted)?, now)?;
            Ok((Some(granted.caller.user), answer))
        });
        written.await.map(|(changed, _)| changed)
    }

    /// Does for a caller what a POST asks: as [`change`](Self::change) does, but a request that is to be done once,
    /// and was done, is answered as it was then.
    ///
    /// # Errors
    /// What the gate or the rule refuses; 422 for a repeated request with another body; 503 when the change could
    /// not be committed.
    pub async fn post<P: Place>(
        &self,
        asked: &Changing<P>,
        rule: impl Fn(&mut WriteTx<'_>, &Caller, &P, Timestamp) -> Result<Answer> + Send + 'static,
    ) -> Result<Answer> {
        let (ask, once) = (Arc::clone(&asked.ask), asked.once.clone());
        let tenant = Tenant::of(self, asked.consumer);
        let write = self.write(tenant, move |tx, now| {
            let granted = authorize(tx, &ask, now)?;
            let (caller, place) = (&granted.caller, P::of(&granted)?);
            let once = known(once.as_ref(), &granted)?;
            let rule = |tx: &mut WriteTx<'_>| rule(tx, caller, &place, now);
            let done = do_once(tx, once.as_ref(), now, rule, Answer::reply)?;
            Ok((Some(granted.caller.user), done))
        });
        Ok(write.await?.0.into())
    }

    /// What a request that is to be done once was answered, if it was done: for a handler that looks at something
    /// before it posts, and whose rule asks for no more rights than the gate does, which is asked once more.
    ///
    /// # Errors
    /// What the gate refuses; 422 for a repeated request with another body; 500 or 503 when the file cannot be read.
    pub fn find_reply<P: Place>(&self, asked: &Changing<P>) -> Result<Option<Answer>> {
        self.find_reply_where(asked, |_| Ok(()))
    }

    /// The same, for a handler whose rule asks for rights besides. `rule` says whether the request would be done
    /// now, and refuses it where it would not; what it refuses the caller goes before all, the rest of what it
    /// refuses only where nothing is kept.
    ///
    /// # Errors
    /// As [`find_reply`](Self::find_reply), and what `rule` refuses.
    pub fn find_reply_where<P: Place>(
        &self,
        asked: &Changing<P>,
        rule: impl FnOnce(&Snapshot) -> Result<()>,
    ) -> Result<Option<Answer>> {
        let (tx, now) = (self.store().snapshot()?, self.now());
        let once = known(asked.once.as_ref(), &authorize(&*tx, &asked.ask, now)?)?;
        let kept = once.map_or(Ok(None), |once| idempotency::find(&*tx, &once, now));
        match (kept, rule(&tx)) {
            (Ok(None), ruled) => ruled.map(|()| None),
            (_, Err(refused)) if is_about_rights(&refused) => Err(refused),
            (kept, _) => Ok(kept?.map(Answer::Replayed)),
        }
    }

    /// As [`find_reply`](Self::find_reply), for somebody who may have sent a key.
    ///
    /// # Errors
    /// As [`find_reply`](Self::find_reply).
    pub fn find_reply_as_visitor(
        &self,
        visitor: &Visitor,
        once: Option<&Once>,
    ) -> Result<Option<Answer>> {
        let Some(once) = once else { return Ok(None) };
        let (tx, now) = (self.store().snapshot()?, self.now());
        if let Some(ask) = &visitor.ask {
            authorize(&*tx, ask, now)?;
        }
        Ok(idempotency::find(&*tx, once, now)?.map(Answer::Replayed))
    }

    /// Does what a POST asks for somebody who may have sent a key: asks the gate once more inside the write where
    /// they have. `rule` answers besides who did it, for the activity log.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub async fn post_as_visitor(
        &self,
        visitor: &Visitor,
        once: Option<Once>,
        rule: impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<(users::Head, Answer)> + Send + 'static,
    ) -> Result<Answer> {
        let ask = visitor.ask.clone();
        let (consumer, allowance) = (Some(visitor.consumer), Some(self.allowance(None)));
        let tenant = Tenant { consumer, allowance };
        let write = self.write(tenant, move |tx, now| {
            if let Some(ask) = &ask {
                authorize(tx, ask, now)?;
            }
            let mut user = None;
            let rule = |tx: &mut WriteTx<'_>| {
                let (who, answer) = rule(tx, now)?;
                user = Some(who);
                Ok(answer)
            };
            let done = do_once(tx, once.as_ref(), now, rule, Answer::reply)?;
            Ok((user, done))
        });
        Ok(write.await?.0.into())
    }

    /// Changes something for the operator: runs `rule` and writes the activity entry in one transaction.
    ///
    /// # Errors
    /// What the rule refuses; 503 when the change could not be committed.
    pub async fn operate<T: Send + 'static>(
        &self,
        rule: impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let operator = Tenant { consumer: None, allowance: None };
        let write = self.write(operator, move |tx, now| Ok((None, rule(tx, now)?)));
        write.await.map(|(done, _)| done)
    }

    /// Runs `rule`, which answers besides who did it, and writes the activity entry; wakes the postman where
    /// something was posted. What the write adds must be within the tenant's allowance. Returns what `rule` gives, and
    /// the state that the commit left.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        Tenant { consumer, allowance }: Tenant,
        rule: impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<Written<T>> + Send + 'static,
    ) -> Result<(T, Arc<Snapshot>)> {
        let (now, seed) = (self.now(), Seed::take());
        let bell = Bell::new(self.0.postman.as_ref());
        let write = move |tx: &mut WriteTx<'_>| {
            let (user, answer) = rule(tx, now)?;
            activity::record(tx, user.as_ref(), &mut seed.draw(), now)?;
            allowance.as_ref().map_or(Ok(()), |allowance| allowance.require(tx))?;
            bell.listen(tx);
            Ok(answer)
        };
        self.store().write_for(consumer, write).await
    }
}

/// Whose turn a write takes, and what it may add.
pub(super) struct Tenant {
    /// None for the operator.
    consumer: Option<Consumer>,
    /// None where nothing is capped.
    allowance: Option<Allowance>,
}

impl Tenant {
    /// The tenant that a request works for.
    pub(super) fn of(app: &App, consumer: Consumer) -> Self {
        Self { consumer: Some(consumer), allowance: Some(app.allowance(Some(consumer))) }
    }
}

/// Who did it, and what a rule gives.
pub(super) type Written<T> = (Option<users::Head>, T);

/// What came of a request that may be one to be done once.
pub(super) enum Done<T> {
    /// It was done now.
    Now(T),
    /// It was done before, and answered so.
    Before(Reply),
}

impl From<Done<Self>> for Answer {
    fn from(done: Done<Self>) -> Self {
        match done {
            Done::Now(answer) => answer,
            Done::Before(reply) => Self::Replayed(reply),
        }
    }
}

/// Which request it is, by what the gate found: the place that its path leads to, and where its body leaves to the
/// presented key what is wanted, what that holds.
pub(super) fn known(sent: Option<&Sent>, granted: &Granted) -> Result<Option<Once>> {
    let Some(sent) = sent else { return Ok(None) };
    let Granted { caller, member, project } = granted;
    let by = RequesterId(caller.user.uuid.0);
    let (organization, project) =
        (member.as_ref().map(|member| member.organization), project.as_ref().map(|one| one.id));
    if !sent.inherits() {
        return Ok(Some(sent.of(by, organization, project)));
    }
    let Holdings { user: _, scopes, organizations, projects, expires_at } = &caller.key.holdings;
    let held = serde_json::to_vec(&(scopes, organizations, projects, expires_at));
    Ok(Some(sent.meaning(&held.map_err(Error::internal)?).of(by, organization, project)))
}

/// Does what was asked, unless it is to be done once and was done: then the rule only tells whether the caller
/// still may. `reply` says what is kept of what was done.
pub(super) fn do_once<T>(
    tx: &mut WriteTx<'_>,
    once: Option<&Once>,
    now: Timestamp,
    rule: impl FnOnce(&mut WriteTx<'_>) -> Result<T>,
    reply: impl FnOnce(&T) -> Reply,
) -> Result<Done<T>> {
    let Some(once) = once else { return rule(tx).map(Done::Now) };
    if let Some(reply) = idempotency::find(tx, once, now)? {
        return match tx.rehearse(rule) {
            Err(refused) if is_about_rights(&refused) => Err(refused),
            _ => Ok(Done::Before(reply)),
        };
    }
    let done = rule(tx)?;
    idempotency::keep(tx, once, &reply(&done), now)?;
    Ok(Done::Now(done))
}

/// Whether a refusal is not only about what a first request has already done.
fn is_about_rights(refused: &Error) -> bool {
    !matches!(refused.status(), 400)
}
