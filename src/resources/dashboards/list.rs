//! Lists of dashboards, with their filters. See `docs/spec/dashboards.md`.

use std::borrow::Cow;

use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};

use crate::auth::InProject;
use crate::input::{Identifier, UuidField, choices};
use crate::resources::shared::prelude::*;
use crate::resources::shared::reading::walk_visible;
use crate::resources::users::UserFilter;

use super::api::DashboardItems;
use super::deletions::{self, Deletion};
use super::{BY_NAME, CallerAccess, Dashboard, Meta};

/// Filter of a list. A dashboard must match every criterion that is set.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Text that the name or description contains, ignoring case. Must be in lower case.
    pub search: Option<String>,
    /// Normalized tags without duplicates. If not empty, a dashboard must have at least one of them.
    pub tags: Vec<String>,
    /// Only pinned dashboards, or only those that are not pinned.
    pub pinned: Option<bool>,
    /// Only dashboards created in this way.
    pub creation_mode: Option<&'static str>,
    /// Only dashboards that this user created.
    pub created_by: Option<CreatedByFilter>,
    /// List deleted dashboards instead of live ones.
    pub deleted: bool,
}

choices! {
    /// The values of `creation_mode`.
    pub struct CreationModes: &'static str = ["default", "template", "duplicate"];
}

/// A user in the `created_by` parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreatedByFilter {
    /// `@me`, or a user UUID.
    User(UserFilter),
    /// A numeric user ID.
    Id(UserId),
}

impl FieldType for CreatedByFilter {
    type Value = Self;

    fn read(value: &Value) -> Result<Self> {
        let by_id = |_| Identifier::read(value).map(|id| Self::Id(UserId(id)));
        UserFilter::read(value).map(Self::User).or_else(by_id).map_err(|_| {
            Error::invalid("invalid_input", "Must be the ID or the UUID of a user, or @me.")
        })
    }

    fn schema() -> Schema {
        let me = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["@me"]));
        AnyOfBuilder::new().item(Identifier::schema()).item(UuidField::schema()).item(me).into()
    }
}

impl CreatedByFilter {
    /// Returns the user's ID; `None` if no user has this UUID.
    fn resolve(self, tx: &dyn Raw, tenant: &InProject) -> Result<Option<UserId>> {
        match self {
            Self::User(user) => user.resolve(tx, tenant.member.user),
            Self::Id(id) => Ok(Some(id)),
        }
    }
}

/// The stored fields that filters read.
#[derive(Deserialize)]
struct SearchFields<'r> {
    name: Option<Cow<'r, str>>,
    #[serde(borrow)]
    description: Cow<'r, str>,
    pinned: bool,
    #[serde(borrow)]
    creation_mode: Cow<'r, str>,
    tags: Vec<Cow<'r, str>>,
}

impl Filter {
    /// Returns whether the filter can leave out dashboards that the caller may see.
    pub fn narrows(&self) -> bool {
        self.created_by.is_some() || self.needs_fields()
    }

    /// Returns whether a criterion needs the stored JSON of each dashboard.
    fn needs_fields(&self) -> bool {
        let Self { search, tags, pinned, creation_mode, .. } = self;
        search.is_some() || !tags.is_empty() || pinned.is_some() || creation_mode.is_some()
    }

    /// Returns whether a dashboard matches all criteria except `created_by`.
    fn matches(&self, row: &Row<'_, Dashboard>) -> Result<bool> {
        if !self.needs_fields() {
            return Ok(true);
        }
        let SearchFields { name, description, pinned, creation_mode, tags } = parse_fields(row)?;
        let holds = |text: &str, sought: &str| text.to_lowercase().contains(sought);
        let found = |sought: &String| {
            name.is_some_and(|name| holds(&name, sought)) || holds(&description, sought)
        };
        Ok(self.pinned.is_none_or(|wanted| pinned == wanted)
            && self.creation_mode.is_none_or(|wanted| creation_mode == wanted)
            && (self.tags.is_empty()
                || tags.iter().any(|tag| self.tags.iter().any(|it| it == tag)))
            && self.search.as_ref().is_none_or(found))
    }
}

