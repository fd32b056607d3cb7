//! `steward test`: a workspace in memory for one test run, with ids and keys that are known beforehand.
//!
//! It is the service of `steward serve` on another disk, with another clock and another source of seeds. Only `cli/test.rs` uses
//! this module.

mod control;
mod disk;
mod fixture;
mod loading;
mod process;
mod ready;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::app::App;
use crate::base::secret::{Seed, SigningSecret};
use crate::config::Config;
use crate::ids::{OrganizationId, ProjectId, UserUuid};
use crate::resources::record_registry;
use crate::store::file_system::FileSystem;
use crate::store::{OpenError, Progress, Store, WriteTx};

use disk::MemoryDisk;

pub(crate) use control::router;
pub(crate) use process::{Signals, TestCommand, become_command, parent_gone, stdin_closed};
pub(crate) use ready::Ready;

/// The path of a workspace without a file. No file of the operating system can have it.
const IN_MEMORY: &str = "/proc/steward/workspace.redb";

/// The organization, the project and the people that a test can use at once.
#[derive(Clone, Serialize)]
pub(crate) struct Workspace {
    pub(crate) organization_id: OrganizationId,
    pub(crate) project_id: ProjectId,
    /// The owner.
    pub(crate) user: Person,
    /// A member of the lowest level. `None` if the workspace that the server started from has none.
    pub(crate) member: Option<Person>,
}

/// A user, with a key that has all scopes.
#[derive(Clone, Serialize)]
pub(crate) struct Person {
    pub(crate) email: String,
    pub(crate) uuid: UserUuid,
    pub(crate) api_key: String,
}

/// A service whose data is in memory.
pub(crate) struct TestService {
    pub(crate) app: App,
    pub(crate) workspace: Workspace,
    disk: Arc<MemoryDisk>,
}

impl TestService {
    /// Starts the service with the usual workspace. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub(crate) fn create(config: Config) -> Result<Self, OpenError> {
        let (disk, config) = in_memory(config);
        let (now, fs) = (config.clock.now(), Arc::clone(&config.file_system));
        let fill = |tx: &mut WriteTx<'_>, _: &SigningSecret| Ok(fixture::write(tx, now)?);
        // The secret that this draws is replaced.
        let mut rng = Seed::generate().rng();
        let (path, cache) = (Path::new(IN_MEMORY), config.page_cache);
        let (store, workspace) = Store::create(fs, path, cache, &mut rng, fill)?;
        Ok(Self { app: App::new(store, config)?, workspace, disk })
    }

    /// Starts the service with the workspace in the backup or export at `from`, as [`create`](Self::create) does.
    ///
    /// # Errors
    /// When the file is no backup or export that this release can read, or the configuration is invalid.
    pub(crate) async fn load(config: Config, from: &Path) -> Result<Self, OpenError> {
        let (disk, config) = in_memory(config);
        let app = App::new(loading::open(&disk, from, &config)?, config)?;
        let workspace = loading::find_people(&app).await?;
        Ok(Self { app, workspace, disk })
    }

    /// Writes the data to a new data file at `to`, in which no key, session or link of this run is valid.
    ///
    /// # Errors
    /// When a file exists there, or the operating system reports an error.
    pub(crate) async fn keep(&self, to: PathBuf) -> Result<(), OpenError> {
        let copy = PathBuf::from(format!("{IN_MEMORY}.kept"));
        let progress = Progress::silent();
        self.app.store().backup(copy.clone(), record_registry(), progress).await?;
        loading::renew_secret(&self.disk, &copy).await?;
        loading::write_file(&*self.disk.file(&copy).map_err(OpenError::io("read", &copy))?, &to)
    }
}

/// Returns the configuration with a disk in memory.
fn in_memory(config: Config) -> (Arc<MemoryDisk>, Config) {
    let disk = Arc::new(MemoryDisk::default());
    let file_system: Arc<dyn FileSystem> = Arc::clone(&disk) as _;
    (disk, Config { file_system, ..config })
}
