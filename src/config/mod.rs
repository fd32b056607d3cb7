//! How the service is asked to run: flags, and environment variables of the same names.

mod backups;
mod caps;
mod mail;
mod rate;
mod smtp_url;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use clap::Args;
use ipnet::IpNet;

use crate::meters::Meters;
use crate::store::disk::{Disk, Files};
use crate::time::Clock;

pub use backups::BackupConfig;
pub use caps::Caps;
pub use mail::MailConfig;
pub use rate::Rate;
pub use smtp_url::{Protection, SmtpUrl};

/// How the service runs. Every value has a default that just works.
#[derive(Debug, Clone, Args)]
#[non_exhaustive]
pub struct Config {
    /// Scheme and host of links, such as `https://admin.example.org`. By default links in lists begin with
    /// what the client used, links to invites with where the server listens.
    #[arg(long, env = "STEWARD_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,

    /// The largest request body.
    #[arg(long, env = "STEWARD_MAX_BODY", value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    pub max_body: usize,

    /// redb's page cache: what the service may keep of the file in memory.
    #[arg(long, env = "STEWARD_PAGE_CACHE", value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub page_cache: usize,

    /// How much memory large answers and large request bodies may take while they are in flight (64 KiB and less is
    /// not counted). A tenant and a client have a quarter of it, a client without a key an eighth, all without a key
    /// half; a request beyond that is answered with 503. A body counts with what it takes once parsed; one that takes
    /// more than a quarter is answered with 413.
    #[arg(long, env = "STEWARD_TRANSFER_MEMORY", value_name = "SIZE", default_value = "128MiB", value_parser = size)]
    pub transfer_memory: usize,

    /// How long a client may take to send a request's body.
    #[arg(long, env = "STEWARD_BODY_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub body_timeout: Duration,

    /// How long a request may take in all.
    #[arg(long, env = "STEWARD_REQUEST_TIMEOUT", value_name = "TIME", default_value = "20s", value_parser = duration)]
    pub request_timeout: Duration,

    /// A network whose X-Forwarded-For, -Proto and -Host headers are believed, such as 10.0.0.0/8 (repeatable).
    #[arg(
        long = "trusted-proxy",
        env = "STEWARD_TRUSTED_PROXY",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub trusted_proxies: Vec<IpNet>,

    /// How often a key may be used, such as 480/m,4800/h: all of the list hold at once. Requests that are refused count
    /// too; those whose key is missing or wrong count for their address. By default there is no limit.
    #[arg(
        long = "rate-limit",
        env = "STEWARD_RATE_LIMIT",
        value_name = "RATE",
        value_delimiter = ','
    )]
    pub rate_limits: Vec<Rate>,

    /// How often one address may ask, with or without a key, such as 100/s; an IPv6 network of 64 bits counts as
    /// one. Addresses are counted in 65,536 buckets, so that some share one. By default there is no limit.
    #[arg(
        long = "peer-limit",
        env = "STEWARD_PEER_LIMIT",
        value_name = "RATE",
        value_delimiter = ','
    )]
    pub peer_limits: Vec<Rate>,

    /// An origin whose pages may call the API from a browser, such as `https://app.example.org`, or `*` for any
    /// (repeatable). By default none may.
    #[arg(
        long = "cors-origin",
        env = "STEWARD_CORS_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ',',
        value_parser = origin
    )]
    pub cors_origins: Vec<String>,

    /// How long an invite can be accepted. Invites keep what was set when they were made.
    #[arg(long, env = "STEWARD_INVITE_TTL", value_name = "TIME", default_value = "3d", value_parser = duration)]
    pub invite_ttl: Duration,

    /// How long the activity log is kept, such as 365d. By default for ever.
    #[arg(long, env = "STEWARD_ACTIVITY_RETENTION", value_name = "TIME", value_parser = duration)]
    pub activity_retention: Option<Duration>,

    /// How often the data file is looked through in the background for damage, such as 24h; what is found is logged.
    /// By default never.
    #[arg(long, env = "STEWARD_SCRUB", value_name = "TIME", value_parser = duration)]
    pub scrub: Option<Duration>,

    /// A DNS server to ask when a domain is verified, such as 9.9.9.9:53 (repeatable). By default those of the
    /// system.
    #[arg(
        long = "dns-resolver",
        env = "STEWARD_DNS_RESOLVER",
        value_name = "ADDR:PORT",
        value_delimiter = ','
    )]
    pub dns_resolvers: Vec<SocketAddr>,

    /// What stands before a domain's name where its TXT record is looked up.
    #[arg(
        long,
        env = "STEWARD_DNS_CHALLENGE_PREFIX",
        value_name = "LABEL",
        default_value = "_posthog-challenge"
    )]
    pub dns_challenge_prefix: String,

    /// How long a DNS look-up may take in all.
    #[arg(long, env = "STEWARD_DNS_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub dns_timeout: Duration,

    /// How much of the service one tenant may have.
    #[command(flatten)]
    pub caps: Caps,

    /// How mail is sent.
    #[command(flatten)]
    pub mail: MailConfig,

    /// Which backups the server makes by itself.
    #[command(flatten)]
    pub backups: BackupConfig,

    /// Where the service listens, for links to invites where there is no public URL.
    #[arg(skip = format!("http://{DEFAULT_LISTEN}"))]
    pub listening_at: String,

    /// Where the service takes the time from.
    #[arg(skip)]
    pub clock: Clock,

    /// What the data file lies on.
    #[arg(skip = Files::shared())]
    pub disk: Arc<dyn Disk>,

    /// Where the service's numbers go; by default nowhere.
    #[arg(skip)]
    pub meters: Meters,
}

