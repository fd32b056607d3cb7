//! What a resource declares about each type of its records: how it is exported, logged, and deleted with its parents.
//!
//! ```ignore
//! pub const RECORDS: &[&dyn RegisteredRecord] =
//!     &[&record::<Domain>().logged().deleted_with_organization()];
//! ```

use std::collections::HashMap;

use crate::base::error::Result;
use crate::ids::{OrganizationId, ProjectId, RoleId, UserId};
use crate::store::{
    Key, Owner, Record, RecordType, RecordTypeOf, Redaction, Row, Snapshot, Table, WriteTx,
    find_used_key,
};

use super::loggable::{LogRules, Loggable};
use super::pending_deletion::PendingDeletion;

/// Registers the type `R` of records.
pub const fn record<R: Record>() -> Registration<R> {
    Registration {
        record_type: RecordTypeOf(Redaction::Open),
        log: None,
        parent_of: None,
        deletes: Deletes { organization: None, project: None, member: None, role: None },
        with_account: None,
        users: None,
        number: None,
        adapt: None,
    }
}

/// Deletes up to a number of records that a deleted parent leaves, and returns how many it deleted.
type Delete<P> = fn(&mut WriteTx<'_>, P, usize) -> Result<usize>;

/// How records are deleted with each kind of parent.
pub struct Deletes {
    organization: Option<Delete<OrganizationId>>,
    project: Option<Delete<(OrganizationId, ProjectId)>>,
    member: Option<Delete<(OrganizationId, UserId)>>,
    role: Option<Delete<(OrganizationId, RoleId)>>,
}

impl Deletes {
    /// Deletes up to `limit` records that a deleted parent left, and returns how many it deleted.
    pub fn run(
        &self,
        tx: &mut WriteTx<'_>,
        parent: PendingDeletion,
        limit: usize,
    ) -> Result<usize> {
        let deleted = match parent {
            PendingDeletion::Organization(id) => {
                self.organization.map(|delete| delete(tx, id, limit))
            }
            PendingDeletion::Project(organization, id) => {
                self.project.map(|delete| delete(tx, (organization, id), limit))
            }
            PendingDeletion::Member(organization, user) => {
                self.member.map(|delete| delete(tx, (organization, user), limit))
            }
            PendingDeletion::Role(organization, role) => {
                self.role.map(|delete| delete(tx, (organization, role), limit))
            }
        };
        deleted.unwrap_or(Ok(0))
    }
}

/// Receives each user that a record names, and may replace it.
pub type VisitUser<'v> = dyn FnMut(&mut UserId) + 'v;
/// The accounts of an import that have another number in this installation.
pub type UserMap = HashMap<UserId, UserId>;

/// What a resource declares about the type `R` of records.
#[must_use]
pub struct Registration<R: Record> {
    record_type: RecordTypeOf<R>,
    log: Option<LogRules>,
    parent_of: Option<fn(R::Key) -> PendingDeletion>,
    deletes: Deletes,
    with_account: Option<fn(&mut WriteTx<'_>, UserId) -> Result<()>>,
    users: Option<fn(&mut R, &mut VisitUser<'_>)>,
    number: Option<fn(&R) -> u64>,
    adapt: Option<fn(&mut R, &WriteTx<'_>) -> Result<()>>,
}

/// A key that begins with a `P`.
pub trait StartsWith<P> {}

impl StartsWith<Self> for OrganizationId {}
impl<P: Key, A> StartsWith<P> for (P, A) {}
impl<P: Key, A, B> StartsWith<P> for (P, A, B) {}
impl<P: Key, A, B, C> StartsWith<P> for (P, A, B, C) {}
impl<P: Key, Q: Key, A> StartsWith<(P, Q)> for (P, Q, A) {}

impl<R: Record> Registration<R> {
    /// Declares what an export without secrets omits.
    pub const fn redacted(mut self, redaction: Redaction<R>) -> Self {
        self.record_type = RecordTypeOf(redaction);
        self
    }

    /// Declares that the activity log covers the records.
    pub const fn logged(mut self) -> Self
    where
        R: Loggable,
    {
        self.log = Some(LogRules::of::<R>());
        self
    }

    /// Declares that a deleted record leaves other records, which are deleted in later transactions. Until then they
    /// may refer to it.
    pub const fn parent(mut self, pending: fn(R::Key) -> PendingDeletion) -> Self {
        self.parent_of = Some(pending);
        self
    }

    /// Declares that the records of a deleted organization are deleted.
    pub const fn deleted_with_organization(mut self) -> Self
    where
        R::Key: StartsWith<OrganizationId>,
    {
        self.deletes.organization = Some(|tx, id, limit| tx.remove_some::<R>(&id, limit));
        self
    }

    /// Declares that the records of a deleted project are deleted.
    pub const fn deleted_with_project(mut self) -> Self
    where
        R::Key: StartsWith<ProjectId>,
    {
        self.deletes.project = Some(|tx, (_, id), limit| tx.remove_some::<R>(&id, limit));
        self
    }

    /// Declares that the records of a deleted project are deleted, for keys that begin with its organization.
    pub const fn deleted_with_project_of_organization(mut self) -> Self
    where
        R::Key: StartsWith<(OrganizationId, ProjectId)>,
    {
        self.deletes.project = Some(|tx, project, limit| tx.remove_some::<R>(&project, limit));
        self
    }

    /// Declares that `delete` deletes the records of a removed member.
    pub const fn deleted_with_member(mut self, delete: Delete<(OrganizationId, UserId)>) -> Self {
        self.deletes.member = Some(delete);
        self
    }

    /// Declares that `delete` deletes the records that name a deleted role.
    pub const fn deleted_with_role(mut self, delete: Delete<(OrganizationId, RoleId)>) -> Self {
        self.deletes.role = Some(delete);
        self
    }

    /// Declares the users that a record names. The export of an organization contains their accounts, and an import
    /// replaces those that have another number here.
    pub const fn names_users(mut self, visit: fn(&mut R, &mut VisitUser<'_>)) -> Self {
        self.users = Some(visit);
        self
    }

    /// Declares which number a record has from the sequence of its table.
    pub const fn numbered(mut self, number: fn(&R) -> u64) -> Self {
        self.number = Some(number);
        self
    }

    /// Declares what in a record depends on the installation that imports it.
    pub const fn adapted(mut self, adapt: fn(&mut R, &WriteTx<'_>) -> Result<()>) -> Self {
        self.adapt = Some(adapt);
        self
    }

    /// Reads a record of another installation and its version, with the numbers that its users have here.
    fn arriving(&self, payload: &[u8], users: &UserMap) -> Result<(R, u64)> {
        let row = Row::<R>::read(payload)?;
        let (version, mut record) = (row.version, row.into_record()?);
        if let Some(visit) = self.users {
            visit(&mut record, &mut |user| {
                if let Some(here) = users.get(user) {
                    *user = *here;
                }
            });
        }
        Ok((record, version))
    }

    /// Declares that `delete` deletes the records of an account when the owner of its address takes it over.
    pub const fn deleted_with_account(
        mut self,
        delete: fn(&mut WriteTx<'_>, UserId) -> Result<()>,
    ) -> Self {
        self.with_account = Some(delete);
        self
    }
}

/// A [`Registration`] without its type.
pub trait RegisteredRecord: Sync {
    /// Returns the table of the records.
    fn table(&self) -> Table;
    /// Returns how the records are checked, exported and imported.
    fn record_type(&'static self) -> &'static dyn RecordType;
    /// Returns how the log describes the records, if it covers them.
    fn log_rules(&self) -> Option<&LogRules>;
    /// Returns what marks the deletion of the record with this encoded key until the records that it leaves are
    /// deleted. Returns `None` if it leaves none.
    fn pending_deletion(&self, key: &[u8]) -> Option<PendingDeletion>;
    /// Returns how the records are deleted with their parents.
    fn deletes(&self) -> &Deletes;
    /// Deletes the records of an account when the owner of its address takes it over.
    fn delete_with_account(&self, tx: &mut WriteTx<'_>, user: UserId) -> Result<()>;
    /// Calls `visit` with each user that the record names.
    fn each_user(&self, payload: &[u8], visit: &mut dyn FnMut(UserId)) -> Result<()>;
    /// Returns the table in which a key of a record of another installation is taken.
    fn used_key(&self, tx: &Snapshot, payload: &[u8], users: &UserMap) -> Result<Option<Table>>;
    /// Adds a record of another installation. Returns the table in which a key of the record is taken, if it adds none.
    fn adopt(&self, tx: &mut WriteTx<'_>, payload: &[u8], users: &UserMap)
    -> Result<Option<Table>>;
}

impl dyn RegisteredRecord {
    /// Returns whether the record belongs to an organization. `tx` must contain the records that it refers to.
    pub fn is_of(
        &'static self,
        tx: &Snapshot,
        organization: OrganizationId,
        payload: &[u8],
    ) -> Result<bool> {
        let owner = self.record_type().owner(tx, payload)?;
        Ok(owner == Some(Owner::Organization(organization.0)))
    }
}

impl<R: Record> RegisteredRecord for Registration<R> {
    fn table(&self) -> Table {
        R::TABLE
    }

    fn record_type(&'static self) -> &'static dyn RecordType {
        &self.record_type
    }

    fn log_rules(&self) -> Option<&LogRules> {
        self.log.as_ref()
    }

    fn pending_deletion(&self, mut key: &[u8]) -> Option<PendingDeletion> {
        let pending = self.parent_of?;
        R::Key::read(&mut key).map(pending)
    }

    fn deletes(&self) -> &Deletes {
        &self.deletes
    }

    fn delete_with_account(&self, tx: &mut WriteTx<'_>, user: UserId) -> Result<()> {
        self.with_account.map_or(Ok(()), |delete| delete(tx, user))
    }

    fn each_user(&self, payload: &[u8], visit: &mut dyn FnMut(UserId)) -> Result<()> {
        let Some(users) = self.users else { return Ok(()) };
        let mut record = Row::<R>::read(payload)?.into_record()?;
        users(&mut record, &mut |user| visit(*user));
        Ok(())
    }

    fn used_key(&self, tx: &Snapshot, payload: &[u8], users: &UserMap) -> Result<Option<Table>> {
        find_used_key(tx, &self.arriving(payload, users)?.0)
    }

    fn adopt(
        &self,
        tx: &mut WriteTx<'_>,
        payload: &[u8],
        users: &UserMap,
    ) -> Result<Option<Table>> {
        let (mut record, version) = self.arriving(payload, users)?;
        if let Some(adapt) = self.adapt {
            adapt(&mut record, tx)?;
        }
        tx.adopt(&record, version, self.number.map(|number| number(&record)))
    }
}
