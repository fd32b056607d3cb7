//! The client of a request: its address, and the scheme and host that it used.
//!
//! `X-Forwarded-*` headers are trusted only if the TCP peer is a trusted proxy (`--trusted-proxy`).
//! Any other client could forge them.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};

use crate::base::error::Error;
use crate::net::TrustedProxies;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: &str = "x-forwarded-proto";
const FORWARDED_HOST: &str = "x-forwarded-host";

/// The TCP peer's address, as a request extension that the accept loop sets.
///
/// A router that is called in-process has no peer. Its client counts as loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// A request extension that the accept loop sets on requests over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverTls;

/// A request extension that the accept loop sets on requests that fail with this error.
#[derive(Debug, Clone)]
pub struct RejectedRequest(pub Error);

/// The client of a request, from the connection and from trusted headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The client's IP address. IPv4 is never shown as IPv4-mapped IPv6.
    pub address: IpAddr,
    /// Whether the client used HTTPS, terminated by this server or by a trusted proxy.
    pub is_https: bool,
    /// The requested host, with its port if given. `localhost` if the request has no valid host.
    pub host: Authority,
}

impl Client {
    /// Returns the client of a request.
    ///
    /// An absolute request target (`GET http://host/ HTTP/1.1`) takes precedence over the `Host`
    /// header (RFC 9112 §3.2.2).
    pub fn of(parts: &Parts, proxies: &TrustedProxies) -> Self {
        let headers = &parts.headers;
        let peer = peer_address(&parts.extensions);
        let host = || parse_host(headers.get(HOST)?.as_bytes());
        let asked = || parts.uri.authority().cloned().filter(is_host).or_else(host);
        let own = parts.extensions.get::<OverTls>().is_some();
        let (is_https, forwarded_host) = if proxies.trusts(peer) {
            let host = last_value(headers, FORWARDED_HOST).and_then(parse_host);
            let proto = last_value(headers, FORWARDED_PROTO);
            (proto.map_or(own, |proto| proto.eq_ignore_ascii_case(b"https")), host)
        } else {
            (own, None)
        };
        Self {
            address: address(&parts.extensions, headers, proxies),
            is_https,
            host: forwarded_host
                .or_else(asked)
                .unwrap_or_else(|| Authority::from_static("localhost")),
        }
    }

    /// Returns the base of absolute URLs, without a trailing slash: `public_url` (`--public-url`)
    /// if it is set, else the client's scheme and host.
    pub fn base_url<'a>(&self, public_url: Option<&'a str>) -> Cow<'a, str> {
        if let Some(url) = public_url {
            return Cow::Borrowed(url.trim_end_matches('/'));
        }
        let scheme = if self.is_https { "https" } else { "http" };
        Cow::Owned(format!("{scheme}://{}", self.host))
    }
}

/// Returns the client's IP address: the peer's, or, if the peer is a trusted proxy, the rightmost
/// address in `X-Forwarded-For` that is not a trusted proxy.
///
/// Each proxy appends the address that called it, so the entry to the right vouches for each entry.
/// An invalid entry stops the search at the last valid address.
pub fn address(extensions: &Extensions, headers: &HeaderMap, proxies: &TrustedProxies) -> IpAddr {
    let mut address = peer_address(extensions);
    if !proxies.trusts(address) {
        return address;
    }
    let entries = headers.get_all(FORWARDED_FOR).iter().rev();
    let mut entries = entries.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    while proxies.trusts(address) {
        match entries.next().and_then(parse_address) {
            Some(before) => address = before,
            None => break,
        }
    }
    address
}

fn peer_address(extensions: &Extensions) -> IpAddr {
    extensions
        .get::<Peer>()
        .map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |Peer(peer)| peer.ip().to_canonical())
}

/// Parses an entry of `X-Forwarded-For`. Some proxies add a port, or write IPv6 in brackets.
fn parse_address(entry: &[u8]) -> Option<IpAddr> {
    let entry = str::from_utf8(entry).ok()?.trim();
    let bare = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(entry);
    bare.parse::<IpAddr>()
        .or_else(|_| entry.parse::<SocketAddr>().map(|socket| socket.ip()))
        .ok()
        .map(|address| address.to_canonical())
}

/// Returns the last value of a list header, which the trusted peer itself wrote.
fn last_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    let line = headers.get_all(name).iter().next_back()?.as_bytes();
    line.rsplit(|byte| *byte == b',').next().map(<[u8]>::trim_ascii)
}

/// Whether the value of a `Host` header is a host with an optional port.
pub(super) fn is_valid_host(value: &HeaderValue) -> bool {
    parse_host(value.as_bytes()).is_some()
}

fn parse_host(value: &[u8]) -> Option<Authority> {
    Authority::try_from(value).ok().filter(is_host)
}

