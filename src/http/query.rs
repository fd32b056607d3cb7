//! Query strings. A parameter may be repeated with a bounded number of different values.

use std::collections::HashSet;

use crate::error::{Error, Result};

/// Parses a query into parameters in order. Of equal name-value pairs only the last one is kept.
///
/// # Errors
/// 400 if a parameter has more than `most` different values.
pub(super) fn parse(query: &str, most: usize) -> Result<Vec<(String, String)>> {
    let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    deduplicate(pairs, most)
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

/// Returns the words of comma-separated lists in order, without duplicates.
///
/// # Errors
/// 400 with `name` as `attr` if there are more than `most` different words.
pub(super) fn split_comma_lists<'q>(
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(query: &str) -> Vec<(String, String)> {
        parse(query, 3).expect("within the limit")
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn duplicate_query_pairs_keep_only_the_last_one() {
        assert_eq!(parsed(""), []);
        assert_eq!(parsed("a=1&b=1&a=2&a=1&b=1"), pairs(&[("a", "2"), ("a", "1"), ("b", "1")]));
    }

    #[test]
    fn distinct_values_of_a_query_parameter_are_limited() {
        assert_eq!(parsed(&"a=1&".repeat(500)).len(), 1);
        assert_eq!(parsed("a=1&a=2&a=3&b=1&b=2&b=3").len(), 6);
        let refused = parse("b=1&a=1&a=2&a=3&a=%34", 3).expect_err("over the limit");
        assert_eq!((refused.status(), refused.code()), (400, "limit_reached"));
        assert_eq!(refused.attr(), Some("a"));
    }

    #[test]
    fn values_in_comma_separated_lists_count_together() {
        let lists = ["a, b,,a", "c"];
        assert_eq!(
            split_comma_lists(lists.into_iter(), "x", 3).expect("within the limit"),
            ["a", "b", "c"]
        );
        let refused = split_comma_lists(lists.into_iter(), "x", 2).expect_err("over the limit");
        assert_eq!(refused.attr(), Some("x"));
    }
}
