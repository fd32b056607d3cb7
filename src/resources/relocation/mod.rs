//! Moving one organization to another installation: which of its records an export contains, and how an import adds them
//! to a workspace in use.

mod selection;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::ids::ApiKeyId;
use crate::resources::api_keys::ApiKey;
use crate::resources::organizations::Organization;
use crate::resources::projects::Project;
use crate::resources::shared::import_mark::{self, Attempt, ImportMark};
use crate::resources::shared::prelude::*;
use crate::resources::shared::registration::UserMap;
use crate::resources::users::{self, User};
use crate::resources::{record_in, records};
use crate::store::{Cell, KeySpan, Snapshot, StagedExport, stored_cell};

pub use selection::select;

const ALL_ROWS: Window = Window::all(Order::Ascending);

/// The tables of API keys. They are added last, because keys are valid as soon as they are there.
const KEY_TABLES: &[Table] = &[Table::ApiKeys, Table::ApiKeyUses, Table::ApiKeyMakers];

/// The tables of accounts.
const ACCOUNT_TABLES: &[Table] = &[Table::Users, Table::UserProfiles, Table::LinkAccounts];

/// What an import of an organization adds.
pub struct Plan {
    /// The organization.
    pub organization: OrganizationId,
    /// Its name.
    pub name: String,
    /// Its projects.
    pub projects: Vec<ProjectId>,
    /// How many accounts are added.
    pub accounts_created: usize,
    /// The users that have an account here, which is kept, with its number.
    pub users: UserMap,
    /// The API keys to add.
    pub keys: HashSet<ApiKeyId>,
    /// How many API keys are left out: their secrets are not valid here, or their users have an account here.
    pub keys_left_out: usize,
}

impl Plan {
    /// Reads an export, and compares it with the state of this installation. `existing` accepts accounts here whose address
    /// is unverified.
    ///
    /// # Errors
    /// 400 for the first conflict.
    pub fn new(
        staged: &StagedExport,
        export: &Snapshot,
        here: &Snapshot,
        existing: bool,
    ) -> Result<Self> {
        let organization = OrganizationId(staged.organization.id);
        require_other_cell(staged, stored_cell(here)?)?;
        import_mark::require_absent(here, organization)?;
        let users = match_accounts(export, here, existing)?;
        let mut plan = Self {
            organization,
            name: String::new(),
            projects: Vec::new(),
            accounts_created: 0,
            users,
            keys: HashSet::new(),
            keys_left_out: 0,
        };
        plan.read(export, staged.has_valid_keys)?;
        plan.require_free(export, here)?;
        Ok(plan)
    }

    fn read(&mut self, export: &Snapshot, has_valid_keys: bool) -> Result<()> {
        let id = self.organization;
        let named = export.get::<Organization>(&id)?;
        self.name = named.fields.name;
        self.projects = collect::<Project, _, _>(export, &id, |project| Some(project.id))?;
        export.scan::<User, _>(&(), ALL_ROWS, |row| {
            self.accounts_created += usize::from(!self.users.contains_key(&row.meta.id));
            Ok(())
        })?;
        export.scan::<ApiKey, _>(&(), ALL_ROWS, |row| {
            if has_valid_keys && !self.users.contains_key(&row.meta.user) {
                self.keys.insert(row.meta.id);
            } else {
                self.keys_left_out += 1;
            }
            Ok(())
        })
    }

    /// Returns whether the import adds a record.
    fn has(&self, table: Table, key: &[u8]) -> bool {
        if ACCOUNT_TABLES.contains(&table) {
            let user = UserId::read(&mut &*key);
            return user.is_some_and(|user| !self.users.contains_key(&user));
        }
        if KEY_TABLES.contains(&table) {
            let id = ApiKeyId::read(&mut &*key);
            return id.is_some_and(|id| self.keys.contains(&id));
        }
        true
    }

