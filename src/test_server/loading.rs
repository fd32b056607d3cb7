//! Workspaces from files: what a test run starts from, and what it leaves.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::Arc;

use tempfile::NamedTempFile;

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::base::secret::{Seed, SigningSecret};
use crate::config::Config;
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::api_keys::{self, KeyPermissions};
use crate::resources::members::{Level, Membership};
use crate::resources::organizations::Organization;
use crate::resources::projects::Project;
use crate::resources::record_registry;
use crate::resources::sessions;
use crate::resources::shared::reading::collect;
use crate::resources::sharing::{self, SharingTokens};
use crate::resources::users::User;
use crate::store::file_system::{FileSystem, FsFile, OsFileSystem};
use crate::store::{
    self, OpenError, Overlay, Progress, Snapshot, Store, Tx, folder_of, has_redb_magic,
};

use super::disk::MemoryDisk;
use super::{Person, Workspace};

/// The label of the keys that a run adds to the workspace of a file.
const KEY_LABEL: &str = "steward test";
/// The size of the pieces in which a file is written.
const PIECE: usize = 64 * 1024;

/// Puts the workspace in the backup or the export at `path` on the disk in memory, at the same path.
pub(super) fn load(disk: &MemoryDisk, path: &Path, config: &Config) -> Result<(), OpenError> {
    let opened = OsFileSystem.open_to_read(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => OpenError::Missing(path.to_owned()),
        io::ErrorKind::WouldBlock => OpenError::InUse(path.to_owned()),
        _ => OpenError::io("open", path)(cause),
    });
    let file = opened.map_err(OpenError::of_backup)?;
    if has_redb_magic(&*file).map_err(OpenError::io("read", path))? {
        disk.put(path, Overlay::new(file).map_err(OpenError::io("open", path))?);
        return Ok(());
    }
    let lines = BufReader::new(File::open(path).map_err(OpenError::io("open", path))?);
    let (fs, rng) = (Arc::clone(&config.file_system), config.seeds.draw().rng());
    store::import_on(fs, path, lines, &record_registry(), rng, &Progress::silent()).map(drop)
}

/// Returns the first organization that has an owner and a project, with new keys for its people.
///
/// # Errors
/// 400 if there is none.
pub(super) async fn find_people(app: &App) -> Result<Workspace> {
    let found = find_first(&*app.store().snapshot()?)?;
    let (organization_id, project_id, owner, member) = found.ok_or_else(|| {
        let text = "the file has no organization with a project and an active owner";
        Error::invalid("not_imported", text)
    })?;
    let user = with_key(app, owner).await?;
    let member = match member {
        Some(member) => Some(with_key(app, member).await?),
        None => None,
    };
    Ok(Workspace { organization_id, project_id, user, member })
}

type FirstPeople = (OrganizationId, ProjectId, User, Option<User>);

fn find_first(tx: &Snapshot) -> Result<Option<FirstPeople>> {
    let organizations: Vec<_> = collect::<Organization, _, _>(tx, &(), |found| Some(found.id))?;
    for id in organizations {
        let mut members: Vec<Membership> = collect::<Membership, _, _>(tx, &id, Some)?;
        members.sort_by_key(|member| (member.level, member.user));
        let mut people = Vec::new();
        for member in members {
            let user = tx.get::<User>(&member.user)?;
            people.extend(user.meta.is_active.then_some((member.level, user)));
        }
        let owner = people.iter().position(|(level, _)| *level == Level::Owner);
        let projects: Vec<_> = collect::<Project, _, _>(tx, &id, |found| Some(found.id))?;
        if let (Some(owner), Some(project)) = (owner, projects.first().copied()) {
            let (_, owner) = people.swap_remove(owner);
            let other = people.into_iter().find(|(level, _)| *level < Level::Owner);
            return Ok(Some((id, project, owner, other.map(|(_, user)| user))));
        }
    }
    Ok(None)
}

async fn with_key(app: &App, user: User) -> Result<Person> {
    let issued = app.issue_key(None, None).await?;
    let api_key = issued.value.clone();
    let id = user.meta.id;
    app.operate(move |tx, now| {
        api_keys::create(tx, &issued, KEY_LABEL, KeyPermissions::all_of(id)?, now)
    })
    .await?;
    Ok(Person { email: user.fields.email, uuid: user.meta.uuid, api_key })
}

/// Gives the data file at `path` a secret of its own, and ends what the old one signed.
pub(super) async fn renew_secret(disk: &Arc<MemoryDisk>, path: &Path) -> Result<(), OpenError> {
    let store = Store::open_on(Arc::clone(disk) as _, path, 1 << 20)?;
    let renewed = store.write(|tx| {
        let mut rng = Seed::generate().rng();
        let secret = SigningSecret::new(&mut rng).renewed(&mut rng);
        tx.put_secret(&secret);
        sessions::remove_everything(tx)?;
        sharing::rotate_all(tx, &SharingTokens::new(&secret)?)?;
        Ok(())
    });
    renewed.await?;
    store.close().await;
    Ok(())
}

/// Writes a file in memory to a new file at `to`. It appears complete or not at all.
pub(super) fn write_file(file: &Overlay, to: &Path) -> Result<(), OpenError> {
    let write = || -> io::Result<()> {
        let mut draft = NamedTempFile::new_in(folder_of(to))?;
        let (mut at, len) = (0, file.len()?);
        let mut piece = vec![0; PIECE];
        while at < len {
            let (next, _) =
                piece.split_at_mut(PIECE.min(usize::try_from(len - at).unwrap_or(PIECE)));
            file.read(at, next)?;
            draft.write_all(next)?;
            at += next.len() as u64;
        }
        draft.as_file().sync_all()?;
        draft.persist_noclobber(to).map(drop).map_err(|failed| failed.error)
    };
    write().map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => OpenError::Exists(to.to_owned()),
        _ => OpenError::io("write", to)(cause),
    })
}
