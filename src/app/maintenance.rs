//! The beginning and the end of the work in the background, and maintenance. That deletes the data of removed
//! organizations and projects, completes the listing of enabled and disabled users, deletes expired activity entries,
//! expired idempotency keys and console sessions that ended, creates backups, and compacts the data file.
//!
//! Of the nodes of a shared database, the one with the lease deletes and completes. The rest concerns the copy of each node.

use std::future::pending;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::base::error::Result;
use crate::base::tasks::{run_blocking, spawn};
use crate::base::time::{Clock, Timestamp};
use crate::config::Config;
use crate::exchange::idempotency;
use crate::leases::{Duty, LeaseRenewal, LeaseWatch};
use crate::mail::outbox;
use crate::resources::shared::import_mark;
use crate::resources::{activity, cascade_delete, roles, sessions};
use crate::store::{OpenError, Snapshot, Store, Table, Watch, WriteTx};

use super::backups::BackupScheduler;
use super::{App, Inner};

/// The tables with what is to be completed.
pub(super) const TABLES: &[Table] = &[Table::Sweeps, Table::PendingListings, Table::Imports];
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
        let maintenance = Maintenance::of(self);
        self.start_backups()?;
        self.start_compaction();
        self.wake_maintenance();
        spawn(maintenance.run());
        Ok(())
    }

    /// Creates backups in a separate task, so that they continue if deletions fail.
    fn start_backups(&self) -> Result<(), OpenError> {
        let Some(mut backups) = BackupScheduler::of(self)? else { return Ok(()) };
        let inner = Arc::downgrade(&self.0);
        spawn(async move {
            loop {
                backups.is_due().await;
                let Some(store) = inner.upgrade().map(|inner| inner.store.clone()) else { return };
                backups.create(&store).await;
            }
        });
        Ok(())
    }
}

/// The task that does the [`DueWork`] when its time comes.
struct Maintenance {
    inner: Weak<Inner>,
    clock: Clock,
    /// Wakes the task when there is something to complete.
    due: Watch,
    lease: LeaseWatch,
    work: Arc<Mutex<DueWork>>,
}

impl Maintenance {
    fn of(app: &App) -> Self {
        Self {
            inner: Arc::downgrade(&app.0),
            clock: app.0.clock.clone(),
            due: app.0.maintenance.clone(),
            lease: app.0.leases.watch(Duty::Maintenance),
            work: Arc::clone(&app.0.due_work),
        }
    }

    /// Works until the service is dropped.
    async fn run(mut self) {
        while self.wait_for_lease().await {
            self.wait_for_work().await;
            let done = self.work.lock().await.run(&|| self.may_go_on()).await;
            for error in done.into_iter().filter_map(Result::err) {
                tracing::warn!(%error, "a maintenance task failed; trying again");
                tokio::time::sleep(RETRY_DELAY).await;
                self.due.wake();
            }
            if !self.goes_on() {
                return;
            }
        }
    }

    /// Waits until this process may do the work of the node with the lease. Returns false if it never will.
    async fn wait_for_lease(&mut self) -> bool {
        if self.has_lease() {
            return true;
        }
        if !self.lease.wait_until_held_for(Duration::ZERO, &self.clock).await {
            return false;
        }
        // The node that had the lease may have left something.
        self.due.wake();
        true
    }

    async fn wait_for_work(&self) {
        let (searches, next_import_end) = self.work.lock().await.times();
        let searches =
            searches.into_iter().map(|next| self.clock.wait_until(next, CHECK_INTERVAL).boxed());
        let import_ends = async {
            match next_import_end {
                Some(end) => self.clock.wait_until(end, import_mark::MAX_PAUSE).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.due.woken() => {}
            _ = select_all(searches) => {}
            () = import_ends => {}
        }
    }

    fn may_go_on(&self) -> bool {
        self.goes_on() && self.has_lease()
    }

    /// Whether the service neither closes nor was dropped.
    fn goes_on(&self) -> bool {
        self.inner.upgrade().is_some_and(|inner| !inner.is_closing.load(Ordering::Relaxed))
    }

    fn has_lease(&self) -> bool {
        self.lease.is_held_for(Duration::ZERO, self.clock.now())
    }
}

/// What is to be completed, and what expires.
pub(super) struct DueWork {
    store: Store,
    clock: Clock,
    /// When the first of the imports of organizations counts as abandoned, if there is one.
    next_import_end: Option<Timestamp>,
    expiring: Vec<ExpiringData>,
}

impl DueWork {
    pub(super) fn new(store: &Store, config: &Config) -> Self {
        let (store, clock) = (store.clone(), config.clock.clone());
        let expiring = ExpiringData::all_of(config);
        Self { store, clock, next_import_end: None, expiring }
    }

