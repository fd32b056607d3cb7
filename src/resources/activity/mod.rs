//! The activity log. Every write records its changes in the same transaction.
//!
//! An entry is derived from the records that a write changed: it has the fields of one object before and after, with those
//! of its parts. A rule that changes several objects names those that get an entry, with
//! [`log_about`](WriteTx::log_about). Entries never contain secrets. [`Visibility`] decides which entries a member may
//! read. See `docs/spec/activity.md`.

pub mod api;
mod changes;
pub mod http;
mod list;
mod visibility;

use std::ops::ControlFlow;

use crate::resources::shared::list::log_rules_of;
use crate::resources::shared::loggable::{LogTarget, LoggedAs};
use crate::resources::shared::prelude::*;
use crate::resources::users;
use crate::store::Change;

pub use api::RECORDS;
use api::Scope;
use changes::{changes, keep_changed};
pub use list::{Filter, list, recorded};
pub use visibility::Visibility;

/// The scope that a key needs to read a log.
const READ_SCOPE: &str = "activity_log:read";

/// The organization id of entries that belong to no organization. An organization may not read what users change in
/// their own accounts.
pub const NO_ORGANIZATION: OrganizationId = OrganizationId(Uuid::nil());

/// One entry of the log.
pub type Entry = RecordOf<Meta, Fields>;

/// The fields of an entry that filters and access rules need.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The organization whose log contains the entry.
    pub organization: OrganizationId,
    /// When the change was made.
    pub created_at: Timestamp,
    /// The id of the entry.
    pub id: ActivityId,
    /// The project, if the change was made in one.
    pub project: Option<ProjectId>,
    /// The user that made the change; `None` for the operator.
    pub user: Option<UserId>,
}

/// The fields that a list shows, besides id and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ActivityLogFixed)]
pub struct Fields {
    /// The type of the changed object.
    #[schema(value_type = api::ScopeNames)]
    pub scope: String,
    /// The id of the changed object.
    pub item_id: String,
    /// `created`, `updated`, `deleted` or `restored`; for sharing also `sharing enabled`, `sharing disabled` and
    /// `access token refreshed`; for batch exports `paused` and `unpaused`; for API keys `rolled`.
    #[schema(value_type = api::ActivityNames)]
    pub activity: String,
    /// The name of the object and its changed fields.
    pub detail: Detail,
}

/// The details of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ActivityLogDetail)]
pub struct Detail {
    /// The name of the object, if it has one.
    pub name: Option<String>,
    /// The fields that changed.
    pub changes: Vec<FieldChange>,
    /// The short id of an insight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, value_type = String)]
    pub short_id: Option<String>,
}

/// One field that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ActivityLogChange)]
pub struct FieldChange {
    /// The type of the object that has the field.
    #[schema(value_type = api::ScopeNames)]
    pub r#type: String,
    /// Always `changed`.
    pub action: String,
    /// The name of the field.
    pub field: String,
    /// The old value. A long value is replaced by a summary text, a secret value by null.
    pub before: Value,
    /// The new value, replaced in the same way.
    pub after: Value,
}

/// The entries of a project, oldest first.
pub const BY_PROJECT: Index<Entry, ProjectId> =
    Index::many(Table::ActivityByProject, |entry| entry.meta.project);
/// The changes that a user made in an organization, oldest first.
pub const BY_USER: Index<Entry, (OrganizationId, UserId)> =
    Index::many(Table::ActivityByUser, |entry| Some((entry.meta.organization, entry.meta.user?)));
/// The changes to one object in an organization, oldest first. Objects of different types may share an id.
pub const BY_ITEM: Index<Entry, (OrganizationId, String)> =
    Index::many(Table::ActivityByItem, |entry| {
        Some((entry.meta.organization, entry.fields.item_id.clone()))
    });

// The keys of the counters of entries. They give the number of entries that a member may read without visiting the entries.

/// All entries in the log of an organization.
const fn in_organization(id: OrganizationId) -> (u8, OrganizationId) {
    (0, id)
}