/// Lists the dashboards of a project that the caller may see and that match `filter`. Returns their total
/// count, and those in `window` as the items of a JSON array. Live dashboards are in the order of
/// [`BY_NAME`]; deleted ones are ordered by deletion, the last deleted first.
///
/// # Errors
/// 403 if access rules hide all dashboards from the caller.
pub fn list(
    tx: &dyn Raw,
    tenant: &InProject,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let access = CallerAccess::of(tx, tenant)?;
    access.levels.require_list(tx)?;
    match (filter.deleted, filter.narrows()) {
        (false, false) if access.levels.default_level().can_view() => {
            list_live(tx, &access, window)
        }
        (true, false) if access.levels.sees_all() => list_deleted(tx, &access, window),
        _ => list_filtered(tx, &access, filter, window),
    }
}

/// Lists live dashboards without a filter. Uses the stored count, and skips the few hidden ones.
fn list_live(tx: &dyn Raw, access: &CallerAccess<'_>, window: Window) -> Result<(u64, Vec<u8>)> {
    let project = access.levels.tenant.project.id;
    let live = |meta: &Meta| (!meta.deleted).then_some(meta.id);
    let hidden = access.levels.hidden(tx, live)?;
    let mut items = DashboardItems::new(access, window.limit);
    let keep = |meta: &Meta| !hidden.contains(&meta.id);
    let push = |row: Row<'_, Dashboard>| items.push(tx, &row, None);
    let count = walk_visible(tx, &BY_NAME, &project, window, hidden.len() as u64, keep, push)?;
    Ok((count, items.items.into_bytes()))
}

/// Lists deleted dashboards for a caller who may see all of them.
fn list_deleted(tx: &dyn Raw, access: &CallerAccess<'_>, window: Window) -> Result<(u64, Vec<u8>)> {
    let project = access.levels.tenant.project.id;
    let mut items = DashboardItems::new(access, window.limit);
    let count = tx.count::<Deletion>(&(project, Kind::Dashboard))?;
    if window.begins_within(count) {
        deletions::walk::<Dashboard>(tx, project, window, |row, removal| {
            items.push(tx, row, Some(removal))
        })?;
    }
    Ok((count, items.items.into_bytes()))
}

/// Lists dashboards by checking each one against the caller's rights and the filter.
fn list_filtered(
    tx: &dyn Raw,
    access: &CallerAccess<'_>,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let made_by =
        filter.created_by.map(|creator| creator.resolve(tx, access.levels.tenant)).transpose()?;
    let made_by = match made_by {
        Some(None) => return Ok((0, Vec::new())),
        found => found.flatten(),
    };
    let (mut count, mut items) = (0, DashboardItems::new(access, window.limit));
    let mut look_at = |row: &Row<'_, Dashboard>, removal: Option<&Deletion>| {
        let is_sought = made_by.is_none() || row.meta.created_by == made_by;
        if is_sought && access.rights(&row.meta).can_view() && filter.matches(row)? {
            if window.shows(count) {
                items.push(tx, row, removal)?;
            }
            count += 1;
        }
        Ok(())
    };
    let project = access.levels.tenant.project.id;
    let all = Window::all(Order::Ascending);
    match (filter.deleted, filter.pinned) {
        (true, _) => {
            deletions::walk::<Dashboard>(tx, project, all, |row, removal| {
                look_at(row, Some(removal))
            })?;
        }
        (false, None) => tx.walk(&BY_NAME, &project, all, |row| look_at(&row, None))?,
        (false, Some(pinned)) => {
            tx.walk(&BY_NAME, &(project, !pinned), all, |row| look_at(&row, None))?;
        }
    }
    Ok((count as u64, items.items.into_bytes()))
}
