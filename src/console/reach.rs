//! Who can open the links that the console shows.

use url::{Host, Url};

/// Returns the base of links if they work on this machine only: its host is a loopback address, a name of one, or no address
/// at all.
pub(super) fn local_base(base: &str) -> Option<String> {
    let url = Url::parse(base).ok()?;
    let is_local = match url.host()? {
        Host::Domain(name) => name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => address.is_loopback() || address.is_unspecified(),
        Host::Ipv6(address) => address.is_loopback() || address.is_unspecified(),
    };
    is_local.then(|| base.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_bases_are_loopback_names_and_addresses() {
        for local in [
            "http://127.0.0.1:8000",
            "http://127.9.9.9/",
            "http://[::1]:8000",
            "http://0.0.0.0:8000",
            "http://[::]:8000",
            "http://localhost",
            "http://steward.localhost:8000",
        ] {
            assert_eq!(local_base(local).as_deref(), Some(local.trim_end_matches('/')), "{local}");
        }
        for public in
            ["https://admin.example", "http://192.0.2.7:8000", "http://localhost.example", "x"]
        {
            assert_eq!(local_base(public), None, "{public}");
        }
    }
}
