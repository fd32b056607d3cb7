//! What the API reads and shows of dashboards. A response has the stored fields, followed by the fields that depend on
//! the caller.

use crate::auth::InProject;
use crate::input::{
    Choice, Flag, FreeForm, FreeObject, Identifier, ListOf, Nested, Nullable, Tags, Text, choices,
};
use crate::resources::access_controls::levels::{AccessLevel, ObjectRights, Restriction};
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, EmbeddedUser};

use super::deletions::Deletion;
use super::tiles::{DuplicateTile, MAX_TILES, Tiles, body as tiles};
use super::{CallerAccess, Dashboard, Details, DetailsFields, Fields, Meta, VisibleDashboards};

/// `filters` and `variables`: an object that replaces the stored one.
///
/// As in PostHog, an empty object or null changes nothing, and only the error for an object that is too
/// large names the field.
pub struct SettingsField;

impl Field for SettingsField {
    type Output = Option<Map<String, Value>>;

    fn parse(name: &str, value: Option<&Value>) -> Result<Self::Output> {
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(members)) if members.is_empty() => Ok(None),
            Some(value @ Value::Object(members)) => {
                FreeForm::read(value).map_err(|error| error.with_attr_prefix(name))?;
                Ok(Some(members.clone()))
            }
            Some(_) => Err(Error::invalid("invalid_input", "Filters must be a dictionary")),
        }
    }

    fn property() -> Schema {
        Nullable::<FreeObject>::property()
    }
}

input! {
    /// The fields of a new dashboard.
    pub struct NewDashboard {
        /// Display name.
        name: Nullable<Text<400>> => dashboard,
        /// Description in plain text.
        description: Text<16_384> => dashboard,
        /// Whether lists show the dashboard before those that are not pinned.
        pinned: Flag => dashboard,
        /// Ignored on create.
        deleted: Flag => _,
        /// Create from this built-in template. Not together with `use_dashboard`.
        use_template: Text<400> => _,
        /// Create as a copy of this dashboard. Not together with `use_template`.
        use_dashboard: Nullable<Identifier> => _,
        /// Ignored on create.
        delete_insights: Flag => _,
        /// Tags. Stored in lower case, sorted, without duplicates.
        tags: Tags => dashboard,
        /// Who may edit: 21 for every project member; 37 for collaborators, the creator and admins.
        restriction_level: Choice<Restriction> => dashboard,
        /// Filters that apply to every tile. An empty object is ignored.
        filters: SettingsField => details,
        /// With `use_dashboard`: whether to copy the insights and texts too. By default the copy shows the
        /// same ones.
        duplicate_tiles: Flag => _,
    }
    fn apply_to(dashboard: &mut Fields, details: &mut DetailsFields);
}

input! {
    /// The fields of a dashboard that can be updated.
    pub struct DashboardPatch {
        /// Display name.
        name: Nullable<Text<400>> => dashboard,
        /// Description in plain text.
        description: Text<16_384> => dashboard,
        /// Whether lists show the dashboard before those that are not pinned.
        pinned: Flag => dashboard,
        /// True deletes the dashboard. False restores it.
        deleted: Flag => dashboard,
        /// Ignored on update.
        use_template: Text<400> => _,
        /// Ignored on update.
        use_dashboard: Nullable<Identifier> => _,
        /// With `deleted`: whether to delete the insights that no other dashboard shows.
        delete_insights: Flag => _,
        /// Tags. Replace the stored ones.
        tags: Tags => dashboard,
        /// Who may edit: 21 for every project member; 37 for collaborators, the creator and admins.
        restriction_level: Choice<Restriction> => dashboard,
        /// Filters that apply to every tile. An empty object is ignored.
        filters: SettingsField => details,
        /// Values for the variables in the queries of tiles. An empty object is ignored.
        variables: SettingsField => details,
        /// Changes to tiles, applied in this order.
        tiles: Tiles => _,
        /// Tiles to duplicate on this dashboard, with copies of their insights and texts.
        duplicate_tiles: ListOf<Nested<DuplicateTile>, MAX_TILES> => _,
    }
    fn apply_to(dashboard: &mut Fields, details: &mut DetailsFields);
}

