//! The file of passwords that PostgreSQL's own clients read: lines of `host:port:database:user:password`.
//!
//! It is read at each connection, so that a password can change while a node runs.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::store::origin::Fault;

/// The largest file, in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// Where the password of one server is.
#[derive(Clone)]
pub(in crate::store::origin::postgres) struct PasswordFile {
    pub(in crate::store::origin::postgres) path: PathBuf,
    /// Whether an operator named the file, so that it must exist.
    pub(super) is_named: bool,
    /// The name of the host or the folder of the socket, the port, the database and the user.
    pub(super) of: [String; 4],
}

impl PasswordFile {
    /// Returns the password, or `None` if the file has none for this server, or if nobody named the file and it cannot be
    /// opened: it may be that of another user.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the file cannot be read, or others may read it. The text has no password.
    pub(super) fn read(&self) -> Result<Option<String>, Fault> {
        let refused = |why: &str| {
            Err(Fault::Refused(format!("the password file {}: {why}", self.path.display())))
        };
        // Opening anything but a file can wait without end.
        let opened = std::fs::metadata(&self.path).and_then(|about| {
            if about.is_file() { File::open(&self.path) } else { Err(not_a_file()) }
        });
        let file = match opened {
            Ok(file) => file,
            Err(_) if !self.is_named => return Ok(None),
            Err(error) => return refused(&error.to_string()),
        };
        match file.metadata() {
            Ok(about) if about.mode() & 0o077 != 0 => {
                return refused("other users may read it; run chmod 600 on it");
            }
            _ => {}
        }
        let mut text = String::new();
        match file.take(MAX_SIZE).read_to_string(&mut text) {
            Ok(_) => Ok(self.find(&text)),
            Err(error) => refused(&error.to_string()),
        }
    }

    fn find(&self, text: &str) -> Option<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(fields).find_map(|fields| {
            let (password, names) = fields.split_last()?;
            let is_own = names.len() == self.of.len()
                && names.iter().zip(&self.of).all(|(name, own)| name == "*" || name == own);
            is_own.then(|| password.clone())
        })
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Splits a line at its colons. A backslash takes a colon or a backslash as it is.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut chars) = (Vec::new(), String::new(), line.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => field.extend(chars.next()),
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn of(path: PathBuf, of: [&str; 4]) -> PasswordFile {
        PasswordFile { path, is_named: true, of: of.map(str::to_owned) }
    }

    #[test]
    fn first_line_that_fits_has_the_password() {
        let text = "# a comment\n\ndb:5432:x:bob:1\ndb:5433:x:ann:2\n[odd\ndb:*:*:ann:a\\:b\\\\c:d\n*:*:*:*:last\n";
        for (server, password) in [
            (["db", "5432", "x", "bob"], "1"),
            (["db", "5433", "x", "ann"], "2"),
            (["db", "5432", "x", "ann"], "a:b\\c:d"),
            (["other", "1", "y", "eve"], "last"),
        ] {
            let found = of(PathBuf::new(), server).find(text);
            assert_eq!(found.as_deref(), Some(password), "{server:?}");
        }
        assert_eq!(of(PathBuf::new(), ["db", "1", "y", "eve"]).find("db:2:y:eve:1\n"), None);
    }

    #[test]
    fn file_that_others_may_read_or_that_is_missing_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pass");
        let server = ["db", "5432", "x", "ann"];
        let why = of(path.clone(), server).read().expect_err("no file").to_string();
        assert!(why.contains("pass"), "{why}");
        let why = of(folder.path().to_owned(), server).read().expect_err("a folder").to_string();
        assert!(why.contains("not a regular file"), "{why}");
        let usual = PasswordFile { is_named: false, ..of(path.clone(), server) };
        assert!(matches!(usual.read(), Ok(None)));
        std::fs::write(&path, "*:*:*:*:hunter2\n").expect("a file");
        for (mode, is_read) in [(0o644, false), (0o640, false), (0o600, true), (0o400, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a file");
            match usual.read() {
                Ok(found) => assert!(is_read && found.as_deref() == Some("hunter2"), "{mode:o}"),
                Err(fault) => {
                    let why = fault.to_string();
                    assert!(!is_read && why.contains("chmod 600") && !why.contains("hunter2"));
                }
            }
        }
    }
}
