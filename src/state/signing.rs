//! What is derived of the data file's signing secret, and how all of it but the key tags is renewed.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::ids::ProjectId;
use crate::resources::activity;
use crate::resources::dashboards::{self, Dashboard};
use crate::resources::invites::Links;
use crate::resources::sharing::{self, Tokens};
use crate::secret::{Purpose, Seed, SigningSecret};
use crate::store::Tx;

use super::App;

/// How long it waits for the file to be open again.
const RETRY: Duration = Duration::from_millis(100);

/// What is derived of the signing secret, and renewed with it. Its clones are the same.
#[derive(Clone)]
pub(super) struct Signing {
    pub(super) links: Links,
    pub(super) sharing: Tokens,
    live_events: Arc<ArcSwap<EncodingKey>>,
}

impl Signing {
    pub(super) fn new(link_base: &str, secret: &SigningSecret) -> Result<Self> {
        Ok(Self {
            links: Links::new(link_base, secret)?,
            sharing: Tokens::new(secret)?,
            live_events: Arc::new(ArcSwap::from_pointee(live_events(secret)?)),
        })
    }

    fn renew(&self, secret: &SigningSecret) -> Result<()> {
        self.links.renew(secret)?;
        self.sharing.renew(secret)?;
        self.live_events.store(Arc::new(live_events(secret)?));
        Ok(())
    }
}

fn live_events(secret: &SigningSecret) -> Result<EncodingKey> {
    Ok(EncodingKey::from_secret(&secret.subkey(Purpose::LiveEvents)?))
}

impl App {
    /// Renews every subkey of the signing secret but that of the key tags (decisions §5): links to invites and live
    /// events tokens that were made before end, and each public page gets a new token. Answers how many pages those
    /// are. This process takes the new subkeys while it serves nothing, so that none is used with the other's file.
    ///
    /// # Errors
    /// 503 when the file is closed or cannot be written.
    pub async fn rotate_secrets(&self) -> Result<usize> {
        let (now, seed, signing) = (self.now(), Seed::take(), self.0.signing.clone());
        let rotated = self.store().write_apart(
            move |tx| {
                let mut draw = seed.draw();
                let secret = tx.renew_secret(&mut draw)?;
                let pages = sharing::renew(tx, &Tokens::new(&secret)?)?;
                for page in &pages {
                    if let Some(dashboard) = tx.head::<Dashboard>(page)? {
                        dashboards::note_sharing(tx, &dashboard, true)?;
                    }
                }
                activity::record(tx, None, &mut draw, now)?;
                Ok((secret, pages.len()))
            },
            move |(secret, _)| signing.renew(secret),
        );
        match rotated.await {
            Ok((_, pages)) => Ok(pages),
            Err(error) => {
                // A commit that failed may be on disk all the same, which shows once the file is open again.
                let inner = Arc::downgrade(&self.0);
                tokio::spawn(async move {
                    while let Some(inner) = inner.upgrade() {
                        let secret = inner.store.signing_secret();
                        if secret.and_then(|secret| inner.signing.renew(&secret)).is_ok() {
                            return;
                        }
                        drop(inner);
                        tokio::time::sleep(RETRY).await;
                    }
                });
                Err(error)
            }
        }
    }

    /// The signed token with which a project's live events are read: valid for at least seven days, and
    /// the same for a day (decisions §1, §4).
    ///
    /// # Errors
    /// None in practice: the claims always serialize.
    pub fn live_events_token(&self, project: ProjectId, api_token: &str) -> Result<String> {
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
        let header = Header::new(Algorithm::HS256);
        jsonwebtoken::encode(&header, &claims, &self.0.signing.live_events.load())
            .map_err(Error::internal)
    }
}
