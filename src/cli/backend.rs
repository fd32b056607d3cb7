//! The process that performs a command: this one, or the server that has the data open.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::Either;
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::UnixStream;

use crate::app::App;
use crate::base::error::Error;
use crate::config::Config;
use crate::operator::{Operation, perform};
use crate::store::{OpenError, Place, Store};

use super::control::Request;
use super::output::progress_bar;
use super::{Failure, client};

/// How long a command waits if another command holds the file, or if a server holds it but does not yet answer
/// commands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The process that performs a command.
pub(super) enum Backend {
    /// This process, which has opened the file or the copy. A copy that only this command needs is in a temporary folder.
    File(Store, Option<TempDir>),
    /// The server that has the file open.
    Server(UnixStream),
}

/// What a command does with the data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It only reads. A data file stays as it is, byte for byte.
    Read,
    Write,
}

/// Opens the file or the copy, or connects to the server that has it open.
pub(super) async fn connect(
    place: &Place,
    cache: usize,
    access: Access,
) -> Result<Backend, Failure> {
    let (opened, folder) = temporary_copy(place)?;
    Ok(match open_or_connect(place.file(), || open(&opened, cache, access)).await? {
        Either::Left(store) => Backend::File(store, folder),
        Either::Right(server) => Backend::Server(server),
    })
}

/// Returns the output of `open`, or connects to the server that has the file open.
pub(super) async fn open_or_connect<T>(
    data: &Path,
    open: impl AsyncFn() -> Result<T, OpenError>,
) -> Result<Either<T, UnixStream>, Failure> {
    let begun = Instant::now();
    loop {
        let held = match open().await {
            Ok(opened) => return Ok(Either::Left(opened)),
            Err(held @ OpenError::InUse(_)) => held,
            Err(error) => return Err(error.into()),
        };
        match client::connect(data).await {
            Ok(server) => return Ok(Either::Right(server)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(error.into());
            }
            Err(_) if begun.elapsed() < CONNECT_TIMEOUT => tokio::time::sleep(RETRY_INTERVAL).await,
            Err(_) => return Err(held.into()),
        }
    }
}

/// Opens the data off the threads of the runtime: a shared database may take a while to answer.
async fn open(place: &Place, cache: usize, access: Access) -> Result<Store, OpenError> {
    let (place, fs) = (place.clone(), Config::default().file_system);
    let open = move || match (&place, access) {
        (Place::File(path), Access::Read) => Store::open_to_read(path, cache),
        _ => Store::open_at(fs, &place, cache),
    };
    tokio::task::spawn_blocking(open).await.map_err(Error::internal)?
}

/// Returns a place with a temporary copy if a shared database has no copy here, and the folder of that copy.
fn temporary_copy(place: &Place) -> Result<(Place, Option<TempDir>), Failure> {
    match place {
        Place::Shared { url, copy, ca, node } if !copy.exists() => {
            let folder = TempDir::new()?;
            let (url, copy) = (url.clone(), folder.path().join("copy.redb"));
            Ok((Place::Shared { url, copy, ca: ca.clone(), node: node.clone() }, Some(folder)))
        }
        place => Ok((place.clone(), None)),
    }
}

/// Performs the operation on the file, or through the server that has it open.
pub(super) async fn run_operation(
    place: &Place,
    operation: Operation,
    config: Config,
) -> Result<Value, Failure> {
    let access = if operation.only_reads() { Access::Read } else { Access::Write };
    match connect(place, config.page_cache, access).await? {
        Backend::File(store, _folder) => {
            let app = App::new_for_command(store, config)?;
            let answer = perform(&app, operation, progress_bar()).await;
            app.close().await;
            Ok(answer?)
        }
        Backend::Server(server) => {
            client::request(server, &Request::Perform(operation), progress_bar()).await
        }
    }
}
