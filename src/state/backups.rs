//! Scheduled backups.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::config::BackupConfig;
use crate::metrics::{Counter, Gauge, Series};
use crate::resources::record_registry;
use crate::store::{Backup, OpenError, Progress, Store};
use crate::time::{Clock, Timestamp};

use super::App;

/// The longest wait after a failed backup.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(5);

/// Creates the backup folder if it is missing. Returns its path, or `None` if backups are disabled.
///
/// # Errors
/// If the folder cannot be created.
pub(crate) fn create_folder(config: &BackupConfig) -> Result<Option<PathBuf>, OpenError> {
    let Some(folder) = &config.backup_dir else { return Ok(None) };
    let created = fs::create_dir_all(folder);
    created.map_err(|cause| OpenError::Io { doing: "create", path: folder.clone(), cause })?;
    Ok(Some(folder.clone()))
}

/// Creates scheduled backups and removes the oldest ones beyond the limit.
pub(super) struct BackupScheduler {
    clock: Clock,
    /// The backup folder.
    folder: PathBuf,
    /// The prefix of the file names.
    prefix: String,
    every: Duration,
    max_backups: usize,
    next: Timestamp,
    /// The time of the newest backup, in seconds since 1970.
    last_created_at: Gauge,
    last_backup: Arc<ArcSwapOption<Timestamp>>,
    failures: Counter,
}

impl BackupScheduler {
    /// Returns the scheduler, or `None` if backups are disabled. The first backup is due when the newest one
    /// in the folder is old enough.
    pub(super) fn of(app: &App) -> Result<Option<Self>, OpenError> {
        let (config, clock) = (&app.0.config.backups, app.0.clock.clone());
        let metrics = &app.0.config.metrics;
        let last_created_at = metrics.gauge(Series::BACKUP_AT, &[]);
        let failures = metrics.counter(Series::BACKUP_FAILURES, &[]);
        let Some(folder) = create_folder(config)? else { return Ok(None) };
        let looked = |cause| OpenError::Io { doing: "look into", path: folder.clone(), cause };
        let stem = app.0.store.path().file_stem().unwrap_or(OsStr::new("steward"));
        let keeper = Self {
            last_created_at,
            last_backup: app.last_backup(),
            failures,
            next: clock.now(),
            clock,
            folder: folder.clone(),
            prefix: format!("{}-", stem.to_string_lossy()),
            every: config.backup_every,
            max_backups: usize::try_from(config.backup_keep).unwrap_or(usize::MAX),
        };
        for (_, cut_off) in keeper.list_backups(".redb.creating").map_err(looked)? {
            fs::remove_file(cut_off).map_err(looked)?;
        }
        let newest = keeper.list_backups(".redb").map_err(looked)?.pop().map(|(moment, _)| moment);
        if let Some(moment) = newest {
            keeper.note(moment);
        }
        let next = newest.map_or(keeper.next, |moment| moment.plus(keeper.every));
        Ok(Some(Self { next, ..keeper }))
    }

    pub(super) async fn is_due(&self) {
        self.clock.wait_until(self.next).await;
    }

    /// Creates a backup and removes the oldest ones beyond the limit. Failures are logged and retried.
    pub(super) async fn create(&mut self, store: &Store) {
        let now = self.clock.now();
        let file = self.folder.join(format!("{}{}.redb", self.prefix, now.to_file_stamp()));
        match store.backup(file, record_registry(), Progress::silent()).await {
            Ok(Backup { file, .. }) => {
                self.note(now);
                tracing::info!(%file, "backup created");
                self.next = now.plus(self.every);
                if let Err(error) = self.remove_oldest() {
                    tracing::warn!(%error, "an old backup could not be removed");
                }
            }
            Err(error) => {
                self.failures.increment(1);
                tracing::error!(%error, "backup failed");
                self.next = now.plus(self.every.min(MAX_RETRY_DELAY));
            }
        }
    }

    fn note(&self, created_at: Timestamp) {
        self.last_backup.store(Some(Arc::new(created_at)));
        self.last_created_at.set(Duration::from_millis(created_at.millis()).as_secs_f64());
    }

    fn remove_oldest(&self) -> io::Result<()> {
        let mut found = self.list_backups(".redb")?;
        found.truncate(found.len().saturating_sub(self.max_backups));
        found.into_iter().try_for_each(|(_, file)| fs::remove_file(file))
    }

    /// Returns the files of the folder with our prefix, a timestamp and this ending, oldest first.
    fn list_backups(&self, ending: &str) -> io::Result<Vec<(Timestamp, PathBuf)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let moment = entry.file_name().to_str().and_then(|name| {
                Timestamp::from_file_stamp(name.strip_prefix(&self.prefix)?.strip_suffix(ending)?)
            });
            found.extend(moment.map(|moment| (moment, entry.path())));
        }
        found.sort();
        Ok(found)
    }
}
