//! The filters of a list of insights. See `docs/spec/insights.md`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::input::invalid_choice;
use crate::resources::dashboards::insights::{Insight, Meta};
use crate::resources::shared::prelude::*;

/// Filter of a list. An insight must match every criterion that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Text that the name, the derived name, the description or a tag contains, ignoring case. Must be in lower case.
    pub search: Option<String>,
    /// Normalized tags. If not empty, an insight must have at least one of them.
    pub tags: Vec<String>,
    /// The short ID.
    pub short_id: Option<String>,
    /// True for insights that were saved or are on a dashboard, false for insights that were not saved.
    pub saved: Option<bool>,
    /// Only favorites.
    pub favorited: bool,
    /// Only insights of the caller.
    pub mine: bool,
    /// Only insights of these users.
    pub created_by: Option<BTreeSet<UserId>>,
    /// If not empty, the dashboards that must all show the insight.
    pub dashboards: BTreeSet<DashboardId>,
    /// Only insights with a query of this type.
    pub query: Option<QueryType>,
    /// When the insight was last modified.
    pub modified: TimeRange,
    /// When the insight was created.
    pub created: TimeRange,
    /// List deleted insights instead of live ones.
    pub deleted: bool,
}

/// The times after `from` and before `until`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The time that all others follow.
    pub from: Option<Timestamp>,
    /// The time that all others precede.
    pub until: Option<Timestamp>,
}

impl TimeRange {
    fn holds(self, moment: Timestamp) -> bool {
        self.from.is_none_or(|from| moment > from) && self.until.is_none_or(|until| moment < until)
    }
}

/// A type of query, by the name of its legacy form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryType {
    /// A query of this kind, or the legacy form with this name.
    Named(&'static str, &'static str),
    /// A query in SQL.
    Sql,
    /// Any other query.
    Other,
}

/// The legacy names of queries, with the kinds of their sources.
const NAMED: [(&str, &str); 6] = [
    ("TRENDS", "TrendsQuery"),
    ("FUNNELS", "FunnelsQuery"),
    ("RETENTION", "RetentionQuery"),
    ("PATHS", "PathsQuery"),
    ("STICKINESS", "StickinessQuery"),
    ("LIFECYCLE", "LifecycleQuery"),
];

impl FieldType for QueryType {
    type Value = Self;

    fn read(value: &Value) -> Result<Self> {
        match value.as_str().unwrap_or_default() {
            "SQL" => Ok(Self::Sql),
            "JSON" => Ok(Self::Other),
            text => {
                let found = NAMED.iter().find(|(name, _)| *name == text);
                found
                    .map(|(name, kind)| Self::Named(name, kind))
                    .ok_or_else(|| invalid_choice(text))
            }
        }
    }

    fn schema() -> Schema {
        let names = NAMED.iter().map(|(name, _)| *name).chain(["SQL", "JSON"]);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
    }
}

impl QueryType {
    fn matches(self, row: &Row<'_, Insight>) -> Result<bool> {
        let QueryFields { query, filters } = parse_fields(row)?;
        let legacy = || filters.get("insight").and_then(Value::as_str);
        let Some(query) = query else {
            return Ok(matches!(self, Self::Named(name, _) if legacy() == Some(name)));
        };
        let source = query.get("source").and_then(Value::as_object).unwrap_or(&query);
        let kind = source.get("kind").and_then(Value::as_str).unwrap_or_default();
        Ok(match self {
            Self::Named(_, named) => kind == named,
            Self::Sql => kind == "HogQLQuery",
            Self::Other => kind != "HogQLQuery" && !NAMED.iter().any(|(_, named)| kind == *named),
        })
    }
}

/// The stored fields that decide the type of a query.
#[derive(Deserialize)]
struct QueryFields {
    query: Option<Map<String, Value>>,
    filters: Map<String, Value>,
}

/// The stored fields that the other criteria read.
#[derive(Deserialize)]
pub(super) struct SearchFields<'r> {
    #[serde(borrow)]
    pub(super) name: Option<Cow<'r, str>>,
    #[serde(borrow)]
    derived_name: Option<Cow<'r, str>>,
    #[serde(borrow)]
    description: Option<Cow<'r, str>>,
    tags: Vec<Cow<'r, str>>,
    created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) last_modified_at: Timestamp,
    favorited: bool,
    saved: bool,
}

impl<'r> SearchFields<'r> {
    pub(super) fn of(row: &Row<'r, Insight>) -> Result<Self> {
        parse_fields(row)
    }

    /// Returns whether one of the texts contains `sought`, which is in lower case.
    fn contains(&self, sought: &str) -> bool {
        let Self { name, derived_name, description, tags, .. } = self;
        let texts = [name, derived_name, description].into_iter().flatten().chain(tags);
        texts.into_iter().any(|text| text.to_lowercase().contains(sought))
    }
}

impl Filter {
    /// Returns whether the filter can leave out insights that the caller may see.
    pub fn narrows(&self) -> bool {
        Self { deleted: false, ..self.clone() } != Self::default()
    }

    fn needs_fields(&self) -> bool {
        self.search.is_some()
            || !self.tags.is_empty()
            || self.saved.is_some()
            || self.favorited
            || [self.modified, self.created] != [TimeRange::default(); 2]
    }

    /// Returns whether an insight matches the criteria about its creator.
    pub(super) fn matches_creator(&self, insight: &Meta, me: UserId) -> bool {
        let creator = insight.created_by;
        (!self.mine || creator == Some(me))
            && self.created_by.as_ref().is_none_or(|of| creator.is_some_and(|id| of.contains(&id)))
    }

    /// Returns whether an insight matches the criteria about its stored fields. `is_shown` returns whether a dashboard
    /// that the caller may see shows it.
    pub(super) fn matches_fields(
        &self,
        row: &Row<'_, Insight>,
        is_shown: impl FnOnce() -> Result<bool>,
    ) -> Result<bool> {
        if self.needs_fields() {
            let fields = SearchFields::of(row)?;
            let matches = (!self.favorited || fields.favorited)
                && self.modified.holds(fields.last_modified_at)
                && self.created.holds(fields.created_at)
                && (self.tags.is_empty()
                    || fields.tags.iter().any(|tag| self.tags.iter().any(|it| it == tag)))
                && self.search.as_ref().is_none_or(|sought| fields.contains(sought))
                && match self.saved {
                    Some(true) => fields.saved || is_shown()?,
                    Some(false) => !fields.saved,
                    None => true,
                };
            if !matches {
                return Ok(false);
            }
        }
        self.query.map_or(Ok(true), |query| query.matches(row))
    }
}
