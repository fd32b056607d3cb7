//! The cookie of a session. See `docs/spec/console.md` for its name and attributes.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use cookie::{Cookie, SameSite};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::http::client::{Client, Scheme};

use super::ROOT;

/// The cookie of one address of the service.
pub(super) struct SessionCookie {
    name: String,
    is_secure: bool,
}

impl SessionCookie {
    /// Returns the cookie for the address that the client uses. Browsers share cookies among the ports of a host, so the
    /// name contains the port.
    pub(super) fn of(client: &Client, config: &Config) -> Self {
        let base = client.base_url(config.public_url.as_deref());
        let is_secure = client.scheme == Scheme::Https || base.starts_with("https:");
        let prefix = if is_secure { "__Host-" } else { "" };
        let port = client.host.port_u16().map_or(String::new(), |port| format!("-{port}"));
        Self { name: format!("{prefix}steward{port}"), is_secure }
    }

    /// Returns the text of the session. Two cookies of the same name with different values count as none, because
    /// another port of the host has set one of them.
    pub(super) fn value(&self, headers: &HeaderMap) -> Option<String> {
        // Other services on this host may have set cookies that are not ASCII.
        let lines = headers.get_all(COOKIE).iter();
        let lines = lines.map(|line| String::from_utf8_lossy(line.as_bytes()));
        let cookies = lines.flat_map(Cookie::split_parse).filter_map(Result::ok);
        let mut values = cookies.filter(|cookie| cookie.name() == self.name);
        let first = values.next()?.value().to_owned();
        values.all(|other| other.value() == first).then_some(first)
    }

    /// Returns the header that stores the text of a session.
    pub(super) fn set(&self, text: &str) -> Result<HeaderValue> {
        let cookie = Cookie::build((self.name.as_str(), text))
            .path(if self.is_secure { "/" } else { ROOT })
            .secure(self.is_secure)
            .http_only(true)
            .same_site(SameSite::Strict);
        HeaderValue::try_from(cookie.to_string()).map_err(Error::internal)
    }

    /// Returns the header that removes the cookie.
    pub(super) fn remove(&self) -> Result<HeaderValue> {
        let header = self.set("")?;
        let text = header.to_str().map_err(Error::internal)?;
        HeaderValue::try_from(format!("{text}; Max-Age=0")).map_err(Error::internal)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::http::client::OverTls;
    use crate::trusted_proxies::TrustedProxies;

    fn cookie(host: &str, is_tls: bool, public_url: Option<&str>) -> SessionCookie {
        let (mut head, ()) = Request::builder().header("host", host).body(()).unwrap().into_parts();
        if is_tls {
            head.extensions.insert(OverTls);
        }
        let config = Config { public_url: public_url.map(str::to_owned), ..Config::default() };
        SessionCookie::of(&Client::of(&head, &TrustedProxies::default()), &config)
    }

    fn header(cookie: &SessionCookie) -> String {
        cookie.set("a.b").unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn cookie_name_and_attributes_follow_the_address() {
        let plain = "steward-8000=a.b; HttpOnly; SameSite=Strict; Path=/console/";
        assert_eq!(header(&cookie("steward.localhost:8000", false, None)), plain);
        let secure = "__Host-steward=a.b; HttpOnly; SameSite=Strict; Secure; Path=/";
        assert_eq!(header(&cookie("a.example", true, None)), secure);
        assert_eq!(header(&cookie("a.example", false, Some("https://a.example"))), secure);
        let port = "__Host-steward-8443=a.b; HttpOnly; SameSite=Strict; Secure; Path=/";
        assert_eq!(header(&cookie("a.example:8443", true, None)), port);
    }

    #[test]
    fn removed_cookie_has_the_same_name_and_path() {
        let removed = cookie("localhost:8000", false, None).remove().unwrap();
        assert_eq!(removed, "steward-8000=; HttpOnly; SameSite=Strict; Path=/console/; Max-Age=0");
    }

    #[test]
    fn cookie_is_read_by_its_whole_name_and_only_if_it_is_unambiguous() {
        let read = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, HeaderValue::from_bytes(line.as_bytes()).unwrap());
            }
            cookie("localhost:8000", false, None).value(&headers)
        };
        assert_eq!(read(&["a=1; steward-8000=x.y; b=2"]).as_deref(), Some("x.y"));
        assert_eq!(read(&["steward-8000=x; steward-8000=x"]).as_deref(), Some("x"));
        assert_eq!(read(&["ä=ö; steward-8000=x"]).as_deref(), Some("x"));
        assert_eq!(read(&["steward-8000=x; steward-8000=z"]), None);
        assert_eq!(read(&["steward-8000=x", "steward-8000=z"]), None);
        assert_eq!(read(&["steward-800=x; Steward-8000=y; xsteward-8000=z"]), None);
        assert_eq!(read(&[]), None);
    }
}
