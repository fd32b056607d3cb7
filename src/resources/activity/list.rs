//! Lists and filters activity entries, newest first.

use std::ops::ControlFlow;

use crate::auth::authorize::AuthContext;
use crate::resources::members::Membership;
use crate::resources::shared::prelude::*;
use crate::resources::users::{EmbeddedUsers, UserFilter};

use super::api::EntryBody;
use super::visibility::{EntityRef, LogScope, Visibility, shows_to};
use super::{BY_ITEM, BY_PROJECT, BY_USER, Entry, NO_ORGANIZATION, READ_SCOPE};

/// The maximum number of readable entries that a filtered list searches. It ignores older entries, which the caller can
/// reach with `before`.
const MAX_SCANNED: usize = 100_000;

/// The filters of a list. An entry matches if all of them match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only entries for these types of object; empty for all types.
    pub scopes: Vec<String>,
    /// Only entries with these actions; empty for all actions.
    pub activities: Vec<String>,
    /// Only entries for the object with this id.
    pub item: Option<String>,
    /// Only changes made by this user.
    pub user: Option<UserFilter>,
    /// Only entries at or after this time.
    pub after: Option<Timestamp>,
    /// Only entries before this time.
    pub before: Option<Timestamp>,
}

impl Filter {
    /// Returns whether the filter excludes any entry.
    pub fn narrows(&self) -> bool {
        *self != Self::default()
    }

    fn matches(&self, row: &Row<'_, Entry>, entity: &EntityRef<'_>, actor: Option<UserId>) -> bool {
        let is_one_of = |sought: &[String], word: &str| {
            sought.is_empty() || sought.iter().any(|sought| sought == word)
        };
        is_one_of(&self.scopes, &entity.scope)
            && is_one_of(&self.activities, &entity.activity)
            && self.item.as_ref().is_none_or(|item| *item == entity.item_id)
            && (actor.is_none() || row.meta.user == actor)
    }
}

/// Returns the number of entries that match `filter` and are visible to the caller, and those in `window` as the items
/// of a JSON array. `caller` is the user that `@me` names.
pub fn list(
    tx: &dyn Raw,
    visibility: &Visibility,
    caller: UserId,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    if filter.narrows() {
        let actor = filter.user.map(|user| user.resolve(tx, caller)).transpose()?;
        return match actor {
            Some(None) => Ok((0, Vec::new())),
            found => list_checked(tx, visibility, filter, found.flatten(), window, MAX_SCANNED),
        };
    }
    let (count, is_all) = visibility.count(tx)?;
    if !window.begins_within(count) {
        return Ok((count, Vec::new()));
    }
    if !is_all {
        let end = window.offset.saturating_add(window.limit);
        let (_, items) = list_checked(tx, visibility, filter, None, window, end)?;
        return Ok((count, items));
    }
    let mut items = EntryItems::default();
    let LogScope { organization, project } = visibility.log;
    match project {
        None => tx.scan::<Entry, _>(&organization, window, |row| items.push(tx, &row))?,
        Some(id) => tx.walk(&BY_PROJECT, &id, window, |row| items.push(tx, &row))?,
    }
    Ok((count, items.text.into_bytes()))
}

/// Lists by checking each candidate entry against the caller's rights and the filter. Searches the newest `most` entries
/// that the caller may read: hidden entries do not count as positions.
fn list_checked(
    tx: &dyn Raw,
    visibility: &Visibility,
    filter: &Filter,
    actor: Option<UserId>,
    window: Window,
    most: usize,
) -> Result<(u64, Vec<u8>)> {
    let (mut scanned, mut count, mut items) = (0, 0, EntryItems::default());
    walk(tx, visibility.log, filter, actor, |row| {
        let entity: EntityRef<'_> = parse_fields(&row)?;
        if visibility.log.holds(&row.meta) && visibility.shows(&row.meta, &entity) {
            if filter.matches(&row, &entity, actor) {
                if window.shows(count) {
                    items.push(tx, &row)?;
                }
                count += 1;
            }
            scanned += 1;
        }
        Ok(continue_if(scanned < most))
    })?;
    Ok((count as u64, items.text.into_bytes()))
}

