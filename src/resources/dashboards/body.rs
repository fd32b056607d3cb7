//! How a dashboard is shown: its own JSON as stored, then what differs by caller.

use crate::access::InProject;
use crate::access::levels::Rights;
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{DashboardId, UserId};
use crate::json::Object;
use crate::resources::users;
use crate::store::{Row, Tx};

use super::list::Standing;
use super::removals::Removal;
use super::tiles::body as tiles;
use super::{Dashboard, DashboardPatch, Details};

/// What shows only in the answer to the request that sent it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Once {
    /// Whether this PATCH asked for insights to be removed.
    pub delete_insights: bool,
    /// Whether to show a dashboard that this PATCH removed.
    pub removed: bool,
}

impl Once {
    /// What the answer to this PATCH shows besides.
    pub fn of(patch: &DashboardPatch) -> Self {
        Self {
            delete_insights: patch.delete_insights == Some(true),
            removed: patch.deleted == Some(true),
        }
    }
}

/// About what one list item takes, in bytes.
const ITEM: usize = 800;

/// The items of a list.
pub(super) struct Items<'l> {
    pub(super) out: Vec<u8>,
    standing: &'l Standing<'l>,
    /// What the last item showed behind its own members, and of what that was made: a list mostly shows
    /// the same few makers and levels.
    last: Option<(Option<UserId>, Rights)>,
    tail: Vec<u8>,
}

impl<'l> Items<'l> {
    pub(super) fn new(standing: &'l Standing<'l>, expected: usize) -> Self {
        let out = Vec::with_capacity(expected.min(100) * ITEM);
        Self { out, standing, last: None, tail: Vec::new() }
    }

    /// Adds a dashboard; a removed one with who removed it, and when.
    pub(super) fn push(
        &mut self,
        tx: &impl Tx,
        row: &Row<'_, Dashboard>,
        removal: Option<&Removal>,
    ) -> Result<()> {
        let made_of = (row.head.created_by, self.standing.rights(&row.head));
        if self.last != Some(made_of) {
            self.tail.clear();
            write_tail(tx, made_of, &mut self.tail)?;
            self.last = Some(made_of);
        }
        if !self.out.is_empty() {
            self.out.push(b',');
        }
        let item = Object::begin(&mut self.out).splice(row.shown).splice(&self.tail);
        let Some(Removal { removed_at, removed_by, .. }) = removal else {
            item.end();
            return Ok(());
        };
        item.field("deleted_at", removed_at)?
            .with("deleted_by", |out| users::write_embedded(tx, Some(*removed_by), out))?
            .end();
        Ok(())
    }
}

/// Appends what lists and single answers show behind the dashboard's own members: its maker, and what
/// differs by caller.
fn write_tail(
    tx: &impl Tx,
    (created_by, rights): (Option<UserId>, Rights),
    out: &mut Vec<u8>,
) -> Result<()> {
    Object::begin(out)
        .with("created_by", |out| users::write_embedded(tx, created_by, out))?
        .field("effective_restriction_level", &rights.effective_restriction_level)?
        .field("effective_privilege_level", &rights.effective_privilege_level)?
        .field("user_access_level", &rights.user_access_level)?
        .field("access_control_version", rights.access_control_version)?
        .end();
    Ok(())
}

const NO_DETAILS: &[u8] =
    br#"{"use_template":"","use_dashboard":null,"filters":{},"variables":{}}"#;

/// A single dashboard.
pub(super) fn detail(
    tx: &impl Tx,
    place: &InProject,
    id: DashboardId,
    once: Once,
) -> Result<Versioned> {
    let key = (place.project.id, id);
    let mut json = Vec::with_capacity(2 * ITEM);
    let version = tx.view::<Dashboard, _>(&key, |row| {
        if row.head.deleted && !once.removed {
            return Err(Error::not_found());
        }
        let mut tail = Vec::with_capacity(ITEM / 2);
        let rights = row.head.rights(tx, place)?;
        rights.require_view()?;
        write_tail(tx, (row.head.created_by, rights), &mut tail)?;
        let mut details = None;
        if row.head.detailed {
            details = tx.view::<Details, _>(&key, |row| Ok(row.shown.to_vec()))?;
        }
        Object::begin(&mut json)
            .splice(row.shown)
            .splice(&tail)
            .splice(details.as_deref().unwrap_or(NO_DETAILS))
            .field("delete_insights", &once.delete_insights)?
            .with("tiles", |out| tiles::write(tx, &key, &rights, out))?
            .end();
        Ok(row.version)
    })?;
    Ok(Versioned { version: version.ok_or_else(Error::not_found)?, json })
}
