//! The orders of a list of insights.

use std::collections::BTreeSet;

use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::input::invalid_choice;
use crate::resources::dashboards::insights::Insight;
use crate::resources::shared::prelude::*;

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

/// The columns. No insight has a `last_viewed_at`, because a GET writes nothing.
const COLUMNS: [(&str, Option<Column>); 7] = [
    // The order of IDs is that of creation.
    ("id", Some(Column::Id)),
    ("created_at", Some(Column::Id)),
    ("name", Some(Column::Name)),
    ("updated_at", Some(Column::UpdatedAt)),
    ("last_modified_at", Some(Column::LastModifiedAt)),
    ("created_by", Some(Column::CreatedBy)),
    ("last_viewed_at", None),
];

impl FieldType for ListOrder {
    type Value = Self;

    /// Reads a column name, with `-` in front for descending.
    fn read(value: &Value) -> Result<Self> {
        let text = value.as_str().unwrap_or_default();
        let (direction, name) = match text.strip_prefix('-') {
            Some(name) => (Order::Descending, name),
            None => (Order::Ascending, text),
        };
        let found = COLUMNS.iter().find(|(known, _)| *known == name);
        let (_, column) = found.ok_or_else(|| invalid_choice(text))?;
        Ok(column.map_or_else(Self::default, |column| Self { column, direction }))
    }

    fn schema() -> Schema {
        let names = COLUMNS.iter().flat_map(|(name, _)| [(*name).to_owned(), format!("-{name}")]);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
    }
}

/// The value of a column. Null sorts after all other values.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SortKey {
    Text(String),
    Number(i64),
    Null,
}

/// The maximum number of texts that a sorted list keeps in memory. A window beyond them takes several walks.
const MAX_TEXTS: usize = 10_000;
/// The maximum number of other values that a sorted list keeps in memory.
const MAX_NUMBERS: usize = 100_000;

/// A place in a list: the value of the column, and the ID.
type Place = (SortKey, InsightId);

/// Finds the insights of a window in a list that is not stored in its order.
///
/// Each walk over the list passes all of it, and keeps a bounded number of places: those of the window, or, if too many
/// precede the window, the first of these. The next walk begins behind them.
pub(super) struct Sorted {
    order: ListOrder,
    /// The maximum number of places to keep, unless the window itself has more.
    most_kept: usize,
    /// The number of places to skip before those of the window.
    offset: usize,
    limit: usize,
    /// The last place that earlier walks skipped.
    skipped: Option<Place>,
    kept: BTreeSet<Place>,
}

impl Sorted {
    /// `count` is the number of live insights of the project. A window beyond them keeps none.
    pub(super) fn new(order: ListOrder, window: Window, count: u64) -> Self {
        let limit = if window.begins_within(count) { window.limit } else { 0 };
        let offset = if limit == 0 { 0 } else { window.offset };
        let most_kept = if order.column == Column::Name { MAX_TEXTS } else { MAX_NUMBERS };
        Self { order, most_kept, offset, limit, skipped: None, kept: BTreeSet::new() }
    }

    /// Returns whether this walk reaches the end of the window.
    fn is_last(&self) -> bool {
        self.offset.saturating_add(self.limit) <= self.most_kept.max(self.limit)
    }

    /// Returns the number of places that this walk keeps.
    fn most(&self) -> usize {
        if self.is_last() {
            self.offset.saturating_add(self.limit)
        } else {
            self.offset.min(self.most_kept)
        }
    }

    /// Adds an insight.
    pub(super) fn add(&mut self, row: &Row<'_, Insight>) -> Result<()> {
        let place = (sort_key(self.order.column, row)?, row.meta.id);
        self.insert(place);
        Ok(())
    }

    fn insert(&mut self, place: Place) {
        if self.skipped.as_ref().is_some_and(|skipped| !self.follows(&place, skipped)) {
            return;
        }
        self.kept.insert(place);
        if self.kept.len() > self.most() {
            match self.order.direction {
                Order::Ascending => self.kept.pop_last(),
                Order::Descending => self.kept.pop_first(),
            };
        }
    }

