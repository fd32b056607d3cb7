//! What form 5 counts by tenant and form 4 does not: the bytes of each organization and user, the organizations of each
//! user, and the live insights of each project. Kept answers name the organization that they count to.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;

use serde::Deserialize;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::time::Timestamp;

use super::super::bytes::{Owner, size};
use super::super::key::{Key, take};
use super::super::read::Raw;
use super::super::record::{count_key, damaged};
use super::super::schema::Table;
use super::super::window::Order;
use super::super::write::WriteTx;

/// Tables whose keys begin with the organization.
const OF_ORGANIZATION: [Table; 9] = [
    Table::Organizations,
    Table::Memberships,
    Table::Projects,
    Table::ProjectSettings,
    Table::Grants,
    Table::Domains,
    Table::Invites,
    Table::Activity,
    Table::Sweeps,
];

/// Tables whose keys begin with the project.
const OF_PROJECT: [Table; 11] = [
    Table::Dashboards,
    Table::DashboardDetails,
    Table::Removals,
    Table::Tiles,
    Table::Insights,
    Table::Texts,
    Table::AccessRules,
    Table::Collaborators,
    Table::Sharing,
    Table::BatchExports,
    Table::BatchExportSecrets,
];

/// What the heads of insights begin with.
#[derive(Deserialize)]
struct Insight {
    _organization: Uuid,
    _project: u64,
    _id: u64,
    _created_by: Option<u64>,
    _last_modified_by: Option<u64>,
    deleted: bool,
}

/// What the heads of mails begin with.
#[derive(Deserialize)]
struct Letter {
    _id: Uuid,
    organization: Uuid,
}

/// What the heads of users begin with.
#[derive(Deserialize)]
struct User {
    _id: u64,
    uuid: Uuid,
}

/// The head of an entry of the activity log.
#[derive(Deserialize)]
struct LogEntry {
    _organization: Uuid,
    _created_at: Timestamp,
    _id: Uuid,
    _project: Option<u64>,
    user: Option<u64>,
}

/// What is counted.
#[derive(Default)]
struct Counted {
    bytes: HashMap<Owner, u64>,
    organizations: HashMap<Vec<u8>, u64>,
    insights: HashMap<Vec<u8>, u64>,
}

/// Fills the counts and the sums, and rewrites kept answers.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub(super) fn fill(tx: &mut WriteTx<'_>) -> Result<()> {
    rewrite_kept(tx)?;
    let mut counted = Counted::default();
    count_by_organization(tx, &mut counted)?;
    count_by_project(tx, &mut counted)?;
    count_by_user(tx, &mut counted)?;
    count_others(tx, &mut counted)?;
    for (owner, sum) in counted.bytes {
        tx.put_number(&owner.key(), sum)?;
    }
    for (table, counts) in
        [(Table::Memberships, counted.organizations), (Table::Insights, counted.insights)]
    {
        for (tenant, count) in counts {
            tx.put_number(&count_key(table, &tenant), count)?;
        }
    }
    tx.keep()
}

fn each(
    tx: &WriteTx<'_>,
    table: Table,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    tx.raw_between(table, (&[], None), 0, Order::Ascending, &mut |key, payload| {
        visit(key, payload)?;
        Ok(ControlFlow::Continue(()))
    })
}

fn read<T: Key>(table: Table, mut key: &[u8]) -> Result<T> {
    T::read(&mut key).ok_or_else(|| damaged(table, &"a key is none of this table"))
}

fn organization(table: Table, mut key: &[u8]) -> Result<Uuid> {
    let id = take::<16>(&mut key).map(Uuid::from_bytes);
    id.ok_or_else(|| damaged(table, &"a key begins with no organization"))
}

fn head<'p, T: Deserialize<'p>>(table: Table, payload: &'p [u8]) -> Result<T> {
    let read = postcard::take_from_bytes::<(u64, T)>(payload);
    read.map(|((_, head), _)| head).map_err(|error| damaged(table, &error))
}

