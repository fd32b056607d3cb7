//! The state that handlers share. Nothing is global to the process: two [`App`]s in one process share nothing.

pub(crate) mod backups;
pub(crate) mod blocking_pool;
mod changes;
mod idempotent;
mod mail_sign_in;
mod maintenance;
mod metrics;
mod organization_import;
mod public_pages;
mod quota;
pub(crate) mod rate_limit;
mod readiness;
mod rendering;
mod sessions;
mod signing;
mod upkeep;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::task::JoinSet;

use crate::app::blocking_pool::BlockingPool;
use crate::app::rate_limit::RateLimits;
use crate::auth::Credential;
use crate::auth::authorization::AuthorizationCache;
use crate::auth::key_cache::KeyCache;
use crate::base::error::{Error, Result};
use crate::base::secret::{Purpose, Seed};
use crate::base::tasks::spawn;
use crate::base::time::{Clock, Timestamp};
use crate::config::Config;
use crate::fair::fair_queue::{Consumer, FairQueue, FairQueueLimits};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::fair::memory_budget::MemoryBudget;
use crate::ids::ApiKeyId;
use crate::leases::{Duty, LeaseRenewal};
use crate::mail::mailer::Mailer;
use crate::mail::worker::{CurrentAttempt, MailWorker};
use crate::net::TrustedProxies;
use crate::net::dns::Resolver;
use crate::resources::api_keys::{IssuedKey, TagKey};
use crate::resources::invites::InviteLinks;
use crate::resources::sharing::SharingTokens;
use crate::resources::signup::InviteMails;
use crate::store::{OpenError, SpaceUsage, Store, Watch};

use mail_sign_in::MailSignIn;
use maintenance::DueWork;
use metrics::MetricsCollector;
use readiness::Readiness;
use signing::SigningKeys;

pub use blocking_pool::ReadAccess;
pub use changes::WriteAccess;
pub use organization_import::ImportedOrganization;
pub use public_pages::{PageKey, PublicPages};
pub use readiness::Health;
pub use rendering::LargeResponse;
pub use upkeep::ScrubResult;

/// The delay before the use of a key or session is recorded, so that the record does not compete with the request itself.
const RECORD_USE_DELAY: Duration = Duration::from_millis(100);
/// The maximum number of waiting long reads of one tenant.
const MAX_WAITING_READS_PER_CONSUMER: usize = 64;
/// The maximum number of waiting long reads of all tenants.
const MAX_WAITING_READS: usize = 1024;
/// The `Retry-After` of a request whose new key finds too many waiting, in seconds.
const RETRY_AFTER: u32 = 2;

/// A running service: an open data file and its background work. Clones share the same service.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Clock,
    config: Config,
    dns: Resolver,
    tag_key: TagKey,
    key_cache: KeyCache,
    authorizations: AuthorizationCache,
    signing: SigningKeys,
    proxies: TrustedProxies,
    rate_limiter: Arc<RateLimits>,
    transfer_memory: MemoryBudget,
    maintenance: Watch,
    due_work: Arc<tokio::sync::Mutex<DueWork>>,
    long_reads: BlockingPool,
    public_pages: PublicPages,
    /// Turns for work that takes a core for long: large responses, and hashes of new keys.
    heavy_work: FairQueue,
    mailer: Option<Mailer>,
    leases: LeaseRenewal,
    mail_worker: Option<MailWorker>,
    /// `None` if no mail signs users in.
    mail_sign_in: Option<MailSignIn>,
    readiness: Readiness,
    metrics: MetricsCollector,
    last_scrub: ArcSwapOption<ScrubResult>,
    space_usage: ArcSwapOption<SpaceUsage>,
    last_backup: Arc<ArcSwapOption<Timestamp>>,
    started_at: Timestamp,
    disk_space: Arc<quota::DiskReserve>,
    upkeep: Mutex<JoinSet<()>>,
    is_closing: AtomicBool,
}

impl App {
    /// Creates the service of an open store. Must be called within a tokio runtime.
    ///
    /// Starts in the background: the deletion of the data of deleted objects, and the mail worker if a mail server is
    /// configured.
    ///
    /// # Errors
    /// Fails if the file's signing secret cannot be read, or if the mail configuration is invalid or incomplete.
    pub fn new(store: Store, config: Config) -> Result<Self, OpenError> {
        config.require_complete()?;
        let mailer = Mailer::new(&config.mail)?;
        if mailer.is_none() {
            maintenance::warn_about_queued_mail(&store)?;
        }
        Self::build(store, config, mailer, true)
    }

