//! Validates the `Host` header as HTTP/1.1 requires (RFC 9112, section 3.2). This rejects requests that two
//! servers could interpret differently.

use std::sync::OnceLock;

use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Version};

use crate::error::Error;
use crate::http::client::is_valid_host;

/// Requires one valid `Host` header. `known` holds the first valid value of the connection: clients rarely send another,
/// so it is checked once.
///
/// # Errors
/// 400 if there are several `Host` headers, if an HTTP/1.1 request has none, or if the value is not a valid host.
pub(super) fn require_one<B>(
    request: &Request<B>,
    known: &OnceLock<HeaderValue>,
) -> Result<(), Error> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let detail = match (hosts.next(), hosts.next()) {
        (Some(host), None) if known.get() == Some(host) => return Ok(()),
        (Some(host), None) if is_valid_host(host) => {
            known.get_or_init(|| host.clone());
            return Ok(());
        }
        (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
        (None, _) => "An HTTP/1.1 request needs a Host header.",
        (Some(_), Some(_)) => "A request may have only one Host header.",
        (Some(_), None) => "The Host header does not hold a valid host.",
    };
    Err(Error::invalid_request("invalid_host", detail))
}
