//! The servers that a URL names, and which of them need TLS.

mod settings;

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::net::trust_anchors::client_config;
use crate::store::disk::place::DatabaseUrl;

use super::super::Fault;

use settings::{PasswordFile, Settings};

/// How long it may take to connect to one server, until it accepts statements.
const CONNECT: Duration = Duration::from_secs(3);

/// When a connection over which nothing comes is checked, and how often.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 3;

/// The usual folders of sockets. A password file has the name `localhost` for them.
const SOCKET_FOLDERS: [&str; 3] = ["/run/postgresql", "/var/run/postgresql", "/tmp"];

/// One server of a URL.
pub(super) struct Server {
    /// What connects to it. Has a password: never show it.
    pub config: Config,
    /// Its name and port.
    pub name: String,
    /// How long connecting may take.
    pub limit: Duration,
    /// What makes the connection private, if it must be.
    pub tls: Option<MakeRustlsConnect>,
    /// Where the password is, if the URL and the variables have none.
    pub password: Option<PasswordFile>,
    /// Where the authorities come from that the server's certificate may come from.
    pub authorities: String,
}

impl Server {
    /// Returns the settings with the password, which may have changed since the last connection.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the file with the password cannot be used.
    pub(super) fn config(&self) -> Result<Config, Fault> {
        let mut config = self.config.clone();
        if let Some(password) =
            self.password.as_ref().map(PasswordFile::read).transpose()?.flatten()
        {
            config.password(password);
        }
        Ok(config)
    }

    /// Returns what makes the connection private. If it need not be, the settings forbid TLS and this is not used, but the
    /// client's library is compiled for one type of connection.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the library of TLS cannot be used.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, Fault> {
        if let Some(tls) = &self.tls {
            return Ok(tls.clone());
        }
        let unused = client_config(Vec::new(), Vec::new(), None);
        unused.map(MakeRustlsConnect::new).map_err(Fault::Refused)
    }
}

/// Returns the servers that the URL names, in its order.
///
/// # Errors
/// [`Fault::Refused`] if a part of the URL or the file `ca` is not valid. The text has no password.
pub(super) fn servers(
    url: &DatabaseUrl,
    ca: Option<&Path>,
    node: &str,
) -> Result<Vec<Server>, Fault> {
    servers_of(&Settings::with(url, |name| std::env::var(name).ok()), url, ca, node)
}

fn servers_of(
    settings: &Settings<'_>,
    url: &DatabaseUrl,
    ca: Option<&Path>,
    node: &str,
) -> Result<Vec<Server>, Fault> {
    let privacy = Privacy::asked_by(settings.parameter("sslmode", "PGSSLMODE").as_deref())?;
    let plain = without_parameters(url.reveal(), &OWN_PARAMETERS);
    let mut parsed: Config = plain.parse().map_err(refused)?;
    settings.complete(&mut parsed)?;
    if !parsed.get_hostaddrs().is_empty() {
        return Err(Fault::Refused("the URL of the database may not have hostaddr".to_owned()));
    }
    let (hosts, ports) = (parsed.get_hosts(), settings.ports(&parsed)?);
    if hosts.is_empty() {
        return Err(Fault::Refused(
            "the URL of the database names no host, and neither does PGHOST".to_owned(),
        ));
    }
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err(Fault::Refused(
            "the URL of the database, or PGPORT, needs a port for each host".to_owned(),
        ));
    }
    let ca = ca.map(Path::to_owned).or_else(|| settings.authorities());
    let own = settings.own_certificate();
    let own = own.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
    let needs_tls = hosts.iter().any(|host| privacy.needs_tls(host));
    let connector = needs_tls.then(|| settings::connector(ca.as_deref(), own)).transpose()?;
    let authorities = ca.map_or_else(
        || "the authorities of the system".to_owned(),
        |ca| format!("those in {}", ca.display()),
    );
    let server = |(at, host): (usize, &Host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let tls = connector.clone().filter(|_| privacy.needs_tls(host));
        let mut config = template(&parsed, node);
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        config.port(port);
        let name = match host {
            Host::Tcp(host) => {
                config.host(host);
                format!("{host}:{port}")
            }
            Host::Unix(folder) => {
                config.host_path(folder);
                format!("{} port {port}", folder.display())
            }
        };
        let limit = parsed.get_connect_timeout().copied().unwrap_or(CONNECT);
        let password = password_file(settings, &config, host, port);
        Server { config, name, limit, tls, password, authorities: authorities.clone() }
    };
    Ok(hosts.iter().enumerate().map(server).collect())
}

