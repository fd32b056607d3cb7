//! Settings that a URL leaves out: from PostgreSQL's variables and its file of passwords, as its own clients read them; and TLS to
//! the database.
//!
//! The file has lines of `host:port:database:user:password`. It is read at each connection, so that a password can change while a
//! node runs.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::net::trust_anchors::{
    client_config, read_certificates, read_identity, system_certificates,
};
use crate::store::disk::place::DatabaseUrl;
use crate::store::origin::Fault;

/// Variables by which PostgreSQL's own clients find or check a server, and which this program does not read.
const UNREAD: [&str; 6] =
    ["PGSERVICE", "PGHOSTADDR", "PGREQUIREAUTH", "PGREQUIREPEER", "PGSSLCRL", "PGSSLCRLDIR"];

/// A URL, and the variables of the environment. An empty variable counts as unset.
pub(super) struct Settings<'u> {
    url: &'u DatabaseUrl,
    variable: Box<Variable<'u>>,
}

/// Returns the value of a variable.
type Variable<'u> = dyn Fn(&str) -> Option<String> + 'u;

impl<'u> Settings<'u> {
    pub(super) fn with(
        url: &'u DatabaseUrl,
        variable: impl Fn(&str) -> Option<String> + 'u,
    ) -> Self {
        Self { url, variable: Box::new(variable) }
    }

    /// Returns the value of a variable.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// Returns a parameter of the URL, or the variable that stands for it.
    pub(super) fn parameter(&self, name: &str, variable: &str) -> Option<String> {
        let given = self.url.parameter(name).filter(|value| !value.is_empty());
        let decoded = given.map(|value| percent_decode_str(value).decode_utf8_lossy().into_owned());
        decoded.or_else(|| self.variable(variable))
    }

    /// Adds what the URL leaves out and the variables have.
    ///
    /// # Errors
    /// [`Fault::Refused`] names a variable whose value is not valid. A variable that is not read is refused too: without it, this
    /// could be another server than the operator means.
    pub(super) fn complete(&self, parsed: &mut Config) -> Result<(), Fault> {
        if let Some(name) = UNREAD.iter().find(|name| self.variable(name).is_some()) {
            return Err(Fault::Refused(format!(
                "the variable {name} is set, and Steward does not read it; unset it, and write what it stands for in --data"
            )));
        }
        if parsed.get_hosts().is_empty() {
            let named = self.variable("PGHOST").unwrap_or_default();
            for host in named.split(',').map(str::trim).filter(|host| !host.is_empty()) {
                // A path is the folder of a socket.
                parsed.host(host);
            }
        }
        let unless = |is_given: bool, name: &str| self.variable(name).filter(|_| !is_given);
        let has_user = parsed.get_user().is_some_and(|user| !user.is_empty());
        if let Some(user) = unless(has_user, "PGUSER") {
            parsed.user(user);
        }
        if let Some(name) = unless(parsed.get_dbname().is_some(), "PGDATABASE") {
            parsed.dbname(name);
        }
        if let Some(password) = unless(parsed.get_password().is_some(), "PGPASSWORD") {
            parsed.password(password);
        }
        if let Some(options) = unless(parsed.get_options().is_some(), "PGOPTIONS") {
            parsed.options(options);
        }
        let has_limit = parsed.get_connect_timeout().is_some();
        if let Some(limit) = unless(has_limit, "PGCONNECT_TIMEOUT") {
            let seconds = number("PGCONNECT_TIMEOUT", &limit)?;
            if seconds > 0 {
                parsed.connect_timeout(Duration::from_secs(seconds.into()));
            }
        }
        Ok(())
    }

    /// Returns the ports of the servers, or one for all: those of the URL, or of the variable if the URL has none.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the variable is not valid.
    pub(super) fn ports(&self, parsed: &Config) -> Result<Vec<u16>, Fault> {
        match self.variable("PGPORT").filter(|_| !self.url.has_port()) {
            Some(named) => named.split(',').map(|port| number("PGPORT", port)).collect(),
            None => Ok(parsed.get_ports().to_vec()),
        }
    }

    /// Returns the file with passwords, and whether it was named. If not, it need not exist.
    pub(super) fn password_file(&self) -> Option<(PathBuf, bool)> {
        let named = self.parameter("passfile", "PGPASSFILE").map(|path| (path.into(), true));
        named.or_else(|| Some((self.home()?.join(".pgpass"), false)))
    }

