//! Why a data file could not be opened, made or replaced, in words for an operator.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;

use super::schema::FORMAT;

/// Why a data file could not be opened or created. Each is one line that says what to do.
#[derive(Debug)]
pub enum OpenError {
    /// Another process serves or works on the file.
    InUse(PathBuf),
    /// There is no file, and none was to be made.
    Missing(PathBuf),
    /// There is a file already, and one was to be made.
    Exists(PathBuf),
    /// The path names a folder or a device.
    NotAFile(PathBuf),
    /// The file is something else's.
    Foreign(PathBuf),
    /// The file was written by a newer release.
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u64,
    },
    /// The file is cut off or otherwise beyond what redb can open.
    Damaged {
        /// The file.
        path: PathBuf,
        /// redb's own words.
        cause: String,
    },
    /// The file opens, and what it holds does not hold together.
    Unsound {
        /// The file.
        path: PathBuf,
        /// The first of its problems.
        problem: String,
        /// How many there are in all.
        count: u64,
    },
    /// The operating system refuses.
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// On which path.
        path: PathBuf,
        /// Its answer.
        cause: io::Error,
    },
    /// A rule refused what was to be put into a new file.
    Refused(Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => {
                write!(f, "{} is in use by another steward process", path.display())
            }
            Self::Missing(path) => write!(
                f,
                "{} does not exist; `steward serve` or `steward init` makes it",
                path.display()
            ),
            Self::Exists(path) => {
                write!(f, "{} exists already and was left as it is", path.display())
            }
            Self::NotAFile(path) => {
                write!(f, "{} is no regular file; --data takes the path of a file", path.display())
            }
            Self::Foreign(path) => write!(
                f,
                "{} is not a Steward data file and was left untouched; choose another path with --data",
                path.display()
            ),
            Self::Newer { path, found } => write!(
                f,
                "{} has format {found}, this release reads up to {FORMAT}; use the release that wrote it, or a newer one",
                path.display()
            ),
            Self::Damaged { path, cause } => write!(
                f,
                "{} is damaged and was left untouched ({cause}); restore it from a backup",
                path.display()
            ),
            Self::Unsound { path, problem, count } => write!(
                f,
                "nothing was written, for {} would not hold together ({problem}; problems in all: {count}); see `steward check`",
                path.display()
            ),
            Self::Io { doing, path, cause } => {
                write!(f, "cannot {doing} {}: {cause}", path.display())
            }
            Self::Refused(error) => error.fmt(f),
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
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Io { doing, path, cause }
    }

    /// The same of another file, of which the one at fault is a copy.
    pub(super) fn told_of(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Foreign(_) => Self::Foreign(path),
            Self::Newer { found, .. } => Self::Newer { path, found },
            Self::Damaged { cause, .. } => Self::Damaged { path, cause },
            error => error,
        }
    }

    pub(super) fn damaged(path: &Path, cause: &impl fmt::Display) -> Self {
        Self::Damaged { path: path.to_owned(), cause: cause.to_string() }
    }
}
