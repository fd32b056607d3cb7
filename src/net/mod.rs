//! Names and addresses outside of HTTP: DNS, trusted proxies, and certificate authorities.

pub mod dns;
pub mod trust_anchors;
pub mod trusted_proxies;
