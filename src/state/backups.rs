//! The backups that the server makes by itself.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::BackupConfig;
use crate::meters::{Counter, Gauge, Series};
use crate::resources::checks;
use crate::store::{Backup, OpenError, Progress, Store};
use crate::time::{Clock, Timestamp};

use super::App;

/// How long it waits at the most after a backup that failed.
const RETRY: Duration = Duration::from_mins(5);

/// The folder of the backups, made where it is not there; none where none are made.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn prepared_folder(config: &BackupConfig) -> Result<Option<PathBuf>, OpenError> {
    let Some(folder) = &config.backup_dir else { return Ok(None) };
    let made = fs::create_dir_all(folder);
    made.map_err(|cause| OpenError::Io { doing: "create", path: folder.clone(), cause })?;
    Ok(Some(folder.clone()))
}

/// Makes a backup whenever one is due, and removes those that are too many.
pub(super) struct BackupKeeper {
    clock: Clock,
    /// Where they lie.
    folder: PathBuf,
    /// What their names begin with.
    prefix: String,
    every: Duration,
    keep: usize,
    next: Timestamp,
    /// When the newest one was made, in seconds.
    made_at: Gauge,
    failures: Counter,
}

impl BackupKeeper {
    /// The first backup is due when the newest one in the folder is old enough. None where none are made.
    pub(super) fn of(app: &App) -> Result<Option<Self>, OpenError> {
        let (config, clock) = (&app.0.config.backups, app.0.clock.clone());
        let meters = &app.0.config.meters;
        let made_at = meters.gauge(Series::BACKUP_AT, &[]);
        let failures = meters.counter(Series::BACKUP_FAILURES, &[]);
        let Some(folder) = prepared_folder(config)? else { return Ok(None) };
        let looked = |cause| OpenError::Io { doing: "look into", path: folder.clone(), cause };
        let stem = app.0.store.path().file_stem().unwrap_or(OsStr::new("steward"));
        let keeper = Self {
            made_at,
            failures,
            next: clock.now(),
            clock,
            folder: folder.clone(),
            prefix: format!("{}-", stem.to_string_lossy()),
            every: config.backup_every,
            keep: usize::try_from(config.backup_keep).unwrap_or(usize::MAX),
        };
        for (_, cut_off) in keeper.found(".redb.creating").map_err(looked)? {
            fs::remove_file(cut_off).map_err(looked)?;
        }
        let newest = keeper.found(".redb").map_err(looked)?.pop().map(|(moment, _)| moment);
        if let Some(moment) = newest {
            keeper.note(moment);
        }
        let next = newest.map_or(keeper.next, |moment| moment.plus(keeper.every));
        Ok(Some(Self { next, ..keeper }))
    }

    pub(super) async fn is_due(&self) {
        self.clock.reaches(self.next).await;
    }

    /// Makes one.
    pub(super) async fn make(&mut self, store: &Store) {
        let now = self.clock.now();
        let file = self.folder.join(format!("{}{}.redb", self.prefix, now.stamp()));
        match store.backup(file, checks(), Progress::unheard()).await {
            Ok(Backup { file, .. }) => {
                self.note(now);
                tracing::info!(file = %file.display(), "a backup was made");
                self.next = now.plus(self.every);
                if let Err(error) = self.remove_oldest() {
                    tracing::warn!(%error, "an old backup was not removed");
                }
            }
            Err(error) => {
                self.failures.increment(1);
                tracing::error!(%error, "no backup was made");
                self.next = now.plus(self.every.min(RETRY));
            }
        }
    }

    fn note(&self, made: Timestamp) {
        self.made_at.set(Duration::from_millis(made.millis()).as_secs_f64());
    }

    fn remove_oldest(&self) -> io::Result<()> {
        let mut found = self.found(".redb")?;
        found.truncate(found.len().saturating_sub(self.keep));
        found.into_iter().try_for_each(|(_, file)| fs::remove_file(file))
    }

    /// The backups in the folder whose names end so, oldest first. Files of other names are not ours.
    fn found(&self, ending: &str) -> io::Result<Vec<(Timestamp, PathBuf)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let moment = entry.file_name().to_str().and_then(|name| {
                Timestamp::of_stamp(name.strip_prefix(&self.prefix)?.strip_suffix(ending)?)
            });
            found.extend(moment.map(|moment| (moment, entry.path())));
        }
        found.sort();
        Ok(found)
    }
}
