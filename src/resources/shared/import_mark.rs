//! Marks of imports of single organizations that are not complete.
//!
//! An organization arrives in several transactions. Until the last one it looks like a deleted organization whose records
//! are not deleted yet: it has no record of its own, and a [`PendingDeletion`]. The mark keeps the background task from
//! deleting the records. When an import fails or stops, its mark is deleted, and the background task deletes the rest.

use std::time::Duration;

use crate::resources::organizations::Organization;
use crate::resources::shared::prelude::*;

/// How long an import may pause. After that it counts as abandoned.
pub const MAX_PAUSE: Duration = Duration::from_mins(1);

/// A mark of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportMark {
    /// The import of an organization that is not complete.
    Begun {
        /// The organization.
        organization: OrganizationId,
        /// A random id of this attempt.
        attempt: Uuid,
        /// When the import counts as abandoned, unless it is renewed.
        until: Timestamp,
    },
    /// An account that the import of an organization created.
    Account {
        /// The organization.
        organization: OrganizationId,
        /// The user of the account.
        user: UserId,
    },
}

impl_record!(ImportMark {
    table: Imports,
    key: |mark| -> (bool, OrganizationId, u64) {
        match mark {
            Self::Begun { organization, .. } => (false, *organization, 0),
            Self::Account { organization, user } => (true, *organization, user.0),
        }
    },
    owner: |_, _| Ok(None),
});

/// An attempt to import an organization.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// The organization.
    pub organization: OrganizationId,
    /// A random id.
    pub id: Uuid,
}

impl Attempt {
    /// Begins the import.
    ///
    /// # Errors
    /// 400 if the organization exists, is being deleted, or is being imported.
    pub fn begin(self, tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
        require_absent(tx, self.organization)?;
        tx.put(&PendingDeletion::Organization(self.organization))?;
        self.put(tx, now)
    }

    /// Notes that the import makes progress.
    ///
    /// # Errors
    /// 400 if it counts as abandoned.
    pub fn renew(self, tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
        self.require_current(tx)?;
        self.put(tx, now)
    }

    /// Completes the import. The caller has added the record of the organization.
    ///
    /// # Errors
    /// 400 if it counts as abandoned.
    pub fn complete(self, tx: &mut WriteTx<'_>) -> Result<()> {
        self.require_current(tx)?;
        tx.remove::<PendingDeletion>(&PendingDeletion::Organization(self.organization).key())?;
        tx.remove::<ImportMark>(&self.key()).map(drop)
    }

    /// Ends the import, unless it was completed or ended before. The background task deletes what it added.
    pub fn abandon(self, tx: &mut WriteTx<'_>) -> Result<()> {
        if self.is_current(tx)? {
            tx.remove::<ImportMark>(&self.key())?;
        }
        Ok(())
    }

    const fn key(self) -> (bool, OrganizationId, u64) {
        (false, self.organization, 0)
    }

    fn put(self, tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
        let Self { organization, id: attempt } = self;
        tx.put(&ImportMark::Begun { organization, attempt, until: now.plus(MAX_PAUSE) })
    }

    fn is_current(self, tx: &dyn Raw) -> Result<bool> {
        let found = tx.meta::<ImportMark>(&self.key())?;
        Ok(matches!(found, Some(ImportMark::Begun { attempt, .. }) if attempt == self.id))
    }

    fn require_current(self, tx: &dyn Raw) -> Result<()> {
        if self.is_current(tx)? {
            return Ok(());
        }
        let text = "the import paused for over a minute and was given up; import the export again";
        Err(Error::invalid("not_imported", text))
    }
}

/// Fails with 400 if the organization exists, is being deleted, or is being imported.
pub fn require_absent(tx: &dyn Raw, organization: OrganizationId) -> Result<()> {
    let is_pending =
        tx.exists::<PendingDeletion>(&PendingDeletion::Organization(organization).key())?;
    let why = if tx.exists::<Organization>(&organization)? {
        "exists here already"
    } else if is_pending || !accounts(tx, &(true, organization), 1, |_| true)?.is_empty() {
        "is being deleted or imported here; try again when that is complete"
    } else {
        return Ok(());
    };
    Err(Error::invalid("not_imported", format!("the organization {organization} {why}")))
}

/// Returns the organizations whose import is not complete.
pub fn under_way(tx: &dyn Raw) -> Result<Vec<OrganizationId>> {
    Ok(begun(tx)?.into_iter().map(|(organization, _)| organization).collect())
}

/// Returns when the first import counts as abandoned, unless it is renewed.
pub fn next_end(tx: &dyn Raw) -> Result<Option<Timestamp>> {
    Ok(begun(tx)?.into_iter().map(|(_, until)| until).min())
}

/// Ends the imports that count as abandoned. Returns whether there were any.
pub fn end_abandoned(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<bool> {
    let mut begun = begun(tx)?;
    begun.retain(|(_, until)| !until.is_end_of_current(MAX_PAUSE, now));
    for (organization, _) in &begun {
        tx.remove::<ImportMark>(&(false, *organization, 0))?;
    }
    Ok(!begun.is_empty())
}

fn begun(tx: &dyn Raw) -> Result<Vec<(OrganizationId, Timestamp)>> {
    collect::<ImportMark, _, _>(tx, &false, |mark| match mark {
        ImportMark::Begun { organization, until, .. } => Some((organization, until)),
        ImportMark::Account { .. } => None,
    })
}

/// Returns up to `limit` accounts of the organizations that `keep` passes.
pub fn accounts(
    tx: &dyn Raw,
    prefix: &impl crate::store::Key,
    limit: usize,
    keep: impl Fn(OrganizationId) -> bool,
) -> Result<Vec<(OrganizationId, UserId)>> {
    let mut found = Vec::new();
    let window = Window { offset: 0, limit, order: Order::Ascending };
    let keep = |mark: &ImportMark| matches!(mark, ImportMark::Account { organization, .. } if keep(*organization));
    tx.scan_where::<ImportMark, _>(prefix, window, keep, |row| {
        if let ImportMark::Account { organization, user } = row.meta {
            found.push((organization, user));
        }
        Ok(())
    })?;
    Ok(found)
}