/// Refuses a request with both a template and a source dashboard.
pub(super) fn require_one_source(template: Option<&str>, dashboard: Option<u64>) -> Result<()> {
    if template.is_some_and(|name| !name.is_empty()) && dashboard.is_some_and(|id| id != 0) {
        return Err(invalid("`use_dashboard` and `use_template` cannot be used together"));
    }
    Ok(())
}

/// Returns the template or the dashboard to create from. An empty name and 0 count as not sent.
pub(super) fn source(new: &NewDashboard) -> Result<(Option<&str>, Option<DashboardId>)> {
    let template = new.use_template.as_deref().filter(|name| !name.is_empty());
    let dashboard = new.use_dashboard.clone().value().filter(|id| *id != 0);
    require_one_source(template, dashboard)?;
    Ok((template, dashboard.map(DashboardId)))
}

output! {
    /// A dashboard in a list.
    pub struct DashboardSummary<'a> {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// The creator, and what depends on the caller.
        ..tail: JsonText<'a, Tail> as Tail,
        /// When the dashboard was deleted. Only in lists of deleted dashboards.
        deleted_at?: Timestamp,
        /// The user who deleted the dashboard. Only in lists of deleted dashboards.
        deleted_by?: EmbeddedUser as users::Fields,
    }
}

output! {
    /// A dashboard with its tiles.
    pub struct DashboardBody<'a> as Dashboard {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// The creator, and what depends on the caller.
        ..tail: Tail,
        /// The free-form fields.
        ..details: JsonText<'a, DetailsFields> as DetailsFields,
        /// True only in the response to the PATCH that sent it.
        delete_insights: bool,
        /// The live tiles, ordered by position.
        #[schema(max_items = 1000)]
        tiles: WrittenBy<'a> as Vec<tiles::TileBody>,
    }
}

output! {
    /// The fields that follow the stored ones: the creator, and what depends on the caller.
    pub struct Tail as DashboardTail {
        /// The user who created the dashboard.
        created_by: EmbeddedUser as Option<users::Fields>,
        /// The restriction in force: 21 or 37.
        effective_restriction_level: i64 as Restriction,
        /// What the restriction lets the caller do: 21 for view, 37 for edit.
        effective_privilege_level: i64 as Restriction,
        /// The access level that access rules give the caller.
        user_access_level: AccessLevel,
        /// `v1` if only collaborators may edit, otherwise `v2`.
        access_control_version: &'static str as Versions,
    }
}

impl Tail {
    fn of(tx: &dyn Raw, created_by: Option<UserId>, rights: ObjectRights) -> Result<Self> {
        Ok(Self {
            created_by: EmbeddedUser::find(tx, created_by)?,
            effective_restriction_level: rights.effective_restriction_level,
            effective_privilege_level: rights.effective_privilege_level,
            user_access_level: rights.user_access_level,
            access_control_version: if rights.is_restricted() { "v1" } else { "v2" },
        })
    }
}

choices! {
    /// The values of `access_control_version`.
    pub struct Versions: &'static str = ["v1", "v2"];
}

/// What a response shows only because its own request asked for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResponseOptions {
    /// Whether the request sent `delete_insights` as true.
    pub delete_insights: bool,
    /// Whether the request deleted the dashboard, which the response then still shows.
    pub show_deleted: bool,
}

impl ResponseOptions {
    /// Returns what the response to this PATCH shows.
    pub fn of(patch: &DashboardPatch) -> Self {
        Self {
            delete_insights: patch.delete_insights == Some(true),
            show_deleted: patch.deleted == Some(true),
        }
    }
}

/// Approximate size of a list item, in bytes.
const ITEM_SIZE: usize = 800;

/// Writes the items of a list.
pub(super) struct DashboardItems<'l> {
    pub(super) items: JsonItems,
    access: &'l CallerAccess<'l>,
    /// The creator and rights behind `tail`. Most items of a list have the same, and reuse it.
    last: Option<(Option<UserId>, ObjectRights)>,
    tail: Vec<u8>,
}

impl<'l> DashboardItems<'l> {
    pub(super) fn new(access: &'l CallerAccess<'l>, expected: usize) -> Self {
        let items = JsonItems::with_capacity(expected.min(100) * ITEM_SIZE);
        Self { items, access, last: None, tail: Vec::new() }
    }

