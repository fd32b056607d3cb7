//! Saved states of the service, and their names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::base::error::{Error, Result};
use crate::base::json::output;
use crate::base::secret::SeedPosition;
use crate::base::time::{Hand, Timestamp};
use crate::http::routes::PathParameter;
use crate::input::Schema;
use crate::store::Overlay;
use crate::store::file_system::FsFile;

use super::dns::DnsNames;
use super::mails::MailLog;

/// The maximum number of named states.
const MAX_SNAPSHOTS: usize = 1000;
/// The maximum length of a name.
const MAX_NAME: usize = 64;

/// A state of the service: its data, its clock, how many seeds it had drawn, its mails, and what DNS look-ups find.
#[derive(Clone)]
pub(super) struct SavedState {
    /// The closed data file.
    pub(super) file: Arc<Overlay>,
    pub(super) created_at: Timestamp,
    pub(super) hand: Hand,
    pub(super) drawn: SeedPosition,
    pub(super) mails: MailLog,
    pub(super) dns: DnsNames,
}

/// The named states.
#[derive(Default)]
pub(super) struct Snapshots(Mutex<BTreeMap<String, SavedState>>);

output! {
    /// A named state of the service.
    pub(super) struct SnapshotBody as Snapshot {
        /// The name.
        name: String,
        /// When it was saved, by the clock of the service.
        created_at: Timestamp,
        /// The size of its data. Memory is needed only for what differs from other states.
        bytes: u64,
    }
}

impl Snapshots {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, SavedState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails with 400 if there is no room for another name.
    pub(super) fn require_room(&self, name: &str) -> Result<()> {
        let all = self.all();
        if all.len() < MAX_SNAPSHOTS || all.contains_key(name) {
            return Ok(());
        }
        Err(Error::limit_reached(format!("There are {MAX_SNAPSHOTS} snapshots. Delete one first.")))
    }

    /// Stores a state. Returns whether the name is new.
    pub(super) fn put(&self, name: String, state: SavedState) -> bool {
        self.all().insert(name, state).is_none()
    }

    /// Returns the state with a name.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(super) fn get(&self, name: &str) -> Result<SavedState> {
        self.all().get(name).cloned().ok_or_else(no_snapshot)
    }

    /// Deletes the state with a name.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        self.all().remove(name).map(drop).ok_or_else(no_snapshot)
    }

    /// Returns the state with a name, as it is shown.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(super) fn show(&self, name: &str) -> Result<SnapshotBody> {
        shown(name, &self.get(name)?)
    }

    /// Returns all states by their names, as they are shown.
    pub(super) fn list(&self) -> Result<Vec<SnapshotBody>> {
        self.all().iter().map(|(name, state)| shown(name, state)).collect()
    }
}

fn no_snapshot() -> Error {
    Error::not_found_as("Snapshot not found.")
}

fn shown(name: &str, state: &SavedState) -> Result<SnapshotBody> {
    let bytes = state.file.len().map_err(Error::internal)?;
    Ok(SnapshotBody { name: name.to_owned(), created_at: state.created_at, bytes })
}

/// The name of a state.
pub(super) struct SnapshotName(pub(super) String);

impl PathParameter for SnapshotName {
    const NAME: &'static str = "name";
    const DESCRIPTION: &'static str = "The name of the snapshot.";

    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).max_length(Some(MAX_NAME));
        text.pattern(Some("^[A-Za-z0-9_-][A-Za-z0-9._-]*$")).into()
    }

    fn parse(text: &str) -> Result<Self> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if text.len() <= MAX_NAME && text.chars().all(is_valid) && !text.starts_with('.') {
            return Ok(Self(text.to_owned()));
        }
        let detail = "Use at most 64 letters, digits, points, hyphens and underscores, and no point at the start.";
        Err(Error::field(Self::NAME, "invalid_input", detail))
    }
}
