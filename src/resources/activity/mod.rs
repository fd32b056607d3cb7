//! The activity log: every change leaves one entry in its own transaction (decisions §4, Activity).
//!
//! An entry is made from what the write changed: the first record of a loggable kind that remains in an
//! organization is what it is about, and its fields before and after are the changes. A write that made
//! several of that kind at once leaves an entry for each. Secrets are never in it.

mod access;
mod exports;
mod parts;
mod subject;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::Result;
use crate::ids::{ActivityId, OrganizationId, ProjectId, UserId};
use crate::resources::users;
use crate::secret::Draw;
use crate::store::{Record, Table, WriteTx};
use crate::time::Timestamp;

use subject::{Subject, subject};

/// The tenant of entries that belong to no organization: what users change of themselves is no
/// organization's to read.
pub const NO_ORGANIZATION: OrganizationId = OrganizationId(Uuid::nil());

/// The longest value that an entry repeats, in bytes of JSON; a longer one is left out.
const LONGEST_VALUE: usize = 2048;
/// How much of values an entry repeats in all, in bytes of JSON; what goes beyond is left out.
const MOST_VALUES: usize = 32 * 1024;
/// How many changes an entry tells at the most: a dashboard may have a thousand tiles.
const MOST_CHANGES: usize = 200;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What lists decide by.
    pub head: Head,
    /// What they show.
    pub shown: Shown,
}

/// What lists decide by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Whose log it is in.
    pub organization: OrganizationId,
    /// When it happened.
    pub created_at: Timestamp,
    /// The entry's id.
    pub id: ActivityId,
    /// The project it was in, if it was in one.
    pub project: Option<ProjectId>,
    /// Who did it; none for the operator.
    pub user: Option<UserId>,
}

/// What lists show, besides id and moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// What kind of thing was changed.
    pub scope: String,
    /// Which one.
    pub item_id: String,
    /// `created`, `updated`, `deleted` or `restored`; of a public page `sharing enabled`, `sharing disabled` or
    /// `access token refreshed`; of a batch export `paused` or `unpaused`.
    pub activity: String,
    /// What exactly.
    pub detail: Detail,
}

/// What exactly was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// The thing's name, where it has one.
    pub name: Option<String>,
    /// The fields that changed.
    pub changes: Vec<FieldChange>,
}

/// One field that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// What kind of thing the field is of.
    pub r#type: String,
    /// Always `changed`.
    pub action: String,
    /// The field.
    pub field: String,
    /// Its value before; null where it is long or secret.
    pub before: Value,
    /// Its value after; null where it is long or secret.
    pub after: Value,
}

impl Record for Entry {
    const TABLE: Table = Table::Activity;
    type Key = (OrganizationId, Timestamp, ActivityId);
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> Self::Key {
        (self.head.organization, self.head.created_at, self.head.id)
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }
}

/// Writes the entry for what the write has changed so far, if any of it is of a loggable kind; one for
/// each where it did the same to several of one kind. `user` is who did it; none for the operator.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn record(
    tx: &mut WriteTx<'_>,
    user: Option<&users::Head>,
    draw: &mut Draw,
    now: Timestamp,
) -> Result<()> {
    let mut subjects = Vec::new();
    for change in tx.changes() {
        if let Some(subject) = subject(tx, change)? {
            subjects.push(subject);
        }
    }
    for subject in told(subjects) {
        let id = ActivityId(draw.uuid(now));
        tx.put(&Entry {
            head: Head {
                organization: subject.organization.unwrap_or(NO_ORGANIZATION),
                created_at: now,
                id,
                project: subject.project,
                user: user.map(|user| user.id),
            },
            shown: describe(subject),
        })?;
    }
    Ok(())
}

/// What the entries are about: the leading subject, and others of its kind with which the same was done.
/// The first one leads, except that what was made in an organization goes before who was made for it, and
/// what remains before what was removed; a part of something never leads. What changed in nothing that is
/// told is not one of the others.
fn told(mut subjects: Vec<Subject>) -> Vec<Subject> {
    let rank = |subject: &Subject| match (subject.change, subject.organization) {
        _ if subject.is_part => 3,
        ("deleted", _) => 2,
        ("created", None) => 1,
        _ => 0,
    };
    let first = (0..subjects.len()).min_by_key(|at| subjects.get(*at).map(rank));
    let mut told: Vec<Subject> = first.map(|first| subjects.remove(first)).into_iter().collect();
    for more in subjects {
        let is_of = |one: &&mut Subject| {
            one.scope == more.scope && (one.item_id == more.item_id || more.item_id.is_empty())
        };
        if let Some(one) = told.iter_mut().find(is_of) {
            one.name = one.name.take().or(more.name);
            one.before.extend(more.before);
            one.after.extend(more.after);
            one.hidden.extend(more.hidden);
        } else if told
            .first()
            .is_some_and(|lead| (lead.scope, lead.change) == (more.scope, more.change))
        {
            told.push(more);
        }
    }
    let others = told.split_off(1.min(told.len()));
    let changed = |one: &Subject| one.change != "updated" || one.before != one.after;
    told.extend(others.into_iter().filter(changed));
    told
}

fn describe(subject: Subject) -> Shown {
    let Subject { scope, item_id, name, change, before, after, hidden, told_whole, .. } = subject;
    let activity = if change == "updated" { activity(&before, &after) } else { change };
    let changes = if told_whole || change == "updated" {
        changes(scope, &hidden, before, &after)
    } else {
        Vec::new()
    };
    Shown {
        scope: scope.to_owned(),
        item_id,
        activity: activity.to_owned(),
        detail: Detail { name, changes },
    }
}

/// What was done to something that was there, in a word: an update, except where one field tells better.
fn activity(before: &Map<String, Value>, after: &Map<String, Value>) -> &'static str {
    let turned = |field: &str| {
        let is = |fields: &Map<String, Value>| fields.get(field) == Some(&Value::Bool(true));
        (is(before), is(after))
    };
    match (turned("deleted"), turned("is_shared"), turned("paused")) {
        ((false, true), ..) => "deleted",
        ((true, false), ..) => "restored",
        (_, (false, true), _) => "sharing enabled",
        (_, (true, false), _) => "sharing disabled",
        (.., (false, true)) => "paused",
        (.., (true, false)) => "unpaused",
        _ if before.get("access_token") != after.get("access_token") => "access token refreshed",
        _ => "updated",
    }
}

/// Fields that change with every change.
const IMPLIED: [&str; 3] = ["updated_at", "last_modified_at", "last_updated_at"];

fn changes(
    scope: &str,
    hidden: &[&str],
    mut before: Map<String, Value>,
    after: &Map<String, Value>,
) -> Vec<FieldChange> {
    for field in after.keys() {
        before.entry(field).or_insert(Value::Null);
    }
    let mut left = MOST_VALUES;
    let mut told = |field: &str, value: &Value| {
        let length = value.to_string().len();
        if hidden.contains(&field) || length > LONGEST_VALUE.min(left) {
            return Value::Null;
        }
        left -= length;
        value.clone()
    };
    before
        .into_iter()
        .filter(|(field, value)| {
            !IMPLIED.contains(&field.as_str()) && after.get(field) != Some(value)
        })
        .take(MOST_CHANGES)
        .map(|(field, value)| FieldChange {
            r#type: scope.to_owned(),
            action: "changed".to_owned(),
            before: told(&field, &value),
            after: told(&field, after.get(&field).unwrap_or(&Value::Null)),
            field,
        })
        .collect()
}
