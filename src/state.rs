//! What a handler may use. Nothing here is global to the process: two [`App`]s in one process share
//! nothing.

pub(crate) mod backups;
mod blocking;
mod changes;
mod figures;
mod keeper;
mod public_pages;
mod quota;
mod readiness;
mod rendering;
mod scrubber;
mod signing;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::access::hash::Hasher;
use crate::access::key::{MadeKey, TagKey};
use crate::access::matches::{Match, Matches};
use crate::config::Config;
use crate::dns::Resolver;
use crate::error::Result;
use crate::fair::{Consumer, FairLimits, FairQueue};
use crate::http::budget::MemoryBudget;
use crate::http::client::TrustedProxies;
use crate::http::limits::Limits;
use crate::ids::ApiKeyId;
use crate::mail::outbox;
use crate::mail::postman::Postman;
use crate::mail::smtp::Mailer;
use crate::resources::invites::Links;
use crate::resources::sharing::Tokens;
use crate::resources::signup::Letters;
use crate::secret::{Purpose, Seed};
use crate::store::{OpenError, Snapshot, Store};
use crate::time::{Clock, Timestamp};

use figures::Gathering;
use readiness::Readiness;
use signing::Signing;

pub use blocking::BlockingPool;
pub use public_pages::{PageKey, PublicPages};
pub use rendering::{Created, LargeAnswer};
pub use scrubber::Scrubbed;

/// How long a mail that is being sent when the service stops may take still.
const LAST_MAIL: Duration = Duration::from_secs(10);
/// How long the record of a key's use waits, to keep out of the way of what the key is used for.
const USE_RECORDED_AFTER: Duration = Duration::from_millis(100);
/// Long reads of one tenant that wait at one time.
const READS_WAITING_EACH: usize = 64;
/// Long reads of all tenants together that wait at one time.
const READS_WAITING: usize = 1024;

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
    signing: Signing,
    proxies: TrustedProxies,
    limits: Arc<Limits>,
    transfer_memory: MemoryBudget,
    sweep: Arc<Notify>,
    long_reads: BlockingPool,
    public_pages: PublicPages,
    renderings: FairQueue,
    mailer: Option<Mailer>,
    postman: Option<Postman>,
    readiness: Readiness,
    gathering: Gathering,
    scrubbed: ArcSwapOption<Scrubbed>,
    disk: Arc<quota::Disk>,
}

impl App {
    /// Serves an open store. Must be called within a tokio runtime: what was left to sweep is swept in
    /// the background, and what waits in the outbox is sent where a mail server is configured.
    ///
    /// # Errors
    /// When the file's signing secret cannot be read, or mail cannot be sent as `config` says.
    pub fn new(store: Store, config: Config) -> Result<Self, OpenError> {
        let mailer = Mailer::new(&config.mail)?;
        if mailer.is_none() {
            warn_of_waiting_mails(&store)?;
        }
        Self::with(store, config, mailer, true)
    }

    /// Does what [`new`](Self::new) does, but leaves alone what waits in the outbox: that is for the server's
    /// mail server, which may be another than a command's.
    ///
    /// # Errors
    /// When the file's signing secret cannot be read, or mail cannot be sent as `config` says.
    pub fn for_a_command(store: Store, config: Config) -> Result<Self, OpenError> {
        let mailer = Mailer::new(&config.mail)?;
        Self::with(store, config, mailer, false)
    }