    /// Returns the files with the certificate of this client and its key. The usual ones count if both exist.
    pub(super) fn own_certificate(&self) -> Option<(PathBuf, PathBuf)> {
        let named = |name, variable| self.parameter(name, variable).map(PathBuf::from);
        let usual = |name: &str| self.home().map(|home| home.join(".postgresql").join(name));
        let certificate = named("sslcert", "PGSSLCERT");
        let is_named = certificate.is_some();
        let certificate = certificate.or_else(|| usual("postgresql.crt"))?;
        let key = named("sslkey", "PGSSLKEY").or_else(|| usual("postgresql.key"))?;
        (is_named || (certificate.is_file() && key.is_file())).then_some((certificate, key))
    }

    /// Returns the file of authorities.
    pub(super) fn authorities(&self) -> Option<PathBuf> {
        let named = self.parameter("sslrootcert", "PGSSLROOTCERT");
        named.filter(|path| path != "system").map(PathBuf::from)
    }

    fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }
}

fn number(name: &str, text: &str) -> Result<u16, Fault> {
    text.trim().parse().map_err(|_| Fault::Refused(format!("{name} is not a number")))
}

/// Returns what connects with TLS. The server's certificate must be valid for its name in the URL, and come from an
/// authority in the PEM file `ca` or be in it, or come from one of the system's. `own` has the certificate and the key of the
/// client.
///
/// # Errors
/// [`Fault::Refused`] names the file and its problem.
pub(super) fn connector(
    ca: Option<&Path>,
    own: Option<(&Path, &Path)>,
) -> Result<MakeRustlsConnect, Fault> {
    let identity = own.map(|(certificate, key)| read_identity(certificate, key)).transpose();
    let identity = identity.map_err(Fault::Refused)?;
    let tls = if let Some(ca) = ca {
        read_certificates(ca)
            .and_then(|named| client_config(Vec::new(), named, identity))
            .map_err(|why| Fault::Refused(format!("{}: {why}", ca.display())))?
    } else {
        let system = system_certificates();
        if system.is_empty() {
            let why = "the system has no certificates of authorities; name a file with --data-ca";
            return Err(Fault::Refused(why.to_owned()));
        }
        client_config(system, Vec::new(), identity).map_err(Fault::Refused)?
    };
    Ok(MakeRustlsConnect::new(tls))
}

/// The largest file, in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// Where the password of one server is.
#[derive(Clone)]
pub struct PasswordFile {
    pub path: PathBuf,
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
            let no_file = "it is not a regular file";
            if about.is_file() { File::open(&self.path) } else { Err(io::Error::other(no_file)) }
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

    #[test]
    fn url_comes_before_variables_and_empty_values_count_as_unset() {
        let url = "postgres://db/x?passfile=%2Fetc%2Fpass&sslcert=&sslmode=require";
        let url = url.parse().expect("a URL");
        let settings = Settings::with(&url, |name| match name {
            "PGPASSFILE" | "PGSSLMODE" => Some("other".to_owned()),
            "PGSSLCERT" => Some("/etc/own.pem".to_owned()),
            "PGSSLKEY" => Some("/etc/own.key".to_owned()),
            "PGSSLROOTCERT" => Some("system".to_owned()),
            "PGUSER" => Some(String::new()),
            "HOME" => Some("/home/ann".to_owned()),
            _ => None,
        });
        assert_eq!(settings.password_file(), Some(("/etc/pass".into(), true)));
        let own = Some(("/etc/own.pem".into(), "/etc/own.key".into()));
        assert_eq!(settings.own_certificate(), own);
        assert_eq!(settings.parameter("sslmode", "PGSSLMODE").as_deref(), Some("require"));
        assert_eq!((settings.variable("PGUSER"), settings.authorities()), (None, None));
        let plain = "postgres://db/x".parse().expect("a URL");
        let settings =
            Settings::with(&plain, |name| (name == "HOME").then(|| "/home/ann".to_owned()));
        assert_eq!(settings.password_file(), Some(("/home/ann/.pgpass".into(), false)));
        assert_eq!(settings.own_certificate(), None);
    }

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
