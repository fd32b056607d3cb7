//! Why a data file could not be opened, created or replaced, as messages for the operator.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::error::Error;

/// Why a data file could not be opened, created or replaced. Each message is one line that says what to do.
#[derive(Debug)]
pub enum OpenError {
    /// Another process is using the file.
    InUse(PathBuf),
    /// The file does not exist.
    Missing(PathBuf),
    /// A file to be created already exists.
    Exists(PathBuf),
    /// The path names something other than a regular file, such as a folder or a device.
    NotAFile(PathBuf),
    /// The file belongs to another program.
    Foreign(PathBuf),
    /// The file was written by a newer release.
    Newer {
        /// The path of the file.
        path: PathBuf,
        /// Its format, or its table, that only a newer release reads.
        what: String,
    },
    /// redb cannot open the file, for example because it was cut off.
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The message of redb.
        cause: String,
    },
    /// The operating system reported an error.
    Io {
        /// The attempted action, as a verb.
        doing: &'static str,
        /// The path of the action.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// The file at the path of the copy is a data file of its own.
    NotACopy(PathBuf),
    /// The file at the path of the data file is a copy of a shared database.
    IsCopy(PathBuf),
    /// The shared database cannot be reached now.
    Unreachable {
        /// The database, without a password.
        database: String,
        /// What the connection reports.
        cause: String,
    },
    /// The shared database holds no workspace.
    NoWorkspace(String),
    /// The shared database already holds a workspace.
    HasWorkspace(String),
    /// A setting of the connection to the shared database is not valid.
    DatabaseSetting {
        /// The database, without a password.
        database: String,
        /// What is wrong. It names the setting.
        cause: String,
    },
    /// The shared database cannot be used as it is.
    Database {
        /// The database, without a password.
        database: String,
        /// What is wrong.
        cause: String,
    },
    /// A rule refused the content of a new file.
    Refused(Error),
    /// Another reason, as the whole message.
    Other(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => {
                write!(f, "{} is in use by another steward process", path.display())
            }
            Self::Missing(path) => write!(
                f,
                "{} does not exist; `steward serve` or `steward init` creates it",
                path.display()
            ),
            Self::Exists(path) => {
                write!(f, "{} already exists and was not changed", path.display())
            }
            Self::NotAFile(path) => {
                write!(
                    f,
                    "{} is not a regular file; --data takes the path of a file",
                    path.display()
                )
            }
            Self::Foreign(path) => write!(
                f,
                "{} is not a Steward data file and was left untouched; choose another path with --data",
                path.display()
            ),
            Self::Newer { path, what } => write!(
                f,
                "{} has {what}; use the release that wrote it, or a newer one",
                path.display()
            ),
            Self::Damaged { path, cause } => write!(
                f,
                "{} is damaged and was left untouched ({cause}); restore it from a backup",
                path.display()
            ),
            Self::Io { doing, path, cause } => {
                write!(f, "cannot {doing} {}: {cause}", path.display())
            }
            Self::NotACopy(path) => write!(
                f,
                "{} is a data file of its own and no copy of a database; choose another path with --copy",
                path.display()
            ),
            Self::IsCopy(path) => write!(
                f,
                "{} is a node's copy of a database; pass the database with --data, or write a data file with `steward backup`",
                path.display()
            ),
            Self::Unreachable { database, cause } => write!(f, "cannot reach {database}: {cause}"),
            Self::NoWorkspace(database) => write!(
                f,
                "{database} holds no workspace; `steward init` creates one, as does one node that starts with `steward serve --found`"
            ),
            Self::HasWorkspace(database) => {
                write!(f, "{database} already holds a workspace and was not changed")
            }
            Self::DatabaseSetting { database, cause } => write!(f, "--data {database}: {cause}"),
            Self::Database { database, cause } => write!(f, "cannot use {database}: {cause}"),
            Self::Refused(error) => error.fmt(f),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl OpenError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Io { doing, path, cause }
    }

    /// Returns the same error about another file: the original of a copy.
    pub(in crate::store) fn with_path(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Foreign(_) => Self::Foreign(path),
            Self::Newer { what, .. } => Self::Newer { path, what },
            Self::Damaged { cause, .. } => Self::Damaged { path, cause },
            error => error,
        }
    }

    /// Returns the same error about a backup, which nothing creates and for which `--data` is no way out.
    pub(crate) fn of_backup(self) -> Self {
        let (path, problem) = match self {
            Self::Missing(path) => (path, "does not exist"),
            Self::NotAFile(path) => (path, "is not a regular file"),
            Self::Foreign(path) => (path, "is not a Steward data file"),
            error => return error,
        };
        let shown = path.display();
        Self::Other(format!("{shown} {problem}; name a file that `steward backup` wrote"))
    }

    pub(in crate::store) fn damaged(path: &Path, cause: &impl fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), cause: cause.to_string() }
    }
}