    fn with(
        store: Store,
        config: Config,
        mailer: Option<Mailer>,
        serves_outbox: bool,
    ) -> Result<Self, OpenError> {
        let secret = store.signing_secret()?;
        let signing = Signing::new(config.link_base(), &secret)?;
        let postman = mailer.clone().filter(|_| serves_outbox).map(|mailer| {
            let letters = Arc::new(Letters { links: signing.links.clone() });
            let (store, clock) = (store.clone(), config.clock.clone());
            Postman::start(store, clock, mailer, letters, &config.meters)
        });
        let tags = TagKey::new(&secret.subkey(Purpose::KeyTag)?)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let hasher = Arc::new(Hasher::metered(cores, &config.meters));
        let time_limit = config.request_timeout;
        figures::watch(&store, &config.meters);
        let app = Self(Arc::new(Inner {
            matches: Matches::new(tags.clone(), Arc::clone(&hasher), &config.meters),
            signing,
            sweep: Arc::new(Notify::new()),
            long_reads: BlockingPool::new(
                shared_out(cores, time_limit),
                time_limit,
                &config.meters,
            ),
            public_pages: PublicPages::new(shared_out(2, time_limit), time_limit, &config.meters)?,
            renderings: rendering::slots(cores, time_limit),
            limits: Arc::new(Limits::new(&config.rate_limits, &config.peer_limits, &config.clock)),
            transfer_memory: MemoryBudget::new(config.transfer_memory),
            proxies: config.trusted_proxies.iter().copied().collect(),
            clock: config.clock.clone(),
            dns: Resolver::new(&config),
            disk: quota::Disk::of(&store),
            store,
            gathering: Gathering::new(&config.meters),
            config,
            tags,
            hasher,
            mailer,
            postman,
            readiness: Readiness::default(),
            scrubbed: ArcSwapOption::empty(),
        }));
        app.add_up();
        app.keep_looking();
        app.keep_house()?;
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

    /// How often somebody may ask.
    pub fn limits(&self) -> &Arc<Limits> {
        &self.0.limits
    }

    /// The memory of large answers and request bodies in flight.
    pub fn transfer_memory(&self) -> &MemoryBudget {
        &self.0.transfer_memory
    }

    /// The presented keys that are known to be right.
    pub fn matches(&self) -> &Matches {
        &self.0.matches
    }

    /// The links by which invites are accepted.
    pub fn links(&self) -> &Links {
        &self.0.signing.links
    }

    /// The tokens of public pages.
    pub fn sharing(&self) -> &Tokens {
        &self.0.signing.sharing
    }

    /// Whether there is a mail server to hand mails to.
    pub fn sends_mail(&self) -> bool {
        self.mailer().is_some()
    }

    /// Where long reads run: as many at a time as there are cores, half of them for one tenant at most.
    pub fn long_reads(&self) -> &BlockingPool {
        &self.0.long_reads
    }

    /// The public pages of dashboards, rendered.
    pub fn public_pages(&self) -> &PublicPages {
        &self.0.public_pages
    }

    /// What mails are sent with, where a mail server is configured.
    pub fn mailer(&self) -> Option<&Mailer> {
        self.0.mailer.as_ref()
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Draws a new key, or a new secret for the one with this id, and hashes it: off the request threads, when it
    /// is the consumer's turn and `wanted` still holds then; hashing is dear, and others wait for it.
    ///
    /// # Errors
    /// What `wanted` refuses; 503 when too many wait; 500 when Argon2 refuses, which it does not for secrets of this
    /// crate.
    pub async fn new_key(
        &self,
        consumer: Consumer,
        id: Option<ApiKeyId>,
        wanted: impl FnOnce(&Snapshot) -> Result<()> + Send + 'static,
    ) -> Result<MadeKey> {
        let (tags, store, now) = (self.0.tags.clone(), self.0.store.clone(), self.now());
        let draw = move |hasher: &Hasher| {
            wanted(&*store.snapshot()?)?;
            let mut draw = Seed::take().draw();
            let id = id.unwrap_or_else(|| ApiKeyId(draw.uuid(now)));
            MadeKey::draw(&tags, hasher, id, &mut draw)
        };
        self.0.hasher.make(consumer, draw).await
    }

    /// Has a key's use recorded, where that is due. Nobody waits for it, and nothing depends on it.
    pub fn record_use(&self, presented: &Match, now: Timestamp) {
        if presented.use_is_due(now) {
            let (store, used) = (self.0.store.clone(), presented.clone());
            tokio::spawn(async move {
                tokio::time::sleep(USE_RECORDED_AFTER).await;
                let recorded = store.write(move |tx| used.record_use(tx, now)).await;
                if let Err(error) = recorded {
                    tracing::warn!(%error, "a key's use was not recorded");
                }
            });
        }
    }

    /// Makes sure that the service takes writes: a real one shows it, where none did within the last seconds.
    ///
    /// # Errors
    /// 503 while the data file is closed or takes no write, and from [`drain`](Self::drain) on.
    pub async fn require_ready(&self) -> Result<()> {
        self.0.readiness.require(&self.0.store).await
    }

    /// Whether the service takes writes, as far as it knows without trying.
    pub fn known_ready(&self) -> bool {
        self.0.readiness.known(&self.0.store).is_ok()
    }

    /// Says from now on that the service is not ready, for it is about to stop. It goes on serving.
    pub fn drain(&self) {
        self.0.readiness.drain();
    }

    /// Tells the sweeper that something was removed.
    pub fn sweep(&self) {
        self.0.sweep.notify_one();
    }

    /// Goes on with what is in the file, which is another than before: sweeping, and sending mail.
    pub fn begin_anew(&self) {
        self.sweep();
        if let Some(postman) = &self.0.postman {
            postman.wake();
        }
    }

    /// Finishes a mail that is being sent and what is queued, and closes the data file clean.
    pub async fn close(&self) {
        if let Some(postman) = &self.0.postman
            && timeout(LAST_MAIL, postman.stop()).await.is_err()
        {
            tracing::warn!(
                "the mail server does not answer; what is being sent to it may be sent again"
            );
        }
        self.0.store.close().await;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sweep.notify_one();
    }
}

/// How tenants share so many slots, of which there are two at least, so that no tenant uses all of them. A request waits
/// half of the time that it may take, so that it is refused as one too many and not as a failure.
fn shared_out(slots: usize, time_limit: Duration) -> FairLimits {
    let slots = slots.max(2);
    FairLimits {
        slots,
        slots_each: slots / 2,
        waiting_each: READS_WAITING_EACH,
        waiting: READS_WAITING,
        longest_wait: Some(time_limit / 2),
    }
}

fn warn_of_waiting_mails(store: &Store) -> Result<()> {
    let waiting = outbox::waiting(&*store.snapshot()?)?;
    if waiting > 0 {
        tracing::warn!(waiting, "mails wait, and no mail server is configured (--smtp-url)");
    }
    Ok(())
}
