//! The activity log: every change leaves one entry in its own transaction (decisions §4, Activity).
//!
//! An entry is made from what the write changed: the first record of a loggable kind that remains in an
//! organization is what it is about, and its fields before and after are the changes. A write that made
//! several of that kind at once leaves an entry for each. Secrets are never in it. Who may read what of it
//! is said by [`Sight`].

mod about;
mod access;
pub mod body;
mod changes;
mod expiry;
mod exports;
pub mod http;
mod keys;
mod list;
mod parts;
mod people;
mod sight;
mod subject;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::Result;
use crate::ids::{ActivityId, DashboardId, OrganizationId, ProjectId, UserId};
use crate::resources::users;
use crate::secret::Draw;
use crate::store::{Count, Index, Indexed, Key, Owner, Record, Table, Tx, WriteTx};
use crate::time::Timestamp;

pub use expiry::{due, expire};
pub use list::{Filter, Maker, list};
pub use sight::Sight;

use changes::changes;
use subject::{Subject, subject};

/// The tenant of entries that belong to no organization: what users change of themselves is no
/// organization's to read.
pub const NO_ORGANIZATION: OrganizationId = OrganizationId(Uuid::nil());

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ActivityLogFixed)]
pub struct Shown {
    /// What kind of thing was changed.
    #[schema(value_type = body::Scopes)]
    pub scope: String,
    /// Which one.
    pub item_id: String,
    /// `created`, `updated`, `deleted` or `restored`; of a public page `sharing enabled`, `sharing disabled` or
    /// `access token refreshed`; of a batch export `paused` or `unpaused`; of an API key `rolled`.
    #[schema(value_type = body::Activities)]
    pub activity: String,
    /// What exactly.
    pub detail: Detail,
}

/// What exactly was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ActivityLogDetail)]
pub struct Detail {
    /// The thing's name, where it has one.
    pub name: Option<String>,
    /// The fields that changed.
    pub changes: Vec<FieldChange>,
}

/// One field that changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ActivityLogChange)]
pub struct FieldChange {
    /// What kind of thing the field is of.
    #[schema(value_type = body::Scopes)]
    pub r#type: String,
    /// Always `changed`.
    pub action: String,
    /// The field.
    pub field: String,
    /// Its value before; a text that tells of it where it is long, null where it is secret.
    pub before: Value,
    /// Its value after; likewise.
    pub after: Value,
}

/// The entries of a project, oldest first.
pub const BY_PROJECT: Index<Entry, ProjectId> =
    Index::many(Table::ActivityByProject, |entry| entry.head.project);
/// What a user did in an organization, oldest first.
pub const BY_USER: Index<Entry, (OrganizationId, UserId)> =
    Index::many(Table::ActivityByUser, |entry| Some((entry.head.organization, entry.head.user?)));
/// What was done with one thing in an organization, oldest first. Things of different kinds may share an id.
pub const BY_ITEM: Index<Entry, (OrganizationId, String)> =
    Index::many(Table::ActivityByItem, |entry| {
        Some((entry.head.organization, entry.shown.item_id.clone()))
    });

/// What entries are counted by: enough to tell how many someone sees without looking at those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// All in an organization's log.
    Organization(OrganizationId),
    /// Those of them that belong to no project and are every member's to read.
    Open(OrganizationId),
    /// All in a project's log.
    Project(ProjectId),
    /// Those of them that are about a dashboard.
    Dashboard(ProjectId, DashboardId),
}

impl Key for Counted {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Organization(id) => (0_u8, *id).write(out),
            Self::Open(id) => (1_u8, *id).write(out),
            Self::Project(id) => (2_u8, *id).write(out),
            Self::Dashboard(project, id) => (3_u8, *project, *id).write(out),
        }
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        match u8::read(input)? {
            0 => Key::read(input).map(Self::Organization),
            1 => Key::read(input).map(Self::Open),
            2 => Key::read(input).map(Self::Project),
            3 => <(ProjectId, DashboardId)>::read(input).map(|(of, id)| Self::Dashboard(of, id)),
            _ => None,
        }
    }
}

impl Record for Entry {
    const TABLE: Table = Table::Activity;
    const INDEXES: &'static [&'static dyn Indexed<Self>] = &[&BY_PROJECT, &BY_USER, &BY_ITEM];
    const COUNTS: &'static [Count<Self>] = &[
        Count::per(|entry| Some(Counted::Organization(entry.head.organization).encoded())),
        Count::per(|entry| {
            let open = entry.head.project.is_none() && !entry.about().is_for_admins();
            open.then(|| Counted::Open(entry.head.organization).encoded())
        }),
        Count::per(|entry| Some(Counted::Project(entry.head.project?).encoded())),
        Count::per(|entry| {
            let dashboard = entry.about().dashboard()?;
            Some(Counted::Dashboard(entry.head.project?, dashboard).encoded())
        }),
    ];
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

    fn owner(&self, tx: &impl Tx) -> Result<Option<Owner>> {
        let Head { organization, user, .. } = self.head;
        if organization != NO_ORGANIZATION {
            return Ok(Some(organization.owner()));
        }
        // What users change of themselves is in no organization's log.
        user.map_or(Ok(None), |user| users::owner_of(tx, user))
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
            one.told_whole |= more.told_whole;
        } else if told.first().is_some_and(|lead| goes_with(lead, &more)) {
            told.push(more);
        }
    }
    let mut told = with_replaced(told);
    let others = told.split_off(1.min(told.len()));
    let changed = |one: &Subject| one.change != "updated" || one.before != one.after;
    told.extend(others.into_iter().filter(changed));
    told
}

/// Tells what was removed with what took its place: the one of the same name.
fn with_replaced(told: Vec<Subject>) -> Vec<Subject> {
    let is_removed = |one: &Subject| one.tells_removal && one.change == "deleted";
    let (removed, mut told): (Vec<_>, Vec<_>) = told.into_iter().partition(is_removed);
    let mut alone = Vec::new();
    for gone in removed {
        let is_instead = |one: &&mut Subject| one.change == "created" && one.name == gone.name;
        match told.iter_mut().find(is_instead).filter(|_| gone.name.is_some()) {
            Some(one) => {
                one.before.insert("replaced".to_owned(), gone.before.into());
            }
            None => alone.push(gone),
        }
    }
    told.extend(alone);
    told
}

/// Whether an entry of its own tells the same of another of the leading subject's kind, or that another was removed.
fn goes_with(lead: &Subject, more: &Subject) -> bool {
    let removed = more.tells_removal && (lead.change, more.change) == ("created", "deleted");
    lead.scope == more.scope && (lead.change == more.change || removed)
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
        _ if before.get("last_rolled_at") != after.get("last_rolled_at") => "rolled",
        _ => "updated",
    }
}
