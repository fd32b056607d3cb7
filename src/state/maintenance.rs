//! Background maintenance: deletes the data of removed organizations and projects, completes the listing of enabled and
//! disabled users, deletes expired activity entries, expired idempotency keys and console sessions that ended, creates
//! backups, and compacts the data file.
//!
//! Of the nodes of a shared database, the one with the lease deletes and completes. The rest concerns the copy of each node.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::idempotency;
use crate::leases::{Duty, LeaseWatch};
use crate::resources::{activity, cascade_delete, import_mark, roles, sessions};
use crate::store::{OpenError, Store, Table, WriteTx};
use crate::time::{Clock, Timestamp};

use super::App;
use super::backups::BackupScheduler;

/// The wait after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The longest time between two searches for expired data.
const CHECK_INTERVAL: Duration = Duration::from_hours(1);

impl App {
    /// Starts the background tasks. Each transaction does a bounded amount of work.
    ///
    /// # Errors
    /// If the backup folder cannot be created or read.
    pub(super) fn start_maintenance(&self) -> Result<(), OpenError> {
        let (store, due) = (self.0.store.clone(), Arc::clone(&self.0.maintenance));
        let inner = Arc::downgrade(&self.0);
        let mut expiring = ExpiringData {
            log: ActivityRetention::of(self),
            replies: ResponseRetention::of(self),
            sessions: SessionCleanup::of(self),
        };
        self.start_backups()?;
        self.start_compaction();
        let taken = Arc::clone(&due);
        store.on_taken(&[Table::Sweeps, Table::PendingListings, Table::Imports], move |_| {
            taken.notify_one();
        });
        let clock = self.0.clock.clone();
        let mut lease = self.0.leases.watch(Duty::Maintenance);
        let mut imports = AbandonedImports { clock: clock.clone(), next: None };
        due.notify_one();
        tokio::spawn(async move {
            loop {
                if !has_lease(&lease, &clock) {
                    if !lease.wait_until_held_for(Duration::ZERO, &clock).await {
                        return;
                    }
                    // The node that had the lease may have left something.
                    due.notify_one();
                }
                tokio::select! {
                    () = due.notified() => {}
                    () = expiring.is_due() => {}
                    () = imports.is_due() => {}
                }
                let may_go_on = || inner.strong_count() > 0 && has_lease(&lease, &clock);
                let mut more = true;
                while more && may_go_on() {
                    let now = clock.now();
                    let complete = move |tx: &mut WriteTx<'_>| complete_changes(tx, now);
                    more = match store.write(complete).await {
                        Ok(more) => more,
                        Err(error) => warn_and_wait(&error).await,
                    };
                }
                if may_go_on()
                    && let Err(error) = imports.look(&store).await
                {
                    warn_and_wait(&error).await;
                }
                more = true;
                while more && may_go_on() {
                    more = match expiring.delete_some(&store).await {
                        Ok(more) => more,
                        Err(error) => warn_and_wait(&error).await,
                    };
                }
                if inner.strong_count() == 0 {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Creates backups in a separate task, so that they continue if deletions fail.
    fn start_backups(&self) -> Result<(), OpenError> {
        let Some(mut backups) = BackupScheduler::of(self)? else { return Ok(()) };
        let inner = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                backups.is_due().await;
                let Some(store) = inner.upgrade().map(|inner| inner.store.clone()) else { return };
                backups.create(&store).await;
            }
        });
        Ok(())
    }
}

/// Whether this process may do the work of the node with the lease.
fn has_lease(lease: &LeaseWatch, clock: &Clock) -> bool {
    lease.is_held_for(Duration::ZERO, clock.now())
}

/// Completes some of what requests and commands began. Returns whether there may be more.
fn complete_changes(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<bool> {
    Ok(cascade_delete::end_abandoned_imports(tx, now)?
        || cascade_delete::delete_batch(tx)?
        || roles::continue_listing(tx)?)
}

/// Imports of organizations that may stop before they are complete.
struct AbandonedImports {
    clock: Clock,
    /// When the first of them counts as abandoned, if there is one.
    next: Option<Timestamp>,
}

impl AbandonedImports {
    async fn is_due(&self) {
        match self.next {
            Some(next) => self.clock.wait_until(next, import_mark::MAX_PAUSE).await,
            None => pending().await,
        }
    }

    /// Reads when to look again.
    async fn look(&mut self, store: &Store) -> Result<()> {
        let snapshot = store.fresh().await?;
        self.next = import_mark::next_end(&*snapshot)?;
        Ok(())
    }
}

/// All data that expires.
struct ExpiringData {
    log: ActivityRetention,
    replies: ResponseRetention,
    sessions: SessionCleanup,
}

impl ExpiringData {
    async fn is_due(&self) {
        tokio::select! {
            () = self.log.is_due() => {}
            () = self.replies.is_due() => {}
            () = self.sessions.is_due() => {}
        }
    }

    /// Deletes some expired data. Returns whether there may be more.
    async fn delete_some(&mut self, store: &Store) -> Result<bool> {
        let mut more = self.log.delete_some(store).await?;
        more |= self.replies.delete_some(store).await?;
        more |= self.sessions.delete_some(store).await?;
        Ok(more)
    }
}

/// Whether a search that was to follow the last one at `next` is due, also if the clock was set back since.
fn is_due(next: Timestamp, now: Timestamp) -> bool {
    !next.is_end_of_current(CHECK_INTERVAL, now)
}

/// Logs the error, waits, and returns true to try again.
async fn warn_and_wait(error: &Error) -> bool {
    tracing::warn!(%error, "a maintenance task failed; trying again");
    tokio::time::sleep(RETRY_DELAY).await;
    true
}

/// Deletes expired entries of the activity log.
struct ActivityRetention {
    clock: Clock,
    /// The retention. `None` means forever.
    retention: Option<Duration>,
    /// The time of the next search.
    next: Timestamp,
}

impl ActivityRetention {
    fn of(app: &App) -> Self {
        let clock = app.0.clock.clone();
        Self { next: clock.now(), clock, retention: app.0.config.activity_retention }
    }

    async fn is_due(&self) {
        match self.retention {
            Some(_) => self.clock.wait_until(self.next, CHECK_INTERVAL).await,
            None => pending().await,
        }
    }

    /// Deletes one transaction's worth of entries if a search is due. Returns whether there may be more.
    async fn delete_some(&mut self, store: &Store) -> Result<bool> {
        let now = self.clock.now();
        let Some(retention) = self.retention.filter(|_| is_due(self.next, now)) else {
            return Ok(false);
        };
        let (snapshot, cutoff) = (store.fresh().await?, now.minus(retention));
        let read = move || activity::find_expired(&*snapshot, cutoff);
        let keys = tokio::task::spawn_blocking(read).await.map_err(Error::internal)??;
        if keys.is_empty() {
            self.next = now.plus(retention.min(CHECK_INTERVAL));
            return Ok(false);
        }
        store.write(move |tx| activity::delete(tx, &keys)).await?;
        Ok(true)
    }
}

/// Deletes expired idempotency keys with their stored responses.
struct ResponseRetention {
    clock: Clock,
    /// The time of the next search.
    next: Timestamp,
}

impl ResponseRetention {
    fn of(app: &App) -> Self {
        let clock = app.0.clock.clone();
        Self { next: clock.now(), clock }
    }

    async fn is_due(&self) {
        self.clock.wait_until(self.next, CHECK_INTERVAL).await;
    }

    /// Deletes one transaction's worth of keys if a search is due. Returns whether there may be more.
    async fn delete_some(&mut self, store: &Store) -> Result<bool> {
        let now = self.clock.now();
        if !is_due(self.next, now) {
            return Ok(false);
        }
        let snapshot = store.fresh().await?;
        let read = move || idempotency::has_expired(&*snapshot, now);
        let due = tokio::task::spawn_blocking(read).await.map_err(Error::internal)??;
        if due && store.write(move |tx| idempotency::delete_expired(tx, now)).await? {
            return Ok(true);
        }
        self.next = now.plus(CHECK_INTERVAL);
        Ok(false)
    }
}

/// Deletes console sessions that ended, and sign-in links that expired.
struct SessionCleanup {
    clock: Clock,
    /// The time of the next search.
    next: Timestamp,
}

impl SessionCleanup {
    fn of(app: &App) -> Self {
        let clock = app.0.clock.clone();
        Self { next: clock.now(), clock }
    }

    async fn is_due(&self) {
        self.clock.wait_until(self.next, CHECK_INTERVAL).await;
    }

    /// Deletes one transaction's worth of sessions and links if a search is due. Returns whether there may be more.
    async fn delete_some(&mut self, store: &Store) -> Result<bool> {
        let now = self.clock.now();
        if !is_due(self.next, now) {
            return Ok(false);
        }
        let snapshot = store.fresh().await?;
        let read = move || sessions::find_ended(&*snapshot, now);
        let ended = tokio::task::spawn_blocking(read).await.map_err(Error::internal)??;
        if ended.is_empty() {
            self.next = now.plus(CHECK_INTERVAL);
            return Ok(false);
        }
        store.write(move |tx| sessions::delete_ended(tx, &ended, now)).await?;
        Ok(true)
    }
}