    /// Appends a dashboard. For a deleted one, `removal` says when and by whom it was deleted.
    pub(super) fn push(
        &mut self,
        tx: &dyn Raw,
        row: &Row<'_, Dashboard>,
        removal: Option<&Deletion>,
    ) -> Result<()> {
        let made_of = (row.meta.created_by, self.access.rights(&row.meta));
        if self.last != Some(made_of) {
            self.tail.clear();
            Tail::of(tx, made_of.0, made_of.1)?.write_json(&mut self.tail)?;
            self.last = Some(made_of);
        }
        let deleted_by = removal.map(|removal| EmbeddedUser::find(tx, Some(removal.removed_by)));
        self.items.push(DashboardSummary {
            own: row.json(),
            tail: JsonText::new(&self.tail),
            deleted_at: removal.map(|removal| removal.removed_at),
            deleted_by: deleted_by.transpose()?,
        })
    }
}

const NO_DETAILS: &[u8] =
    br#"{"use_template":"","use_dashboard":null,"filters":{},"variables":{}}"#;

/// Returns the caller's rights if the caller may view the dashboard. A deleted dashboard is shown only in
/// the response to its deletion.
fn rights_if_shown(
    tx: &dyn Raw,
    tenant: &InProject,
    meta: &Meta,
    options: ResponseOptions,
) -> Result<ObjectRights> {
    if meta.deleted && !options.show_deleted {
        return Err(Error::not_found());
    }
    let rights = meta.rights(tx, tenant)?;
    rights.require_view()?;
    Ok(rights)
}

/// Makes every check that [`body`] makes, for a dashboard that is rendered later.
///
/// # Errors
/// As for [`body`].
pub fn require_shown(
    tx: &dyn Raw,
    tenant: &InProject,
    id: DashboardId,
    options: ResponseOptions,
) -> Result<()> {
    let meta = tx.meta::<Dashboard>(&(tenant.project.id, id))?.ok_or_else(Error::not_found)?;
    rights_if_shown(tx, tenant, &meta, options).map(drop)
}

/// Renders the detail view of a dashboard, with its tiles.
///
/// # Errors
/// 404 if the dashboard does not exist or is deleted; 403 if the caller may not view it.
pub fn body(
    tx: &dyn Raw,
    tenant: &InProject,
    id: DashboardId,
    options: ResponseOptions,
) -> Result<Versioned> {
    let key = (tenant.project.id, id);
    let mut json = Vec::with_capacity(2 * ITEM_SIZE);
    let version = tx.view::<Dashboard, _>(&key, |row| {
        let rights = rights_if_shown(tx, tenant, &row.meta, options)?;
        let mut visible = VisibleDashboards::of(tx, tenant)?;
        let mut details = None;
        if row.meta.detailed {
            details = tx.view::<Details, _>(&key, |row| visible_details(tx, &row, &mut visible))?;
        }
        let body = DashboardBody {
            own: row.json(),
            tail: Tail::of(tx, row.meta.created_by, rights)?,
            details: JsonText::new(details.as_deref().unwrap_or(NO_DETAILS)),
            delete_insights: options.delete_insights,
            tiles: WrittenBy(&mut |out| tiles::write(tx, &key, &rights, &mut visible, out)),
        };
        body.write_json(&mut json)?;
        Ok(row.version)
    })?;
    Ok(Versioned::new(version.ok_or_else(Error::not_found)?, json))
}

/// Returns the free-form fields. `use_dashboard` is null if the caller may not view that dashboard.
fn visible_details(
    tx: &dyn Raw,
    row: &Row<'_, Details>,
    visible: &mut VisibleDashboards<'_>,
) -> Result<Vec<u8>> {
    if visible.all {
        return Ok(row.fields.to_vec());
    }
    let mut details: DetailsFields = parse_fields(row)?;
    match details.use_dashboard {
        Some(source) if !visible.shows(tx, DashboardId(source))? => {
            details.use_dashboard = None;
            serde_json::to_vec(&details).map_err(Error::internal)
        }
        _ => Ok(row.fields.to_vec()),
    }
}
