//! The orders of a list of insights.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::ids::InsightId;
use crate::resources::dashboards::insights::Insight;
use crate::store::{Order, Row, Window};

use super::filter::SearchFields;

/// A column to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The order of creation.
    Id,
    /// By characters, null last.
    Name,
    /// When any field last changed.
    UpdatedAt,
    /// When a request to the insight last changed it.
    LastModifiedAt,
    /// By the number of the user, null last.
    CreatedBy,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListOrder {
    /// The column. Insights with equal values are ordered by ID.
    pub column: Column,
    /// The direction, of IDs too.
    pub direction: Order,
}

impl Default for ListOrder {
    fn default() -> Self {
        Self { column: Column::Id, direction: Order::Ascending }
    }
}

impl ListOrder {
    /// Parses a column name, with `-` in front for descending. An unknown column counts as the ID.
    pub fn parse(text: &str) -> Self {
        let (direction, name) = match text.strip_prefix('-') {
            Some(name) => (Order::Descending, name),
            None => (Order::Ascending, text),
        };
        let column = match name {
            // The order of IDs is that of creation.
            "id" | "created_at" => Column::Id,
            "name" => Column::Name,
            "updated_at" => Column::UpdatedAt,
            "last_modified_at" => Column::LastModifiedAt,
            "created_by" => Column::CreatedBy,
            _ => return Self::default(),
        };
        Self { column, direction }
    }
}

/// The value of a column. Null sorts after all other values.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SortKey {
    Text(String),
    Number(i64),
    Null,
}

/// The insights of a window of a list. Keeps no more of them than the window and what is before it.
pub(super) struct Sorted {
    order: ListOrder,
    most: usize,
    kept: BTreeSet<(SortKey, InsightId)>,
}

impl Sorted {
    /// `count` is the number of live insights of the project. A window beyond them keeps none.
    pub(super) fn new(order: ListOrder, window: Window, count: u64) -> Self {
        let is_reached = window.begins_within(count);
        let most = if is_reached { window.offset.saturating_add(window.limit) } else { 0 };
        Self { order, most, kept: BTreeSet::new() }
    }

    /// Adds an insight.
    pub(super) fn add(&mut self, row: &Row<'_, Insight>) -> Result<()> {
        let key = match self.order.column {
            Column::Id => SortKey::Null,
            Column::CreatedBy => {
                let creator = row.meta.created_by.and_then(|id| i64::try_from(id.0).ok());
                creator.map_or(SortKey::Null, SortKey::Number)
            }
            column => of_fields(column, SearchFields::of(row)?),
        };
        self.kept.insert((key, row.meta.id));
        if self.kept.len() > self.most {
            match self.order.direction {
                Order::Ascending => self.kept.pop_last(),
                Order::Descending => self.kept.pop_first(),
            };
        }
        Ok(())
    }

    /// Returns the insights of the window, in order.
    pub(super) fn into_ids(self, window: Window) -> Vec<InsightId> {
        let ids = self.kept.into_iter().map(|(_, id)| id);
        match self.order.direction {
            Order::Ascending => ids.skip(window.offset).collect(),
            Order::Descending => ids.rev().skip(window.offset).collect(),
        }
    }
}

fn of_fields(column: Column, fields: SearchFields<'_>) -> SortKey {
    match column {
        Column::Name => fields.name.map_or(SortKey::Null, |name| SortKey::Text(name.into_owned())),
        Column::UpdatedAt => SortKey::Number(fields.updated_at.micros()),
        Column::LastModifiedAt => SortKey::Number(fields.last_modified_at.micros()),
        Column::Id | Column::CreatedBy => SortKey::Null,
    }
}
