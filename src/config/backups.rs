//! Which backups the server makes by itself.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

/// Which backups the server makes by itself; none, where no folder is named.
#[derive(Debug, Clone, Args)]
#[non_exhaustive]
pub struct BackupConfig {
    /// A folder to write backups into by itself, each a file named after the data file and the moment. Give each server
    /// a folder of its own. By default none are made.
    #[arg(long, env = "STEWARD_BACKUP_DIR", value_name = "FOLDER")]
    pub backup_dir: Option<PathBuf>,

    /// How often a backup is made.
    #[arg(long, env = "STEWARD_BACKUP_EVERY", value_name = "TIME", default_value = "6h", value_parser = duration, requires = "backup_dir")]
    pub backup_every: Duration,

    /// How many backups of this data file stay in the folder; the oldest ones go.
    #[arg(long, env = "STEWARD_BACKUP_KEEP", value_name = "N", default_value = "7", value_parser = clap::value_parser!(u32).range(1..), requires = "backup_dir")]
    pub backup_keep: u32,
}

impl Default for BackupConfig {
    fn default() -> Self {
        Self { backup_dir: None, backup_every: Duration::from_hours(6), backup_keep: 7 }
    }
}
