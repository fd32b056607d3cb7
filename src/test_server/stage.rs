//! The service of a test run: in memory, and put back to an earlier state while it is called.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedRwLockReadGuard, RwLock, RwLockWriteGuard, watch};
use tokio::time::timeout;

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::base::secret::{Seed, SigningSecret};
use crate::base::tasks::run_to_end;
use crate::base::time::{Clock, Hand, ManualClock};
use crate::config::Config;
use crate::input::JsonObject;
use crate::mail::mailer::Mailer;
use crate::resources::record_registry;
use crate::store::{OpenError, Progress, Store, WriteTx, beside, follow_link};

use super::disk::MemoryDisk;
use super::dns::Dns;
use super::faults::{FaultRules, Faults};
use super::journal::Journal;
use super::mails::Mails;
use super::snapshots::{SavedState, Snapshots};
use super::{Workspace, fixture, loading};

/// The path of a workspace without a file. No file of the operating system can have it.
const IN_MEMORY: &str = "/proc/steward/workspace.redb";
/// How long requests in progress may take before the state changes.
const GRACE: Duration = Duration::from_secs(1);
/// How long the end of those takes that were told to end.
const END_TIME: Duration = Duration::from_millis(100);

/// How a test run begins.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    /// The clock.
    pub(crate) hand: Hand,
    /// Whether unknown fields and parameters are refused.
    pub(crate) is_strict: bool,
}

/// The service of a test run, its clock, and the states that it can be put back to. Clones share it.
#[derive(Clone)]
pub(crate) struct Stage(Arc<Inner>);

struct Inner {
    environment: Environment,
    /// Requests begin while it is held shared. Held exclusively while the state changes.
    running: RwLock<Running>,
    start: SavedState,
    snapshots: Snapshots,
}

/// The service since its state was last replaced.
struct Running {
    app: App,
    /// How often the state was replaced.
    generation: u64,
    /// Held shared by each request until its response was sent.
    requests: Arc<RwLock<()>>,
    /// Tells the requests in progress to end.
    ending: watch::Sender<()>,
}

/// The service, as long as a request uses it: it is not replaced meanwhile.
pub(super) struct Entered {
    pub(super) app: App,
    /// How often the state was replaced.
    pub(super) generation: u64,
    /// Changes when the requests in progress are to end.
    pub(super) ending: watch::Receiver<()>,
    /// Drop it when the request has ended.
    pub(super) in_progress: OwnedRwLockReadGuard<()>,
}

impl Running {
    fn start(store: Store, environment: &Environment, generation: u64) -> Result<Self, OpenError> {
        let (config, mails) = (environment.config.clone(), Arc::clone(&environment.mails));
        let app = App::new_with_mailer(store, config, Mailer::over(mails))?;
        Ok(Self { app, generation, requests: Arc::default(), ending: watch::Sender::new(()) })
    }
}

impl Stage {
    /// Starts the service with the usual workspace. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub(crate) async fn create(
        config: Config,
        start: Start,
    ) -> Result<(Self, Workspace), OpenError> {
        let environment = Environment::new(config, start, Path::new(IN_MEMORY));
        let config = &environment.config;
        let (now, fs) = (config.clock.now(), Arc::clone(&config.file_system));
        let fill = |tx: &mut WriteTx<'_>, _: &SigningSecret| Ok(fixture::write(tx, now)?);
        // The secret that this draws is replaced.
        let mut rng = Seed::generate().rng();
        let cache = config.page_cache;
        let (store, workspace) = Store::create(fs, &environment.path, cache, &mut rng, fill)?;
        let running = Running::start(store, &environment, 0)?;
        Ok((Self::begin(environment, running).await?, workspace))
    }

    /// Starts the service with the workspace in the backup or export at `from`, as [`create`](Self::create) does.
    ///
    /// # Errors
    /// When the file is no backup or export that this release can read, or the configuration is invalid.
    pub(crate) async fn load(
        config: Config,
        start: Start,
        from: &Path,
    ) -> Result<(Self, Workspace), OpenError> {
        // The path of the file, because errors name it.
        let environment = Environment::new(config, start, &follow_link(from)?);
        loading::load(&environment.disk, &environment.path, &environment.config)?;
        let store = environment.open().map_err(OpenError::of_backup)?;
        let running = Running::start(store, &environment, 0)?;
        let workspace = loading::find_people(&running.app).await?;
        Ok((Self::begin(environment, running).await?, workspace))
    }

    async fn begin(environment: Environment, running: Running) -> Result<Self> {
        let start = environment.save(&running.app).await?;
        let (running, snapshots) = (RwLock::new(running), Snapshots::default());
        Ok(Self(Arc::new(Inner { environment, running, start, snapshots })))
    }

    /// Returns the service. It is another one after the state was replaced.
    pub(crate) async fn app(&self) -> App {
        self.0.running.read().await.app.clone()
    }

    /// Returns what the service runs on.
    pub(super) fn environment(&self) -> &Environment {
        &self.0.environment
    }

    /// Returns the named states.
    pub(super) fn snapshots(&self) -> &Snapshots {
        &self.0.snapshots
    }

    /// Begins a request. Waits while the state is replaced.
    pub(super) async fn enter(&self) -> Entered {
        let running = self.0.running.read().await;
        Entered {
            app: running.app.clone(),
            generation: running.generation,
            ending: running.ending.subscribe(),
            // Does not wait: it is held exclusively only where no request can begin.
            in_progress: Arc::clone(&running.requests).read_owned().await,
        }
    }

    /// Waits until no request is in progress, and lets none begin until the result is dropped. Requests that take longer end.
    async fn interrupt(&self) -> RwLockWriteGuard<'_, Running> {
        let running = self.0.running.write().await;
        if timeout(GRACE, running.requests.write()).await.is_err() {
            running.ending.send_replace(());
            // A response that its client does not read has its data already, and may end later.
            let _ = timeout(END_TIME, running.requests.write()).await;
        }
        running
    }

    /// Saves the state under a name. Returns whether the name is new.
    ///
    /// # Errors
    /// 400 if there are too many.
    pub(super) async fn save_as(&self, name: String) -> Result<bool> {
        let stage = self.clone();
        run_to_end(async move {
            let Inner { environment, snapshots, .. } = &*stage.0;
            let running = stage.interrupt().await;
            snapshots.require_room(&name)?;
            Ok(snapshots.put(name, environment.save(&running.app).await?))
        })
        .await?
    }

    /// Puts the service back to the state with a name.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(super) async fn restore(&self, name: &str) -> Result<()> {
        let state = self.0.snapshots.get(name)?;
        self.replace_state(move |_| state).await
    }

    /// Puts the service back to the state in which it started, without faults and with an empty journal.
    pub(super) async fn reset(&self) -> Result<()> {
        let start = |stage: &Self| {
            stage.environment().faults.clear();
            stage.environment().journal.clear();
            stage.0.start.clone()
        };
        self.replace_state(start).await
    }

    async fn replace_state(
        &self,
        state: impl FnOnce(&Self) -> SavedState + Send + 'static,
    ) -> Result<()> {
        let stage = self.clone();
        run_to_end(async move {
            let environment = &stage.0.environment;
            let mut running = stage.interrupt().await;
            let state = state(&stage);
            running.app.close().await;
            environment.put_back(&state);
            let generation = running.generation + 1;
            let start = || Running::start(environment.open()?, environment, generation);
            *running = start().map_err(Error::internal)?;
            Ok(())
        })
        .await?
    }

    /// Writes the data to a new data file at `to`, in which no key, session or link of this run is valid.
    ///
    /// # Errors
    /// When a file exists there, or the operating system reports an error.
    pub(crate) async fn keep(&self, to: PathBuf) -> Result<(), OpenError> {
        let (disk, copy) = (&self.0.environment.disk, beside(&self.0.environment.path, "kept"));
        let (app, progress) = (self.app().await, Progress::silent());
        app.store().backup(copy.clone(), record_registry(), progress).await?;
        loading::renew_secret(disk, &copy).await?;
        loading::write_file(&*disk.file(&copy).map_err(OpenError::io("read", &copy))?, &to)
    }
}

