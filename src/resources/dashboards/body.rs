//! How a dashboard is shown: its own JSON as stored, then what differs by caller.

use utoipa::ToSchema;

use crate::access::InProject;
use crate::access::levels::{AccessLevel, Rights};
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::ids::{DashboardId, UserId};
use crate::input::{Choices, choices_schema};
use crate::json::Object;
use crate::resources::users;
use crate::store::{Row, Tx, WriteTx};
use crate::time::Timestamp;

use super::input::Restriction;
use super::list::Standing;
use super::removals::Removal;
use super::tiles::{body as tiles, large_answer};
use super::visible::VisibleDashboards;
use super::{CreationModes, Dashboard, DashboardPatch, Details, DetailsShown, Head, Shown};

/// A dashboard, as lists show it.
#[derive(ToSchema)]
pub struct DashboardSummary {
    /// Its own fields, and what differs by caller.
    #[serde(flatten)]
    pub listed: Listed,
    /// When it was removed; only where removed ones are listed.
    #[schema(required = false)]
    pub deleted_at: Timestamp,
    /// Who removed it; only where removed ones are listed.
    #[schema(required = false)]
    pub deleted_by: users::Shown,
}

/// A dashboard with its tiles.
#[derive(ToSchema)]
#[schema(as = Dashboard)]
pub struct DashboardBody {
    /// What lists show too.
    #[serde(flatten)]
    pub listed: Listed,
    /// Its free-form fields.
    #[serde(flatten)]
    pub details: DetailsShown,
    /// True only in the answer to the PATCH that asked for it.
    pub delete_insights: bool,
    /// Its live tiles, in their order.
    #[schema(max_items = 1000)]
    pub tiles: Vec<tiles::TileBody>,
}

/// What lists and single answers show alike.
#[derive(ToSchema)]
pub struct Listed {
    /// Its own fields.
    #[serde(flatten)]
    pub own: Shown,
    /// Who made it.
    pub created_by: Option<users::Shown>,
    /// The restriction that is in force: 21 or 37.
    #[schema(value_type = Restriction)]
    pub effective_restriction_level: i64,
    /// What the caller may do by that: 21 view, 37 edit.
    #[schema(value_type = Restriction)]
    pub effective_privilege_level: i64,
    /// What access rules let the caller do.
    pub user_access_level: AccessLevel,
    /// `v1` for one that is restricted to collaborators, otherwise `v2`.
    #[schema(value_type = Versions)]
    pub access_control_version: String,
}

/// What `access_control_version` shows.
pub struct Versions;

impl Choices for Versions {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["v1", "v2"];
}

choices_schema!(CreationModes, Restriction, Versions);

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

/// Lets only a dashboard be shown that the caller may see, and a removed one only by the request that removed it.
fn require_shown(tx: &impl Tx, place: &InProject, head: &Head, once: Once) -> Result<Rights> {
    if head.deleted && !once.removed {
        return Err(Error::not_found());
    }
    let rights = head.rights(tx, place)?;
    rights.require_view()?;
    Ok(rights)
}

/// The body of the answer to a write of a dashboard; none if it is large. That ends the batch of the write, and the
/// body is rendered by [`detail`] from the state that the commit left, which refuses nothing that this lets pass.
pub(super) fn of_write(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    id: DashboardId,
    once: Once,
) -> Result<Option<Versioned>> {
    if large_answer(tx, place.project.id, id)?.is_none() {
        return detail(tx, place, id, once).map(Some);
    }
    let head = tx.head::<Dashboard>(&(place.project.id, id))?.ok_or_else(Error::not_found)?;
    require_shown(tx, place, &head, once)?;
    tx.end_batch();
    Ok(None)
}

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
        let rights = require_shown(tx, place, &row.head, once)?;
        let mut tail = Vec::with_capacity(ITEM / 2);
        write_tail(tx, (row.head.created_by, rights), &mut tail)?;
        let mut visible = VisibleDashboards::of(tx, place)?;
        let mut details = None;
        if row.head.detailed {
            details = tx.view::<Details, _>(&key, |row| visible_details(tx, &row, &mut visible))?;
        }
        Object::begin(&mut json)
            .splice(row.shown)
            .splice(&tail)
            .splice(details.as_deref().unwrap_or(NO_DETAILS))
            .field("delete_insights", &once.delete_insights)?
            .with("tiles", |out| tiles::write(tx, &key, &rights, &mut visible, out))?
            .end();
        Ok(row.version)
    })?;
    Ok(Versioned::new(version.ok_or_else(Error::not_found)?, json))
}

/// The free-form fields as the caller may see them: a dashboard that is hidden from the caller is not named as the
/// source of a copy.
fn visible_details(
    tx: &impl Tx,
    row: &Row<'_, Details>,
    visible: &mut VisibleDashboards<'_>,
) -> Result<Vec<u8>> {
    if visible.are_all() {
        return Ok(row.shown.to_vec());
    }
    let mut details: DetailsShown = serde_json::from_slice(row.shown).map_err(Error::internal)?;
    match details.use_dashboard {
        Some(source) if !visible.shows(tx, DashboardId(source))? => {
            details.use_dashboard = None;
            serde_json::to_vec(&details).map_err(Error::internal)
        }
        _ => Ok(row.shown.to_vec()),
    }
}
