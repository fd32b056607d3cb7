//! The configuration of the service: flags, and environment variables of the same names.

mod mail;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{FalseyValueParser, Resettable};
use clap::{Arg, Args, Command, FromArgMatches};
use ipnet::IpNet;
use url::{Host, Url};

use crate::base::error::Error;
use crate::base::secret::SeedSource;
use crate::base::time::Clock;
use crate::metrics::Metrics;
use crate::net::dns::TxtRecords;
use crate::store::file_system::{FileSystem, OsFileSystem};

use values::{parse_network, parse_origin, parse_resolver, parse_size};

pub use mail::{MailConfig, Protection, SmtpUrl};
pub use values::{RateLimit, Switch};
pub(crate) use values::{
    data_place, file_path, output_path, parse_duration, parse_listen, parse_public_url,
};

/// The configuration of the service. Every value has a default.
#[derive(Debug, Clone, Args)]
#[non_exhaustive]
pub struct Config {
    /// The scheme and host of links, such as `https://admin.example.org`, without a path. By default, links in lists use
    /// those of the request, and invite links use the address on which the server listens.
    #[arg(long, env = "STEWARD_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub public_url: Option<String>,

    /// The maximum size of a request body.
    #[arg(long, env = "STEWARD_MAX_BODY", value_name = "SIZE", default_value = "1MiB", value_parser = parse_size)]
    pub max_body: usize,

    /// The size of the page cache, which keeps parts of the data file in memory.
    #[arg(long, env = "STEWARD_PAGE_CACHE", value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    pub page_cache: usize,

    /// The memory for large responses and request bodies in flight (up to 64 KiB each is free). A tenant or a client
    /// uses at most a quarter, and all clients without a key half; beyond that, requests fail with 503. A body counts
    /// with its parsed size, and fails with 413 above a quarter.
    #[arg(long, env = "STEWARD_TRANSFER_MEMORY", value_name = "SIZE", default_value = "128MiB", value_parser = parse_size)]
    pub transfer_memory: usize,

    /// The time limit for receiving a request's body.
    #[arg(long, env = "STEWARD_BODY_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub body_timeout: Duration,

    /// The time limit for a whole request.
    #[arg(long, env = "STEWARD_REQUEST_TIMEOUT", value_name = "TIME", default_value = "20s", value_parser = parse_duration)]
    pub request_timeout: Duration,