/// The entries in the log of an organization without a project that every member may read.
const fn open_in(id: OrganizationId) -> (u8, OrganizationId) {
    (1, id)
}

/// All entries in the log of a project.
const fn in_project(id: ProjectId) -> (u8, ProjectId) {
    (2, id)
}

/// The entries of a project that refer to one object with access rules.
const fn about_object(project: ProjectId, object: Object) -> (u8, ProjectId, Object) {
    (3, project, object)
}

impl_record!(Entry {
    table: Activity,
    key: |entry| -> (OrganizationId, Timestamp, ActivityId) {
        (entry.meta.organization, entry.meta.created_at, entry.meta.id)
    },
    parts: meta: Meta, fields: Fields,
    indexes: [&BY_PROJECT, &BY_USER, &BY_ITEM],
    counts: [
        |entry| Some(in_organization(entry.meta.organization).encoded()),
        |entry| {
            let scope = Scope::find(&entry.fields.scope);
            let open = entry.meta.project.is_none() && scope.is_none_or(|scope| !scope.admins_only);
            open.then(|| open_in(entry.meta.organization).encoded())
        },
        |entry| Some(in_project(entry.meta.project?).encoded()),
        |entry| {
            let object = Scope::find(&entry.fields.scope)?.object_of(&entry.fields.item_id)?;
            Some(about_object(entry.meta.project?, object).encoded())
        },
    ],
    owner: |entry, tx| {
        let Meta { organization, user, .. } = entry.meta;
        if organization != NO_ORGANIZATION {
            return Ok(Some(organization.owner()));
        }
        // The entry belongs to no organization, so it belongs to the user.
        user.map_or(Ok(None), |user| users::owner_of(tx, user))
    },
});

/// Records what the transaction has changed so far, in an entry for each object that the rule named with
/// [`log_about`](WriteTx::log_about). If it named none, each changed object gets an entry. An insight gets none if only its
/// dashboards changed. `user` made the change; `None` for the operator.
pub fn record(
    tx: &mut WriteTx<'_>,
    user: Option<&users::Meta>,
    rng: &mut SeededRng,
    now: Timestamp,
) -> Result<()> {
    let objects = changed_objects(tx)?;
    // Lists show the entries of one moment in the order of their ids.
    let mut ids: Vec<_> = objects.iter().map(|_| ActivityId(rng.uuid(now))).collect();
    ids.sort();
    for (object, id) in objects.into_iter().zip(ids) {
        let LogEntity { organization, project, .. } = object.entity;
        let has_parent = object.parent.is_some();
        let fields = describe(object);
        // Only the objects that show this one changed. An entry would reveal them to a reader who may not see them.
        if has_parent && fields.activity == "updated" && fields.detail.changes.is_empty() {
            continue;
        }
        tx.put(&Entry {
            meta: Meta {
                organization: organization.unwrap_or(NO_ORGANIZATION),
                created_at: now,
                id,
                project,
                user: user.map(|user| user.id),
            },
            fields,
        })?;
    }
    Ok(())
}

/// Returns the objects that get an entry, each with the changes of its records and parts. A record of which only the
/// version changed is no reason for an entry.
fn changed_objects(tx: &WriteTx<'_>) -> Result<Vec<LogTarget>> {
    let mut targets: Vec<LogTarget> = Vec::new();
    for change in tx.changes() {
        targets.extend(target_of(tx, change)?);
    }
    // An object comes before its parts, which are added to its entry.
    targets.sort_by_key(|target| target.logged_as);
    let names_none = tx.log_subjects().is_empty();
    let mut objects: Vec<LogTarget> = Vec::new();
    for target in targets {
        if let Some(object) = objects.iter_mut().find(|object| target.belongs_to(object)) {
            object.add(target);
        } else if names_none || target.logged_as == LoggedAs::Subject {
            objects.push(target);
        }
    }
    objects.retain(|object| object.is_changed);
    Ok(merge_replaced(objects))
}

