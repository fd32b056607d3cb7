//! The cookies of the console: one keeps the session, one the nonce of a browser that asked for a sign-in mail, and one the
//! proof that a user has signed in in the browser. See `docs/spec/console.md` for their names and attributes.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use cookie::{Cookie, SameSite};
use url::Url;

use crate::base::error::{Error, Result};
use crate::config::Config;
use crate::http::client::Client;

use super::ROOT;

/// A cookie at any address: the part of its name that says what it keeps, and the lifetime in seconds. Without one, the
/// browser removes the cookie when it is closed.
pub(super) type CookieKind = (&'static str, Option<u32>);

/// The session.
pub(super) const SESSION: CookieKind = ("steward", None);
/// The nonce of a browser that asked for a sign-in mail. The code is valid as long.
pub(super) const MAIL: CookieKind = ("steward-mail", Some(10 * 60));
/// The proof that a user has signed in in the browser, for 400 days. Browsers keep no cookie longer.
pub(super) const KNOWN_BROWSER: CookieKind = ("steward-known", Some(400 * 24 * 3600));

/// The maximum number of values of a cookie that count. Another host of the domain can set any number.
const MAX_VALUES: usize = 32;

/// A cookie for one address of the service.
pub(super) struct ConsoleCookie {
    pub(super) name: String,
    is_secure: bool,
    /// The lifetime in seconds, as in [`CookieKind`].
    max_age: Option<u32>,
}

impl ConsoleCookie {
    /// Returns the cookie for the address that the client uses. Browsers share cookies among the ports of a host, so the
    /// name contains the port.
    pub(super) fn new((name, max_age): CookieKind, client: &Client, config: &Config) -> Self {
        let is_secure = client.is_https || is_behind_https(client, config);
        let prefix = if is_secure { "__Host-" } else { "" };
        let port = client.host.port_u16().map_or(String::new(), |port| format!("-{port}"));
        Self { name: format!("{prefix}{name}{port}"), is_secure, max_age }
    }

    /// Returns the first values, each once. There are several if another port of the host, or another host of its domain, has
    /// set a cookie of the same name.
    pub(super) fn values(&self, headers: &HeaderMap) -> Vec<String> {
        // Other services on this host may have set cookies that are not ASCII.
        let lines = headers.get_all(COOKIE).iter();
        let lines = lines.map(|line| String::from_utf8_lossy(line.as_bytes()));
        let cookies = lines.flat_map(Cookie::split_parse).filter_map(Result::ok);
        let mut values: Vec<String> = Vec::new();
        for cookie in cookies.filter(|cookie| cookie.name() == self.name) {
            if values.len() < MAX_VALUES && !values.iter().any(|known| known == cookie.value()) {
                values.push(cookie.value().to_owned());
            }
        }
        values
    }

    /// Returns the header that stores a value.
    pub(super) fn set(&self, value: &str) -> Result<HeaderValue> {
        self.header(value, self.max_age)
    }

    /// Returns the header that removes the cookie.
    pub(super) fn remove(&self) -> Result<HeaderValue> {
        self.header("", Some(0))
    }

    fn header(&self, value: &str, max_age: Option<u32>) -> Result<HeaderValue> {
        let cookie = Cookie::build((self.name.as_str(), value))
            .path(if self.is_secure { "/" } else { ROOT })
            .secure(self.is_secure)
            .http_only(true)
            .same_site(SameSite::Strict);
        let max_age = max_age.map_or(String::new(), |seconds| format!("; Max-Age={seconds}"));
        HeaderValue::try_from(format!("{cookie}{max_age}")).map_err(Error::internal)
    }
}

/// Whether the client uses the host and port of an HTTPS `--public-url`: a proxy then serves it by HTTPS. A browser at
/// another address, such as loopback, uses plain HTTP, and would not send a secure cookie back.
fn is_behind_https(client: &Client, config: &Config) -> bool {
    let public = config.public_url.as_deref().and_then(|url| Url::parse(url).ok());
    let used = Url::parse(&format!("https://{}", client.host)).ok();
    public.zip(used).is_some_and(|(public, used)| public.origin() == used.origin())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::http::client::OverTls;
    use crate::net::TrustedProxies;

    fn cookie(host: &str, is_tls: bool, public_url: Option<&str>) -> ConsoleCookie {
        let (client, config) = request(host, is_tls, public_url);
        ConsoleCookie::new(SESSION, &client, &config)
    }

    fn request(host: &str, is_tls: bool, public_url: Option<&str>) -> (Client, Config) {
        let (mut head, ()) = Request::builder().header("host", host).body(()).unwrap().into_parts();
        if is_tls {
            head.extensions.insert(OverTls);
        }
        let config = Config { public_url: public_url.map(str::to_owned), ..Config::default() };
        (Client::of(&head, &TrustedProxies::default()), config)
    }

    fn header(cookie: &ConsoleCookie) -> String {
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
        assert_eq!(header(&cookie("a.example:8443", false, Some("https://a.example:8443"))), port);
    }

    #[test]
    fn cookie_of_another_address_than_the_public_url_is_not_secure_over_plain_http() {
        for public in ["https://a.example", "http://a.example", "https://a.example:8443"] {
            for host in ["127.0.0.1:8000", "a.example:8000", "localhost:8000", "192.0.2.7:8000"] {
                let header = header(&cookie(host, false, Some(public)));
                assert_eq!(header, "steward-8000=a.b; HttpOnly; SameSite=Strict; Path=/console/");
            }
        }
    }

    #[test]
    fn cookie_of_a_mail_request_lives_for_ten_minutes_and_is_removed_by_its_name_and_path() {
        let (client, config) = request("a.example", true, None);
        let cookie = ConsoleCookie::new(MAIL, &client, &config);
        let attributes = "HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=";
        let set = format!("__Host-steward-mail=a; {attributes}600");
        assert_eq!(cookie.set("a").unwrap(), set);
        assert_eq!(cookie.remove().unwrap(), format!("__Host-steward-mail=; {attributes}0"));
    }

    #[test]
    fn cookie_is_read_by_its_whole_name_with_all_its_values() {
        let read = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, HeaderValue::from_bytes(line.as_bytes()).unwrap());
            }
            cookie("localhost:8000", false, None).values(&headers)
        };
        assert_eq!(read(&["a=1; steward-8000=x.y; b=2"]), ["x.y"]);
        assert_eq!(read(&["steward-8000=x; steward-8000=x"]), ["x"]);
        assert_eq!(read(&["ä=ö; steward-8000=x"]), ["x"]);
        assert_eq!(read(&["steward-8000=x; steward-8000=z"]), ["x", "z"]);
        assert_eq!(read(&["steward-8000=x", "steward-8000=z"]), ["x", "z"]);
        assert!(read(&["steward-800=x; Steward-8000=y; xsteward-8000=z"]).is_empty());
        assert!(read(&[]).is_empty());
        let planted: Vec<String> = (0..100).map(|at| format!("steward-8000={at}")).collect();
        assert_eq!(read(&[planted.join("; ").as_str()]).len(), MAX_VALUES);
    }
}