    /// Fails if a key of a record is taken here.
    fn require_free(&self, export: &Snapshot, here: &Snapshot) -> Result<()> {
        for record in records().filter(|record| !record.table().is_transient()) {
            let table = record.table();
            export.each(table, &mut |key, payload| {
                let payload = payload?;
                if !self.has(table, key) {
                    return Ok(());
                }
                match record.used_key(here, payload, &self.users)? {
                    // The organization gets another slug when it is added.
                    None | Some(Table::OrganizationsBySlug) => Ok(()),
                    Some(taken) => Err(conflict(taken, table, payload)),
                }
            })?;
        }
        Ok(())
    }
}

/// Fails if the organization comes from another installation with the same cell: both create the same ids.
fn require_other_cell(staged: &StagedExport, here: Cell) -> Result<()> {
    if staged.cell != here || staged.has_valid_keys {
        return Ok(());
    }
    let text = format!(
        "the export is of another installation that is cell {here} too, so both create the same ids; found one of them \
         with another --cell"
    );
    Err(Error::invalid("not_imported", text))
}

/// Returns the users of an export that have an account here, with the number of that account. A user has an account here
/// if one has the same UUID or the same address.
fn match_accounts(export: &Snapshot, here: &Snapshot, existing: bool) -> Result<UserMap> {
    let mut matched = HashMap::new();
    let mut taken = HashSet::new();
    export.scan::<User, _>(&(), ALL_ROWS, |row| {
        let user = row.into_record()?;
        let by_uuid = here.lookup(&users::BY_UUID, &user.meta.uuid)?;
        let by_email =
            here.lookup(&users::BY_EMAIL, &user.fields.email.to_lowercase())?;
        let Some(number) = by_uuid.or(by_email) else { return Ok(()) };
        let email = &user.fields.email;
        if !taken.insert(number) {
            let text = format!("two users of the export have one account here: {email}");
            return Err(Error::invalid("not_imported", text));
        }
        if by_uuid.is_none() && !existing && users::find_unproven(here, number)?.is_some() {
            let text = format!(
                "an invite's link created the account of {email} here, and its address is unverified; pass --existing to \
                 give its holder the access that the export gives to this address"
            );
            return Err(Error::invalid("not_imported", text));
        }
        matched.insert(user.meta.id, number);
        Ok(())
    })?;
    Ok(matched)
}

/// Members of records that name them in an error, the best name first.
const NAMES: [&str; 7] = ["domain", "slug", "email", "target_email", "short_id", "name", "id"];

/// Returns the error for a record whose key is taken here.
fn conflict(taken: Table, table: Table, payload: &[u8]) -> Error {
    let fields = record_in(table).and_then(|record| record.record_type().fields(payload).ok());
    let name = fields.and_then(|fields| {
        let name = NAMES.iter().find_map(|name| fields.get(*name).filter(|it| !it.is_null()));
        name.map(Value::to_string)
    });
    let name = name.map_or_else(String::new, |name| format!(" {name}"));
    let (record, taken) = (table.plain_name(), taken.plain_name());
    Error::invalid("not_imported", format!("{record}{name}: its key in {taken} is taken here"))
}

/// The maximum number of records that one transaction adds.
const RECORDS_PER_BATCH: usize = 500;
/// The number of bytes after which a transaction adds no further record.
const BYTES_PER_BATCH: usize = 1024 * 1024;

/// A record of an export.
struct ArrivingRecord {
    table: Table,
    key: Vec<u8>,
    payload: Vec<u8>,
}

/// Records that one transaction adds.
pub struct Batch {
    plan: Arc<Plan>,
    records: Vec<ArrivingRecord>,
}

impl Batch {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds the records as a part of the import.
    ///
    /// # Errors
    /// 400 if the import counts as abandoned, or if a key has been taken meanwhile.
    pub fn add(&self, tx: &mut WriteTx<'_>, attempt: Attempt, now: Timestamp) -> Result<()> {
        attempt.renew(tx, now)?;
        self.records.iter().try_for_each(|record| self.adopt(tx, record))
    }

