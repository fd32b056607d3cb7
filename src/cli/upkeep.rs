//! Commands that make, check and replace whole files: backup, restore, export and import.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use crate::bootstrap;
use crate::error::Error;
use crate::operator::Operation;
use crate::resources::checks;
use crate::store::{Exporting, OpenError, Prepared, Progress, folder_of, receive, require_absent};
use crate::time::Clock;

use super::bar::bar;
use super::{Failure, PATIENCE, PAUSE, Reached, control, reach};

/// How much of an export is read at once.
const READ: usize = 256 * 1024;

/// Writes a backup: this process does, so that the file is its user's and lies where that one may write, also
/// where the state comes out of a server.
pub(super) async fn backup(data: &Path, file: PathBuf) -> Result<Value, Failure> {
    let backup = match reach(data, crate::store::DEFAULT_CACHE).await? {
        Reached::File(store) => {
            let backup = store.backup(file, checks(), bar()).await;
            store.close().await;
            backup?
        }
        Reached::Server(server) => {
            let stream = control::stream(server).await?;
            let receive = move || receive(stream, &file, &checks(), &bar());
            tokio::task::spawn_blocking(receive).await.map_err(Error::internal)??
        }
    };
    Ok(serde_json::to_value(backup).map_err(Error::internal)?)
}

/// Writes an export: this process does, like a backup. Answers what was written where that is a file.
pub(super) async fn export(
    data: &Path,
    secrets: bool,
    file: Option<PathBuf>,
) -> Result<Option<Value>, Failure> {
    let folder = match &file {
        Some(file) => {
            require_absent(file)?;
            folder_of(file).to_owned()
        }
        None => std::env::temp_dir(),
    };
    let how = Exporting { checks: checks(), secrets, folder, progress: bar() };
    let export = match reach(data, crate::store::DEFAULT_CACHE).await? {
        Reached::File(store) => {
            let export = store.export(how).await;
            store.close().await;
            export?
        }
        Reached::Server(server) => {
            let stream = control::stream(server).await?;
            let receive = move || how.receive(stream);
            tokio::task::spawn_blocking(receive).await.map_err(Error::internal)??
        }
    };
    let write = move || match file {
        None => Ok(export.write_to(io::stdout().lock()).map(|_| None)?),
        Some(file) => Ok(Some(export.save(&file)?)),
    };
    let exported: Result<_, Failure> =
        tokio::task::spawn_blocking(write).await.map_err(Error::internal)?;
    Ok(exported?.map(serde_json::to_value).transpose().map_err(Error::internal)?)
}

/// Makes the data file of an export.
pub(super) async fn import(data: PathBuf, file: PathBuf) -> Result<Value, Failure> {
    let import = move || -> Result<_, Failure> {
        let from: Box<dyn BufRead> = if file == Path::new("-") {
            Box::new(io::stdin().lock())
        } else {
            let opened = File::open(&file).map_err(|cause| {
                Failure::Other(format!("cannot open {}: {cause}", file.display()))
            })?;
            Box::new(BufReader::with_capacity(READ, opened))
        };
        Ok(bootstrap::import(&data, from, &bar())?)
    };
    let imported = tokio::task::spawn_blocking(import).await.map_err(Error::internal)??;
    let next = (!imported.secrets).then_some(
        "the export held no secrets: make API keys with `steward key create`, set the secrets of batch exports and \
         webhooks, and take the projects' new tokens and the public pages' new addresses over",
    );
    let mut answer = serde_json::to_value(imported).map_err(Error::internal)?;
    if let Value::Object(members) = &mut answer {
        members.insert("next".to_owned(), next.into());
    }
    Ok(answer)
}

/// Puts a backup in the place of the data file; a server that serves it goes on with the backup.
pub(super) async fn restore(data: &Path, file: PathBuf) -> Result<Value, Failure> {
    let (place, begun) = (data.to_owned(), Instant::now());
    let prepare = move || Prepared::new(&place, &file, &checks(), &bar());
    let prepared = tokio::task::spawn_blocking(prepare).await.map_err(Error::internal)??;
    loop {
        let held = match prepared.swap(&Clock::System.now().stamp()) {
            Ok(restored) => return Ok(serde_json::to_value(restored).map_err(Error::internal)?),
            Err(held @ OpenError::InUse(_)) => held,
            Err(error) => return Err(error.into()),
        };
        match control::connect(data).await {
            Ok(server) => {
                return control::ask(server, &Operation::Restore, &Progress::unheard()).await;
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(error.into());
            }
            Err(_) if begun.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
            Err(_) => return Err(held.into()),
        }
    }
}
