//! Names and addresses outside of HTTP: DNS, trusted proxies, and certificate authorities.

pub mod dns;
pub mod trust_anchors;

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use url::Host;

/// The networks whose `X-Forwarded-*` headers are trusted (`--trusted-proxy`). Empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl FromIterator<IpNet> for TrustedProxies {
    fn from_iter<I: IntoIterator<Item = IpNet>>(networks: I) -> Self {
        Self(networks.into_iter().collect())
    }
}

impl TrustedProxies {
    /// Whether `address` belongs to a trusted proxy. Pass IPv4 addresses unmapped.
    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Whether a host names this machine, whatever a name server says.
pub fn is_loopback(host: &Host<String>) -> bool {
    match host {
        Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}
