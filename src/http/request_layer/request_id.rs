//! Request ids: the client's own, or generated ones.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use uuid::{Builder, Uuid};

/// The header of a request id, in requests and responses.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id that a client quotes and an operator searches the log for.
pub(super) enum RequestId {
    FromClient(HeaderValue),
    Generated(Uuid),
}

impl RequestId {
    pub(super) fn of(request: &Request, ids: &RequestIds) -> Self {
        match request.headers().get(REQUEST_ID) {
            Some(sent) if is_request_id(sent.as_bytes()) => Self::FromClient(sent.clone()),
            _ => Self::Generated(ids.generate()),
        }
    }

    pub(super) fn to_header(&self) -> HeaderValue {
        match self {
            Self::FromClient(value) => value.clone(),
            Self::Generated(id) => {
                let mut buffer = Uuid::encode_buffer();
                let text = id.as_hyphenated().encode_lower(&mut buffer);
                HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
            }
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromClient(value) => f.write_str(value.to_str().unwrap_or_default()),
            Self::Generated(id) => id.fmt(f),
        }
    }
}

pub(super) fn is_request_id(value: &[u8]) -> bool {
    (1..=128).contains(&value.len())
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
}

/// Generates version 7 UUIDs from a keyed hash of a counter. `Uuid::now_v7` makes a system call for
/// randomness, which costs as much as the rest of this layer. The ids are predictable: never use them as
/// secrets.
#[derive(Default)]
pub(super) struct RequestIds {
    key: RandomState,
    count: AtomicU64,
}

impl RequestIds {
    pub(super) fn generate(&self) -> Uuid {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let low = self.key.hash_one((count, 0_u8)).to_be_bytes();
        let high = self.key.hash_one((count, 1_u8)).to_be_bytes();
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let millis = u64::try_from(since.as_millis()).unwrap_or_default();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&low);
        random[8..].copy_from_slice(&high[..2]);
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}