/// What the service runs on.
pub(super) struct Environment {
    /// The configuration, with everything else of this.
    config: Config,
    disk: Arc<MemoryDisk>,
    /// The data file on the disk.
    path: PathBuf,
    pub(super) clock: ManualClock,
    pub(super) mails: Arc<Mails>,
    pub(super) dns: Arc<Dns>,
    pub(super) faults: Arc<Faults>,
    pub(super) journal: Arc<Journal>,
    /// Whether unknown fields and parameters are refused.
    pub(super) is_strict: bool,
    /// Held while the clock is moved.
    pub(super) moving: Mutex<()>,
}

impl Environment {
    fn new(mut config: Config, Start { hand, is_strict }: Start, path: &Path) -> Self {
        let (disk, clock) = (Arc::new(MemoryDisk::default()), ManualClock::new(hand));
        let (faults, dns) = (Arc::new(Faults::new()), Arc::new(Dns::default()));
        let (mails, journal) = (Arc::new(Mails::new(&faults)), Arc::new(Journal::new()));
        config.file_system = Arc::clone(&disk) as _;
        config.clock = Clock::Manual(clock.clone());
        config.dns_records = Some(Arc::clone(&dns) as _);
        config.waits_for_uses = true;
        let (path, moving) = (path.to_owned(), Mutex::default());
        Self { config, disk, path, clock, mails, dns, faults, journal, is_strict, moving }
    }

    /// Replaces the faults.
    ///
    /// # Errors
    /// Those of [`Faults::replace`].
    pub(super) fn replace_faults(&self, sent: &JsonObject, rules: FaultRules) -> Result<()> {
        self.faults.replace(sent, rules, &self.config.seeds.first())
    }

    fn open(&self) -> Result<Store, OpenError> {
        let Config { file_system, page_cache, .. } = &self.config;
        Store::open_on(Arc::clone(file_system), &self.path, *page_cache)
    }

    /// Saves the state of the service. It then goes on with a fork of its file: what still reads the old one is not disturbed.
    async fn save(&self, app: &App) -> Result<SavedState> {
        let _paused = app.pause_background().await;
        let (created_at, hand) = (app.now(), self.clock.hand());
        let drawn = self.config.seeds.position();
        let file = self.disk.file(&self.path).map_err(Error::internal)?;
        let (disk, path, fork) = (Arc::clone(&self.disk), self.path.clone(), Arc::clone(&file));
        app.store().closed_while(move || disk.put(&path, fork.fork())).await?;
        let (mails, dns) = (self.mails.save(), self.dns.save());
        Ok(SavedState { file, created_at, hand, drawn, mails, dns })
    }

    fn put_back(&self, state: &SavedState) {
        self.disk.put(&self.path, state.file.fork());
        self.clock.replace(state.hand);
        self.config.seeds.rewind(state.drawn);
        self.mails.put_back(&state.mails);
        self.dns.put_back(&state.dns);
    }
}