/// Visits the candidates, newest first, with the index that selects the fewest entries.
fn walk(
    tx: &dyn Raw,
    log: LogScope,
    filter: &Filter,
    actor: Option<UserId>,
    visit: impl FnMut(Row<'_, Entry>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let of = log.organization;
    let after = filter.after.unwrap_or(Timestamp::MIN);
    let before = filter.before.unwrap_or(Timestamp::MAX);
    match (&filter.item, actor, log.project) {
        (Some(item), _, _) => {
            let at = |moment| ((of, item.clone()), of, moment);
            tx.walk_down(&BY_ITEM, &at(after), &at(before), visit)
        }
        (None, Some(actor), _) => {
            let at = |moment| ((of, actor), of, moment);
            tx.walk_down(&BY_USER, &at(after), &at(before), visit)
        }
        (None, None, Some(id)) => {
            let at = |moment| (id, of, moment);
            tx.walk_down(&BY_PROJECT, &at(after), &at(before), visit)
        }
        (None, None, None) => {
            let span = ((of, after), (of, before));
            tx.scan_between(&span.0, &span.1, Order::Descending, visit)
        }
    }
}

/// The items of a list as JSON, with a cache of users.
#[derive(Default)]
struct EntryItems {
    text: JsonItems,
    users: EmbeddedUsers,
}

impl EntryItems {
    fn push(&mut self, tx: &dyn Raw, row: &Row<'_, Entry>) -> Result<()> {
        let entry = EntryBody {
            id: row.meta.id,
            user: self.users.find(tx, row.meta.user)?,
            own: row.json(),
            project_id: row.meta.project,
            created_at: row.meta.created_at,
        };
        self.text.push(entry)
    }
}

/// Returns the entries that the write has recorded, in the order in which it recorded them, as a JSON array. It contains
/// the entries that the caller could read in the log, and those about the caller's own account, which no log shows.
/// Returns null if there is no caller, or if the caller's key may not read the log.
pub fn recorded(tx: &WriteTx<'_>, context: Option<&AuthContext>) -> Result<Vec<u8>> {
    let Some(context) = context.filter(|context| context.caller.key.has_scope(READ_SCOPE)) else {
        return Ok(b"null".to_vec());
    };
    let mut items = EntryItems::default();
    let written = tx.changes().iter().filter(|change| change.table == Entry::TABLE);
    for change in written {
        let key = <(OrganizationId, Timestamp, ActivityId)>::read(&mut change.key.as_slice());
        let Some(key) = key else { continue };
        tx.view::<Entry, _>(&key, |row| {
            if can_read(tx, context, &row)? { items.push(tx, &row) } else { Ok(()) }
        })?;
    }
    Ok([b"[", &*items.text.into_bytes(), b"]"].concat())
}

/// Returns whether the caller could read the entry, by the rules of the two lists. A caller who leaves an organization
/// was a member when the write began.
fn can_read(tx: &WriteTx<'_>, context: &AuthContext, row: &Row<'_, Entry>) -> Result<bool> {
    let (caller, entry) = (&context.caller, &row.meta);
    if entry.organization == NO_ORGANIZATION {
        return Ok(entry.user == Some(caller.user.id));
    }
    let of_entry = |member: &Membership| member.organization == entry.organization;
    let member = match context.member.clone().filter(of_entry) {
        Some(member) => Some(member),
        None => caller.open_membership(tx, entry.organization)?,
    };
    let is_within_key = match entry.project {
        Some(project) => caller.key.reaches_project(project),
        None => caller.key.scoped_projects().is_none(),
    };
    match member.filter(|_| is_within_key) {
        Some(member) => shows_to(tx, &member, entry, &parse_fields(row)?),
        None => Ok(false),
    }
}
