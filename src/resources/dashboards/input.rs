//! What is sent to make or change a dashboard (facts-dashboards §2-§5).

use serde_json::{Map, Value};

use crate::access::levels::{COLLABORATORS_EDIT, EVERYONE_EDITS};
use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::input;
use crate::input::{
    Choice, Choices, Field, Flag, FreeForm, FreeObject, Identifier, Input, JsonObject, Kind,
    ListOf, Nested, Nullable, Parsed, Schema, Tags, Text,
};
use crate::patch::{Patch, set};

use super::tiles::{MOST, TileRef, Tiles};
use super::{Dashboard, DetailsShown};

/// What `restriction_level` takes.
pub struct Restriction;

impl Choices for Restriction {
    type Value = i64;
    const ALL: &'static [i64] = &[EVERYONE_EDITS, COLLABORATORS_EDIT];
}

/// `filters` and `variables`: an object, which replaces the whole; what is empty or null is passed over,
/// and no refusal but that of the size names the field (facts-dashboards §2).
pub struct Settings;

impl Field for Settings {
    type Out = Option<Map<String, Value>>;

    fn take(name: &str, value: Option<&Value>) -> Result<Self::Out> {
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(members)) if members.is_empty() => Ok(None),
            Some(value @ Value::Object(members)) => {
                FreeForm::read(value).map_err(|error| error.within(name))?;
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
    /// The request fields of a dashboard.
    pub struct NewDashboard {
        /// Its name.
        name: Nullable<Text<400>>,
        /// What it is for.
        description: Text<16_384>,
        /// Whether it stands on top of lists.
        pinned: Flag,
        /// Without effect on create.
        deleted: Flag,
        /// The template to make it from.
        use_template: Text<400>,
        /// The dashboard to make it from.
        use_dashboard: Nullable<Identifier>,
        /// Without effect on create.
        delete_insights: Flag,
        /// Words to find it by.
        tags: Tags,
        /// 21: everyone in the project edits; 37: only collaborators do.
        restriction_level: Choice<Restriction>,
        /// What its tiles are filtered by.
        filters: Settings,
        /// Whether what the tiles of `use_dashboard` show is copied too.
        duplicate_tiles: Flag,
    }
}

input! {
    /// What may be changed of a dashboard.
    pub struct DashboardPatch {
        /// Its name.
        name: Nullable<Text<400>>,
        /// What it is for.
        description: Text<16_384>,
        /// Whether it stands on top of lists.
        pinned: Flag,
        /// True removes it; false, alone in the body, brings it back.
        deleted: Flag,
        /// Without effect here.
        use_template: Text<400>,
        /// Without effect here.
        use_dashboard: Nullable<Identifier>,
        /// Whether insights that stand on no other dashboard are removed with it.
        delete_insights: Flag,
        /// Words to find it by.
        tags: Tags,
        /// 21: everyone in the project edits; 37: only collaborators do.
        restriction_level: Choice<Restriction>,
        /// What its tiles are filtered by.
        filters: Settings,
        /// What its queries are given.
        variables: Settings,
        /// What to do with its tiles.
        tiles: Tiles,
        /// The tiles to copy, with what they show.
        duplicate_tiles: ListOf<Nested<TileRef>, MOST>,
    }
}

/// A body for a dashboard, parsed, and whether it only brings a removed dashboard back.
#[derive(Clone)]
pub struct Sent<T> {
    parsed: Parsed<T>,
    only_deleted: bool,
}

impl<T: Input> Sent<T> {
    /// Parses `body` and keeps the outcome.
    pub fn of(body: &JsonObject) -> Self {
        Self {
            parsed: Parsed::of(body),
            only_deleted: body.len() == 1 && body.contains_key("deleted"),
        }
    }

    /// The input.
    ///
    /// # Errors
    /// 400 for the first bad field.
    pub fn get(&self) -> Result<&T> {
        self.parsed.get()
    }
}

impl Sent<DashboardPatch> {
    /// Whether the body is `{"deleted": false}` and nothing else.
    pub(super) fn only_restores(&self) -> bool {
        self.only_deleted && self.get().is_ok_and(|patch| patch.deleted == Some(false))
    }
}

fn require_one(template: Option<&str>, dashboard: Option<u64>) -> Result<()> {
    if template.is_some_and(|name| !name.is_empty()) && dashboard.is_some_and(|id| id != 0) {
        return Err(Error::invalid(
            "invalid_input",
            "`use_dashboard` and `use_template` cannot be used together",
        ));
    }
    Ok(())
}

/// A dashboard is made from a template or from another dashboard, not from both.
pub(super) fn require_one_source(patch: &DashboardPatch) -> Result<()> {
    require_one(patch.use_template.as_deref(), patch.use_dashboard.clone().value())
}

/// The template, or the dashboard, that a new one is made from; at most one of them (facts-dashboards §5).
pub(super) fn source(new: &NewDashboard) -> Result<(Option<&str>, Option<DashboardId>)> {
    let template = new.use_template.as_deref().filter(|name| !name.is_empty());
    let dashboard = new.use_dashboard.clone().value().filter(|id| *id != 0);
    require_one(template, dashboard)?;
    Ok((template, dashboard.map(DashboardId)))
}

/// Writes what was sent into a new dashboard.
pub(super) fn fill(new: NewDashboard, dashboard: &mut Dashboard, details: &mut DetailsShown) {
    let NewDashboard {
        name,
        description,
        pinned,
        deleted: _,
        use_template: _,
        use_dashboard: _,
        delete_insights: _,
        tags,
        restriction_level,
        filters,
        duplicate_tiles: _,
    } = new;
    let shared = Shared { name, description, pinned, tags, restriction_level, filters };
    shared.apply(dashboard, details);
}

/// Writes what was sent into a dashboard.
pub(super) fn apply(patch: DashboardPatch, dashboard: &mut Dashboard, details: &mut DetailsShown) {
    let DashboardPatch {
        name,
        description,
        pinned,
        deleted,
        use_template: _,
        use_dashboard: _,
        delete_insights: _,
        tags,
        restriction_level,
        filters,
        variables,
        tiles: _,
        duplicate_tiles: _,
    } = patch;
    let shared = Shared { name, description, pinned, tags, restriction_level, filters };
    shared.apply(dashboard, details);
    set(&mut dashboard.shown.deleted, deleted);
    dashboard.head.deleted = dashboard.shown.deleted;
    set(&mut details.variables, variables);
}

/// What creating and changing have in common.
struct Shared {
    name: Patch<String>,
    description: Option<String>,
    pinned: Option<bool>,
    tags: Option<Vec<String>>,
    restriction_level: Option<i64>,
    filters: Option<Map<String, Value>>,
}

impl Shared {
    fn apply(self, dashboard: &mut Dashboard, details: &mut DetailsShown) {
        let Dashboard { head, shown } = dashboard;
        self.name.apply(&mut shown.name);
        set(&mut shown.description, self.description);
        set(&mut shown.pinned, self.pinned);
        set(&mut shown.tags, self.tags);
        set(&mut shown.restriction_level, self.restriction_level);
        head.restriction_level = shown.restriction_level;
        set(&mut details.filters, self.filters);
    }
}
