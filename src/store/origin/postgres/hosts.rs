//! The servers that a URL names, and which of them need TLS.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::place::DatabaseUrl;

use super::super::Fault;
use super::tls;

/// How long it may take to connect to one server, until it accepts statements.
const CONNECT: Duration = Duration::from_secs(3);

/// When a connection over which nothing comes is checked, and how often.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 3;

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
    let privacy = Privacy::asked_by(url)?;
    let parsed: Config = without_parameter(url.reveal(), "sslmode").parse().map_err(refused)?;
    if !parsed.get_hostaddrs().is_empty() {
        return Err(Fault::Refused("the URL of the database may not have hostaddr".to_owned()));
    }
    let (hosts, ports) = (parsed.get_hosts(), parsed.get_ports());
    if hosts.is_empty() {
        return Err(Fault::Refused("the URL of the database names no host".to_owned()));
    }
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err(Fault::Refused(
            "the URL of the database needs a port for each host".to_owned(),
        ));
    }
    let needs_tls = hosts.iter().any(|host| privacy.needs_tls(host));
    let connector = needs_tls.then(|| tls::connector(ca)).transpose()?;
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
        Server { config, name, limit, tls }
    };
    Ok(hosts.iter().enumerate().map(server).collect())
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

/// Returns the URL without a parameter.
fn without_parameter(url: &str, name: &str) -> String {
    let Some((before, query)) = url.split_once('?') else { return url.to_owned() };
    let is_other = |part: &&str| part.split('=').next() != Some(name);
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
    fn asked_by(url: &DatabaseUrl) -> Result<Self, Fault> {
        match url.parameter("sslmode") {
            None | Some("prefer" | "allow") => Ok(Self::BeyondLoopback),
            Some("require" | "verify-ca" | "verify-full") => Ok(Self::Always),
            Some("disable") => Ok(Self::Never),
            Some(_) => Err(Fault::Refused(
                "sslmode in the URL of the database is not one of disable, require and verify-full"
                    .to_owned(),
            )),
        }
    }

    fn needs_tls(self, host: &Host) -> bool {
        match (self, host) {
            (Self::Never, _) | (_, Host::Unix(_)) => false,
            (Self::Always, Host::Tcp(_)) => true,
            (Self::BeyondLoopback, Host::Tcp(name)) => {
                let is_here =
                    name.parse::<IpAddr>().map_or(name == "localhost", |ip| ip.is_loopback());
                !is_here
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Server>, Fault> {
        servers(&text.parse().expect("a URL"), None, "a")
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
