//! Settings that a URL leaves out: from PostgreSQL's variables, as its own clients read them.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::store::place::DatabaseUrl;

/// A URL, and the variables of the environment. An empty variable counts as unset.
pub(super) struct Settings<'u> {
    url: &'u DatabaseUrl,
    variable: Box<Variable<'u>>,
}

/// Returns the value of a variable.
type Variable<'u> = dyn Fn(&str) -> Option<String> + 'u;

impl<'u> Settings<'u> {
    /// Reads the variables of this process.
    pub(super) fn of_process(url: &'u DatabaseUrl) -> Self {
        Self::with(url, |name| std::env::var(name).ok())
    }

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

#[cfg(test)]
mod tests {
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
}
