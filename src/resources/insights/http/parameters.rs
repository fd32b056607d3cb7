//! The query parameters of a list of insights.

use std::collections::BTreeSet;

use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::ArrayBuilder;

use crate::error::{Error, Result};
use crate::http::query::QueryParams;
use crate::ids::{DashboardId, UserId};
use crate::input::{DateTime, FieldType, Flag, Integer, Schema};
use crate::json;
use crate::resources::insights::filter::{Filter, QueryType, TimeRange};
use crate::resources::insights::list::ListOptions;
use crate::resources::insights::order::ListOrder;
use crate::time::Timestamp;

/// Maximum length of `search`, in characters.
const MAX_SEARCH: usize = 200;

/// Reads what a list shows.
///
/// # Errors
/// 400 with the name of the first parameter that has an invalid value.
pub(super) fn list_options(query: &QueryParams, now: Timestamp) -> Result<ListOptions> {
    let range = |from, until| {
        Ok::<_, Error>(TimeRange {
            from: moment(query, from, now)?,
            until: moment(query, until, now)?,
        })
    };
    let filter = Filter {
        search: search(query.text("search"))?,
        tags: query.tags("tags")?,
        short_id: query.text("short_id").map(str::to_owned),
        saved: query.read::<Flag>("saved")?,
        favorited: is_present(query, "favorited")?,
        mine: query.text("user") == Some("@me") || is_present(query, "user")?,
        created_by: query
            .read::<Numbers>("created_by")?
            .map(|ids| ids.into_iter().map(UserId).collect()),
        dashboards: query
            .read::<Numbers>("dashboards")?
            .map(|ids| ids.into_iter().map(DashboardId).collect())
            .unwrap_or_default(),
        query: query.read::<QueryType>("insight")?,
        modified: range("date_from", "date_to")?,
        created: range("created_date_from", "created_date_to")?,
        deleted: query.read::<Flag>("deleted")?.unwrap_or(false),
    };
    let order = query.read::<ListOrder>("order")?.unwrap_or_default();
    Ok(ListOptions { filter, order, basic: query.read::<Flag>("basic")?.unwrap_or(false) })
}

/// Returns whether a parameter is in the query, with either boolean.
fn is_present(query: &QueryParams, name: &str) -> Result<bool> {
    query.read::<Flag>(name)?;
    Ok(query.last(name).is_some())
}

fn search(text: Option<&str>) -> Result<Option<String>> {
    if text.is_some_and(|text| text.chars().count() > MAX_SEARCH) {
        let detail = "Search query must be 200 characters or fewer.";
        return Err(Error::field("search", "invalid_input", detail));
    }
    Ok(text.map(str::to_lowercase))
}

/// A JSON array of numbers, or a number, in a text.
struct Numbers;

impl FieldType for Numbers {
    type Value = BTreeSet<u64>;

    fn read(value: &Value) -> Result<BTreeSet<u64>> {
        let sent = value.as_str().and_then(|text| json::parse(text.as_bytes()).ok());
        let items = match sent {
            Some(Value::Array(items)) => items,
            Some(number @ Value::Number(_)) => vec![number],
            _ => vec![Value::Null],
        };
        let numbers =
            items.iter().map(|item| Ok(Integer::<0, { i64::MAX }>::read(item)?.unsigned_abs()));
        numbers
            .collect::<Result<_>>()
            .map_err(|_| Error::invalid("invalid_input", "Must be a JSON array of numbers."))
    }

    fn schema() -> Schema {
        ArrayBuilder::new().items(RefOr::T(Integer::<0, { i64::MAX }>::schema())).into()
    }
}

/// Reads a time: an absolute one, `dStart` for the beginning of the day, or a time before now such as `-7d`.
fn moment(query: &QueryParams, name: &str, now: Timestamp) -> Result<Option<Timestamp>> {
    let relative = match query.text(name) {
        Some("dStart") => Timestamp::parse(&now.day()),
        Some(text) => text.strip_prefix('-').and_then(|ago| now.before(ago)),
        None => None,
    };
    if relative.is_some() { Ok(relative) } else { query.read::<DateTime>(name) }
}