    /// Does what [`new`](Self::new) does, with a mailer of the caller instead of one that is configured.
    ///
    /// # Errors
    /// Fails if the file's signing secret cannot be read.
    pub(crate) fn new_with_mailer(
        store: Store,
        config: Config,
        mailer: Mailer,
    ) -> Result<Self, OpenError> {
        Self::build(store, config, Some(mailer), true)
    }

    /// Does what [`new`](Self::new) does, but sends no mail from the outbox: that is the server's task, and a command
    /// may have another mail configuration. With a shared database, the command is no node and takes no lease.
    ///
    /// # Errors
    /// Fails if the file's signing secret cannot be read, or if the mail configuration is invalid.
    #[doc(hidden)]
    pub fn new_for_command(store: Store, config: Config) -> Result<Self, OpenError> {
        let mailer = Mailer::new(&config.mail)?;
        Self::build(store, config, mailer, false)
    }

    fn build(
        store: Store,
        config: Config,
        mailer: Option<Mailer>,
        is_server: bool,
    ) -> Result<Self, OpenError> {
        let secret = store.signing_secret()?;
        let signing = SigningKeys::of(&store, config.link_base(), &secret)?;
        let served_mailer = mailer.clone().filter(|_| is_server);
        let leases =
            maintenance::begin_as_node(&store, &config, is_server, served_mailer.is_some())?;
        let mail_worker = served_mailer.clone().map(|mailer| {
            let mails = Arc::new(InviteMails { links: signing.links.clone() });
            let (clock, seeds) = (config.clock.clone(), config.seeds.for_background());
            let lease = leases.watch(Duty::Mail);
            MailWorker::start(store.clone(), clock, seeds, mailer, mails, lease, &config.metrics)
        });
        let sign_in_mailer = served_mailer.filter(|_| config.console_mail_login);
        let (mail_sign_in, requests) = MailSignIn::of(sign_in_mailer, &config).unzip();
        let tag_key = TagKey::new(&secret.subkey(Purpose::KeyTag)?)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let time_limit = config.request_timeout;
        metrics::observe(&store, &config.metrics);
        let now = config.clock.now();
        let app = Self(Arc::new(Inner {
            key_cache: KeyCache::new(tag_key.clone(), &config.metrics),
            authorizations: AuthorizationCache::new(),
            signing,
            maintenance: store.watch(maintenance::TABLES),
            due_work: Arc::new(tokio::sync::Mutex::new(DueWork::new(&store, &config))),
            long_reads: BlockingPool::new(
                fair_limits(cores, time_limit),
                time_limit,
                &config.metrics,
            ),
            public_pages: PublicPages::new(
                fair_limits(2, time_limit),
                time_limit,
                &config.metrics,
            )?,
            heavy_work: rendering::heavy_work_queue(cores, time_limit),
            rate_limiter: Arc::new(RateLimits::new(
                &config.rate_limits,
                &config.peer_limits,
                &config.clock,
            )),
            transfer_memory: MemoryBudget::new(config.transfer_memory),
            proxies: config.trusted_proxies.iter().copied().collect(),
            clock: config.clock.clone(),
            dns: Resolver::new(config.dns_resolvers.clone(), config.dns_timeout)
                .with_records(config.dns_records.clone()),
            disk_space: quota::DiskReserve::of(&store),
            metrics: MetricsCollector::default(),
            store,
            config,
            tag_key,
            mailer,
            leases,
            mail_worker,
            mail_sign_in,
            readiness: Readiness::default(),
            last_scrub: ArcSwapOption::empty(),
            space_usage: ArcSwapOption::empty(),
            last_backup: Arc::default(),
            started_at: now,
            upkeep: Mutex::default(),
            is_closing: AtomicBool::new(false),
        }));
        app.start_scrubber();
        app.start_maintenance()?;
        if let Some(requests) = requests {
            app.start_mail_sign_in(requests);
        }
        Ok(app)
    }

    /// Returns the data file.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Returns the DNS resolver.
    pub(crate) fn dns(&self) -> &Resolver {
        &self.0.dns
    }

    /// Returns the proxies whose headers about the client are trusted.
    pub(crate) fn proxies(&self) -> &TrustedProxies {
        &self.0.proxies
    }

    /// Returns the rate limits.
    pub(crate) fn rate_limiter(&self) -> &Arc<RateLimits> {
        &self.0.rate_limiter
    }

