//! How a dashboard is shown: its own JSON as stored, then what differs by caller.

use crate::access::InProject;
use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::json::Object;
use crate::resources::users::Embedder;
use crate::store::{Row, Tx};

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
pub(super) struct Items {
    pub(super) out: Vec<u8>,
    users: Embedder,
}

impl Items {
    pub(super) fn new(expected: usize) -> Self {
        Self { out: Vec::with_capacity(expected.min(100) * ITEM), users: Embedder::default() }
    }

    pub(super) fn push(
        &mut self,
        tx: &impl Tx,
        place: &InProject,
        row: &Row<'_, Dashboard>,
    ) -> Result<()> {
        if !self.out.is_empty() {
            self.out.push(b',');
        }
        let item = Object::begin(&mut self.out);
        splice(tx, place, row, &mut self.users, item)?.end();
        Ok(())
    }
}

/// The members that lists and single answers have in common.
fn splice<'o>(
    tx: &impl Tx,
    place: &InProject,
    row: &Row<'_, Dashboard>,
    users: &mut Embedder,
    item: Object<'o>,
) -> Result<Object<'o>> {
    let rights = row.head.rights(place);
    item.splice(row.shown)
        .with("created_by", |out| users.write(tx, row.head.created_by, out))?
        .field("effective_restriction_level", &rights.effective_restriction_level)?
        .field("effective_privilege_level", &rights.effective_privilege_level)?
        .field("user_access_level", rights.user_access_level)?
        .field("access_control_version", rights.access_control_version)
}

const NO_DETAILS: &[u8] =
    br#"{"use_template":"","use_dashboard":null,"filters":{},"variables":{}}"#;

/// A single dashboard.
pub(super) fn detail(
    tx: &impl Tx,
    place: &InProject,
    id: DashboardId,
    once: Once,
) -> Result<Vec<u8>> {
    let key = (place.project.id, id);
    let mut out = Vec::with_capacity(2 * ITEM);
    tx.view::<Dashboard, _>(&key, |row| {
        if row.head.deleted && !once.removed {
            return Err(Error::not_found());
        }
        let item = Object::begin(&mut out);
        let mut item = splice(tx, place, &row, &mut Embedder::default(), item)?;
        let mut details = None;
        if row.head.detailed {
            details = tx.view::<Details, _>(&key, |row| Ok(row.shown.to_vec()))?;
        }
        item = item.splice(details.as_deref().unwrap_or(NO_DETAILS));
        item.field("delete_insights", &once.delete_insights)?.raw("tiles", b"[]").end();
        Ok(())
    })?
    .ok_or_else(Error::not_found)?;
    Ok(out)
}