    /// A network or an address whose X-Forwarded-For, -Proto and -Host headers are trusted, such as 10.0.0.0/8
    /// (repeatable).
    #[arg(
        long = "trusted-proxy",
        env = "STEWARD_TRUSTED_PROXY",
        value_name = "CIDR",
        value_delimiter = ',',
        value_parser = parse_network
    )]
    pub trusted_proxies: Vec<IpNet>,

    /// The rate limit of a key, such as 480/m,4800/h (all of the list apply). Failed requests count too; those with a
    /// missing or invalid key count for their address. By default there is no limit.
    #[arg(
        long = "rate-limit",
        env = "STEWARD_RATE_LIMIT",
        value_name = "RATE",
        value_delimiter = ','
    )]
    pub rate_limits: Vec<RateLimit>,

    /// The rate limit of a client address, with or without a key, such as 100/s. An IPv6 network of 64 bits counts as
    /// one address. Addresses can share a limit: they are hashed into 65,536 buckets. By default there is no limit.
    #[arg(
        long = "peer-limit",
        env = "STEWARD_PEER_LIMIT",
        value_name = "RATE",
        value_delimiter = ','
    )]
    pub peer_limits: Vec<RateLimit>,

    /// An origin whose pages may call the API from a browser, such as `https://app.example.org`, or `*` for any
    /// (repeatable). By default no page may.
    #[arg(
        long = "cors-origin",
        env = "STEWARD_CORS_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ',',
        value_parser = parse_origin
    )]
    pub cors_origins: Vec<String>,

    /// The lifetime of an invite. Existing invites keep the lifetime with which they were created.
    #[arg(long, env = "STEWARD_INVITE_TTL", value_name = "TIME", default_value = "3d", value_parser = parse_duration)]
    pub invite_ttl: Duration,

    /// The retention of the activity log, such as 365d. By default it is kept forever.
    #[arg(long, env = "STEWARD_ACTIVITY_RETENTION", value_name = "TIME", value_parser = parse_duration)]
    pub activity_retention: Option<Duration>,

    /// How often to check the data file for damage in the background, such as 24h. Damage is logged. That needs room for a
    /// copy. By default it is not checked.
    #[arg(long, env = "STEWARD_SCRUB", value_name = "TIME", value_parser = parse_duration)]
    pub scrub: Option<Duration>,

    /// Whether to compact the data file in the background when half of it is unused: on or off. That needs room for a copy
    /// of the used half.
    #[arg(long, env = "STEWARD_AUTO_COMPACT", value_name = "SWITCH", default_value_t = Switch::On)]
    pub auto_compact: Switch,

    /// The DNS server for the verification of domains, such as 9.9.9.9:53 (repeatable). By default those of the
    /// system.
    #[arg(
        long = "dns-resolver",
        env = "STEWARD_DNS_RESOLVER",
        value_name = "ADDR:PORT",
        value_delimiter = ',',
        value_parser = parse_resolver
    )]
    pub dns_resolvers: Vec<SocketAddr>,

    /// The label before a domain's name in the look-up of its TXT record.
    #[arg(
        long,
        env = "STEWARD_DNS_CHALLENGE_PREFIX",
        value_name = "LABEL",
        default_value = "_posthog-challenge"
    )]
    pub dns_challenge_prefix: String,

    /// The time limit for a DNS look-up.
    #[arg(long, env = "STEWARD_DNS_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    pub dns_timeout: Duration,

    /// Whether the service has a web console at /console/: on or off. It needs a sign-in, with an API key or with a link
    /// that `steward console` prints.
    #[arg(long, env = "STEWARD_CONSOLE", value_name = "SWITCH", default_value_t = Switch::On)]
    pub console: Switch,

    /// Let users without an API key sign in to the console with a link in a mail to their verified address. Needs a mail
    /// server and a public URL.
    #[arg(long, env = "STEWARD_CONSOLE_MAIL_LOGIN", value_parser = FalseyValueParser::new())]
    pub console_mail_login: bool,

    /// Limits on the resources of one tenant.
    #[command(flatten)]
    pub caps: Caps,

    /// The configuration of outgoing mail.
    #[command(flatten)]
    pub mail: MailConfig,

    /// The configuration of scheduled backups.
    #[command(flatten)]
    pub backups: BackupConfig,

    /// The URL on which the service listens: the base of invite links if there is no public URL.
    #[arg(skip = format!("http://{DEFAULT_LISTEN}"))]
    pub listen_url: String,

    /// The source of the current time.
    #[arg(skip)]
    pub clock: Clock,

    /// The source of ids, keys and tokens.
    #[arg(skip)]
    pub seeds: SeedSource,

    /// Whether a request waits until the use of its key or session is recorded. Otherwise that happens a moment later.
    #[arg(skip)]
    pub waits_for_uses: bool,

    /// What DNS look-ups find, instead of what name servers answer.
    #[arg(skip)]
    pub dns_records: Option<Arc<dyn TxtRecords>>,

    /// The file system of the data file.
    #[arg(skip = OsFileSystem::shared())]
    pub file_system: Arc<dyn FileSystem>,

    /// The registry of the service's metrics. By default nothing is recorded.
    #[arg(skip)]
    pub metrics: Metrics,
}

/// The code of an error about the configuration.
pub(crate) const INVALID_CONFIGURATION: &str = "invalid_configuration";

/// The default address on which the service listens.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:8000";

impl Config {
    /// Checks the settings that a server needs together.
    ///
    /// # Errors
    /// One line for the operator that names the missing setting.
    pub fn require_complete(&self) -> Result<(), Error> {
        let missing = [
            (self.mail.smtp_url.is_none(), "--smtp-url"),
            (self.public_url.is_none(), "--public-url"),
            (!self.console.is_on(), "--console on"),
        ];
        match missing.iter().find(|(is_missing, _)| *is_missing && self.console_mail_login) {
            Some((_, flag)) => {
                let text = format!("--console-mail-login needs {flag}");
                Err(Error::invalid(INVALID_CONFIGURATION, text))
            }
            None => Ok(()),
        }
    }

    /// Returns the scheme and host of invite links, in responses and mails. They never come from a request.
    pub fn link_base(&self) -> &str {
        self.public_url.as_deref().unwrap_or(&self.listen_url)
    }

