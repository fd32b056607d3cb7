//! What a handler may use. Nothing here is global to the process: two [`App`]s in one process share
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use tokio::sync::{Notify, Semaphore};

use crate::access::gate::{Caller, authorize};
use crate::access::hash::Hasher;
use crate::access::key::{NewKey, TagKey};
use crate::access::matches::{Match, Matches};
use crate::access::{Changing, Place, Visitor};
use crate::config::Config;
use crate::dns::Resolver;
use crate::error::{Error, Result};
use crate::http::client::TrustedProxies;
use crate::ids::ProjectId;
use crate::resources::invites::Links;
use crate::resources::sharing::Tokens;
use crate::resources::{activity, api_keys, sweeps, users};
use crate::secret::{Draw, Purpose, Seed};
use crate::store::{OpenError, Snapshot, Store, WriteTx};
use crate::time::{Clock, Timestamp};

/// How long the record of a key's use waits, to keep out of the way of what the key is used for.
const USE_RECORDED_AFTER: Duration = Duration::from_millis(100);
/// How long the sweeper waits when the file takes no writes.
const SWEEP_RETRY: Duration = Duration::from_secs(1);

/// A running service: an open data file and what serves it.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Clock,
    config: Config,
    dns: Resolver,
    tags: TagKey,
    hasher: Arc<Hasher>,
    matches: Matches,
    live_events: EncodingKey,
    links: Links,
    sharing: Tokens,
    proxies: TrustedProxies,
    sweep: Arc<Notify>,
    walks: Arc<Semaphore>,
}

impl App {
    /// Serves an open store. Must be called within a tokio runtime: what was left to sweep is swept in
    /// the background.
    ///
    /// # Errors
    /// When the file's signing secret cannot be read.
    pub fn new(store: Store, config: Config) -> Result<Self, OpenError> {
        let secret = store.signing_secret()?;
        let tags = TagKey::new(&secret.subkey(Purpose::KeyTag)?)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let hasher = Arc::new(Hasher::new((cores / 2).max(1)));
        let app = Self(Arc::new(Inner {
            matches: Matches::new(tags.clone(), Arc::clone(&hasher)),
            live_events: EncodingKey::from_secret(&secret.subkey(Purpose::LiveEvents)?),
            links: Links::new(config.link_base(), &secret)?,
            sharing: Tokens::new(&secret)?,
            sweep: Arc::new(Notify::new()),
            walks: Arc::new(Semaphore::new(cores)),
            proxies: config.trusted_proxies.iter().copied().collect(),
            clock: config.clock.clone(),
            dns: Resolver::new(&config),
            store,
            config,
            tags,
            hasher,
        }));
        app.sweep_in_background();
        Ok(app)
    }

    /// The data file.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// How the service was asked to run.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Where DNS records are looked up.
    pub fn dns(&self) -> &Resolver {
        &self.0.dns
    }

    /// The proxies whose word on the client is believed.
    pub fn proxies(&self) -> &TrustedProxies {
        &self.0.proxies
    }

    /// The presented keys that are known to be right.
    pub fn matches(&self) -> &Matches {
        &self.0.matches
    }

    /// The links by which invites are accepted.
    pub fn links(&self) -> &Links {
        &self.0.links
    }

    /// The tokens of public pages.
    pub fn sharing(&self) -> &Tokens {
        &self.0.sharing
    }

    /// Whether there is a mail server to hand mails to.
    pub fn sends_mail(&self) -> bool {
        self.0.config.mail.smtp_url.is_some()
    }

    /// Turns for lists that are long or look far: as many at a time as there are cores.
    pub fn walks(&self) -> &Arc<Semaphore> {
        &self.0.walks
    }

    /// Runs what may take long off the request threads, as many at a time as there are cores.
    ///
    /// # Errors
    /// What `work` answers.
    pub async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = Arc::clone(&self.0.walks).acquire_owned().await.map_err(Error::internal)?;
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        done.await.map_err(Error::internal)?
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Reads something for a caller who is to change something later: asks the gate once more, in a snapshot
    /// that is let go before this answers.
    ///
    /// # Errors
    /// What the gate or `read` refuses.
    pub fn look<P: Place, T>(
        &self,
        asked: &Changing<P>,
        read: impl FnOnce(&Snapshot, &P) -> Result<T>,
    ) -> Result<T> {
        let tx = self.0.store.snapshot()?;
        let granted = authorize(&*tx, &asked.ask, self.now())?;
        read(&tx, &P::of(&granted)?)
    }