/// Describes a change for the log. Returns `None` if the log does not cover the type of record.
fn target_of(tx: &WriteTx<'_>, change: &Change) -> Result<Option<LogTarget>> {
    // The same transaction created and deleted the record.
    if change.before.is_none() && change.after.is_none() {
        return Ok(None);
    }
    let Some(rules) = log_rules_of(change.table) else { return Ok(None) };
    let mut target = LogTarget::of(rules, tx, change)?;
    if target.parent.is_some() {
        keep_changed(&mut target.before, &mut target.after);
    }
    if let Some(named) = &target.named_after
        && let Some(rules) = log_rules_of(named.table)
    {
        let (name, short_id) = (rules.names_of)(tx, &named.key)?;
        target.name = name;
        target.short_id = short_id.filter(|_| rules.scope == target.scope);
    }
    Ok(Some(target))
}

/// Adds the fields of a deleted object to the object with the same name that replaced it. Moves other deleted objects to
/// the end.
fn merge_replaced(objects: Vec<LogTarget>) -> Vec<LogTarget> {
    let (deleted, mut objects): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(|object| object.change == "deleted");
    let mut alone = Vec::new();
    for gone in deleted {
        let is_instead = |one: &&mut LogTarget| {
            one.change == "created" && one.scope == gone.scope && one.name == gone.name
        };
        match objects.iter_mut().find(is_instead).filter(|_| gone.name.is_some()) {
            Some(one) => {
                one.before.insert("replaced".to_owned(), gone.before.into());
            }
            None => alone.push(gone),
        }
    }
    objects.extend(alone);
    objects
}

fn describe(target: LogTarget) -> Fields {
    let LogTarget { scope, change, name, short_id, before, after, .. } = target;
    let is_update = change == "updated";
    let activity = if is_update { activity(scope, &before, &after) } else { change };
    let changes = if is_update || target.log_all_fields {
        changes(scope, &target.hidden, before, &after)
    } else {
        Vec::new()
    };
    Fields {
        scope: scope.to_owned(),
        item_id: target.entity.item_id,
        activity: activity.to_owned(),
        detail: Detail { name, changes, short_id },
    }
}

/// Returns the action of an update: `updated`, unless the changed fields have a more specific action.
fn activity(scope: &str, before: &Map<String, Value>, after: &Map<String, Value>) -> &'static str {
    let actions = Scope::find(scope).map_or(&[][..], |scope| &scope.actions);
    actions.iter().find_map(|action| action.between(before, after)).unwrap_or("updated")
}

/// The maximum number of entries that one transaction deletes.
const DELETE_BATCH: usize = 500;

type EntryKey = <Entry as Record>::Key;

/// Returns the keys of entries older than `cutoff`, in all organizations. Entries are kept forever unless the operator
/// sets a retention time. Returns at most as many keys as one transaction deletes.
pub fn find_expired(tx: &dyn Raw, cutoff: Timestamp) -> Result<Vec<EntryKey>> {
    let mut keys: Vec<EntryKey> = Vec::new();
    let mut from = (NO_ORGANIZATION, Timestamp::MIN);
    while let Some(organization) = organization_from(tx, from)? {
        let (begin, end) = ((organization, Timestamp::MIN), (organization, cutoff));
        tx.scan_between::<Entry, _>(&begin, &end, Order::Ascending, |row| {
            keys.push((row.meta.organization, row.meta.created_at, row.meta.id));
            Ok(continue_if(keys.len() < DELETE_BATCH))
        })?;
        if keys.len() == DELETE_BATCH {
            break;
        }
        from = (organization, Timestamp::MAX);
    }
    Ok(keys)
}

/// Returns the organization of the first entry at or after `from`.
fn organization_from(
    tx: &dyn Raw,
    from: (OrganizationId, Timestamp),
) -> Result<Option<OrganizationId>> {
    let mut found = None;
    let last = (OrganizationId(Uuid::max()), Timestamp::MAX);
    tx.scan_between::<Entry, _>(&from, &last, Order::Ascending, |row| {
        found = Some(row.meta.organization);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Deletes the entries with these keys.
pub fn delete(tx: &mut WriteTx<'_>, keys: &[EntryKey]) -> Result<()> {
    keys.iter().try_for_each(|key| tx.remove::<Entry>(key).map(drop))
}
