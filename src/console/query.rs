//! Queries of URLs.

use std::fmt;

use url::form_urlencoded::Serializer;

/// The query of a URL, without the question mark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query(String);

impl Query {
    /// Creates a query. It leaves out pairs with an empty value.
    pub(super) fn of<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        Self::default().and(pairs)
    }

    /// Adds pairs, except those with an empty value.
    pub(super) fn and<'p>(self, pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        Self(Serializer::new(self.0).extend_pairs(pairs).finish())
    }

    /// Adds the number of items before the page of a list, unless it is 0.
    pub(super) fn at(self, offset: u64) -> Self {
        if offset == 0 { self } else { self.and([("offset", offset.to_string().as_str())]) }
    }

    /// Returns a path with this query.
    pub(super) fn url(&self, path: &str) -> String {
        if self.0.is_empty() { path.to_owned() } else { format!("{path}?{self}") }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_has_the_pairs_with_a_value() {
        let query = Query::of([("search", "a & b"), ("tags", "")]).at(50);
        assert_eq!(query.url("/console/"), "/console/?search=a+%26+b&offset=50");
        assert_eq!(Query::of([("tags", "")]).at(0).url("/console/"), "/console/");
    }
}