/// Where the service listens unless told otherwise.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:8000";

impl Config {
    /// What links to invites begin with, in answers and in mails: never what a client sent.
    pub fn link_base(&self) -> &str {
        self.public_url.as_deref().unwrap_or(&self.listening_at)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            public_url: None,
            max_body: 1024 * 1024,
            page_cache: crate::store::DEFAULT_CACHE,
            transfer_memory: 128 << 20,
            body_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(20),
            trusted_proxies: Vec::new(),
            rate_limits: Vec::new(),
            peer_limits: Vec::new(),
            cors_origins: Vec::new(),
            invite_ttl: Duration::from_hours(72),
            activity_retention: None,
            scrub: None,
            dns_resolvers: Vec::new(),
            dns_challenge_prefix: "_posthog-challenge".to_owned(),
            dns_timeout: Duration::from_secs(5),
            caps: Caps::default(),
            mail: MailConfig::default(),
            backups: BackupConfig::default(),
            listening_at: format!("http://{DEFAULT_LISTEN}"),
            clock: Clock::System,
            disk: Files::shared(),
            meters: Meters::default(),
        }
    }
}

fn size(text: &str) -> Result<usize, String> {
    let size: ByteSize = text.parse().map_err(|_| "write a size such as 64MiB".to_owned())?;
    usize::try_from(size.as_u64()).map_err(|_| "that is more than memory can hold".to_owned())
}

/// A time that is not zero.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = |_| "write a time such as 30s, 15m, 6h or 3d".to_owned();
    let duration: humantime::Duration = text.parse().map_err(wrong)?;
    if duration.is_zero() {
        return Err("zero is too short a time".to_owned());
    }
    Ok(duration.into())
}

/// An absolute URL without its trailing slash.
pub(crate) fn public_url(text: &str) -> Result<String, String> {
    let url: http::Uri = text.parse().map_err(|_| "write a URL such as https://host".to_owned())?;
    match (url.scheme_str(), url.authority()) {
        (Some("http" | "https"), Some(_)) => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err("write a URL with http or https and a host".to_owned()),
    }
}

/// An origin as browsers send it: scheme, host and port, and nothing else; or `*`.
fn origin(text: &str) -> Result<String, String> {
    let wrong = || "write an origin such as https://app.example.org, or *".to_owned();
    if text == "*" {
        return Ok(text.to_owned());
    }
    let url = url::Url::parse(text).map_err(|_| wrong())?;
    let origin = url.origin();
    let bare = matches!(url.scheme(), "http" | "https")
        && !text.contains('*')
        && url.as_str() == format!("{}/", origin.ascii_serialization());
    if bare { Ok(origin.ascii_serialization()) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        config: Config,
    }

    #[test]
    fn a_bare_command_line_asks_for_the_defaults() {
        let config = Command::parse_from(["steward"]).config;
        assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
    }

    #[test]
    fn sizes_and_times_are_written_with_units() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(duration("15m"), Ok(Duration::from_mins(15)));
        assert!(size("lots").is_err() && duration("0s").is_err() && duration("soon").is_err());
    }

    #[test]
    fn an_origin_has_no_path_and_is_written_as_browsers_do() {
        for (text, sent) in [
            ("*", "*"),
            ("https://App.example.org", "https://app.example.org"),
            ("http://localhost:3000/", "http://localhost:3000"),
            ("https://a.example:443", "https://a.example"),
        ] {
            assert_eq!(origin(text), Ok(sent.to_owned()));
        }
        for text in [
            "",
            "a.example",
            "null",
            "https://a.example/x",
            "https://u@a.example",
            "ftp://a.example",
            "https://*.example",
        ] {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_public_url_has_a_scheme_and_a_host() {
        assert_eq!(public_url("https://a.example/"), Ok("https://a.example".to_owned()));
        assert!(public_url("a.example").is_err() && public_url("ftp://a.example").is_err());
    }
}
