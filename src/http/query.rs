//! Query strings. A parameter may be repeated with a bounded number of different values.
//!
//! A parameter that an operation knows is read, or the request fails with its name in `attr`. A filter that was
//! ignored would return everything. See `docs/spec/paging.md`.

use std::collections::{BTreeSet, HashSet};

use axum::http::request::Parts;
use serde_json::Value;

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::base::json;
use crate::input::{FieldType, Tags, invalid_choice};

use super::extract::{Extract, ReceivedRequest};

/// The parameters of a query, in order. Of equal name-value pairs only the last one is kept.
#[derive(Debug, Clone)]
pub struct QueryParams {
    pairs: Vec<(String, String)>,
    /// The maximum number of different values per parameter.
    max_values: usize,
}

impl Extract for QueryParams {
    fn extract(request: &mut ReceivedRequest) -> Result<Self> {
        Self::of(&request.parts, &request.app)
    }
}

impl QueryParams {
    /// Parses the query of a request.
    ///
    /// # Errors
    /// 400 if a parameter has more different values than the service allows.
    pub fn of(parts: &Parts, app: &App) -> Result<Self> {
        Self::parse(parts.uri.query().unwrap_or_default(), app.config().caps.max_query_values)
    }

    /// Parses a query.
    ///
    /// # Errors
    /// 400 if a parameter has more than `max_values` different values.
    pub(super) fn parse(query: &str, max_values: usize) -> Result<Self> {
        let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Ok(Self { pairs: deduplicate(pairs, max_values)?, max_values })
    }

    /// Removes the parameters with one of these names, and returns them.
    pub(super) fn take(&mut self, names: &[&str]) -> Vec<(String, String)> {
        self.pairs.extract_if(.., |(name, _)| names.contains(&name.as_str())).collect()
    }

    /// Returns all parameters with their values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the last value of a parameter.
    pub fn last(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the different values of a parameter.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs().filter(move |(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Returns the last value of a parameter without surrounding whitespace. A blank value counts as absent.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.last(name).map(str::trim).filter(|text| !text.is_empty())
    }

    /// Reads the last value of a parameter. A blank value counts as absent.
    ///
    /// # Errors
    /// 400 with `name` as `attr` if the value is not a `K`.
    pub fn read<K: FieldType>(&self, name: &str) -> Result<Option<K::Value>> {
        self.text(name).map(|text| read_value::<K>(name, &text.into())).transpose()
    }

    /// Returns the tags that a parameter names, in order and without duplicates. A value is a tag or a JSON array of tags.
    ///
    /// # Errors
    /// 400 with `name` as `attr` if a value is no tag.
    pub fn tags(&self, name: &str) -> Result<Vec<String>> {
        let mut tags = BTreeSet::new();
        for text in self.all(name).filter(|text| !text.trim().is_empty()) {
            let names = match json::parse(text.as_bytes()) {
                Ok(names @ Value::Array(_)) => names,
                _ => vec![text].into(),
            };
            tags.extend(read_value::<Tags>(name, &names)?);
        }
        Ok(tags.into_iter().collect())
    }

    /// Returns the words of the comma-separated lists that a parameter holds, in order and without duplicates. Each word
    /// is one of `known`.
    ///
    /// # Errors
    /// 400 with `name` as `attr` if a word is unknown, if the lists are commas alone, or if there are more words than a
    /// parameter may have values.
    pub fn words(&self, name: &str, known: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let words = split_comma_lists(self.all(name), name, self.max_values)?;
        let unknown = words.iter().map(String::as_str).find(|word| !known(word));
        let commas = self.all(name).find(|list| words.is_empty() && !list.trim().is_empty());
        match unknown.or(commas) {
            Some(unknown) => Err(invalid_choice(unknown).with_attr_prefix(name)),
            None => Ok(words),
        }
    }
}

/// Reads a value of a parameter. The error names the parameter, not a place inside its value.
fn read_value<K: FieldType>(name: &str, value: &Value) -> Result<K::Value> {
    K::read(value).map_err(|error| error_of(name, &error))
}

fn error_of(name: &str, error: &Error) -> Error {
    Error::field(name, error.code(), error.detail().to_owned())
}

fn deduplicate(mut pairs: Vec<(String, String)>, most: usize) -> Result<Vec<(String, String)>> {
    if pairs.len() <= 1 {
        return Ok(pairs);
    }
    let mut known = HashSet::with_capacity(pairs.len());
    let mut is_last: Vec<bool> =
        pairs.iter().rev().map(|(name, value)| known.insert((name.as_str(), value))).collect();
    let mut names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    if let Some(name) = names.chunk_by(|one, other| one == other).find(|same| same.len() > most) {
        return Err(too_many(name.first().copied().unwrap_or_default(), most));
    }
    drop(known);
    pairs.retain(|_| is_last.pop().unwrap_or(true));
    Ok(pairs)
}

fn split_comma_lists<'q>(
    lists: impl Iterator<Item = &'q str>,
    name: &str,
    most: usize,
) -> Result<Vec<String>> {
    let mut known = HashSet::new();
    let words = lists.flat_map(|list| list.split(',')).map(str::trim);
    let words: Vec<_> =
        words.filter(|word| !word.is_empty() && known.insert(*word)).map(str::to_owned).collect();
    if words.len() > most { Err(too_many(name, most)) } else { Ok(words) }
}

fn too_many(name: &str, most: usize) -> Error {
    Error::field(
        name,
        "limit_reached",
        format!("A query parameter has at most {most} different values (--max-query-values)."),
    )
}
