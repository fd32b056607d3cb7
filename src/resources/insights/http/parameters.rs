//! The query parameters of a list of insights.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::http::paging::PageParams;
use crate::ids::{DashboardId, UserId};
use crate::input::{FieldType, Flag, Tags};
use crate::resources::insights::filter::{Filter, QueryType, TimeRange};
use crate::resources::insights::list::ListOptions;
use crate::resources::insights::order::ListOrder;
use crate::time::Timestamp;

/// Maximum length of `search`, in characters.
const MAX_SEARCH: usize = 200;

/// Reads what a list shows.
///
/// # Errors
/// 400 if `created_by` or `dashboards` is not JSON of numbers, or `search` is too long. Other invalid values are
/// ignored.
pub(super) fn list_options(page: &PageParams, now: Timestamp) -> Result<ListOptions> {
    let value = |name| page.parameter(name).map(str::trim).filter(|text| !text.is_empty());
    let moment = |name| value(name).and_then(|text| read_moment(text, now));
    let range = |from, until| TimeRange { from: moment(from), until: moment(until) };
    let filter = Filter {
        search: search(value("search"))?,
        tags: tags(page),
        short_id: value("short_id").map(str::to_owned),
        saved: value("saved").map(|text| Flag::read(&text.into()).unwrap_or(true)),
        favorited: page.parameter("favorited").is_some(),
        mine: page.parameter("user").is_some(),
        created_by: numbers(value("created_by"), "created_by")?
            .map(|ids| ids.into_iter().map(UserId).collect()),
        dashboards: numbers(value("dashboards"), "dashboards")?
            .map(|ids| ids.into_iter().map(DashboardId).collect())
            .unwrap_or_default(),
        query: value("insight").and_then(QueryType::parse),
        modified: range("date_from", "date_to"),
        created: range("created_date_from", "created_date_to"),
        deleted: Flag::is_true(value("deleted")),
    };
    let order = value("order").map(ListOrder::parse).unwrap_or_default();
    Ok(ListOptions { filter, order, basic: Flag::is_true(value("basic")) })
}

fn search(text: Option<&str>) -> Result<Option<String>> {
    if text.is_some_and(|text| text.chars().count() > MAX_SEARCH) {
        let detail = "Search query must be 200 characters or fewer.";
        return Err(Error::field("search", "invalid_input", detail));
    }
    Ok(text.map(str::to_lowercase))
}

/// Reads the tags: JSON arrays of names, or names.
fn tags(page: &PageParams) -> Vec<String> {
    let mut tags = BTreeSet::new();
    for text in page.parameters("tags").filter(|text| !text.trim().is_empty()) {
        let names = match serde_json::from_str(text) {
            Ok(names @ Value::Array(_)) => names,
            _ => vec![text].into(),
        };
        tags.extend(Tags::read(&names).into_iter().flatten());
    }
    tags.into_iter().collect()
}

/// Reads a number, or a JSON array of numbers.
fn numbers(text: Option<&str>, name: &str) -> Result<Option<BTreeSet<u64>>> {
    let Some(text) = text else { return Ok(None) };
    let read = match serde_json::from_str(text) {
        Ok(Value::Number(number)) => number.as_u64().map(|number| BTreeSet::from([number])),
        Ok(Value::Array(items)) => items.iter().map(Value::as_u64).collect(),
        _ => None,
    };
    let wrong = || Error::field(name, "invalid_input", "Must be a JSON array of numbers.");
    read.ok_or_else(wrong).map(Some)
}

/// Reads a time: an absolute one, `dStart` for the beginning of the day, or a time before now such as `-7d`.
fn read_moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    if text == "dStart" {
        return Timestamp::parse(&now.day());
    }
    match text.strip_prefix('-') {
        Some(ago) => now.before(ago),
        None => Timestamp::parse(text),
    }
}
