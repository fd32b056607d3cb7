//! Request bodies that create or update an insight.

use std::collections::BTreeSet;
use std::fmt::Display;

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::ArrayBuilder;

use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::input;
use crate::input::{
    FieldType, Flag, FreeObject, Identifier, Integer, JsonObject, Nullable, ParsedWithKept, Schema,
    Tags, Text, python_type,
};
use crate::resources::dashboards::insights::Fields;
use crate::resources::dashboards::tiles::MAX_TILES_OF_INSIGHT;

/// `query`: a [`FreeObject`] with PostHog's error for other types.
#[derive(Debug, Clone, Copy)]
pub struct Query;

impl FieldType for Query {
    type Value = JsonObject;

    fn read(value: &Value) -> Result<JsonObject> {
        if !value.is_object() {
            return Err(Error::invalid("invalid_input", "Query must be a valid JSON object"));
        }
        FreeObject::read(value)
    }

    fn schema() -> Schema {
        FreeObject::schema()
    }
}

/// `dashboards`: the IDs of at most 1,000 dashboards, in any order and possibly repeated. The rule checks whether they
/// exist.
#[derive(Debug, Clone, Copy)]
pub struct DashboardSet;

impl FieldType for DashboardSet {
    type Value = BTreeSet<DashboardId>;

    fn read(value: &Value) -> Result<Self::Value> {
        let Value::Array(ids) = value else {
            let name = python_type(value);
            let detail = format!("Expected a list of items but got type \"{name}\".");
            return Err(Error::invalid("not_a_list", detail));
        };
        if ids.len() > MAX_TILES_OF_INSIGHT {
            let detail =
                format!("Ensure this field has no more than {MAX_TILES_OF_INSIGHT} elements.");
            return Err(Error::invalid("max_length", detail));
        }
        ids.iter().map(|id| read_id(id).map(DashboardId)).collect()
    }

    fn schema() -> Schema {
        let most = Some(MAX_TILES_OF_INSIGHT);
        ArrayBuilder::new().items(RefOr::T(Identifier::schema())).max_items(most).into()
    }
}

/// Reads one ID. As in PostHog, the errors do not say which element is invalid.
fn read_id(value: &Value) -> Result<u64> {
    if value.is_null() {
        return Err(Error::invalid("null", "This field may not be null."));
    }
    let id = Identifier::read(value).map_err(|_| {
        let name = python_type(value);
        let detail = format!("Incorrect type. Expected pk value, received {name}.");
        Error::invalid("incorrect_type", detail)
    })?;
    if id == u64::MAX {
        // The number is negative or too large. The error names it as it was sent.
        let sent = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
        return Err(no_dashboard(&sent));
    }
    Ok(id)
}

/// The error for a dashboard that does not exist.
pub(super) fn no_dashboard(id: &impl Display) -> Error {
    Error::invalid("does_not_exist", format!("Invalid pk \"{id}\" - object does not exist."))
}

input! {
    /// The fields of an insight that can be set. Every field is optional.
    pub struct InsightFields {
        /// Display name.
        name: Nullable<Text<400>> => insight,
        /// A name that the client derived from the query. Kept as sent.
        derived_name: Nullable<Text<400>> => insight,
        /// The query in the legacy format. Ignored if the insight has a `query`.
        filters: FreeObject => insight,
        /// The query. Any object is stored and returned as sent; it is never run.
        query: Nullable<Query> => insight,
        /// A number to sort by. Kept as sent.
        order: Nullable<Integer<-2_147_483_648, 2_147_483_647>> => insight,
        /// True deletes the insight; false restores it. Ignored on create.
        deleted: Flag => _,
        /// All dashboards that show the insight. Replaces the set.
        dashboards: DashboardSet => _,
        /// Description in plain text.
        description: Nullable<Text<400>> => insight,
        /// Tags. Stored in lower case, sorted, without duplicates.
        tags: Tags => insight,
        /// Whether the insight is a favorite.
        favorited: Flag => insight,
        /// Whether the insight was saved on its own. A request without the field sets it to true.
        saved: Flag => _,
    }
    fn apply_to(insight: &mut Fields);
}

/// A parsed request body of an insight. Whether it deletes or restores the insight is known even if another field is
/// invalid.
#[derive(Clone)]
pub struct ParsedBody {
    parsed: ParsedWithKept<InsightFields>,
    deleted: Option<bool>,
}

impl ParsedBody {
    /// Parses `body` and keeps the input or the error.
    pub fn new(body: &JsonObject) -> Self {
        Self {
            parsed: ParsedWithKept::new(body, "description"),
            deleted: body.get("deleted").and_then(|deleted| Flag::read(deleted).ok()),
        }
    }

    /// Returns the input for an insight with this description. That of a template may be longer than one that a request sets.
    ///
    /// # Errors
    /// 400 for the first invalid field.
    pub(super) fn get(&self, description: Option<&str>) -> Result<&InsightFields> {
        self.parsed.get(description)
    }

    /// Returns whether the body sends `deleted` as true.
    pub(super) fn deletes(&self) -> bool {
        self.deleted == Some(true)
    }

    /// Returns whether the body sends `deleted` as false.
    pub(super) fn restores(&self) -> bool {
        self.deleted == Some(false)
    }
}

/// Applies the request's fields to an insight, except `deleted` and `dashboards`. An insight with a query has no legacy
/// filters.
pub(super) fn apply(sent: InsightFields, insight: &mut Fields) {
    insight.saved = sent.saved.unwrap_or(true);
    sent.apply_to(insight);
    if insight.query.is_some() {
        insight.filters.clear();
    }
}