    /// Changes something for a caller: asks the gate once more inside the write, runs `rule`, and writes
    /// the activity entry, all in one transaction. Answers once that is on disk.
    ///
    /// # Errors
    /// What the gate or the rule refuses; 503 when the change could not be committed.
    pub async fn change<P: Place, T: Send + 'static>(
        &self,
        asked: &Changing<P>,
        rule: impl Fn(&mut WriteTx<'_>, &Caller, &P, Timestamp) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let ask = Arc::clone(&asked.ask);
        let now = self.now();
        let seed = Seed::take();
        self.0
            .store
            .write(move |tx| {
                let granted = authorize(tx, &ask, now)?;
                let answer = rule(tx, &granted.caller, &P::of(&granted)?, now)?;
                activity::record(tx, Some(&granted.caller.user), &mut seed.draw(), now)?;
                Ok(answer)
            })
            .await
    }

    /// Changes something for somebody who may have sent a key: asks the gate once more inside the write
    /// where they have. `rule` answers besides who did it, for the activity log.
    ///
    /// # Errors
    /// What the gate or the rule refuses; 503 when the change could not be committed.
    pub async fn change_as_visitor<T: Send + 'static>(
        &self,
        visitor: &Visitor,
        rule: impl Fn(&mut WriteTx<'_>, Option<&Caller>, Timestamp) -> Result<(users::Head, T)>
        + Send
        + 'static,
    ) -> Result<T> {
        let ask = visitor.ask.clone();
        let now = self.now();
        let seed = Seed::take();
        self.0
            .store
            .write(move |tx| {
                let granted = ask.as_ref().map(|ask| authorize(tx, ask, now)).transpose()?;
                let caller = granted.as_ref().map(|granted| &granted.caller);
                let (user, answer) = rule(tx, caller, now)?;
                activity::record(tx, Some(&user), &mut seed.draw(), now)?;
                Ok(answer)
            })
            .await
    }

    /// Changes something for the operator: runs `rule` and writes the activity entry in one transaction.
    ///
    /// # Errors
    /// What the rule refuses; 503 when the change could not be committed.
    pub async fn operate<T: Send + 'static>(
        &self,
        rule: impl Fn(&mut WriteTx<'_>, Timestamp) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let now = self.now();
        let seed = Seed::take();
        self.0
            .store
            .write(move |tx| {
                let answer = rule(tx, now)?;
                activity::record(tx, None, &mut seed.draw(), now)?;
                Ok(answer)
            })
            .await
    }

    /// Draws a new key and hashes its secret, off the request threads.
    ///
    /// # Errors
    /// 500 when Argon2 refuses, which it does not for secrets of this crate.
    pub async fn new_key(&self) -> Result<(NewKey, String)> {
        let (tags, now) = (self.0.tags.clone(), self.now());
        let draw = move |hasher: &Hasher| draw_key(&tags, hasher, &mut Seed::take().draw(), now);
        self.0.hasher.in_turn(draw).await
    }

    /// Has a key's use recorded, where that is due. Nobody waits for it, and nothing depends on it.
    pub fn record_use(&self, presented: &Match, now: Timestamp) {
        if presented.use_is_due(now) {
            let (store, key) = (self.0.store.clone(), presented.key());
            tokio::spawn(async move {
                tokio::time::sleep(USE_RECORDED_AFTER).await;
                let recorded = store.write(move |tx| api_keys::record_use(tx, key, now)).await;
                if let Err(error) = recorded {
                    tracing::warn!(%error, "a key's use was not recorded");
                }
            });
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
        jsonwebtoken::encode(&header, &claims, &self.0.live_events).map_err(Error::internal)
    }

    /// Tells the sweeper that something was removed.
    pub fn sweep(&self) {
        self.0.sweep.notify_one();
    }

    /// Sweeps what removed organizations and projects left behind, a bounded piece a transaction, for as
    /// long as the service is there.
    fn sweep_in_background(&self) {
        let (store, due) = (self.0.store.clone(), Arc::clone(&self.0.sweep));
        let inner = Arc::downgrade(&self.0);
        due.notify_one();
        tokio::spawn(async move {
            loop {
                due.notified().await;
                while inner.strong_count() > 0 {
                    match store.write(sweeps::sweep).await {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(_) => tokio::time::sleep(SWEEP_RETRY).await,
                    }
                }
                if inner.strong_count() == 0 {
                    return;
                }
            }
        });
    }

    /// Finishes what is queued and closes the data file clean.
    pub async fn close(&self) {
        self.0.store.close().await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sweep.notify_one();
    }
}

/// Draws a new key under a data file's tag key and hashes its secret.
///
/// # Errors
/// 500 when Argon2 refuses, which it does not for secrets of this crate.
pub fn draw_key(
    tags: &TagKey,
    hasher: &Hasher,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<(NewKey, String)> {
    let new = NewKey::draw(tags, draw, now);
    let hash = hasher.hash(&new.secret, &draw.salt())?;
    Ok((new, hash))
}