    fn follows(&self, place: &Place, other: &Place) -> bool {
        match self.order.direction {
            Order::Ascending => place > other,
            Order::Descending => place < other,
        }
    }

    /// Ends a walk. Returns whether the window needs another one.
    pub(super) fn needs_more(&mut self) -> bool {
        if self.is_last() || self.kept.len() < self.most() {
            return false;
        }
        self.offset -= self.kept.len();
        let mut skipped = std::mem::take(&mut self.kept);
        self.skipped = match self.order.direction {
            Order::Ascending => skipped.pop_last(),
            Order::Descending => skipped.pop_first(),
        };
        true
    }

    /// Returns the insights of the window, in order.
    pub(super) fn into_ids(self) -> Vec<InsightId> {
        let ids = self.kept.into_iter().map(|(_, id)| id);
        match self.order.direction {
            Order::Ascending => ids.skip(self.offset).collect(),
            Order::Descending => ids.rev().skip(self.offset).collect(),
        }
    }
}

fn sort_key(column: Column, row: &Row<'_, Insight>) -> Result<SortKey> {
    let time = |moment: Timestamp| SortKey::Number(moment.micros());
    Ok(match column {
        Column::Id => SortKey::Null,
        Column::CreatedBy => {
            let creator = row.meta.created_by.and_then(|id| i64::try_from(id.0).ok());
            creator.map_or(SortKey::Null, SortKey::Number)
        }
        Column::Name => {
            let name = SearchFields::of(row)?.name;
            name.map_or(SortKey::Null, |name| SortKey::Text(name.into_owned()))
        }
        Column::UpdatedAt => time(SearchFields::of(row)?.updated_at),
        Column::LastModifiedAt => time(SearchFields::of(row)?.last_modified_at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the window of a list of these names, and the number of walks.
    fn sorted(names: &[&str], order: ListOrder, window: Window, most: usize) -> (Vec<u64>, usize) {
        let new = Sorted::new(order, window, names.len() as u64);
        let (mut sorted, mut walks) = (Sorted { most_kept: most, ..new }, 1);
        loop {
            for (id, name) in (1..).zip(names) {
                sorted.insert((SortKey::Text((*name).to_owned()), InsightId(id)));
                assert!(sorted.kept.len() <= most.max(window.limit));
            }
            if !sorted.needs_more() {
                return (sorted.into_ids().into_iter().map(|id| id.0).collect(), walks);
            }
            walks += 1;
        }
    }

    #[test]
    fn every_window_of_a_list_is_sorted_with_few_places_in_memory() {
        let names = ["c", "a", "b", "a", "e", "d", "a"];
        for direction in [Order::Ascending, Order::Descending] {
            let mut expected = [2, 4, 7, 3, 1, 6, 5];
            if direction == Order::Descending {
                expected.reverse();
            }
            let order = ListOrder { column: Column::Name, direction };
            for (offset, limit) in
                (0..9).flat_map(|offset| (1..5).map(move |limit| (offset, limit)))
            {
                let window = Window { offset, limit, order: direction };
                let shown: Vec<u64> = expected.iter().skip(offset).take(limit).copied().collect();
                for most in 1..9 {
                    let found = sorted(&names, order, window, most).0;
                    assert_eq!(found, shown, "{window:?} with {most}");
                }
            }
        }
        let order = ListOrder { column: Column::Name, direction: Order::Ascending };
        let window = |offset| Window { offset, limit: 2, order: Order::Ascending };
        for (offset, walks) in [(0, 1), (1, 1), (2, 2), (4, 2), (5, 3), (6, 3), (7, 1)] {
            assert_eq!(sorted(&names, order, window(offset), 3).1, walks, "{offset}");
        }
    }
}
