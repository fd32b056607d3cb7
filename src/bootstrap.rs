//! A new data file: its first organization, project, owner and key, or what an export holds.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::access::hash::Hasher;
use crate::access::key::{MadeKey, TagKey};
use crate::config::Config;
use crate::error::Result;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId, UserUuid};
use crate::input::{Input, JsonObject};
use crate::mail::smtp::Mailer;
use crate::resources::activity;
use crate::resources::api_keys;
use crate::resources::checks;
use crate::resources::organizations::{self, NewOrganization};
use crate::resources::projects::{self, NewProject};
use crate::resources::users::{self, NewUser};
use crate::secret::{Draw, Purpose, Seed, SigningSecret};
use crate::state::{App, backups};
use crate::store::{self, Imported, OpenError, Progress, Store, WriteTx};
use crate::time::Timestamp;

/// What a new data file begins with.
#[derive(Debug, Clone)]
pub struct First {
    /// The owner's address.
    pub email: String,
    /// The owner's given name.
    pub first_name: String,
    /// The organization's name.
    pub organization: String,
    /// The project's name.
    pub project: String,
}

impl Default for First {
    fn default() -> Self {
        Self {
            email: "owner@example.com".to_owned(),
            first_name: String::new(),
            organization: "My organization".to_owned(),
            project: "Default project".to_owned(),
        }
    }
}

/// What was made, and the key that opens it. The key's value is known only here.
#[derive(Clone, Serialize)]
pub struct Made {
    /// The organization.
    pub organization_id: OrganizationId,
    /// The project.
    pub project_id: ProjectId,
    /// The owner, as paths name them.
    pub user_uuid: UserUuid,
    /// The owner's number.
    pub user_id: UserId,
    /// The owner's key, with every scope.
    pub api_key: String,
}

/// Makes a data file at `path` that begins with `first`, and opens it for serving.
///
/// Must be called within a tokio runtime.
///
/// # Errors
/// When there is a file already, a name or address in `first` is no good, mail cannot be sent as `config`
/// says, or the file cannot be made.
pub fn create(path: &Path, config: Config, first: &First) -> Result<(App, Made), OpenError> {
    create_telling(path, config, first, |_| Ok(()))
}

/// Does what [`create`] does. `before_publishing` is told what was made before the file appears, so that
/// the key is not lost to a cut in between.
///
/// # Errors
/// When there is a file already, a name or address in `first` is no good, mail cannot be sent as `config`
/// says, or the file cannot be made.
pub fn create_telling(
    path: &Path,
    config: Config,
    first: &First,
    before_publishing: impl FnOnce(&Made) -> Result<(), OpenError>,
) -> Result<(App, Made), OpenError> {
    // What the service would refuse to start with must not leave a file whose key nobody was told.
    Mailer::new(&config.mail)?;
    backups::prepared_folder(&config.backups)?;
    let now = config.clock.now();
    let mut draw = Seed::take().draw();
    let disk = Arc::clone(&config.disk);
    let (store, made) =
        Store::create_on(disk, path, config.page_cache, &mut draw, |tx, secret| {
            let made = fill(tx, secret, first, now)?;
            before_publishing(&made)?;
            Ok(made)
        })?;
    Ok((App::new(store, config)?, made))
}

/// Makes a data file at `path` of the lines of an export.
///
/// # Errors
/// As [`store::import`].
pub fn import(path: &Path, from: impl BufRead, progress: &Progress) -> Result<Imported, OpenError> {
    store::import(path, from, &checks(), Seed::take().draw(), progress)
}

fn fill(
    tx: &mut WriteTx<'_>,
    secret: &SigningSecret,
    first: &First,
    now: Timestamp,
) -> Result<Made> {
    let mut draw = Seed::take().draw();
    let named = |name: &str| JsonObject::from_iter([("name".to_owned(), Value::from(name))]);
    let new = NewOrganization::parse(&named(&first.organization))?;
    // The organization comes first: it is what the log's first entry is about.
    let organization_id = organizations::create(tx, &new, &mut draw, now)?;
    let user = create_owner(tx, first, &mut draw, now)?;
    let project = NewProject::of(&named(&first.project));
    let (_, project_id) =
        projects::create_first(tx, organization_id, user.0, &project, &mut draw, now)?;
    let tags = TagKey::new(&secret.subkey(Purpose::KeyTag)?)?;
    let id = ApiKeyId(draw.uuid(now));
    let made = MadeKey::draw(&tags, &Hasher::new(1), id, &mut draw)?;
    api_keys::create(tx, made.of(user.0, "First key", &["*"]), now)?;
    activity::record(tx, None, &mut draw, now)?;
    let api_key = made.value().to_owned();
    Ok(Made { organization_id, project_id, user_uuid: user.1, user_id: user.0, api_key })
}

fn create_owner(
    tx: &mut WriteTx<'_>,
    first: &First,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<(UserId, UserUuid)> {
    let sent = json!({ "email": first.email, "first_name": first.first_name });
    let new = NewUser::parse(&crate::input::object(sent)?)?;
    let user = users::create(tx, &new, draw, now)?;
    Ok((user.head.id, user.head.uuid))
}