    /// Returns the memory budget for large responses and request bodies in flight.
    #[doc(hidden)]
    pub fn transfer_memory(&self) -> &MemoryBudget {
        &self.0.transfer_memory
    }

    /// Returns the cache of authorizations.
    pub(crate) fn authorizations(&self) -> &AuthorizationCache {
        &self.0.authorizations
    }

    /// Returns the cache of verified API keys.
    pub(crate) fn key_cache(&self) -> &KeyCache {
        &self.0.key_cache
    }

    /// Returns the signer of invite links.
    #[doc(hidden)]
    pub fn links(&self) -> &InviteLinks {
        &self.0.signing.links
    }

    /// Returns the signer of public page tokens.
    pub(crate) fn sharing(&self) -> &SharingTokens {
        &self.0.signing.sharing
    }

    /// Whether a mail server is configured.
    pub(crate) fn sends_mail(&self) -> bool {
        self.mailer().is_some()
    }

    /// Returns the mails that are being sent.
    pub(crate) fn current_mails(&self) -> Vec<CurrentAttempt> {
        self.0.mail_worker.as_ref().map_or_else(Vec::new, MailWorker::current)
    }

    /// Returns the thread pool for long reads. It has a thread per core, at least two; one tenant uses at most half
    /// of them.
    #[doc(hidden)]
    pub fn long_reads(&self) -> &BlockingPool {
        &self.0.long_reads
    }

    /// Returns the cache of rendered public pages.
    #[doc(hidden)]
    pub fn public_pages(&self) -> &PublicPages {
        &self.0.public_pages
    }

    /// Returns the mail client, if a mail server is configured.
    pub(crate) fn mailer(&self) -> Option<&Mailer> {
        self.0.mailer.as_ref()
    }

    /// Returns the current time.
    #[doc(hidden)]
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Returns the seed of one change.
    pub(crate) fn seed(&self) -> Seed {
        self.0.config.seeds.draw()
    }

    /// Creates and hashes a new API key, or a new secret for the key `id`. The keys of a consumer are hashed one after the
    /// other, off the threads that serve requests. Without a consumer, the operator creates it.
    ///
    /// # Errors
    /// 503 if too many keys of the consumer wait; 500 if Argon2 fails, which it does not for secrets of this crate.
    pub(crate) async fn issue_key(
        &self,
        consumer: Option<Consumer>,
        id: Option<ApiKeyId>,
    ) -> Result<IssuedKey> {
        let (mut rng, now, tags) = (self.seed().rng(), self.now(), self.0.tag_key.clone());
        let full = |_| Error::overloaded(RETRY_AFTER, "too many new keys wait");
        let turn = match consumer {
            Some(consumer) => Some(self.0.heavy_work.acquire(consumer).await.map_err(full)?),
            None => None,
        };
        let issue = move || {
            let _turn = turn;
            let id = id.unwrap_or_else(|| ApiKeyId(rng.uuid(now)));
            IssuedKey::generate(&tags, id, &mut rng)
        };
        run_low_priority(Priority::Answer, issue).await?
    }

    /// Records the use of a key or a session, if a record is due. A failure is only logged. Returns what to wait for if the
    /// service waits for uses. Otherwise the record is written in the background.
    pub(crate) fn record_use(
        &self,
        presented: &Credential,
        now: Timestamp,
    ) -> Option<BoxFuture<'static, ()>> {
        if !presented.is_use_due(now) {
            return None;
        }
        let (store, used) = (self.0.store.clone(), presented.clone());
        let record = async move {
            if let Err(error) = store.write(move |tx| used.record_use(tx, now)).await {
                tracing::warn!(%error, "could not record the use of a key or session");
            }
        };
        if self.0.config.waits_for_uses {
            return Some(record.boxed());
        }
        spawn(async move {
            tokio::time::sleep(RECORD_USE_DELAY).await;
            record.await;
        });
        None
    }

    /// Starts a task that ends with this service.
    fn spawn_upkeep(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.spawn(task.boxed());
    }
}

/// Shares slots between tenants. There are at least two slots, so that one tenant never uses all of them. A request
/// waits at most half of its time limit, so that it fails as overload and not as a timeout.
fn fair_limits(slots: usize, time_limit: Duration) -> FairQueueLimits {
    let slots = slots.max(2);
    FairQueueLimits {
        slots,
        slots_per_consumer: slots / 2,
        waiting_per_consumer: MAX_WAITING_READS_PER_CONSUMER,
        waiting: MAX_WAITING_READS,
        max_wait: Some(time_limit / 2),
    }
}