    /// Returns the scheme and host of links to the console. Without a public URL, and if this machine reaches the service
    /// by its loopback address over HTTP, the host is `steward.localhost`: the cookies of other services of this machine
    /// then belong to another host.
    pub fn console_base(&self) -> String {
        let base = self.link_base();
        let Ok(url) = Url::parse(base) else { return base.to_owned() };
        let is_local = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
            Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
            _ => false,
        };
        match url.port_or_known_default() {
            Some(port) if self.public_url.is_none() && is_local && url.scheme() == "http" => {
                format!("http://steward.localhost:{port}")
            }
            _ => base.to_owned(),
        }
    }
}

impl Default for Config {
    /// Returns what an empty command line sets, without environment variables.
    fn default() -> Self {
        let without_variable = |flag: Arg| flag.env(Resettable::Reset);
        let command = Self::augment_args(Command::new("steward")).mut_args(without_variable);
        let matches = command.get_matches_from(["steward"]);
        // No flag is required, and each accepts its default.
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Limits on the resources of one tenant. A request that would exceed a limit fails with 400 `limit_reached`. The
/// operator's commands have no limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Caps {
    /// A user who belongs to this many organizations cannot create another one.
    #[arg(long, env = "STEWARD_MAX_ORGANIZATIONS", value_name = "COUNT", default_value_t = 100)]
    pub max_organizations: u64,

    /// The maximum number of projects of an organization.
    #[arg(long, env = "STEWARD_MAX_PROJECTS", value_name = "COUNT", default_value_t = 1_000)]
    pub max_projects: u64,

    /// The maximum number of members of an organization.
    #[arg(long, env = "STEWARD_MAX_MEMBERS", value_name = "COUNT", default_value_t = 10_000)]
    pub max_members: u64,

    /// The maximum number of roles of an organization.
    #[arg(long, env = "STEWARD_MAX_ROLES", value_name = "COUNT", default_value_t = 500)]
    pub max_roles: u64,

    /// The maximum number of dashboards, and of insights, of a project. Deleted ones do not count.
    #[arg(long, env = "STEWARD_MAX_DASHBOARDS", value_name = "COUNT", default_value_t = 100_000)]
    pub max_dashboards: u64,

    /// The maximum number of pending invites of an organization.
    #[arg(long, env = "STEWARD_MAX_INVITES", value_name = "COUNT", default_value_t = 1_000)]
    pub max_invites: u64,

    /// The maximum number of different values of one query parameter.
    #[arg(long, env = "STEWARD_MAX_QUERY_VALUES", value_name = "COUNT", default_value_t = 200)]
    pub max_query_values: usize,

    /// The maximum number of bytes that the records of one organization take in the data file.
    #[arg(long, env = "STEWARD_ORGANIZATION_QUOTA", value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub organization_quota: usize,

    /// The free disk space to keep. With less, changes that add data fail with 503, and changes that delete data
    /// still work. By default 256 MiB, or a twentieth of the file system if that is less.
    #[arg(long, env = "STEWARD_DISK_RESERVE", value_name = "SIZE", value_parser = parse_size)]
    pub disk_reserve: Option<usize>,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn console_links_name_steward_localhost_if_the_listener_is_local() {
        let base = |listen: &str, public: Option<&str>| {
            let config = Config {
                listen_url: listen.to_owned(),
                public_url: public.map(str::to_owned),
                ..Config::default()
            };
            config.console_base()
        };
        for (listen, expected) in [
            ("http://127.0.0.1:8000", "http://steward.localhost:8000"),
            ("http://127.0.0.9:80", "http://steward.localhost:80"),
            ("http://[::1]:8001", "http://steward.localhost:8001"),
            ("http://0.0.0.0:8000", "http://steward.localhost:8000"),
            ("http://[::]:8000", "http://steward.localhost:8000"),
            ("http://192.0.2.7:8000", "http://192.0.2.7:8000"),
            ("https://127.0.0.1:8000", "https://127.0.0.1:8000"),
        ] {
            assert_eq!(base(listen, None), expected);
            let public = Some("https://admin.example.org");
            assert_eq!(base(listen, public), "https://admin.example.org");
        }
        let public = Some("http://127.0.0.1:9000");
        assert_eq!(base("http://127.0.0.1:8000", public), "http://127.0.0.1:9000");
    }
}
