//! Creates and verifies the links with which invites are accepted.
//!
//! The token in a link is derived from the id of the invite with a key of the data file, so it is not stored. The link
//! in the mail and the link that an inviter hands over have different tokens: only the mail's token proves the address.

use std::sync::Arc;

use arc_swap::ArcSwap;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::base::error::{Error, Result};
use crate::base::secret::{Purpose, SigningSecret, encode_base62};
use crate::ids::InviteId;
use crate::resources::members::JoinedBy;

/// Creates links to invites and verifies their tokens. Clones share the keys.
#[derive(Clone)]
pub struct InviteLinks {
    base: String,
    keys: Arc<ArcSwap<Keys>>,
}

/// The keys that tokens are derived with.
struct Keys {
    mail: Hmac<Sha256>,
    link: Hmac<Sha256>,
}

impl Keys {
    fn new(secret: &SigningSecret) -> Result<Self> {
        let key = |purpose| Hmac::new_from_slice(&secret.subkey(purpose)?).map_err(Error::internal);
        Ok(Self { mail: key(Purpose::InviteMail)?, link: key(Purpose::InviteLink)? })
    }
}

impl InviteLinks {
    /// Creates links that begin with `base`, a scheme and a host.
    pub fn new(base: &str, secret: &SigningSecret) -> Result<Self> {
        let keys = Arc::new(ArcSwap::from_pointee(Keys::new(secret)?));
        Ok(Self { base: base.trim_end_matches('/').to_owned(), keys })
    }

    /// Replaces the keys. Tokens of earlier links become invalid.
    pub fn renew(&self, secret: &SigningSecret) -> Result<()> {
        self.keys.store(Arc::new(Keys::new(secret)?));
        Ok(())
    }

    /// Returns the link for the mail to the invite's address.
    pub fn mail_link(&self, id: InviteId) -> String {
        self.link(id, &token(&self.keys.load().mail, id))
    }

    /// Returns the link that the inviter hands over.
    pub fn shared_link(&self, id: InviteId) -> String {
        self.link(id, &token(&self.keys.load().link, id))
    }

    fn link(&self, id: InviteId, token: &str) -> String {
        format!("{}/signup/{id}?token={token}", self.base)
    }

    /// Verifies a token of the invite, and returns how its user received it. Returns `None` if the token is wrong. Takes
    /// the same time for every wrong token.
    pub fn verify(&self, id: InviteId, presented: &str) -> Option<JoinedBy> {
        let keys = self.keys.load();
        let is = |key| token(key, id).as_bytes().ct_eq(presented.as_bytes());
        let (mail, link) = (is(&keys.mail), is(&keys.link));
        if mail.into() {
            return Some(JoinedBy::Mail);
        }
        bool::from(link).then_some(JoinedBy::Link)
    }
}

fn token(key: &Hmac<Sha256>, id: InviteId) -> String {
    let mut mac = key.clone();
    mac.update(id.0.as_bytes());
    encode_base62(&mac.finalize().into_bytes().into())
}
