//! The links by which invites are accepted, and the tokens in them (decisions §4, Accepting).
//!
//! A token is derived from the invite's id under a key of the data file, so it lies nowhere. The mail's
//! and the one that is handed over by other ways are derived apart: only the mail's proves the address.

use std::sync::Arc;

use arc_swap::ArcSwap;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::error::{Error, Result};
use crate::ids::InviteId;
use crate::secret::{Purpose, SigningSecret, base62_pair};

/// What a right token proves of who presents it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// That they read the mail to the invite's address.
    Address,
    /// That they were handed the link.
    Link,
}

/// Makes links to invites, and knows their tokens. Its clones are renewed with it.
#[derive(Clone)]
pub struct Links {
    base: String,
    keys: Arc<ArcSwap<Keys>>,
}

/// What tokens are derived under.
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

impl Links {
    /// Links that begin with `base`, a scheme and a host, under the keys of a data file.
    ///
    /// # Errors
    /// None in practice: the subkeys have the length that they need.
    pub fn new(base: &str, secret: &SigningSecret) -> Result<Self> {
        let keys = Arc::new(ArcSwap::from_pointee(Keys::new(secret)?));
        Ok(Self { base: base.trim_end_matches('/').to_owned(), keys })
    }

    /// From now on these are links under the keys of `secret`; those made before prove nothing.
    ///
    /// # Errors
    /// None in practice: the subkeys have the length that they need.
    pub fn renew(&self, secret: &SigningSecret) -> Result<()> {
        self.keys.store(Arc::new(Keys::new(secret)?));
        Ok(())
    }

    /// The link for the mail to the invite's address.
    pub fn to_mail(&self, id: InviteId) -> String {
        self.link(id, &token(&self.keys.load().mail, id))
    }

    /// The link to hand over by other ways.
    pub fn to_hand_over(&self, id: InviteId) -> String {
        self.link(id, &token(&self.keys.load().link, id))
    }

    fn link(&self, id: InviteId, token: &str) -> String {
        format!("{}/signup/{id}?token={token}", self.base)
    }

    /// What `presented` proves as a token of the invite; none where it is wrong. Takes the same time for
    /// every wrong one.
    pub fn proof(&self, id: InviteId, presented: &str) -> Option<Proof> {
        let keys = self.keys.load();
        let is = |key| token(key, id).as_bytes().ct_eq(presented.as_bytes());
        let (mail, link) = (is(&keys.mail), is(&keys.link));
        if mail.into() {
            return Some(Proof::Address);
        }
        bool::from(link).then_some(Proof::Link)
    }
}

fn token(key: &Hmac<Sha256>, id: InviteId) -> String {
    let mut mac = key.clone();
    mac.update(id.0.as_bytes());
    base62_pair(&mac.finalize().into_bytes().into())
}
