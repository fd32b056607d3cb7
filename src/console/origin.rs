//! The hosts of the service. A page accepts requests that name one of them, and forms that its own pages send. See
//! `docs/spec/console.md`.

use std::net::IpAddr;

use axum::http::HeaderName;
use axum::http::header::ORIGIN;
use axum::http::request::Parts;
use url::{Host, Url};

use crate::base::error::{Error, Result};
use crate::config::Config;
use crate::http::client::Client;
use crate::net::is_loopback;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Requires that the request names a host of this service: a loopback name, the address of the listener, or the host of
/// `--public-url`. Otherwise a page of another name that resolves to this address could read the console (DNS
/// rebinding).
///
/// # Errors
/// 421 for any other host.
pub(super) fn require_own_host(client: &Client, config: &Config) -> Result<()> {
    let asked = Host::parse(client.host.host()).map_err(|_| Error::misdirected())?;
    let is_own = is_loopback(&asked)
        || host_of(&config.listen_url).is_some_and(|own| own == asked || covers(&own, &asked))
        || config.public_url.as_deref().and_then(host_of) == Some(asked);
    if is_own { Ok(()) } else { Err(Error::misdirected()) }
}

/// Whether a listener on all addresses serves this address. A name is never served: rebinding needs one.
fn covers(own: &Host<String>, asked: &Host<String>) -> bool {
    let is_wildcard = address_of(own).is_some_and(|own| own.is_unspecified());
    is_wildcard && address_of(asked).is_some()
}

fn address_of(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some((*address).into()),
        Host::Ipv6(address) => Some((*address).into()),
    }
}

fn host_of(url: &str) -> Option<Host<String>> {
    Url::parse(url).ok()?.host().map(|host| host.to_owned())
}

/// Requires that a page of the console sent this form. Strict cookies alone do not suffice: browsers send them to every
/// port of a host, also with the form of another port.
///
/// # Errors
/// 403 for the form of another site, of another port, or of an unknown origin.
pub(super) fn require_same_origin(head: &Parts, client: &Client, config: &Config) -> Result<()> {
    let is_same = match head.headers.get(SEC_FETCH_SITE) {
        Some(site) => site == "same-origin",
        // Browsers send this header only to HTTPS and loopback addresses.
        None => head.headers.get(ORIGIN).is_some_and(|sent| {
            let sent = sent.to_str().ok().and_then(origin_of);
            let own = [Some(client.base_url(None)), config.public_url.as_deref().map(Into::into)];
            sent.is_some() && own.iter().flatten().any(|own| origin_of(own) == sent)
        }),
    };
    if is_same {
        return Ok(());
    }
    Err(Error::denied("This form was not sent by a page of the console."))
}

fn origin_of(text: &str) -> Option<String> {
    let origin = Url::parse(text).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}

/// Whether another site, or another port of this host, opened the page. Browsers then withhold the session's cookie.
pub(super) fn is_opened_by_another_site(head: &Parts) -> bool {
    let site = head.headers.get(SEC_FETCH_SITE);
    site.is_some_and(|site| site == "cross-site" || site == "same-site")
}

/// Returns the base of links if they work on this machine only: its host is a loopback address, a name of one, or no address
/// at all.
pub(super) fn local_base(base: &str) -> Option<String> {
    let host = host_of(base)?;
    let is_unspecified = address_of(&host).is_some_and(|address| address.is_unspecified());
    let is_local = is_loopback(&host) || is_unspecified;
    is_local.then(|| base.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::net::TrustedProxies;

    fn head(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method("POST").uri("/console/sign_in/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn client(head: &Parts) -> Client {
        Client::of(head, &TrustedProxies::default())
    }

    fn config(listen: &str, public: Option<&str>) -> Config {
        let (listen_url, public_url) = (listen.to_owned(), public.map(str::to_owned));
        Config { public_url, listen_url, ..Config::default() }
    }

    fn is_own_host(host: &str, config: &Config) -> bool {
        let checked = require_own_host(&client(&head(&[("host", host)])), config);
        checked.map_err(|error| assert_eq!(error.status(), 421)).is_ok()
    }

    #[test]
    fn only_hosts_of_this_service_are_accepted() {
        let local = config("http://127.0.0.1:8000", None);
        for own in [
            "localhost",
            "LOCALHOST:8000",
            "steward.localhost:9",
            "127.0.0.1:8000",
            "127.9.9.9",
            "[::1]:80",
        ] {
            assert!(is_own_host(own, &local), "{own}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "notlocalhost",
            "192.0.2.1",
            "0.0.0.0",
            "[::2]",
        ] {
            assert!(!is_own_host(foreign, &local), "{foreign}");
        }
        let public = config("http://192.0.2.1:80", Some("https://Admin.example:8443"));
        assert!(is_own_host("admin.example", &public) && is_own_host("192.0.2.1:80", &public));
        assert!(!is_own_host("192.0.2.2", &public) && !is_own_host("x.admin.example", &public));
        for wildcard in ["http://0.0.0.0:8000", "http://[::]:8000"] {
            let wildcard = config(wildcard, None);
            assert!(
                is_own_host("192.0.2.7:8000", &wildcard) && is_own_host("[2001:db8::1]", &wildcard)
            );
            assert!(!is_own_host("evil.example:8000", &wildcard));
        }
    }

    fn is_same_origin(headers: &[(&str, &str)], public: Option<&str>) -> bool {
        let head = head(headers);
        require_same_origin(&head, &client(&head), &config("http://127.0.0.1:8000", public)).is_ok()
    }

    #[test]
    fn forms_of_other_origins_are_rejected() {
        let host = ("host", "steward.localhost:8000");
        let (site, origin) = ("sec-fetch-site", "origin");
        assert!(is_same_origin(&[host, (site, "same-origin")], None));
        assert!(is_same_origin(&[host, (origin, "http://steward.localhost:8000")], None));
        let public = Some("https://admin.example");
        assert!(is_same_origin(&[host, (origin, "https://admin.example")], public));
        assert!(is_same_origin(&[host, (origin, "https://admin.example:443")], public));
        for refused in [
            &[host] as &[_],
            &[host, (site, "same-site")],
            &[host, (site, "cross-site"), (origin, "http://steward.localhost:8000")],
            &[host, (site, "none")],
            &[host, (origin, "null")],
            &[host, (origin, "http://steward.localhost:8001")],
            &[host, (origin, "https://steward.localhost:8000")],
            &[host, (origin, "http://evil.example")],
            &[host, (origin, "about:blank")],
        ] {
            assert!(!is_same_origin(refused, None), "{refused:?}");
        }
        assert!(!is_same_origin(&[host, (origin, "http://admin.example")], public));
    }

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
