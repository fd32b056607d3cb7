//! Keys derived from the data file's signing secret, and their rotation. Key tags are not rotated.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;

use crate::base::error::{Error, Result};
use crate::base::secret::{Purpose, SigningSecret};
use crate::base::tasks::spawn;
use crate::ids::ProjectId;
use crate::resources::activity;
use crate::resources::invites::InviteLinks;
use crate::resources::sessions::{self, SessionKeys};
use crate::resources::sharing::{self, SharingTokens};
use crate::store::Store;

use super::App;

/// The wait for the file to open again.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The keys derived from the signing secret, which are rotated with it. Clones share the keys.
#[derive(Clone)]
pub(super) struct SigningKeys {
    pub(super) links: InviteLinks,
    pub(super) sharing: SharingTokens,
    pub(super) sessions: SessionKeys,
    live_events: Arc<ArcSwap<Hmac<Sha256>>>,
}

impl SigningKeys {
    /// Derives the keys from the signing secret of a store, again whenever that gets another one from a shared database.
    pub(super) fn of(store: &Store, link_base: &str, secret: &SigningSecret) -> Result<Self> {
        let keys = Self {
            links: InviteLinks::new(link_base, secret)?,
            sharing: SharingTokens::new(secret)?,
            sessions: SessionKeys::new(secret)?,
            live_events: Arc::new(ArcSwap::from_pointee(live_events(secret)?)),
        };
        let renewed = keys.clone();
        store.on_new_secret(move |secret| renewed.renew(secret));
        Ok(keys)
    }

    fn renew(&self, secret: &SigningSecret) -> Result<()> {
        self.links.renew(secret)?;
        self.sharing.renew(secret)?;
        self.sessions.renew(secret)?;
        self.live_events.store(Arc::new(live_events(secret)?));
        Ok(())
    }
}

fn live_events(secret: &SigningSecret) -> Result<Hmac<Sha256>> {
    Hmac::new_from_slice(&secret.subkey(Purpose::LiveEvents)?).map_err(Error::internal)
}

/// Returns a JSON Web Token with these claims, signed with HMAC-SHA256 (RFC 7515).
fn json_web_token(claims: &impl Serialize, mut mac: Hmac<Sha256>) -> Result<String> {
    const HEADER: &str = r#"{"typ":"JWT","alg":"HS256"}"#;
    let mut token = BASE64_URL_SAFE_NO_PAD.encode(HEADER);
    token.push('.');
    let claims = serde_json::to_vec(claims).map_err(Error::internal)?;
    BASE64_URL_SAFE_NO_PAD.encode_string(claims, &mut token);
    mac.update(token.as_bytes());
    token.push('.');
    BASE64_URL_SAFE_NO_PAD.encode_string(mac.finalize().into_bytes(), &mut token);
    Ok(token)
}

impl App {
    /// Rotates every key derived from the signing secret except that of the key tags. Existing invite links and
    /// live events tokens become invalid, console sessions end, and each public page gets a new token. Returns the number
    /// of these pages.
    ///
    /// This process switches to the new keys while it serves no requests, so the keys always match the data file. With a
    /// shared database, each node switches when its copy gets the new secret.
    pub(crate) async fn rotate_secrets(&self) -> Result<usize> {
        let (now, seed, signing) = (self.now(), self.seed(), self.0.signing.clone());
        let rotated = self.store().exclusive_write(
            move |tx| {
                let mut rng = seed.rng();
                let secret = tx.renew_secret(&mut rng)?;
                sessions::remove_everything(tx)?;
                let pages = sharing::rotate_all(tx, &SharingTokens::new(&secret)?)?;
                activity::record(tx, None, &mut rng, now)?;
                Ok((secret, pages))
            },
            move |(secret, _)| signing.renew(secret),
        );
        match rotated.await {
            Ok((_, pages)) => Ok(pages),
            Err(error) => {
                // A failed commit may still be on disk, which is known only once the file is open again.
                let inner = Arc::downgrade(&self.0);
                spawn(async move {
                    while let Some(inner) = inner.upgrade() {
                        let secret = inner.store.signing_secret();
                        if secret.and_then(|secret| inner.signing.renew(&secret)).is_ok() {
                            return;
                        }
                        drop(inner);
                        tokio::time::sleep(RETRY_DELAY).await;
                    }
                });
                Err(error)
            }
        }
    }

    /// Returns the signed token for reading a project's live events. It is valid for at least seven days and stays
    /// the same within a day.
    pub(crate) fn live_events_token(&self, project: ProjectId, api_token: &str) -> Result<String> {
        #[derive(Serialize)]
        struct Claims<'c> {
            team_id: ProjectId,
            api_token: &'c str,
            aud: &'static str,
            exp: i64,
        }
        const DAY: i64 = 86_400;
        let today = self.now().seconds().div_euclid(DAY) * DAY;
        let claims =
            Claims { team_id: project, api_token, aud: "posthog:livestream", exp: today + 8 * DAY };
        json_web_token(&claims, Hmac::clone(&self.0.signing.live_events.load()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The token was made by the `jsonwebtoken` crate.
    #[test]
    fn token_format_is_fixed() {
        let secret = SigningSecret::from_parts([7; 32], None);
        let claims = json!({ "team_id": 1, "api_token": "phc_a", "aud": "posthog:livestream", "exp": 1_700_000_000 });
        let token = json_web_token(&claims, live_events(&secret).expect("a key")).expect("a token");
        assert_eq!(
            token,
            "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJ0ZWFtX2lkIjoxLCJhcGlfdG9rZW4iOiJwaGNfYSIsImF1ZCI6InBvc3Rob2c6bGl2ZXN0cmVhbSIsImV4cCI6MTcwMDAwMDAwMH0.PX5qfufEcrFeJh3_ZstKu7JsSZVhgxqwmqsXI9Z9Wog"
        );
        let (signed, signature) = token.rsplit_once('.').expect("a signature");
        let mut mac = live_events(&secret).expect("a key");
        mac.update(signed.as_bytes());
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).expect("base64url");
        assert!(mac.verify_slice(&signature).is_ok());
    }
}
