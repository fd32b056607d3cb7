//! The access of everyone to a project: the grant for everyone, and the field `access_control`, which is true for no
//! access. Both are one fact, and every change of one changes the other in the same transaction.

use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::access_subject::Subject;
use crate::store::{Tx, WriteTx};
use crate::time::Timestamp;

use super::grants::{self, Grant, GrantLevel};
use super::{Project, Settings};

/// Sets the level of everyone on a project, and `access_control` with it. `None` deletes the grant, which opens the
/// project.
///
/// # Errors
/// 404 if the project does not exist.
pub fn set_default(
    tx: &mut WriteTx<'_>,
    (organization, id): (OrganizationId, ProjectId),
    level: Option<GrantLevel>,
    now: Timestamp,
) -> Result<Option<Grant>> {
    let (key, of_everyone) = ((organization, id), (organization, id, Subject::Everyone));
    let grant = if let Some(level) = level {
        tx.log_about::<Grant>(&of_everyone);
        Some(grants::set(tx, organization, id, Subject::Everyone, level, now)?)
    } else {
        tx.remove::<Grant>(&of_everyone)?;
        None
    };
    let (mut project, mut settings): (Project, Settings) = (tx.get(&key)?, tx.get(&key)?);
    let is_private = level == Some(GrantLevel::None);
    if project.fields.access_control != is_private {
        project.fields.access_control = is_private;
        settings.fields.updated_at = now;
        // Opening a project is logged as its own change, and not as that of the grant which closed it.
        if grant.is_none() {
            tx.log_about::<Project>(&key);
        }
        tx.put(&project)?;
        tx.put(&settings)?;
    }
    Ok(grant)
}

/// Sets or deletes the grant for everyone, as `access_control` of the stored project says.
pub(super) fn follow_access_control(
    tx: &mut WriteTx<'_>,
    project: &Project,
    now: Timestamp,
) -> Result<()> {
    let (organization, id) = (project.meta.organization, project.meta.id);
    let key = (organization, id, Subject::Everyone);
    if project.fields.access_control {
        grants::set(tx, organization, id, Subject::Everyone, GrantLevel::None, now)?;
    } else if tx.meta::<Grant>(&key)?.is_some_and(|grant| grant.level == GrantLevel::None) {
        tx.remove::<Grant>(&key)?;
    }
    Ok(())
}
