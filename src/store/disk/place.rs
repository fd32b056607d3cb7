//! Where the data of a service lies: in a file, or in a database that several nodes share.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::database_address::{MASK, looks_like_database_address};

const FORMAT_HINT: &str = "write postgres://user:password@host/database, with the special characters of user and password \
                           percent-encoded, or ./NAME for a file with such a name";

/// Where the data of a service lies. It is displayed without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    File(PathBuf),
    /// In a shared database. This node keeps a copy of it.
    Shared {
        /// The database.
        url: DatabaseUrl,
        /// The path of the copy.
        copy: PathBuf,
        /// A file with the certificates of the authorities that the server's certificate may come from. Without it, those
        /// of the system count.
        ca: Option<PathBuf>,
        /// The name of this node, which distinguishes it from other nodes.
        node: String,
    },
}

impl Place {
    /// Returns the place that `data` names: a URL of a database, or a path. The other arguments count only for a database.
    ///
    /// # Errors
    /// One line that says what is wrong with the URL. It never repeats a part of it. A text that looks like an address
    /// is never taken for a path, because its password would be shown.
    pub fn new(
        data: &OsStr,
        copy: &Path,
        ca: Option<&Path>,
        node: Option<&str>,
    ) -> Result<Self, String> {
        // What is not UTF-8 can begin like an address too.
        match Some(data.to_string_lossy()).filter(|text| looks_like_database_address(text)) {
            None => Ok(Self::File(data.into())),
            Some(text) => Ok(Self::Shared {
                url: text.parse()?,
                copy: copy.to_owned(),
                ca: ca.map(Path::to_owned),
                node: node.map_or_else(|| default_node(copy), str::to_owned),
            }),
        }
    }

    /// Returns the data file, or the copy of the shared database. The lock, the control socket and the first key lie
    /// beside it.
    pub fn file(&self) -> &Path {
        match self {
            Self::File(path) | Self::Shared { copy: path, .. } => path,
        }
    }
}

/// What holds the data that a command has written.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Destination {
    /// A data file.
    File(ShownPath),
    /// A shared database, as its URL with a masked password.
    Database(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Shared { url, .. } => url.fmt(f),
        }
    }
}

/// Returns the name of the node with this copy: the machine's name and the path of the copy.
fn default_node(copy: &Path) -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let copy = std::path::absolute(copy).unwrap_or_else(|_| copy.to_owned());
    format!("{host}:{}", copy.display())
}

/// The URL of a PostgreSQL database: `postgres://user:password@host:port,host:port/database?parameters`.
///
/// It is displayed with a masked password. An error of the parser never repeats a part of the text.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    text: String,
    shown: String,
}

impl DatabaseUrl {
    /// Returns the URL with its password, for connecting.
    pub(in crate::store) fn reveal(&self) -> &str {
        &self.text
    }

    /// Returns the URL with a masked password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether it names a port.
    pub(in crate::store) fn has_port(&self) -> bool {
        let rest = self.text.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
        hosts.split(',').any(|host| !split_port(host).1.is_empty())
            || self.parameter("port").is_some()
    }

    /// Returns the last value of this parameter, as it was written.
    pub(in crate::store) fn parameter(&self, name: &str) -> Option<&str> {
        let (_, query) = self.text.split_once('?')?;
        let values = parameters(query).filter(|(key, _)| *key == name);
        values.last().and_then(|(_, value)| value)
    }
}

fn is_scheme(scheme: &str) -> bool {
    ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

/// Returns the names and values in a query. A part without `=` has no value.
fn parameters(query: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value))))
}

impl FromStr for DatabaseUrl {
    type Err = String;

    /// A character of the password that was not percent-encoded can end the host early. So the parts behind the user
    /// accept no more than they need: otherwise a part of the password would be shown as one of them.
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = |what: &str| Err(format!("{what}; {FORMAT_HINT}"));
        let Some((_, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
            return invalid("this is no URL that begins with postgres://");
        };
        if text.contains('#') || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return invalid("the URL has a character that must be percent-encoded");
        }
        let (before, query) = rest.split_once('?').map_or((rest, None), |(b, q)| (b, Some(q)));
        let (authority, database) = before.split_once('/').unwrap_or((before, ""));
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (Some(credentials), hosts),
            None => (None, authority),
        };
        if credentials.is_some_and(|credentials| credentials.contains('@')) {
            return invalid("the user or the password has an @");
        }
        if !hosts.split(',').all(is_host) {
            return invalid("the host or its port is not valid");
        }
        if database.contains(['@', ':', '/']) {
            return invalid("the name of the database is not valid");
        }
        check_parameters(query.unwrap_or_default())?;
        let masked = match credentials.map(|credentials| credentials.split_once(':')) {
            Some(Some((user, _))) => format!("{user}:{MASK}@"),
            Some(None) => format!("{}@", credentials.unwrap_or_default()),
            None => String::new(),
        };
        let tail = before.strip_prefix(authority).unwrap_or_default();
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let shown = format!("postgres://{masked}{hosts}{tail}{query}");
        Ok(Self { text: format!("postgres://{rest}"), shown })
    }
}

/// Splits a host from its port, which may be empty.
fn split_port(text: &str) -> (&str, &str) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (text, ""),
    }
}

/// Returns whether `text` is a name, an address or a percent-encoded path of a socket, with or without a port. It may be
/// empty, because a parameter can name the host.
fn is_host(text: &str) -> bool {
    let (host, port) = split_port(text);
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '%');
    let is_valid = address.map_or_else(
        || host.chars().all(is_plain),
        |address| address.parse::<std::net::Ipv6Addr>().is_ok(),
    );
    is_valid && (port.is_empty() || port.parse::<u16>().is_ok())
}

