//! Creates a new data file or the workspace of a shared database, either with a first organization, project, owner and API key, or from an export.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::app::{App, backups};
use crate::base::error::Result;
use crate::base::secret::{Purpose, Seed, SeededRng, SigningSecret};
use crate::base::time::Timestamp;
use crate::config::Config;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId, UserUuid};
use crate::input::{Input, JsonObject, require_object};
use crate::mail::mailer::Mailer;
use crate::resources::activity;
use crate::resources::api_keys::{self, IssuedKey, KeyPermissions, TagKey};
use crate::resources::organizations::{self, NewOrganization};
use crate::resources::projects::{self, NewProject};
use crate::resources::record_registry;
use crate::resources::users::{self, NewUser};
use crate::store::{
    self, Cell, Destination, Imported, OpenError, Place, Progress, Store, WriteTx, folder_of,
};

/// The first records of a new data file.
#[derive(Debug, Clone)]
pub struct InitialRecords {
    /// The owner's email address.
    pub email: String,
    /// The owner's first name.
    pub first_name: String,
    /// The organization's name.
    pub organization: String,
    /// The project's name.
    pub project: String,
    /// The number of the installation among several.
    pub cell: Cell,
    /// The signing secret to share with other installations; `None` for a new one.
    pub secret: Option<SigningSecret>,
}

impl Default for InitialRecords {
    fn default() -> Self {
        Self {
            email: "owner@example.com".to_owned(),
            first_name: String::new(),
            organization: "My organization".to_owned(),
            project: "Default project".to_owned(),
            cell: Cell::default(),
            secret: None,
        }
    }
}

/// The records that [`create`] created. This is the only place that has the value of the API key.
#[derive(Clone, Serialize)]
pub struct CreatedWorkspace {
    /// The organization.
    pub organization_id: OrganizationId,
    /// The project.
    pub project_id: ProjectId,
    /// The owner's UUID, which paths use.
    pub user_uuid: UserUuid,
    /// The owner's numeric id.
    pub user_id: UserId,
    /// The owner's API key. It has every scope.
    pub api_key: String,
}

/// Creates a data file at `path` with the records in `first`, and opens it for serving.
///
/// Must be called within a tokio runtime.
///
/// # Errors
/// Fails if the file exists, if a name or the address in `first` is invalid, if the mail server or the backup folder in
/// `config` cannot be used, or if the file cannot be written.
pub fn create(
    path: &Path,
    config: Config,
    first: &InitialRecords,
) -> Result<(App, CreatedWorkspace), OpenError> {
    create_at(&Place::File(path.to_owned()), config, first, &mut |_| Ok(()))
}

/// Does what [`create`] does, in a file or a shared database, and calls `before_publishing` with the new records before they
/// appear there. A caller that stores the key there does not lose it if the process stops in between.
///
/// # Errors
/// Fails as [`create`] does, and with the error of `before_publishing`.
pub fn create_at(
    place: &Place,
    config: Config,
    first: &InitialRecords,
    before_publishing: &mut (dyn FnMut(&CreatedWorkspace) -> Result<(), OpenError> + Send),
) -> Result<(App, CreatedWorkspace), OpenError> {
    // Checks first what the service needs to start: otherwise a failure leaves a file whose key was never printed.
    config.require_complete()?;
    Mailer::new(&config.mail)?;
    backups::create_folder(&config.backups)?;
    backups::require_none(&config.backups, place)?;
    let now = config.clock.now();
    let mut rng = Seed::generate().rng();
    let disk = Arc::clone(&config.file_system);
    let (store, created) =
        Store::create_at(disk, place, config.page_cache, &mut rng, |tx, secret| {
            let created = write_initial_records(tx, secret, first, now)?;
            before_publishing(&created)?;
            Ok(created)
        })?;
    Ok((App::new(store, config)?, created))
}

/// Creates a data file, or the workspace of a shared database, from the lines of an export.
///
/// # Errors
/// Those of [`store::import`] and of [`store::found_workspace_from`].
pub fn import(
    place: &Place,
    from: impl BufRead,
    progress: &Progress,
) -> Result<Imported, OpenError> {
    let import = |path: &Path| {
        store::import(path, from, &record_registry(), Seed::generate().rng(), progress)
    };
    match place {
        Place::File(path) => import(path),
        Place::Shared { copy, .. } => {
            store::require_no_workspace(place)?;
            let made = TempDir::new_in(folder_of(copy));
            let folder = made.map_err(|cause| OpenError::Io {
                doing: "create a folder beside",
                path: copy.clone(),
                cause,
            })?;
            let file = folder.path().join("imported.redb");
            let imported = import(&file)?;
            store::found_workspace_from(place, &file, progress)?;
            Ok(Imported { to: Destination::Database(place.to_string()), ..imported })
        }
    }
}

fn write_initial_records(
    tx: &mut WriteTx<'_>,
    secret: &SigningSecret,
    first: &InitialRecords,
    now: Timestamp,
) -> Result<CreatedWorkspace> {
    let mut rng = Seed::generate().rng();
    tx.set_cell(first.cell);
    let secret = first.secret.as_ref().unwrap_or(secret);
    tx.put_secret(secret);
    let (organization_id, project_id, user) = add_organization(tx, first, &mut rng, now)?;
    let tags = TagKey::new(&secret.subkey(Purpose::KeyTag)?)?;
    let id = ApiKeyId(rng.uuid(now));
    let key = IssuedKey::generate(&tags, id, &mut rng)?;
    api_keys::create(tx, &key, "First key", KeyPermissions::all_of(user.id)?, now)?;
    activity::record(tx, None, &mut rng, now)?;
    Ok(CreatedWorkspace {
        organization_id,
        project_id,
        user_uuid: user.uuid,
        user_id: user.id,
        api_key: key.value,
    })
}

/// Creates an organization with its first project and its owner.
pub(crate) fn add_organization(
    tx: &mut WriteTx<'_>,
    first: &InitialRecords,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<(OrganizationId, ProjectId, users::Meta)> {
    let named = |name: &str| JsonObject::from_iter([("name".to_owned(), Value::from(name))]);
    let new = NewOrganization::parse(&named(&first.organization))?;
    let organization = organizations::create(tx, &new, rng, now)?;
    let owner = json!({ "email": first.email, "first_name": first.first_name });
    let owner = NewUser::parse(&require_object(owner)?)?;
    let user = users::create(tx, &owner, rng, now)?.meta;
    let project = NewProject::of(&named(&first.project));
    let (_, project) = projects::create_first(tx, organization, user.id, &project, rng, now)?;
    Ok((organization, project, user))
}
