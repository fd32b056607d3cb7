//! Opening the data for `steward serve`, or creating it, and the text that it prints when it is ready.

use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::app::App;
use crate::base::error::Error;
use crate::config::Config;
use crate::operator::bootstrap::{self, CreatedWorkspace, InitialRecords};
use crate::operator::{Operation, perform};
use crate::store::{
    Cell, Compacted, OpenError, Place, Progress, RepeatedWarning, Store, beside, folder_of,
    give_to_owner,
};

use super::Failure;
use super::failure::write_out;

/// Compacts the file if more than half of it is unused space. If that fails, the file is served as it is.
async fn compact_if_sparse(store: &Store) {
    let outcome = async {
        let space = store.space().await?;
        let (bytes, dead) = (space.bytes, space.dead());
        if dead <= bytes / 2 {
            tracing::info!(bytes, dead, "the data file has little dead space and is not compacted");
            return Ok(());
        }
        tracing::info!(bytes, dead, "more than half of the data file is dead space; compacting it");
        let Compacted { bytes, .. } = store.compact(&Progress::silent()).await?;
        tracing::info!(bytes, "the data file is compacted");
        Ok::<_, Error>(())
    };
    if let Err(error) = outcome.await {
        tracing::error!(%error, "the data file was not compacted");
    }
}

/// How `serve` opens its data.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    /// Whether to compact a sparse data file first.
    pub(super) compact_first: bool,
    /// The number that the data must have, or that new data gets.
    pub(super) cell: Option<Cell>,
    /// Whether to create a workspace in a shared database that holds none.
    pub(super) may_create_workspace: bool,
}

/// The pause between two attempts to reach a shared database at the start.
const CONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// Opens the data. Waits for a shared database that cannot be reached, on this thread: the runtime may end meanwhile.
fn open_when_reachable(place: &Place, config: &Config) -> Result<Store, OpenError> {
    let mut warning = RepeatedWarning::default();
    loop {
        let fs = Arc::clone(&config.file_system);
        match Store::open_at(fs, place, config.page_cache) {
            Err(error @ OpenError::Unreachable { .. }) => {
                if warning.is_due(&error.to_string()) {
                    let way_out = "do what the error says, or see that the server runs and that this machine reaches it";
                    tracing::warn!(%error, way_out, "waiting for the database");
                }
                std::thread::sleep(CONNECT_INTERVAL);
            }
            opened => return opened,
        }
    }
}

/// Fails if the data has another number than the server was given: two installations would create the same ids.
fn require_cell(store: &Store, wanted: Option<Cell>) -> Result<(), Failure> {
    let found = store.cell()?;
    match wanted {
        Some(wanted) if wanted != found => {
            Err(Failure::Usage(format!("the data is cell {found}, not cell {wanted} (--cell)")))
        }
        _ => Ok(()),
    }
}

