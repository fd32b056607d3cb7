//! The values of flags that need more than their type.

use std::ffi::OsStr;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bytesize::ByteSize;
use clap::ValueEnum;
use clap::builder::{PathBufValueParser, TypedValueParser, ValueParser};
use ipnet::IpNet;
use url::Url;

use crate::store::looks_like_database_address;

/// The port of DNS servers.
const DNS_PORT: u16 = 53;

pub(super) fn parse_size(text: &str) -> Result<usize, String> {
    let size: ByteSize = text.parse().map_err(|_| "write a size such as 64MiB".to_owned())?;
    usize::try_from(size.as_u64()).map_err(|_| "the size is too large".to_owned())
}

/// Parses a duration greater than zero.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = |_| "write a time such as 30s, 15m, 6h or 3d".to_owned();
    let duration: humantime::Duration = text.parse().map_err(wrong)?;
    if duration.is_zero() {
        return Err("the time must not be zero".to_owned());
    }
    Ok(duration.into())
}

/// Parses the scheme and host of links, in the form of [`parse_origin`].
pub(crate) fn parse_public_url(text: &str) -> Result<String, String> {
    origin(text).ok_or_else(|| {
        "write the scheme, the host and a port if it is not the usual one, such as https://admin.example.org"
            .to_owned()
    })
}

/// Parses an origin as browsers send it (scheme, host and port only), or `*`.
pub(super) fn parse_origin(text: &str) -> Result<String, String> {
    if text.trim() == "*" {
        return Ok("*".to_owned());
    }
    origin(text).ok_or_else(|| "write an origin such as https://app.example.org, or *".to_owned())
}

/// Returns an origin in its canonical form, or `None` if the text has more than a scheme, a host and a port. The URL parser
/// alone would also accept what only resembles an origin.
fn origin(text: &str) -> Option<String> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://")?;
    let host = rest.strip_suffix('/').unwrap_or(rest);
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !r"/\@?#*%".contains(c);
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let url = Url::parse(text).ok().filter(|_| is_web && host.chars().all(is_plain))?;
    let has_host = !host.starts_with(':') && url.host_str().is_some_and(|host| !host.is_empty());
    (has_host && !host.ends_with(':') && url.port() != Some(0))
        .then(|| url.origin().ascii_serialization())
}

/// Parses an address to listen on. The system looks up a name.
pub(crate) fn parse_listen(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_address = text.parse::<SocketAddr>().is_ok();
    let is_name = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains([':', '/', ' ']) && port.parse::<u16>().is_ok()
    });
    if is_address || is_name {
        return Ok(text.to_owned());
    }
    Err("write an address and a port, such as 127.0.0.1:8000".to_owned())
}

/// The length of the prefix before an IPv4 address that is mapped into IPv6.
const MAPPED_PREFIX: u8 = 96;
/// Networks in which no client is. The addresses of clients with IPv4 are never mapped into IPv6.
const WITHOUT_CLIENTS: [IpNet; 6] = [
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8),
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 4),
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::BROADCAST), 32),
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), 8),
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0)), MAPPED_PREFIX),
];

/// Parses a network, or one address.
pub(super) fn parse_network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let network = network.map_err(|_| "write a network such as 10.0.0.0/8, or an address")?;
    let is_everything = network.addr().is_unspecified() && network.prefix_len() == 0;
    if !is_everything
        && let Some(empty) = WITHOUT_CLIENTS.iter().find(|empty| empty.contains(&network))
    {
        let is_mapped = matches!(empty, IpNet::V6(net) if net.prefix_len() == MAPPED_PREFIX);
        let hint = if is_mapped { "; write IPv4 as 10.0.0.0/8" } else { "" };
        return Err(format!("no client has an address of this network{hint}"));
    }
    Ok(network)
}

/// Parses the address of a DNS server.
pub(super) fn parse_resolver(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    let at_port = |address: IpAddr| SocketAddr::new(address, DNS_PORT);
    let parsed = text.parse().or_else(|_| text.parse().map(at_port));
    parsed.map_err(|_| "write an address and a port, such as 9.9.9.9:53".to_owned())
}

/// Parses the path of something to create. `-` means stdout in other commands.
pub(crate) fn output_path() -> ValueParser {
    PathBufValueParser::new().try_map(|path| require_file(path).and_then(require_path)).into()
}

/// Parses the path of a file; `-` stands for stdin or stdout.
pub(crate) fn file_path() -> ValueParser {
    PathBufValueParser::new().try_map(require_path).into()
}

/// Parses the path of a data file, or the address of a database.
pub(crate) fn data_place() -> ValueParser {
    PathBufValueParser::new().try_map(require_file).into()
}

fn require_file(path: PathBuf) -> Result<PathBuf, &'static str> {
    if path.as_os_str() == OsStr::new("-") {
        return Err("`-` names no file here; write `./-` for a file of that name");
    }
    Ok(path)
}