/// The parameters that this program reads, and the client's library does not know.
const OWN_PARAMETERS: [&str; 5] = ["sslmode", "passfile", "sslcert", "sslkey", "sslrootcert"];

/// Returns where the password of a server is, if it has none yet.
fn password_file(
    settings: &Settings<'_>,
    config: &Config,
    host: &Host,
    port: u16,
) -> Option<PasswordFile> {
    if config.get_password().is_some() {
        return None;
    }
    let is_usual = |folder: &Path| SOCKET_FOLDERS.iter().any(|usual| folder == Path::new(usual));
    let host = match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) if is_usual(folder) => "localhost".to_owned(),
        Host::Unix(folder) => folder.display().to_string(),
    };
    let user = config.get_user().filter(|user| !user.is_empty()).map(str::to_owned);
    let user = user.or_else(|| settings.variable("USER")).unwrap_or_default();
    let name = config.get_dbname().map_or_else(|| user.clone(), str::to_owned);
    let (path, is_named) = settings.password_file()?;
    Some(PasswordFile { path, is_named, of: [host, port.to_string(), name, user] })
}

/// Returns the reason for which the client's library does not accept the URL. It names parameters, not values.
fn refused(error: tokio_postgres::Error) -> Fault {
    let why = error.into_source().map_or_else(String::new, |why| format!(": {why}"));
    Fault::Refused(format!("the URL of the database is not valid{why}"))
}

/// Returns the settings of every server: those of the URL that concern the session, and those of this program.
fn template(parsed: &Config, node: &str) -> Config {
    let mut config = Config::new();
    if let Some(user) = parsed.get_user() {
        config.user(user);
    }
    if let Some(password) = parsed.get_password() {
        config.password(password);
    }
    if let Some(name) = parsed.get_dbname() {
        config.dbname(name);
    }
    if let Some(options) = parsed.get_options() {
        config.options(options);
    }
    let name = format!("steward {node}");
    config.application_name(parsed.get_application_name().unwrap_or(&name));
    config.channel_binding(parsed.get_channel_binding());
    config.ssl_negotiation(parsed.get_ssl_negotiation());
    // A standby cannot take commits, and would answer with an older state.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.tcp_user_timeout(KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_RETRIES);
    config.keepalives_idle(KEEPALIVE_IDLE);
    config.keepalives_interval(KEEPALIVE_INTERVAL);
    config.keepalives_retries(KEEPALIVE_RETRIES);
    config
}

/// Returns the URL without these parameters.
fn without_parameters(url: &str, names: &[&str]) -> String {
    let Some((before, query)) = url.split_once('?') else { return url.to_owned() };
    let is_other = |part: &&str| part.split('=').next().is_none_or(|name| !names.contains(&name));
    let others: Vec<_> = query.split('&').filter(is_other).collect();
    if others.is_empty() { before.to_owned() } else { format!("{before}?{}", others.join("&")) }
}

/// Which connections must be private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Privacy {
    /// Those that leave this machine.
    BeyondLoopback,
    /// All, except through a socket of this machine.
    Always,
    /// None: the operator trusts the network.
    Never,
}