    /// Adds the record of the organization, which makes the import visible. Returns the slug that the organization has
    /// here.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn complete(&self, tx: &mut WriteTx<'_>, attempt: Attempt) -> Result<String> {
        attempt.complete(tx)?;
        self.records.iter().try_for_each(|record| self.adopt(tx, record))?;
        Ok(tx.get::<Organization>(&attempt.organization)?.fields.slug)
    }

    fn adopt(&self, tx: &mut WriteTx<'_>, arriving: &ArrivingRecord) -> Result<()> {
        let ArrivingRecord { table, key, payload } = arriving;
        let Some(record) = record_in(*table) else { return Ok(()) };
        if let Some(taken) = record.adopt(tx, payload, &self.plan.users)? {
            return Err(conflict(taken, *table, payload));
        }
        match UserId::read(&mut key.as_slice()).filter(|_| *table == Table::Users) {
            Some(user) => {
                tx.put(&ImportMark::Account { organization: self.plan.organization, user })
            }
            None => Ok(()),
        }
    }
}

/// The batches of an import. The last one has the record of the organization.
pub struct Batches {
    plan: Arc<Plan>,
    export: Arc<Snapshot>,
    /// The tables that are not read to their end, the next one last.
    tables: Vec<Table>,
    /// The last key that was read of the next table.
    after: Option<Vec<u8>>,
}

impl Batches {
    /// Begins to read an export.
    pub fn new(plan: Arc<Plan>, export: Arc<Snapshot>) -> Self {
        // Settings follow their projects one by one: a deleted project takes its settings along.
        let is_first = |table: &Table| {
            let is_later = KEY_TABLES.contains(table)
                || [Table::Organizations, Table::ProjectSettings].contains(table);
            !is_later && !table.is_transient()
        };
        let mut tables: Vec<_> = records().map(RegisteredRecord::table).filter(is_first).collect();
        tables.sort_unstable();
        tables.extend(KEY_TABLES);
        tables.reverse();
        Self { plan, export, tables, after: None }
    }

    /// Returns the next batch, or `None` if only the record of the organization is left.
    pub fn read_next(&mut self) -> Result<Option<Batch>> {
        let mut batch = Batch { plan: Arc::clone(&self.plan), records: Vec::new() };
        let mut bytes = 0;
        while let Some(table) = self.tables.last().copied() {
            if self.read(table, &mut batch.records, &mut bytes)? {
                return Ok(Some(batch));
            }
            self.tables.pop();
            self.after = None;
        }
        Ok((!batch.is_empty()).then_some(batch))
    }

    /// Returns the batch with the record of the organization.
    pub fn last(&self) -> Result<Batch> {
        let (table, key) = (Table::Organizations, self.plan.organization.encoded());
        let payload = self.export.get_raw(table, &key)?;
        let records =
            payload.into_iter().map(|payload| ArrivingRecord { table, key: key.clone(), payload });
        Ok(Batch { plan: Arc::clone(&self.plan), records: records.collect() })
    }

    /// Reads records of a table. Returns whether the batch is full.
    fn read(
        &mut self,
        table: Table,
        records: &mut Vec<ArrivingRecord>,
        bytes: &mut usize,
    ) -> Result<bool> {
        // The smallest key after a key has a zero byte more.
        let from = self.after.take().map_or_else(Vec::new, |mut after| {
            after.push(0);
            after
        });
        let (mut last, mut is_full) = (None, false);
        let span = KeySpan { from: &from, until: None, skip: 0, order: Order::Ascending };
        self.export.raw_between(table, span, &mut |key, payload| {
            if is_full || records.len() >= RECORDS_PER_BATCH || *bytes >= BYTES_PER_BATCH {
                is_full = true;
                return Ok(ControlFlow::Break(()));
            }
            last = Some(key.to_vec());
            if !self.plan.has(table, key) {
                return Ok(ControlFlow::Continue(()));
            }
            *bytes += payload.len();
            records.push(ArrivingRecord { table, key: key.to_vec(), payload: payload.to_vec() });
            if table == Table::Projects {
                let table = Table::ProjectSettings;
                if let Some(payload) = self.export.get_raw(table, key)? {
                    *bytes += payload.len();
                    records.push(ArrivingRecord { table, key: key.to_vec(), payload });
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.after = last.or(Some(from).filter(|from| !from.is_empty()));
        Ok(is_full)
    }
}