/// Rejects authorities with user information or an invalid port, which `Authority` accepts.
fn is_host(authority: &Authority) -> bool {
    let (whole, host) = (authority.as_str(), authority.host());
    !host.is_empty()
        && !whole.contains('@')
        && (whole.len() == host.len() || authority.port_u16().is_some())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use ipnet::IpNet;

    use super::*;

    fn parts(peer: Option<&str>, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri("/x");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        if let Some(peer) = peer {
            parts.extensions.insert(Peer(SocketAddr::new(peer.parse().unwrap(), 4000)));
        }
        parts
    }

    fn proxies() -> TrustedProxies {
        ["10.0.0.0/8", "fd00::/8"]
            .map(|network| network.parse::<IpNet>().unwrap())
            .into_iter()
            .collect()
    }

    fn address_of(peer: &str, forwarded: &[&str]) -> String {
        let name = FORWARDED_FOR;
        let headers: Vec<_> = forwarded.iter().map(|line| (name.as_str(), *line)).collect();
        Client::of(&parts(Some(peer), &headers), &proxies()).address.to_string()
    }

    fn base_of(peer: &str, headers: &[(&str, &str)]) -> String {
        Client::of(&parts(Some(peer), headers), &proxies()).base_url(None).into_owned()
    }

    #[test]
    fn request_without_peer_address_has_the_loopback_address() {
        let client = Client::of(&parts(None, &[]), &TrustedProxies::default());
        assert_eq!(client.address, IpAddr::V4(Ipv4Addr::LOCALHOST));
        assert_eq!(client.base_url(None), "http://localhost");
    }

    #[test]
    fn client_is_the_rightmost_untrusted_forwarded_address() {
        for (peer, forwarded, address) in [
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4, 10.0.0.2"][..], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6", "1.2.3.4,10.0.0.2"], "1.2.3.4"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("fd00::1", &["[2001:db8::1]:443"], "2001:db8::1"),
            ("fd00::1", &["1.2.3.4:443"], "1.2.3.4"),
            ("::ffff:10.0.0.1", &["::ffff:1.2.3.4"], "1.2.3.4"),
            // An invalid address ends the search.
            ("10.0.0.1", &["1.2.3.4, unknown, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &["1.2.3.4,"], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4.5"], "10.0.0.1"),
            // A client that is no proxy cannot name another one.
            ("203.0.113.9", &["1.2.3.4"], "203.0.113.9"),
        ] {
            assert_eq!(address_of(peer, forwarded), address, "{forwarded:?}");
        }
    }

    #[test]
    fn trusted_proxy_sets_scheme_and_host() {
        let inner = ("host", "inner:8000");
        let headers = [inner, (FORWARDED_PROTO, "HTTPS"), (FORWARDED_HOST, "api.example.com")];
        assert_eq!(base_of("10.0.0.1", &headers), "https://api.example.com");
        assert_eq!(base_of("203.0.113.9", &headers), "http://inner:8000", "no trusted proxy");
        let lists =
            [inner, (FORWARDED_PROTO, "http, https"), (FORWARDED_HOST, "evil, api.example.com")];
        assert_eq!(base_of("10.0.0.1", &lists), "https://api.example.com");
        let bad = [inner, (FORWARDED_PROTO, "gopher"), (FORWARDED_HOST, "a b")];
        assert_eq!(base_of("10.0.0.1", &bad), "http://inner:8000");
    }

    #[test]
    fn invalid_host_is_replaced_by_localhost() {
        for bad in ["", "user@host", "a/b", "a b", "host:", "host:99999", ":80", "a\"b"] {
            assert_eq!(base_of("10.0.0.1", &[("host", bad)]), "http://localhost", "{bad:?}");
        }
        assert_eq!(base_of("10.0.0.1", &[("host", "[::1]:8000")]), "http://[::1]:8000");
    }

    #[test]
    fn absolute_request_target_overrides_the_host_header() {
        let mut parts = parts(None, &[("host", "b.example")]);
        parts.uri = "http://a.example/x".parse().unwrap();
        assert_eq!(Client::of(&parts, &proxies()).base_url(None), "http://a.example");
    }

    #[test]
    fn tls_requests_have_the_https_scheme_unless_a_trusted_proxy_sets_another() {
        let base = |peer: &str, headers: &[(&str, &str)]| {
            let mut parts = parts(Some(peer), headers);
            parts.extensions.insert(OverTls);
            Client::of(&parts, &proxies()).base_url(None).into_owned()
        };
        let plain = [("host", "a.example"), (FORWARDED_PROTO, "http")];
        assert_eq!(base("203.0.113.9", &plain), "https://a.example");
        assert_eq!(base("10.0.0.1", &plain[..1]), "https://a.example");
        assert_eq!(base("10.0.0.1", &plain), "http://a.example");
    }

    #[test]
    fn public_url_overrides_the_request_host() {
        let client = Client::of(&parts(None, &[]), &proxies());
        assert_eq!(client.base_url(Some("https://x.example/")), "https://x.example");
    }
}
