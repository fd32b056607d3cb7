//! What is done in the background for as long as the service is there: sweeping what removed organizations
//! and projects left behind, removing entries of the activity log and answers that were kept long enough,
//! and backups.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::idempotency;
use crate::resources::{activity, sweeps};
use crate::store::{OpenError, Store};
use crate::time::{Clock, Timestamp};

use super::App;
use super::backups::BackupKeeper;

/// How long it waits where it could not go on.
const RETRY: Duration = Duration::from_secs(5);
/// How often it looks for what was kept long enough, at the least.
const LOOK: Duration = Duration::from_hours(1);

impl App {
    /// Keeps house, a bounded piece a transaction.
    ///
    /// # Errors
    /// When the folder of backups cannot be made or read.
    pub(super) fn keep_house(&self) -> Result<(), OpenError> {
        let (store, due) = (self.0.store.clone(), Arc::clone(&self.0.sweep));
        let inner = Arc::downgrade(&self.0);
        let (mut log, mut replies) = (LogKeeper::of(self), ReplyKeeper::of(self));
        self.keep_backups()?;
        due.notify_one();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = due.notified() => {}
                    () = log.is_due() => {}
                    () = replies.is_due() => {}
                }
                let mut more = true;
                while more && inner.strong_count() > 0 {
                    more = match store.write(sweeps::sweep).await {
                        Ok(more) => more,
                        Err(error) => retry(&error).await,
                    };
                }
                more = true;
                while more && inner.strong_count() > 0 {
                    more = match remove_old(&store, &mut log, &mut replies).await {
                        Ok(more) => more,
                        Err(error) => retry(&error).await,
                    };
                }
                if inner.strong_count() == 0 {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Makes backups, on a task of its own: they go on where nothing can be swept.
    fn keep_backups(&self) -> Result<(), OpenError> {
        let Some(mut backups) = BackupKeeper::of(self)? else { return Ok(()) };
        let inner = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                backups.is_due().await;
                let Some(store) = inner.upgrade().map(|inner| inner.store.clone()) else { return };
                backups.make(&store).await;
            }
        });
        Ok(())
    }
}

/// Removes a piece of what was kept long enough; answers whether there may be more.
async fn remove_old(store: &Store, log: &mut LogKeeper, replies: &mut ReplyKeeper) -> Result<bool> {
    let more = log.remove_some(store).await?;
    Ok(replies.remove_some(store).await? || more)
}

/// Waits, and wants another try.
async fn retry(error: &Error) -> bool {
    tracing::warn!(%error, "what is removed was not swept; trying again");
    tokio::time::sleep(RETRY).await;
    true
}

/// Removes entries of the activity log when they were kept long enough.
struct LogKeeper {
    clock: Clock,
    /// How long they are kept; none for ever.
    retention: Option<Duration>,
    /// When it looks again.
    next: Timestamp,
}

impl LogKeeper {
    fn of(app: &App) -> Self {
        let clock = app.0.clock.clone();
        Self { next: clock.now(), clock, retention: app.0.config.activity_retention }
    }

    async fn is_due(&self) {
        match self.retention {
            Some(_) => self.clock.reaches(self.next).await,
            None => pending().await,
        }
    }

    /// Removes as many as one transaction does, where it is time; answers whether there may be more.
    async fn remove_some(&mut self, store: &Store) -> Result<bool> {
        let now = self.clock.now();
        let Some(retention) = self.retention.filter(|_| now >= self.next) else {
            return Ok(false);
        };
        let (snapshot, cutoff) = (store.snapshot()?, now.minus(retention));
        let look = move || activity::due(&*snapshot, cutoff);
        let keys = tokio::task::spawn_blocking(look).await.map_err(Error::internal)??;
        if keys.is_empty() {
            self.next = now.plus(retention.min(LOOK));
            return Ok(false);
        }
        store.write(move |tx| activity::expire(tx, &keys)).await?;
        Ok(true)
    }
}

/// Forgets answers to requests that are done once when they are over their time.
struct ReplyKeeper {
    clock: Clock,
    /// When it looks again.
    next: Timestamp,
}

impl ReplyKeeper {
    fn of(app: &App) -> Self {
        let clock = app.0.clock.clone();
        Self { next: clock.now(), clock }
    }

    async fn is_due(&self) {
        self.clock.reaches(self.next).await;
    }

    /// Forgets as many as one transaction does, where it is time; answers whether there may be more.
    async fn remove_some(&mut self, store: &Store) -> Result<bool> {
        let now = self.clock.now();
        if now < self.next {
            return Ok(false);
        }
        let snapshot = store.snapshot()?;
        let look = move || idempotency::is_due(&*snapshot, now);
        let due = tokio::task::spawn_blocking(look).await.map_err(Error::internal)??;
        if due && store.write(move |tx| idempotency::forget_some(tx, now)).await? {
            return Ok(true);
        }
        self.next = now.plus(LOOK);
        Ok(false)
    }
}
