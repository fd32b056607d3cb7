//! Commands on whole files: backup, restore, export and import.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use futures_util::future::Either;
use serde_json::Value;

use crate::app::App;
use crate::base::error::Error;
use crate::base::tasks::run_blocking;
use crate::base::time::Clock;
use crate::config::Config;
use crate::ids::OrganizationId;
use crate::operator::Operation;
use crate::operator::bootstrap;
use crate::resources::record_registry;
use crate::resources::relocation::select;
use crate::store::{
    ExportOptions, Place, PreparedRestore, Progress, SelectOrganization, folder_of, receive,
    require_absent,
};

use super::Failure;
use super::backend::{self, Access, Backend, connect, open_or_connect};
use super::control::Request;
use super::output::progress_bar;

/// The buffer size for reading an export, in bytes.
const READ_BUFFER_SIZE: usize = 256 * 1024;

/// Writes a backup. This process writes the file even if the state comes from a server, so that the file belongs to
/// the command's user and is where that user may write.
pub(super) async fn backup(place: &Place, file: PathBuf) -> Result<Value, Failure> {
    let backup = match connect(place, Access::Read).await? {
        Backend::File(store, _folder) => {
            let backup = store.backup(file, record_registry(), progress_bar()).await;
            store.close().await;
            backup?
        }
        Backend::Server(server) => {
            require_absent(&file)?;
            let progress = progress_bar();
            let copy = backend::request_copy(server, progress.clone()).await?;
            let receive = move || receive(copy, &file, &record_registry(), &progress);
            run_blocking(receive).await??
        }
    };
    Ok(serde_json::to_value(backup).map_err(Error::internal)?)
}

/// Writes an export, in this process like a backup. Returns what was written, unless it went to stdout.
pub(super) async fn export(
    place: &Place,
    (secrets, organization): (bool, Option<OrganizationId>),
    file: Option<PathBuf>,
) -> Result<Option<Value>, Failure> {
    let file = file.filter(|file| file != Path::new("-"));
    let folder = match &file {
        Some(file) => {
            require_absent(file)?;
            folder_of(file).to_owned()
        }
        None => std::env::temp_dir(),
    };
    let organization = organization.map(|id| SelectOrganization { id: id.0, select });
    let (registry, progress) = (record_registry(), progress_bar());
    let how = ExportOptions { registry, secrets, organization, folder, progress };
    let export = match connect(place, Access::Read).await? {
        Backend::File(store, _folder) => {
            let export = store.export(how).await;
            store.close().await;
            export?
        }
        Backend::Server(server) => {
            let copy = backend::request_copy(server, how.progress.clone()).await?;
            let receive = move || how.receive(copy);
            run_blocking(receive).await??
        }
    };
    let write = move || match file {
        // The export is not complete if its reader leaves early.
        None => match export.write_to(io::stdout().lock()) {
            Ok(_) => Ok(None),
            Err(error) => Err(Failure::unwritten(&error)),
        },
        Some(file) => Ok(Some(export.save(&file)?)),
    };
    let exported: Result<_, Failure> = run_blocking(write).await?;
    Ok(exported?.map(serde_json::to_value).transpose().map_err(Error::internal)?)
}

/// Opens an export; `-` stands for stdin.
fn open_export(file: &Path) -> Result<Box<dyn BufRead + Send>, Failure> {
    if file == Path::new("-") {
        return Ok(Box::new(BufReader::with_capacity(READ_BUFFER_SIZE, io::stdin())));
    }
    let opened = File::open(file)
        .map_err(|cause| Failure::Other(format!("cannot open {}: {cause}", file.display())))?;
    Ok(Box::new(BufReader::with_capacity(READ_BUFFER_SIZE, opened)))
}

/// Adds the organization in an export to a workspace in use. A running server adds it.
pub(super) async fn import_organization(
    place: &Place,
    file: PathBuf,
    existing: bool,
) -> Result<Value, Failure> {
    let export = open_export(&file)?;
    let imported = match connect(place, Access::Write).await? {
        Backend::File(store, _folder) => {
            let app = App::new_for_command(store, Config::default())?;
            let imported = app.import_organization(export, existing, progress_bar()).await;
            app.close().await;
            serde_json::to_value(imported?).map_err(Error::internal)?
        }
        Backend::Server(server) => {
            backend::import_organization(server, export, existing, progress_bar()).await?
        }
    };
    Ok(with_next_steps(imported))
}

/// Adds what an operator has to do after an import without secrets.
fn with_next_steps(mut imported: Value) -> Value {
    let secrets = imported.get("secrets").and_then(Value::as_bool).unwrap_or(true);
    let next = (!secrets).then_some(
        "the export has no secrets: create API keys with `steward key create`, set the secrets of batch exports and \
         webhooks, and pass on the projects' new tokens and the public pages' new addresses",
    );
    if let Value::Object(members) = &mut imported {
        members.insert("next".to_owned(), next.into());
    }
    imported
}

/// Creates a data file, or the workspace of a shared database, from an export.
pub(super) async fn import(place: &Place, file: PathBuf) -> Result<Value, Failure> {
    let place = place.clone();
    let import = move || -> Result<_, Failure> {
        Ok(bootstrap::import(&place, open_export(&file)?, &progress_bar())?)
    };
    let imported = run_blocking(import).await??;
    Ok(with_next_steps(serde_json::to_value(imported).map_err(Error::internal)?))
}

/// Replaces the data file, or the content of a shared database, with a backup. Servers continue with the backup.
pub(super) async fn restore(place: &Place, file: PathBuf) -> Result<Value, Failure> {
    let path = place.file().to_owned();
    let prepare = move || PreparedRestore::new(&path, &file, &record_registry(), &progress_bar());
    let prepared = run_blocking(prepare).await??;
    let stamp = Clock::System.now().to_file_stamp();
    let restored = match place.clone() {
        Place::File(data) => match open_or_connect(&data, async || prepared.swap(&stamp)).await? {
            Either::Left(restored) => restored,
            Either::Right(server) => {
                let restore = Request::Perform(Operation::Restore);
                return backend::request(server, &restore, Progress::silent()).await;
            }
        },
        place @ Place::Shared { .. } => {
            run_blocking(move || prepared.upload(&place, &stamp, &progress_bar())).await??
        }
    };
    Ok(serde_json::to_value(restored).map_err(Error::internal)?)
}