/// Fails if a database is named where only a file can be.
fn require_path(path: PathBuf) -> Result<PathBuf, &'static str> {
    if looks_like_database_address(&path.to_string_lossy()) {
        return Err(
            "this looks like the address of a database, which --data takes; write `./NAME` for a file with such a name",
        );
    }
    Ok(path)
}

/// Whether an optional part of the service is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// The part runs.
    On,
    /// The part does not run.
    Off,
}

impl Switch {
    /// Whether the part runs.
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_on() { "on" } else { "off" })
    }
}

/// A number of requests in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// The number of requests.
    pub requests: NonZeroU32,
    /// The period.
    pub per: Duration,
}

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write a rate such as 10/s, 480/m, 4800/h or 20000/d".to_owned();
        let (count, unit) = text.trim().split_once('/').ok_or_else(wrong)?;
        let per = match unit {
            "s" => Duration::from_secs(1),
            "m" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            "d" => Duration::from_hours(24),
            _ => return Err(wrong()),
        };
        Ok(Self { requests: count.parse().map_err(|_| wrong())?, per })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limit_is_a_count_per_unit() {
        for (text, count, seconds) in
            [("1/s", 1, 1), ("480/m", 480, 60), (" 4800/h", 4800, 3600), ("9/d", 9, 86_400)]
        {
            let rate: RateLimit = text.parse().expect(text);
            assert_eq!((rate.requests.get(), rate.per.as_secs()), (count, seconds));
        }
        for text in ["", "0/m", "-1/m", "m", "/m", "5", "5/", "5/w", "5/m/h", "5.5/m", "5 / m"] {
            assert!(text.parse::<RateLimit>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn sizes_and_durations_are_parsed_with_units() {
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_duration("15m"), Ok(Duration::from_mins(15)));
        assert!(parse_size("lots").is_err());
        assert!(parse_duration("0s").is_err() && parse_duration("soon").is_err());
    }

    #[test]
    fn origins_and_public_urls_have_no_path_and_are_normalized() {
        for (text, sent) in [
            ("https://App.example.org", "https://app.example.org"),
            ("http://localhost:3000/", "http://localhost:3000"),
            (" https://a.example:443", "https://a.example"),
            ("HTTPS://a.example:8443", "https://a.example:8443"),
            ("https://b\u{fc}cher.example", "https://xn--bcher-kva.example"),
            ("http://[::1]:8000", "http://[::1]:8000"),
        ] {
            assert_eq!(parse_origin(text), Ok(sent.to_owned()), "{text}");
            assert_eq!(parse_public_url(text), Ok(sent.to_owned()), "{text}");
        }
        for text in [
            "",
            "a.example",
            "null",
            "https://",
            "https:///a.example",
            "https:a.example",
            "https:\\\\a.example",
            "https://a.example/x",
            "https://a.example//",
            "https://a.example?x=1",
            "https://a.example?",
            "https://a.example#x",
            "https://u@a.example",
            "https://u:p@a.example",
            "https://@a.example",
            "https://a.example:",
            "https://a.example:0",
            "https://a.example:99999",
            "https://a.example:x",
            "https://:8000",
            "https://a.ex\tample",
            "https://a b.example",
            "ftp://a.example",
            "https://*.example",
        ] {
            assert!(parse_origin(text).is_err(), "{text}");
            assert!(parse_public_url(text).is_err(), "{text}");
        }
        assert_eq!(parse_origin(" *"), Ok("*".to_owned()));
        assert!(parse_public_url("*").is_err());
    }

    #[test]
    fn network_is_written_as_a_network_or_an_address() {
        for (text, network) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            (" 10.0.0.1", "10.0.0.1/32"),
            ("10.0.0.1/8", "10.0.0.1/8"),
            ("fd00::1 ", "fd00::1/128"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(parse_network(text).map(|read| read.to_string()), Ok(network.to_owned()));
        }
        for text in [
            "",
            "10.0.0",
            "10.0.0.0/33",
            "host",
            "0.0.0.0",
            "0.0.0.0/32",
            "224.0.0.0/4",
            "239.1.1.1",
            "255.255.255.255",
            "::",
            "ff02::1",
            "::ffff:10.0.0.0/104",
            "::ffff:10.0.0.1",
        ] {
            assert!(parse_network(text).is_err(), "{text}");
        }
    }

    #[test]
    fn listeners_and_resolvers_are_addresses() {
        for text in ["127.0.0.1:8000", "[::1]:0", "localhost:80", " 0.0.0.0:8000"] {
            assert_eq!(parse_listen(text), Ok(text.trim().to_owned()));
        }
        for text in ["", "8000", ":8000", "127.0.0.1", "::1:8000", "a:99999", "http://a:80"] {
            assert!(parse_listen(text).is_err(), "{text}");
        }
        let resolver = |text| parse_resolver(text).map(|read| read.to_string());
        assert_eq!(resolver(" 9.9.9.9:1053"), Ok("9.9.9.9:1053".to_owned()));
        assert_eq!(resolver("9.9.9.9"), Ok("9.9.9.9:53".to_owned()));
        assert!(resolver("dns.example").is_err());
    }
}
