//! Scheduled backups of the server.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{output_path, parse_duration};

/// The configuration of scheduled backups. There are none without a folder.
#[derive(Debug, Clone, Args)]
#[non_exhaustive]
#[expect(clippy::struct_field_names, reason = "the names of the flags")]
pub struct BackupConfig {
    /// Write scheduled backups into this folder. Each file is named after the data file and the time. Every server
    /// needs a folder of its own. By default there are no scheduled backups.
    #[arg(long, env = "STEWARD_BACKUP_DIR", value_name = "FOLDER", value_parser = output_path())]
    pub backup_dir: Option<PathBuf>,

    /// The time between two backups.
    #[arg(long, env = "STEWARD_BACKUP_EVERY", value_name = "TIME", default_value = "6h", value_parser = parse_duration, requires = "backup_dir")]
    pub backup_every: Duration,

    /// How many backups of this data file to keep; the oldest are deleted.
    #[arg(long, env = "STEWARD_BACKUP_KEEP", value_name = "N", default_value = "7", value_parser = clap::value_parser!(u32).range(1..), requires = "backup_dir")]
    pub backup_keep: u32,
}

impl Default for BackupConfig {
    fn default() -> Self {
        Self { backup_dir: None, backup_every: Duration::from_hours(6), backup_keep: 7 }
    }
}
