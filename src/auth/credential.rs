//! What authenticates a request: an API key, or a console session.

use crate::error::Result;
use crate::resources::sessions::VerifiedSession;
use crate::store::WriteTx;
use crate::time::Timestamp;

use super::key_cache::VerifiedKey;

/// A verified credential. Not `Debug`, so that logs cannot contain it.
#[derive(Clone)]
pub enum Credential {
    /// An API key, from the `Authorization` header.
    Key(VerifiedKey),
    /// A console session, from a request extension.
    Session(VerifiedSession),
}

impl Credential {
    /// Returns whether a use is due to be recorded.
    pub fn is_use_due(&self, now: Timestamp) -> bool {
        match self {
            Self::Key(key) => key.is_use_due(now),
            Self::Session(session) => session.is_use_due(),
        }
    }

    /// Records a use.
    pub fn record_use(&self, tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
        match self {
            Self::Key(key) => key.record_use(tx, now),
            Self::Session(session) => session.record_use(tx, now),
        }
    }
}
