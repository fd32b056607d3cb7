//! Commands that make, check and replace whole files: backup and restore.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use crate::error::Error;
use crate::operator::Operation;
use crate::resources::checks;
use crate::store::{OpenError, Prepared, Progress, receive};
use crate::time::Clock;

use super::bar::bar;
use super::{Failure, PATIENCE, PAUSE, Reached, control, reach};

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
