//! Validates the `Host` header as HTTP/1.1 requires (RFC 9112, section 3.2). This rejects requests that two
//! servers could interpret differently.

use hyper::header::HOST;
use hyper::{Request, Version};

use crate::error::Error;
use crate::http::client::is_valid_host;

/// Requires one valid `Host` header.
///
/// # Errors
/// 400 if there are several `Host` headers, if an HTTP/1.1 request has none, or if the value is not a valid host.
pub(super) fn require_one<B>(request: &Request<B>) -> Result<(), Error> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let detail = match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_valid_host(host) => return Ok(()),
        (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
        (None, _) => "An HTTP/1.1 request needs a Host header.",
        (Some(_), Some(_)) => "A request may have only one Host header.",
        (Some(_), None) => "The Host header does not hold a valid host.",
    };
    Err(Error::invalid_request("invalid_host", detail))
}
