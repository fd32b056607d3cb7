//! Request bodies that create or update a dashboard.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::input;
use crate::input::{
    Choice, Field, FieldType, Flag, FreeForm, FreeObject, Identifier, Input, JsonObject, ListOf,
    Nested, Nullable, Parsed, Schema, Tags, Text,
};
use crate::resources::access_controls::levels::Restriction;

use super::tiles::{DuplicateTile, MAX_TILES, Tiles};
use super::{DetailsFields, Fields};

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

/// A parsed request body of a dashboard. Whether it restores the dashboard is known even if another field is invalid.
#[derive(Clone)]
pub struct ParsedBody<T> {
    parsed: Parsed<T>,
    restores: bool,
}

impl<T: Input> ParsedBody<T> {
    /// Parses `body` and keeps the input or the error.
    pub fn new(body: &JsonObject) -> Self {
        let deleted = body.get("deleted").and_then(|deleted| Flag::read(deleted).ok());
        Self { parsed: Parsed::new(body), restores: deleted == Some(false) }
    }

    /// Returns the input.
    ///
    /// # Errors
    /// 400 for the first invalid field.
    pub fn get(&self) -> Result<&T> {
        self.parsed.get()
    }
}

impl ParsedBody<DashboardPatch> {
    /// Returns whether the body sends `deleted` as false.
    pub(super) const fn restores(&self) -> bool {
        self.restores
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

/// Refuses a request with both a template and a source dashboard.
pub(super) fn require_one_source(patch: &DashboardPatch) -> Result<()> {
    require_one(patch.use_template.as_deref(), patch.use_dashboard.clone().value())
}

/// Returns the template or the dashboard to create from. An empty name and 0 count as not sent.
pub(super) fn source(new: &NewDashboard) -> Result<(Option<&str>, Option<DashboardId>)> {
    let template = new.use_template.as_deref().filter(|name| !name.is_empty());
    let dashboard = new.use_dashboard.clone().value().filter(|id| *id != 0);
    require_one(template, dashboard)?;
    Ok((template, dashboard.map(DashboardId)))
}