impl Privacy {
    /// Returns what `sslmode` says. Every TLS connection verifies the server, so the stricter modes are the same.
    fn asked_by(sslmode: Option<&str>) -> Result<Self, Fault> {
        match sslmode {
            None | Some("prefer" | "allow") => Ok(Self::BeyondLoopback),
            Some("require" | "verify-ca" | "verify-full") => Ok(Self::Always),
            Some("disable") => Ok(Self::Never),
            Some(_) => Err(Fault::Refused(
                "sslmode in the URL of the database, or PGSSLMODE, is not one of disable, require and verify-full"
                    .to_owned(),
            )),
        }
    }

    fn needs_tls(self, host: &Host) -> bool {
        match (self, host) {
            (Self::Never, _) | (_, Host::Unix(_)) => false,
            (Self::Always, Host::Tcp(_)) => true,
            (Self::BeyondLoopback, Host::Tcp(name)) => {
                !name.parse::<IpAddr>().map_or(name == "localhost", |ip| ip.is_loopback())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Server>, Fault> {
        read_with(text, &[])
    }

    fn read_with(text: &str, variables: &[(&str, &str)]) -> Result<Vec<Server>, Fault> {
        let url = text.parse().expect("a URL");
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        servers_of(&Settings::with(&url, value), &url, None, "a")
    }

    #[test]
    fn variables_complete_a_url_and_change_nothing_that_it_has() {
        let variables = [
            ("PGHOST", "db.example,/run/pg"),
            ("PGPORT", "6000"),
            ("PGUSER", "bob"),
            ("PGDATABASE", "y"),
            ("PGPASSWORD", "hunter2"),
            ("PGOPTIONS", "-c a=b"),
            ("PGCONNECT_TIMEOUT", "9"),
        ];
        let servers = read_with("postgres://", &variables).expect("servers");
        let shown: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(shown, ["db.example:6000", "/run/pg port 6000"]);
        for Server { config, limit, password, .. } in &servers {
            assert_eq!((config.get_user(), config.get_dbname()), (Some("bob"), Some("y")));
            assert_eq!(config.get_password(), Some(&b"hunter2"[..]));
            assert_eq!((config.get_options(), limit.as_secs()), (Some("-c a=b"), 9));
            assert!(password.is_none());
        }
        let own = "postgres://ann:own@localhost:1/x?options=-c%20c%3Dd&connect_timeout=2";
        for server in read_with(own, &variables).expect("servers") {
            let Server { config, name, limit, .. } = server;
            assert_eq!((name.as_str(), limit.as_secs()), ("localhost:1", 2));
            assert_eq!((config.get_user(), config.get_dbname()), (Some("ann"), Some("x")));
            assert_eq!(config.get_password(), Some(&b"own"[..]));
            assert_eq!(config.get_options(), Some("-c c=d"));
        }
        let nowhere = read_with("postgres://ann@/x", &[("PGHOST", "")]);
        assert!(matches!(nowhere, Err(Fault::Refused(_))));
        let private = read_with("postgres://ann@localhost/x", &[("PGSSLMODE", "require")]);
        assert!(private.expect("servers")[0].tls.is_some());
    }

    #[test]
    fn variable_that_is_not_valid_or_not_read_is_refused_by_name() {
        for (name, value) in [
            ("PGPORT", "hunter"),
            ("PGPORT", "1,2"),
            ("PGCONNECT_TIMEOUT", "soon"),
            ("PGSSLMODE", "never"),
            ("PGSERVICE", "steward"),
            ("PGHOSTADDR", "192.0.2.1"),
        ] {
            match read_with("postgres://ann@localhost/x", &[(name, value)]) {
                Err(Fault::Refused(why)) => assert!(why.contains(name), "{name}: {why}"),
                read => panic!("{name}: {:?}", read.map(|servers| servers.len())),
            }
        }
    }

    #[test]
    fn ports_of_a_variable_count_if_the_url_has_none() {
        for (hosts, expected) in [("a,b", ["a:1", "b:2"]), ("a:3,b", ["a:3", "b:5432"])] {
            let url = format!("postgres://ann@{hosts}/x?sslmode=disable");
            let servers = read_with(&url, &[("PGPORT", "1,2")]).expect("servers");
            assert!(servers.iter().map(|server| server.name.as_str()).eq(expected), "{hosts}");
        }
    }

    #[test]
    fn password_file_is_asked_for_each_server_without_a_password() {
        let servers = read_with(
            "postgres://ann@a/x?host=/run/pg&passfile=%2Fetc%2Fpass",
            &[("HOME", "/home/ann")],
        );
        for server in servers.expect("servers") {
            let file = server.password.expect("a file");
            assert_eq!((file.path.to_str(), file.is_named), (Some("/etc/pass"), true));
            assert_eq!(&file.of[1..], ["5432", "x", "ann"]);
        }
        let usual = "postgres:///x?host=/var/run/postgresql";
        let variables = [("HOME", "/home/ann"), ("USER", "ann")];
        let servers = read_with(usual, &variables).expect("servers");
        let file = servers[0].password.as_ref().expect("a file");
        assert_eq!(file.of, ["localhost", "5432", "x", "ann"]);
    }

    /// Returns the name of each server and whether its connection is private.
    fn names(text: &str) -> Vec<(String, bool)> {
        let servers = read(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        servers.into_iter().map(|server| (server.name, server.tls.is_some())).collect()
    }

    #[test]
    fn servers_beyond_this_machine_need_tls_unless_it_is_disabled() {
        for (text, name, tls) in [
            ("postgres://ann@db.example/x", "db.example:5432", true),
            ("postgres://ann@db.example:6000/x?sslmode=prefer", "db.example:6000", true),
            ("postgres://ann@db.example/x?sslmode=disable", "db.example:5432", false),
            ("postgres://ann@192.0.2.1/x", "192.0.2.1:5432", true),
            ("postgres://ann@localhost/x", "localhost:5432", false),
            ("postgres://ann@127.0.0.1/x", "127.0.0.1:5432", false),
            ("postgres://ann@localhost/x?sslmode=require", "localhost:5432", true),
            ("postgres://ann@localhost.example/x", "localhost.example:5432", true),
            ("postgres://ann@%2Frun%2Fpg/x?sslmode=verify-full", "/run/pg port 5432", false),
            ("postgres:///x?host=/run/pg&user=ann", "/run/pg port 5432", false),
        ] {
            assert_eq!(names(text), [(name.to_owned(), tls)], "{text}");
        }
    }

    #[test]
    fn every_host_of_a_url_is_a_server_with_its_port() {
        let found = names("postgres://ann@a.example:1,localhost:2,b.example:3/x");
        let expected = [("a.example:1", true), ("localhost:2", false), ("b.example:3", true)];
        assert_eq!(found, expected.map(|(name, tls)| (name.to_owned(), tls)));
    }

    #[test]
    fn only_servers_that_take_writes_are_used() {
        for server in read("postgres://ann@a,b/x?target_session_attrs=any").expect("servers") {
            assert_eq!(server.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        }
    }

    #[test]
    fn refusals_of_a_url_have_no_password() {
        for text in [
            "postgres://ann:hunter2@/x",
            "postgres://ann:hunter2@db/x?sslmode=none",
            "postgres://ann:hunter2@db/x?hunter=2",
            "postgres://ann:hunter2@a:1,b:2,c/x?port=7,8",
            "postgres://ann:hunter2@db/x?hostaddr=192.0.2.1",
            "postgres://ann:hunter2%FF@db/x",
        ] {
            match read(text) {
                Err(Fault::Refused(why)) => assert!(!why.contains("hunter2"), "{text}: {why}"),
                Err(fault) => panic!("{text}: {fault:?}"),
                Ok(servers) => assert!(text.contains("%FF"), "{text}: {}", servers.len()),
            }
        }
    }
}