    /// Returns when to search for expired data, and when an import counts as abandoned.
    fn times(&self) -> (Vec<Timestamp>, Option<Timestamp>) {
        (self.expiring.iter().map(|kind| kind.next).collect(), self.next_import_end)
    }

    /// Does what is due, as long as `may_go_on`. Returns what became of each part.
    async fn run(&mut self, may_go_on: &(dyn Fn() -> bool + Sync)) -> [Result<()>; 3] {
        [
            self.complete_changes(may_go_on).await,
            self.look_for_imports(may_go_on).await,
            self.delete_expired(may_go_on).await,
        ]
    }

    async fn complete_changes(&self, may_go_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let mut more = true;
        while more && may_go_on() {
            let now = self.clock.now();
            more = self.store.write(move |tx| complete_changes(tx, now)).await?;
        }
        Ok(())
    }

    async fn look_for_imports(&mut self, may_go_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        if may_go_on() {
            self.next_import_end = import_mark::next_end(&*self.store.fresh().await?)?;
        }
        Ok(())
    }

    async fn delete_expired(&mut self, may_go_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let mut more = true;
        while more && may_go_on() {
            more = delete_some(&mut self.expiring, &self.store, &self.clock).await?;
        }
        Ok(())
    }
}

/// Completes some of what requests and commands began. Returns whether there may be more.
fn complete_changes(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<bool> {
    Ok(import_mark::end_abandoned(tx, now)?
        || cascade_delete::delete_batch(tx)?
        || roles::continue_listing(tx)?)
}

/// Deletes what a search found.
type Deletion = Box<dyn Fn(&mut WriteTx<'_>) -> Result<()> + Send>;

/// Finds data that expired before a time, as much as one transaction deletes.
type Search = fn(&Snapshot, Timestamp) -> Result<Option<Deletion>>;

/// A kind of data that expires.
struct ExpiringData {
    /// How long the data is kept. `None` if it has an end of its own.
    retention: Option<Duration>,
    /// The time of the next search.
    next: Timestamp,
    search: Search,
}

impl ExpiringData {
    /// Returns all kinds. Entries of the activity log do not expire if no retention is set.
    fn all_of(config: &Config) -> Vec<Self> {
        let next = config.clock.now();
        let of = |retention, search: Search| Self { retention, next, search };
        let mut all = vec![of(None, find_responses), of(None, find_sessions)];
        if let Some(retention) = config.activity_retention {
            all.push(of(Some(retention), find_entries));
        }
        all
    }

    /// Deletes one transaction's worth of data if a search is due. Returns whether there may be more.
    async fn delete_some(&mut self, store: &Store, now: Timestamp) -> Result<bool> {
        // It is also due if the clock was set back since the last one.
        if self.next.is_end_of_current(CHECK_INTERVAL, now) {
            return Ok(false);
        }
        let (snapshot, search) = (store.fresh().await?, self.search);
        let cutoff = now.minus(self.retention.unwrap_or_default());
        let search = move || search(&snapshot, cutoff);
        let found = run_blocking(search).await??;
        let Some(delete) = found else {
            let interval = self.retention.map_or(CHECK_INTERVAL, |time| time.min(CHECK_INTERVAL));
            self.next = now.plus(interval);
            return Ok(false);
        };
        store.write(delete).await?;
        Ok(true)
    }
}

/// Deletes some data of each kind whose search is due, also if another kind fails. Returns whether there may be more.
async fn delete_some(expiring: &mut [ExpiringData], store: &Store, clock: &Clock) -> Result<bool> {
    let (mut more, mut failed) = (false, None);
    for kind in expiring {
        match kind.delete_some(store, clock.now()).await {
            Ok(some) => more |= some,
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(more), Err)
}

/// Finds entries of the activity log.
fn find_entries(tx: &Snapshot, cutoff: Timestamp) -> Result<Option<Deletion>> {
    let keys = activity::find_expired(tx, cutoff)?;
    if keys.is_empty() {
        return Ok(None);
    }
    Ok(Some(Box::new(move |tx: &mut WriteTx<'_>| activity::delete(tx, &keys))))
}

/// Finds idempotency keys with their stored responses.
fn find_responses(tx: &Snapshot, now: Timestamp) -> Result<Option<Deletion>> {
    if !idempotency::has_expired(tx, now)? {
        return Ok(None);
    }
    Ok(Some(Box::new(move |tx: &mut WriteTx<'_>| idempotency::delete_expired(tx, now))))
}

/// Finds console sessions that ended, and sign-in links that expired.
fn find_sessions(tx: &Snapshot, now: Timestamp) -> Result<Option<Deletion>> {
    Ok(sessions::find_ended(tx, now)?.map(|delete| Box::new(delete) as Deletion))
}

/// How long [`App::close`] waits for mails that are being sent.
const MAIL_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes a server a node of its shared database: it sends heartbeats, and claims the leases of what it can do. A command is
/// no node, and a data file has none.
///
/// # Errors
/// When a thread cannot be started.
pub(super) fn begin_as_node(
    store: &Store,
    config: &Config,
    is_server: bool,
    sends_mail: bool,
) -> Result<LeaseRenewal, OpenError> {
    if is_server {
        store.start_heartbeat()?;
    }
    let duties: &[Duty] = match (is_server, sends_mail) {
        (false, _) => &[],
        (true, false) => &[Duty::Maintenance],
        (true, true) => &[Duty::Mail, Duty::Maintenance],
    };
    Ok(LeaseRenewal::start(store, &config.clock, duties))
}

/// Logs a warning if the outbox has mails. Call it if no mail server is configured.
pub(super) fn warn_about_queued_mail(store: &Store) -> Result<()> {
    let waiting = outbox::queued_count(&*store.snapshot()?)?;
    if waiting > 0 {
        tracing::warn!(
            waiting,
            "the outbox has mails, but no mail server is configured (--smtp-url)"
        );
    }
    Ok(())
}

impl App {
    /// Wakes the background maintenance after a change that it must complete.
    #[doc(hidden)]
    pub fn wake_maintenance(&self) {
        self.0.maintenance.wake();
    }

    /// Does now what is due in the background: completes changes, deletes what expired, and sends mails.
    ///
    /// # Errors
    /// 503 if the data file is closed.
    pub(crate) async fn do_due_work(&self) -> Result<()> {
        for done in self.0.due_work.lock().await.run(&|| true).await {
            done?;
        }
        self.settle_mails().await;
        Ok(())
    }

    /// Waits until no mail is due. Returns when the next one is.
    pub(crate) async fn settle_mails(&self) -> Option<Timestamp> {
        let sign_in = match &self.0.mail_sign_in {
            Some(service) => service.settle().await,
            None => None,
        };
        let of_outbox = match &self.0.mail_worker {
            Some(worker) => worker.settle().await,
            None => None,
        };
        sign_in.into_iter().chain(of_outbox).min()
    }

    /// Restarts background deletion and mail after the data file was replaced.
    pub(crate) fn resume_after_restore(&self) {
        self.wake_maintenance();
        if let Some(worker) = &self.0.mail_worker {
            worker.wake();
        }
    }

    /// Lets nothing be done in the background until the result is dropped, except that mails are sent. First waits for what is
    /// being done, and for the mails that are due.
    #[doc(hidden)]
    pub async fn pause_background(&self) -> impl Drop {
        let paused = Arc::clone(&self.0.due_work).lock_owned().await;
        self.settle_mails().await;
        paused
    }

    /// Waits for mails that are being sent and for queued writes, then closes the data file. A node of a shared database
    /// releases its leases before, so that another node continues its work at once.
    pub async fn close(&self) {
        self.0.is_closing.store(true, Ordering::Relaxed);
        drop(self.0.due_work.lock().await);
        if let Some(worker) = &self.0.mail_worker
            && timeout(MAIL_SHUTDOWN_TIMEOUT, worker.stop()).await.is_err()
        {
            tracing::warn!(
                "the mail server does not answer; mails that are being sent may arrive twice"
            );
        }
        self.0.leases.stop().await;
        self.0.store.close().await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.maintenance.wake();
    }
}