fn check_parameters(query: &str) -> Result<(), String> {
    for (name, value) in parameters(query) {
        // No name needs an escape, which could hide that of a password.
        let what = if name.contains('%') || value.is_none_or(|value| value.contains(['@', '?'])) {
            "a parameter of the URL is not valid"
        } else if name.to_ascii_lowercase().contains("password") {
            "the password belongs before the host"
        } else {
            continue;
        };
        return Err(format!("{what}; {FORMAT_HINT}"));
    }
    Ok(())
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({})", self.shown)
    }
}

/// A path in the result of a command. Bytes that are not UTF-8 are shown as U+FFFD: the work is done by then, and a name does
/// not make it fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPath(pub PathBuf);

impl fmt::Display for ShownPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl Serialize for ShownPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> DatabaseUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn database_url_is_shown_without_its_password() {
        for (text, shown) in [
            ("postgres://ann:hunter2@db/x", "postgres://ann:********@db/x"),
            ("postgres://ann:hunter2:2@db/x", "postgres://ann:********@db/x"),
            ("PostgreSQL://ann:hunter2@db", "postgres://ann:********@db"),
            ("postgres://ann@db:5433/x", "postgres://ann@db:5433/x"),
            (
                "postgres://ann:hunter2@a:1,b:2,[::1]:3/x",
                "postgres://ann:********@a:1,b:2,[::1]:3/x",
            ),
            (
                "postgres://ann:hunter2@%2Frun%2Fpostgresql/x?sslmode=disable",
                "postgres://ann:********@%2Frun%2Fpostgresql/x?sslmode=disable",
            ),
            ("postgres:///x?host=/run&user=ann", "postgres:///x?host=/run&user=ann"),
            ("postgres://:hunter2@db/", "postgres://:********@db/"),
        ] {
            let url = read(text);
            assert_eq!(url.shown(), shown, "{text}");
            assert_eq!(url.to_string(), shown, "{text}");
            assert_eq!(format!("{url:?}"), format!("DatabaseUrl({shown})"), "{text}");
            let password = text.contains("hunter2");
            assert_eq!(url.reveal().contains("hunter2"), password, "{text}");
        }
    }

    #[test]
    fn invalid_database_urls_are_rejected_without_showing_the_password() {
        for text in [
            "hunter2",
            "mysql://ann:hunter2@db/x",
            "postgres://ann:hun@ter2@db/x",
            "postgres://ann:hunter2/1@db/x",
            "postgres://ann:22/hunter2@db/x",
            "postgres://ann:22?hunter2@db/x",
            "postgres://ann:22?a=hunter2@db/x",
            "postgres://ann:22#hunter2@db/x",
            "postgres://ann:hunter2@db:99999/x",
            "postgres://ann:hunter2@db:/x:y",
            "postgres://ann:hunter2@[::1/x",
            "postgres://ann:hunter2@d b/x",
            "postgres://ann@db/x?password=hunter2",
            "postgres://ann@db/x?sslpassword=hunter2",
            "postgres://ann@db/x?pass%77ord=hunter2",
            "postgres://ann:hunter2@db/x?sslmode",
        ] {
            let refused = text.parse::<DatabaseUrl>().expect_err(text);
            assert!(!refused.contains("hunter2") && !refused.contains('\n'), "{text}: {refused}");
        }
    }

    #[test]
    fn parameter_has_its_last_value() {
        let url = read("postgres://db/x?sslmode=disable&options=-c%20a=b&sslmode=require");
        assert_eq!(url.parameter("sslmode"), Some("require"));
        assert_eq!(url.parameter("options"), Some("-c%20a=b"));
        assert_eq!(url.parameter("host"), None);
        assert_eq!(read("postgres://db/x").parameter("sslmode"), None);
    }

    #[test]
    fn data_is_a_path_unless_its_scheme_is_that_of_postgres() {
        let place = |data: &str| {
            Place::new(OsStr::new(data), Path::new("copy.redb"), None, Some("a")).expect(data)
        };
        for path in ["steward.redb", "/srv/a:b", "./host=db", "postgres.redb"] {
            assert_eq!(place(path), Place::File(path.into()));
            assert_eq!(place(path).file(), Path::new(path));
            assert_eq!(place(path).to_string(), path);
        }
        for address in ["postgres:/x", "file://postgres://", "mysql://db", "host=db user=ann"] {
            let refused = Place::new(OsStr::new(address), Path::new("copy.redb"), None, None);
            assert!(refused.expect_err(address).contains("no URL that begins with postgres://"));
        }
        let shared = place("postgres://ann:hunter2@db/x");
        assert_eq!(shared.file(), Path::new("copy.redb"));
        assert_eq!(shared.to_string(), "postgres://ann:********@db/x");
        assert!(!format!("{shared:?}").contains("hunter2"));
    }

    #[test]
    fn node_is_named_after_its_machine_and_copy_by_default() {
        let data = OsStr::new("postgres://db/x");
        let Place::Shared { node, .. } =
            Place::new(data, Path::new("/srv/copy.redb"), None, None).expect("a place")
        else {
            panic!("not shared");
        };
        let (host, copy) = node.split_once(':').expect("two parts");
        assert!(!host.is_empty() && copy == "/srv/copy.redb", "{node}");
    }
}
