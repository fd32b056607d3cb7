//! The headers of every page, and redirections. See `docs/spec/console.md`.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, Entry, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::base::error::{Error, Result};
use crate::http::html::csp_hash;

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// `same-origin` and not `no-referrer`: under the latter, browsers send forms with `Origin: null`, and the console could
/// not tell its own forms from foreign ones over plain HTTP.
const FIXED: [(HeaderName, HeaderValue); 7] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (REFERRER_POLICY, SAME_ORIGIN),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (HeaderName::from_static("cross-origin-opener-policy"), SAME_ORIGIN),
    (CROSS_ORIGIN_RESOURCE_POLICY, SAME_ORIGIN),
    (HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS)),
];

/// Every powerful feature is off. Only the console's own pages may write to the clipboard.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), browsing-topics=(), camera=(), \
clipboard-read=(), clipboard-write=(self), display-capture=(), encrypted-media=(), fullscreen=(), gamepad=(), \
geolocation=(), gyroscope=(), hid=(), identity-credentials-get=(), idle-detection=(), local-fonts=(), \
magnetometer=(), microphone=(), midi=(), payment=(), picture-in-picture=(), publickey-credentials-create=(), \
publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), usb=(), \
window-management=(), xr-spatial-tracking=()";

/// Marks the response with an embedded file. A response extension.
#[derive(Clone)]
pub(super) struct EmbeddedFile;

/// Adds the headers that the response lacks. A file gets fewer of them, because the others protect documents.
pub(super) fn add(response: &mut Response) {
    if response.extensions().get::<EmbeddedFile>().is_some() {
        response.headers_mut().insert(CROSS_ORIGIN_RESOURCE_POLICY, SAME_ORIGIN);
        return;
    }
    let headers = response.headers_mut();
    let policy = HeaderValue::from_str(&policy("")).ok();
    let policy = policy.map(|policy| (CONTENT_SECURITY_POLICY, policy));
    for (name, value) in FIXED.into_iter().chain(policy) {
        if let Entry::Vacant(vacant) = headers.entry(name) {
            vacant.insert(value);
        }
    }
}

/// Returns a policy that also allows one inline style sheet.
///
/// # Errors
/// 500 if the policy is not a valid header, which a hash never causes.
pub(super) fn policy_with_style(style: &str) -> Result<HeaderValue> {
    let policy = policy(&format!(" '{}'", csp_hash(style)));
    HeaderValue::try_from(policy).map_err(Error::internal)
}

fn policy(style: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'{style}; img-src 'self' data:; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types steward"
    )
}

/// Returns the status of an error.
pub(super) fn status_of(error: &Error) -> StatusCode {
    StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Returns a redirection to another page.
///
/// # Errors
/// 500 if `location` is not a valid header.
pub(super) fn see_other(location: &str) -> Result<Response> {
    let location = HeaderValue::try_from(location).map_err(Error::internal)?;
    Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response())
}