fn count_by_organization(tx: &WriteTx<'_>, counted: &mut Counted) -> Result<()> {
    for table in OF_ORGANIZATION {
        each(tx, table, |key, payload| {
            let id = organization(table, key)?;
            // The entries of no organization count to users.
            if !id.is_nil() {
                *counted.bytes.entry(Owner::Organization(id)).or_default() += size(key, payload);
            }
            if table == Table::Memberships {
                let user = key.get(16..).unwrap_or_default().to_vec();
                *counted.organizations.entry(user).or_default() += 1;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn count_by_project(tx: &WriteTx<'_>, counted: &mut Counted) -> Result<()> {
    let mut organizations = HashMap::<u64, Uuid>::new();
    // What lies in a removed project is there until it is swept.
    for table in [Table::Projects, Table::Sweeps] {
        each(tx, table, |key, _| {
            let project = read(table, key.get(16..).unwrap_or_default())?;
            organizations.insert(project, organization(table, key)?);
            Ok(())
        })?;
    }
    for table in OF_PROJECT {
        each(tx, table, |key, payload| {
            let project: u64 = read(table, key)?;
            let id = organizations.get(&project);
            let id = id.ok_or_else(|| damaged(table, &"a record lies in no project"))?;
            *counted.bytes.entry(Owner::Organization(*id)).or_default() += size(key, payload);
            if table == Table::Insights && !head::<Insight>(table, payload)?.deleted {
                *counted.insights.entry(project.encoded()).or_default() += 1;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Counts what users store outside organizations: profiles, and entries about what they changed of themselves.
fn count_by_user(tx: &WriteTx<'_>, counted: &mut Counted) -> Result<()> {
    let mut uuids = HashMap::new();
    let mut count = |user: u64, size: u64| {
        let uuid = match uuids.entry(user) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(uuid_of(tx, user)?),
        };
        if let Some(uuid) = uuid {
            *counted.bytes.entry(Owner::Requester(uuid)).or_default() += size;
        }
        Ok(())
    };
    each(tx, Table::UserProfiles, |key, payload| {
        count(read(Table::UserProfiles, key)?, size(key, payload))
    })?;
    each(tx, Table::Activity, |key, payload| {
        if !organization(Table::Activity, key)?.is_nil() {
            return Ok(());
        }
        let user = head::<LogEntry>(Table::Activity, payload)?.user;
        user.map_or(Ok(()), |user| count(user, size(key, payload)))
    })
}

fn uuid_of(tx: &WriteTx<'_>, user: u64) -> Result<Option<Uuid>> {
    let mut uuid = None;
    tx.raw_get(Table::Users, &user.encoded(), &mut |payload| {
        uuid = Some(head::<User>(Table::Users, payload)?.uuid);
        Ok(())
    })?;
    Ok(uuid)
}

fn count_others(tx: &WriteTx<'_>, counted: &mut Counted) -> Result<()> {
    each(tx, Table::Outbox, |key, payload| {
        let id = head::<Letter>(Table::Outbox, payload)?.organization;
        *counted.bytes.entry(Owner::Organization(id)).or_default() += size(key, payload);
        Ok(())
    })?;
    for table in [Table::Idempotency, Table::IdempotencyParts] {
        each(tx, table, |key, payload| {
            let id = organization(table, key)?;
            *counted.bytes.entry(Owner::Requester(id)).or_default() += size(key, payload);
            Ok(())
        })?;
    }
    Ok(())
}

/// Puts before the head of each kept answer that it counts to no organization: it does to its requester, for
/// the day that it is still kept.
fn rewrite_kept(tx: &mut WriteTx<'_>) -> Result<()> {
    let table = Table::Idempotency;
    let mut kept = Vec::new();
    each(tx, table, |key, payload| {
        let read = postcard::take_from_bytes::<u64>(payload);
        let (version, head) = read.map_err(|error| damaged(table, &error))?;
        let mut rewritten =
            postcard::to_stdvec(&(version, None::<Uuid>)).map_err(Error::internal)?;
        rewritten.extend_from_slice(head);
        kept.push((key.to_vec(), rewritten));
        Ok(())
    })?;
    for (key, payload) in kept {
        tx.put_plain(table, &key, &payload)?;
    }
    tx.keep()
}
