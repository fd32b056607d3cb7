//! Scheduled backups.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::base::error::Error;
use crate::base::tasks::run_blocking;
use crate::base::time::{Clock, Timestamp};
use crate::config::BackupConfig;
use crate::metrics::{Counter, Gauge, Series};
use crate::resources::record_registry;
use crate::store::{
    Backup, OpenError, Place, Progress, Store, WorkspaceId, remove_incomplete_backup,
};

use super::App;

/// The longest wait after a failed backup.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(5);
/// The ending of the name of a backup.
const BACKUP: &str = ".redb";
/// The endings of the names of what an interrupted backup leaves.
const INCOMPLETE: [&str; 2] = [".redb.creating", ".redb.lock"];

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

/// Fails if the backup folder has a backup, under the name of any data file. A workspace that does not exist has none: its
/// disk may not be mounted.
///
/// # Errors
/// Also when the folder cannot be read.
pub(crate) fn require_none(config: &BackupConfig, place: &Place) -> Result<(), OpenError> {
    let Some(folder) = &config.backup_dir else { return Ok(()) };
    let looked = |cause| OpenError::Io { doing: "look into", path: folder.clone(), cause };
    let is_backup = |name: &str| stamp(name.rsplit_once('-')?.1, BACKUP);
    match list(folder, is_backup).map_err(looked)?.pop() {
        Some((_, backup)) => Err(OpenError::Other(format!(
            "{place} has no data, but there is a backup of another workspace ({}); mount the disk of the data or restore the backup, \
             or found a new workspace with `steward init`",
            backup.display()
        ))),
        None => Ok(()),
    }
}

/// Returns the time in the last part of a backup's name.
fn stamp(text: &str, ending: &str) -> Option<Timestamp> {
    Timestamp::from_file_stamp(text.strip_suffix(ending)?)
}

/// Returns the files of a folder for whose names `moment` returns a time, oldest first.
fn list(
    folder: &Path,
    moment: impl Fn(&str) -> Option<Timestamp>,
) -> io::Result<Vec<(Timestamp, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let moment = entry.file_name().to_str().and_then(&moment);
        found.extend(moment.map(|moment| (moment, entry.path())));
    }
    found.sort();
    Ok(found)
}

/// The backups of one workspace, in a folder that may have those of others.
#[derive(Clone)]
struct BackupFolder {
    folder: PathBuf,
    /// The prefix of the file names.
    prefix: String,
    workspace: WorkspaceId,
    max_backups: usize,
}

impl BackupFolder {
    /// Returns the path of a backup that begins at `now`.
    fn path(&self, now: Timestamp) -> PathBuf {
        self.folder.join(format!("{}{}{BACKUP}", self.prefix, now.to_file_stamp()))
    }

    /// Returns the files with our prefix, a timestamp and this ending, oldest first.
    fn list(&self, ending: &str) -> io::Result<Vec<(Timestamp, PathBuf)>> {
        list(&self.folder, |name| stamp(name.strip_prefix(&self.prefix)?, ending))
    }

    /// Returns the backups of the workspace that are not from after `now`, oldest first. A later stamp is that of a wrong
    /// clock, and does not tell which backup is older.
    fn list_own(&self, now: Timestamp) -> io::Result<Vec<(Timestamp, PathBuf)>> {
        let mut found = self.list(BACKUP)?;
        found.retain(|(moment, file)| *moment <= now && self.is_own(file));
        Ok(found)
    }

    fn is_own(&self, file: &Path) -> bool {
        match WorkspaceId::of(file) {
            Ok(workspace) => workspace == self.workspace,
            Err(error) => {
                tracing::warn!(%error, "a backup cannot be read, and stays");
                false
            }
        }
    }

    /// Removes what interrupted backups left. Another server may write into the same folder.
    fn remove_incomplete(&self) -> io::Result<()> {
        for ending in INCOMPLETE {
            for (_, file) in self.list(ending)? {
                if let Err(error) = remove_incomplete_backup(&file.with_extension("")) {
                    tracing::warn!(%error, "what an interrupted backup left could not be removed");
                }
            }
        }
        Ok(())
    }

    /// Removes the oldest backups of the workspace beyond the limit. Keeps `made`, whatever its stamp.
    fn remove_oldest(&self, made: &Path, now: Timestamp) -> io::Result<()> {
        let mut others = self.list_own(now)?;
        others.retain(|(_, file)| file != made);
        others.truncate(others.len().saturating_sub(self.max_backups.saturating_sub(1)));
        others.into_iter().try_for_each(|(_, file)| fs::remove_file(file))
    }
}

/// Creates scheduled backups and removes the oldest ones beyond the limit.
pub(super) struct BackupScheduler {
    clock: Clock,
    folder: BackupFolder,
    every: Duration,
    next: Timestamp,
    /// The time of the newest backup, in seconds since 1970.
    last_created_at: Gauge,
    last_backup: Arc<ArcSwapOption<Timestamp>>,
    failures: Counter,
}

impl BackupScheduler {
    /// Returns the scheduler, or `None` if backups are disabled. The first backup is due when the newest one
    /// of the workspace in the folder is old enough.
    pub(super) fn of(app: &App) -> Result<Option<Self>, OpenError> {
        let (config, clock) = (&app.0.config.backups, app.0.clock.clone());
        let metrics = &app.0.config.metrics;
        let last_created_at = metrics.gauge(Series::BACKUP_AT, &[]);
        let failures = metrics.counter(Series::BACKUP_FAILURES, &[]);
        let Some(path) = create_folder(config)? else { return Ok(None) };
        let looked = |cause| OpenError::Io { doing: "look into", path: path.clone(), cause };
        let stem = app.0.store.path().file_stem().unwrap_or(OsStr::new("steward"));
        let folder = BackupFolder {
            folder: path.clone(),
            prefix: format!("{}-", stem.to_string_lossy()),
            workspace: app.0.store.workspace()?,
            max_backups: usize::try_from(config.backup_keep).unwrap_or(usize::MAX),
        };
        folder.remove_incomplete().map_err(looked)?;
        let now = clock.now();
        let newest = folder.list_own(now).map_err(looked)?.pop().map(|(moment, _)| moment);
        let every = config.backup_every;
        let next = newest.map_or(now, |moment| moment.plus(every));
        let last_backup = Arc::clone(&app.0.last_backup);
        let scheduler = Self { clock, folder, every, next, last_created_at, last_backup, failures };
        if let Some(moment) = newest {
            scheduler.note(moment);
        }
        Ok(Some(scheduler))
    }

    pub(super) async fn is_due(&self) {
        self.clock.wait_until(self.next, self.every).await;
    }

    /// Creates a backup and removes the oldest ones beyond the limit. Failures are logged and retried.
    pub(super) async fn create(&mut self, store: &Store) {
        let now = self.clock.now();
        let file = self.folder.path(now);
        match store.backup(file, record_registry(), Progress::silent()).await {
            Ok(Backup { file, .. }) => {
                self.note(now);
                tracing::info!(%file, "backup created");
                self.next = now.plus(self.every);
                if let Err(error) = self.remove_oldest(file.0, now).await {
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

    /// Reading the backups may take long on a slow disk.
    async fn remove_oldest(&self, made: PathBuf, now: Timestamp) -> Result<(), Error> {
        let folder = self.folder.clone();
        let remove = move || folder.remove_oldest(&made, now);
        run_blocking(remove).await?.map_err(Error::internal)
    }

    fn note(&self, created_at: Timestamp) {
        self.last_backup.store(Some(Arc::new(created_at)));
        self.last_created_at.set(Duration::from_millis(created_at.millis()).as_secs_f64());
    }
}
