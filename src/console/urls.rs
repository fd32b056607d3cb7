//! URLs of pages: their queries, and the page that the browser opens after a sign-in.

use std::fmt;

use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::ROOT;

/// The query of a URL, without the question mark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(String);

impl Query {
    /// Creates a query. It leaves out pairs with an empty value.
    pub(crate) fn of<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        Self::default().and(pairs)
    }

    /// Adds pairs, except those with an empty value.
    pub(super) fn and<'p>(self, pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> Self {
        let mut query = Serializer::new(self.0);
        for (name, value) in pairs {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        Self(query.finish())
    }

    /// Adds the number of items before the page of a list, unless it is 0.
    pub(crate) fn at(self, offset: u64) -> Self {
        if offset == 0 { self } else { self.and([("offset", offset.to_string().as_str())]) }
    }

    /// Returns a path with this query.
    pub(crate) fn url(&self, path: &str) -> String {
        if self.0.is_empty() { path.to_owned() } else { format!("{path}?{self}") }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The path and query of a page of the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Next(String);

impl Next {
    /// Parses a path with its query. Anything that is not below `/console/` becomes the home page.
    pub(super) fn parse(text: &str) -> Self {
        Self(Self::page(text).unwrap_or_else(|| ROOT.to_owned()))
    }

    fn page(text: &str) -> Option<String> {
        let base = Url::parse("http://steward.localhost/").ok()?;
        let url = base.join(text.strip_prefix(ROOT).map(|_| text)?).ok()?;
        let is_inside = url.origin() == base.origin() && url.path().starts_with(ROOT);
        let query = url.query().map_or(String::new(), |query| format!("?{query}"));
        is_inside.then(|| format!("{}{query}", url.path()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a query with the page, or an empty text for the home page.
    pub(super) fn to_query(&self) -> String {
        if self.0 == ROOT {
            return String::new();
        }
        format!("?next={}", byte_serialize(self.0.as_bytes()).collect::<String>())
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

    #[test]
    fn only_paths_of_the_console_are_followed_after_a_sign_in() {
        for inside in
            ["/console/", "/console/projects/1/dashboards/?search=a%20b", "/console/a%2Fb"]
        {
            assert_eq!(Next::parse(inside).as_str(), inside);
        }
        for outside in [
            "",
            "/",
            "//evil.example/console/",
            "https://evil.example/console/",
            "/\\evil.example",
            "/console",
            "/console/../api/schema/",
            "/console/%2e%2e/api/",
            "/console/..\\..\\api/",
            "javascript:alert(1)",
            "\t//evil.example",
            "console/",
        ] {
            assert_eq!(Next::parse(outside).as_str(), "/console/", "{outside}");
        }
        assert_eq!(Next::parse("/console//evil.example").as_str(), "/console//evil.example");
        let next = Next::parse("/console/x\r\nSet-Cookie: a");
        assert_eq!(next.as_str(), "/console/xSet-Cookie:%20a");
    }

    #[test]
    fn next_page_is_encoded_in_a_query() {
        let query = Next::parse("/console/a/?b=c&d").to_query();
        assert_eq!(query, "?next=%2Fconsole%2Fa%2F%3Fb%3Dc%26d");
        assert_eq!(Next::parse("/console/").to_query(), "");
    }
}
