//! Whether a request names one host, as HTTP/1.1 demands (RFC 9112, section 3.2). Requests that two servers could
//! read in two ways end here.

use hyper::header::HOST;
use hyper::{Request, Version};

use crate::error::Error;
use crate::http::client::is_valid_host;

/// # Errors
/// 400 for more than one `Host` header, for none in HTTP/1.1, and for one that holds no host.
pub(super) fn require_one<B>(request: &Request<B>) -> Result<(), Error> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let detail = match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_valid_host(host) => return Ok(()),
        (None, _) if request.version() < Version::HTTP_11 => return Ok(()),
        (None, _) => "A request by HTTP/1.1 needs a Host header.",
        (Some(_), Some(_)) => "A request may have only one Host header.",
        (Some(_), None) => "The Host header does not hold a valid host.",
    };
    Err(Error::invalid_request("invalid_host", detail))
}