/// Opens the data, or creates it if it does not exist and may be created.
pub(super) async fn open_or_create(
    place: &Place,
    config: Config,
    Opening { compact_first, cell, may_create_workspace }: Opening,
) -> Result<(App, Option<FirstRun>), Failure> {
    match open_when_reachable(place, &config) {
        Ok(store) => {
            require_cell(&store, cell)?;
            if compact_first {
                compact_if_sparse(&store).await;
            }
            return Ok((App::new(store, config)?, None));
        }
        Err(OpenError::Missing(_)) => {}
        Err(OpenError::NoWorkspace(_)) if may_create_workspace => {}
        Err(error) => return Err(error.into()),
    }
    let key_file = (!std::io::stdout().is_terminal()).then(|| beside(place.file(), "first-key"));
    let mut has_written = false;
    let first = InitialRecords { cell: cell.unwrap_or_default(), ..InitialRecords::default() };
    let created =
        bootstrap::create_at(place, config.clone(), &first, &mut |created| match &key_file {
            Some(path) => {
                write_key_file(path, place.file(), &created.api_key)?;
                has_written = true;
                Ok(())
            }
            None => Ok(()),
        });
    if let (Err(error), true, Some(path)) = (&created, has_written, &key_file)
        && !may_exist(place, error)
        && let Err(error) = std::fs::remove_file(path)
    {
        tracing::warn!(%error, path = %path.display(), "the key of a workspace that does not exist stays");
    }
    match created {
        Ok((app, workspace)) => {
            // The link is a credential too: it is printed only where the key is.
            let console = match (app.config().console.is_on(), &key_file) {
                (false, _) => FirstVisit::None,
                (true, Some(_)) => FirstVisit::Command,
                (true, None) => FirstVisit::Link(console_link(&app).await?),
            };
            Ok((app, Some(FirstRun { workspace, key_file, console })))
        }
        // Another process was first. This process opens what it created, or fails because the file is in use.
        Err(OpenError::Exists(_) | OpenError::HasWorkspace(_)) => {
            let store = open_when_reachable(place, &config)?;
            require_cell(&store, cell)?;
            Ok((App::new(store, config)?, None))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the workspace of a first start that failed may exist.
fn may_exist(place: &Place, error: &OpenError) -> bool {
    match (place, error) {
        // The database refused it as a whole.
        (_, OpenError::Exists(_) | OpenError::HasWorkspace(_))
        | (Place::Shared { .. }, OpenError::DatabaseSetting { .. } | OpenError::Database { .. }) => {
            false
        }
        (Place::File(path), _) => path.symlink_metadata().is_ok(),
        (Place::Shared { .. }, _) => true,
    }
}

/// Returns a link that signs the owner of a new workspace in to the console.
async fn console_link(app: &App) -> Result<String, Error> {
    let operation = Operation::ConsoleLink { email: None, is_operator: false, existing: false };
    let link = perform(app, operation, Progress::silent()).await?;
    Ok(link.get("url").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// Writes the first key to disk before the data file appears.
fn write_key_file(path: &Path, data: &Path, key: &str) -> Result<(), OpenError> {
    let write = || -> std::io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        give_to_owner(&file, data);
        writeln!(file, "{key}")?;
        // Syncs the folder too: without its file name, the data file would be lost.
        file.sync_all()?;
        std::fs::File::open(folder_of(path))?.sync_all()
    };
    write().map_err(|cause| {
        // It has at most a part of the key.
        let _ = std::fs::remove_file(path);
        OpenError::Io { doing: "write", path: path.to_owned(), cause }
    })
}

/// The records that a first start created, and the file with the API key if one was written.
pub(super) struct FirstRun {
    pub(super) workspace: CreatedWorkspace,
    pub(super) key_file: Option<PathBuf>,
    pub(super) console: FirstVisit,
}

/// How the first user opens the console.
pub(super) enum FirstVisit {
    /// With this link.
    Link(String),
    /// With the link that a command prints.
    Command,
    /// There is no console.
    None,
}

/// Prints the URL of the service, and on a first start how to use the API key. Logs if that is not possible.
pub(super) fn print_startup(place: &Place, url: &str, first: Option<&FirstRun>, json: bool) {
    let text = if json { to_json(place, url, first) } else { to_text(place, url, first) };
    if let Err(error) = write_out(text.as_bytes()) {
        tracing::warn!(%error, "the first lines could not be written to stdout");
    }
}

fn to_json(place: &Place, url: &str, first: Option<&FirstRun>) -> String {
    let key_file = first.and_then(|first| first.key_file.as_deref());
    let printed = first.filter(|first| first.key_file.is_none());
    let console_url = first.and_then(|first| match &first.console {
        FirstVisit::Link(link) => Some(link),
        FirstVisit::Command | FirstVisit::None => None,
    });
    let greeting = json!({
        "url": url,
        "data": place.to_string(),
        "organization_id": first.map(|first| first.workspace.organization_id),
        "project_id": first.map(|first| first.workspace.project_id),
        "api_key": printed.map(|first| &first.workspace.api_key),
        "api_key_file": key_file.map(|path| path.display().to_string()),
        "console_url": console_url,
    });
    format!("{greeting}\n")
}

fn to_text(place: &Place, url: &str, first: Option<&FirstRun>) -> String {
    let serving = format!("Steward is serving {url} from {place}\n");
    let Some(FirstRun { workspace, key_file, console }) = first else { return serving };
    let try_it = |key: &str| {
        format!(
            "Try it:\n\n  curl -H \"Authorization: Bearer {key}\" {url}/api/projects/{}/dashboards/\n\n",
            workspace.project_id
        )
    };
    let key = if let Some(path) = key_file {
        let path = &path.display().to_string();
        format!(
            "The first API key is in {path}. {}",
            try_it(&format!("$(cat {})", shell_quote(path)))
        )
    } else {
        let key = &workspace.api_key;
        format!("The first API key, shown only once:\n\n  {key}\n\n{}", try_it(key))
    };
    let console = match console {
        FirstVisit::Link(link) => {
            format!("Open the console with this link, once within five minutes:\n\n  {link}\n\n")
        }
        FirstVisit::Command => {
            let place = match place {
                Place::File(path) => {
                    format!(" --data {}", shell_quote(&path.display().to_string()))
                }
                // The URL may have a password.
                Place::Shared { .. } => String::new(),
            };
            format!("For a link that opens the console:\n\n  steward console{place}\n\n")
        }
        FirstVisit::None => String::new(),
    };
    format!("Created a new workspace in {place}.\n{key}{console}{serving}")
}

/// Quotes `text` as one word of a shell command.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
