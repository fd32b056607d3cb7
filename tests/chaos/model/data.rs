//! Where the data of the service lie: in a file, or in a shared database with several nodes.

use std::ffi::OsString;

use steward::testing::store::{Place, PreparedRestore};
use tempfile::TempDir;

use crate::prelude::*;

/// What keeps the data.
#[derive(Debug, Clone, Copy)]
pub enum Engine {
    /// A data file.
    File,
    /// A shared database with this many nodes.
    Nodes(usize),
}

/// The data, and the folder of the file or of the copies.
pub struct Data {
    folder: TempDir,
    shared: Option<(Schema, usize)>,
    /// How many restores there were.
    restores: AtomicUsize,
}

impl Data {
    /// Creates data from the bytes of a data file.
    pub fn new(engine: Engine, bytes: &[u8]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let shared = match engine {
            Engine::File => None,
            Engine::Nodes(count) => Some((Schema::new(), count)),
        };
        let data = Self { folder, shared, restores: AtomicUsize::new(0) };
        if data.shared.is_none() {
            fs::write(data.path("node-0.redb"), bytes).expect("the file");
        } else {
            fs::write(data.path("first.redb"), bytes).expect("the file");
            data.upload(&data.path("first.redb"));
        }
        data
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn place(&self, node: &str) -> Place {
        let copy = self.path(&format!("{node}.redb"));
        let data = self.shared.as_ref().map(|(schema, _)| OsString::from(schema.url()));
        let data = data.unwrap_or_else(|| copy.clone().into());
        Place::new(&data, &copy, None, Some(node)).expect("a place")
    }

    /// Serves the data, by one service for each node.
    pub fn serve(&self, config: &Config) -> Vec<App> {
        let serve = |node: usize| {
            let Config { file_system, page_cache, .. } = config.clone();
            let place = self.place(&format!("node-{node}"));
            let store = Store::open_at(file_system, &place, page_cache);
            App::new(store.expect("a store"), config.clone()).expect("an app")
        };
        (0..self.shared.as_ref().map_or(1, |(_, count)| *count)).map(serve).collect()
    }

    /// Restores the backup at `from` while these services run.
    pub async fn restore_serving(&self, from: &Path, apps: &[App]) {
        if self.shared.is_none() {
            let _prepared = prepare(&self.path("node-0.redb"), from);
            perform(&apps[0], Operation::Restore, Progress::silent()).await.expect("a restore");
            return;
        }
        self.upload(from);
        for app in apps {
            // Each node makes its copy again, and refuses requests meanwhile.
            eventually_async("the node has the restored data", async || {
                let is_fresh = app.store().fresh().await.is_ok();
                (is_fresh && app.store().ready()).then_some(())
            })
            .await;
        }
    }

    /// Restores the backup at `from` while no service runs.
    pub fn restore_closed(&self, from: &Path) {
        if self.shared.is_none() {
            prepare(&self.path("node-0.redb"), from).swap("closed").expect("a restore");
        } else {
            self.upload(from);
        }
    }

    fn upload(&self, from: &Path) {
        let place = self.place("restoring");
        let number = self.restores.fetch_add(1, Ordering::Relaxed).to_string();
        let restored = prepare(place.file(), from).upload(&place, &number, &Progress::silent());
        restored.expect("a restore");
    }
}

fn prepare(path: &Path, from: &Path) -> PreparedRestore {
    PreparedRestore::new(path, from, &record_registry(), &Progress::silent()).expect("a copy")
}
