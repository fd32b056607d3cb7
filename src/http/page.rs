//! Lists: limit and offset in, `count`, `next`, `previous` and `results` out (decisions §1;
//! facts-crosscutting §c).

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use form_urlencoded::Serializer;

use crate::access::Admitted;
use crate::error::{Error, Result};
use crate::json::Object;
use crate::state::{App, BlockingPool};
use crate::store::{BoundedRead, Order, Window};

use super::answer::{Answer, Answered};
use super::client::Client;
use super::query;

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;
/// Offsets beyond this are walked off the request threads: passing a row over takes time.
const SHALLOW: usize = 1500;

/// Which part of a list was asked for, and how to link to the parts beside it.
#[derive(Clone)]
pub struct Page {
    limit: usize,
    offset: usize,
    /// How many different values one parameter may have.
    most_values: usize,
    /// Whether the list looks at more rows than it shows.
    walks: bool,
    /// Where long reads run.
    pool: BlockingPool,
    base: String,
    path: String,
    /// The other query parameters, sorted by name.
    others: Vec<(String, String)>,
}

impl FromRequestParts<App> for Page {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let client = Client::of(parts, app.proxies());
        let base = client.base_url(app.config().public_url.as_deref()).into_owned();
        let query = parts.uri.query().unwrap_or_default();
        let most_values = app.config().caps.query_values;
        Self::parse(base, parts.uri.path(), query, most_values, app.long_reads().clone())
    }
}

impl Page {
    fn parse(
        base: String,
        path: &str,
        query: &str,
        most_values: usize,
        pool: BlockingPool,
    ) -> Result<Self> {
        let pairs = query::parse(query, most_values)?.into_iter();
        let (paging, mut others): (Vec<_>, Vec<_>) =
            pairs.partition(|(name, _)| name == "limit" || name == "offset");
        others.sort_by(|(a, _), (b, _)| a.cmp(b));
        let number = |wanted: &str| {
            let last = paging.iter().rev().find(|(name, _)| name == wanted);
            last.and_then(|(_, text)| python_integer(text))
        };
        Ok(Self {
            limit: number("limit")
                .filter(|limit| *limit > 0)
                .unwrap_or(DEFAULT_LIMIT)
                .min(MAX_LIMIT),
            offset: number("offset").unwrap_or(0),
            most_values,
            walks: false,
            pool,
            base,
            path: path.to_owned(),
            others,
        })
    }

    /// The window of the list that was asked for, from its beginning in the given order.
    pub fn window(&self, order: Order) -> Window {
        Window { offset: self.offset, limit: self.limit, order }
    }

    /// The same page, of a list that looks at every row if `walks` holds, as a search does.
    #[must_use]
    pub fn walking(self, walks: bool) -> Self {
        Self { walks, ..self }
    }

    /// The last value of another query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.others.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The different values of another query parameter.
    pub fn parameters(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.others.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.as_str())
    }

    /// The different words of another query parameter whose values are comma lists, and of the one with the other name
    /// that it goes by.
    ///
    /// # Errors
    /// 400 for more words than a parameter may have values.
    pub fn words(&self, name: &str, alias: Option<&str>) -> Result<Vec<String>> {
        let lists =
            self.parameters(name).chain(alias.into_iter().flat_map(|name| self.parameters(name)));
        query::words(lists, name, self.most_values)
    }

    /// Runs `list`, which answers the count and the items of a JSON array, and wraps them up: on this thread while it is
    /// short, and on a blocking thread when it is not. A deep offset, a long page and a list that walks run there from
    /// the start.
    ///
    /// # Errors
    /// What `list` answers; 503 when too many long reads of the tenant wait, or it takes longer than a request may.
    pub async fn answer<P: Send + 'static>(
        self,
        at: Admitted<P>,
        list: impl Fn(&BoundedRead<'_>, &Admitted<P>, &Self) -> Result<(u64, Vec<u8>)> + Send + 'static,
    ) -> Answered {
        let pool = self.pool.clone();
        let is_long = self.offset > SHALLOW || self.limit > DEFAULT_LIMIT || self.walks;
        let read = move |tx: &BoundedRead<'_>, at: &Admitted<P>| {
            let (count, items) = list(tx, at, &self)?;
            self.envelope(count, &items)
        };
        if is_long { pool.read_long(at, read).await } else { pool.read(at, read).await }
    }

    fn envelope(&self, count: u64, items: &[u8]) -> Answered {
        let total = usize::try_from(count).unwrap_or(usize::MAX);
        let end = self.offset.saturating_add(self.limit);
        let next = (end < total).then(|| self.link(end));
        let previous = (self.offset > 0).then(|| self.link(self.offset.saturating_sub(self.limit)));
        let mut out = Vec::with_capacity(items.len() + 512);
        Object::begin(&mut out)
            .field("count", &count)?
            .field("next", &next)?
            .field("previous", &previous)?
            .with("results", |out| {
                out.push(b'[');
                out.extend_from_slice(items);
                out.push(b']');
                Ok(())
            })?
            .end();
        Ok(Answer::Plain(out))
    }

    /// The absolute URL of the page at `offset`: the other parameters, each name and value once, sorted by name, and
    /// no offset where it would be 0.
    fn link(&self, offset: usize) -> String {
        let mut pairs = self.others.clone();
        pairs.push(("limit".to_owned(), self.limit.to_string()));
        if offset > 0 {
            pairs.push(("offset".to_owned(), offset.to_string()));
        }
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        let query = Serializer::new(String::new()).extend_pairs(pairs).finish();
        format!("{}{}?{query}", self.base, self.path)
    }
}

/// A number as Python's `int` reads it: outer whitespace, a plus sign, leading zeros and single
/// underscores between digits are fine. None for anything else, and for a negative one.
fn python_integer(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let well_formed = digits
        .split('_')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    if !well_formed {
        return None;
    }
    let digits = digits.replace('_', "");
    Some(digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use crate::fair::FairLimits;
    use crate::meters::Meters;

    use super::*;

    fn page(query: &str) -> Page {
        let limits =
            FairLimits { slots: 1, slots_each: 1, waiting_each: 1, waiting: 1, longest_wait: None };
        let pool = BlockingPool::new(limits, Duration::from_secs(1), &Meters::default());
        let base = "http://a.example".to_owned();
        Page::parse(base, "/api/x/", query, usize::MAX, pool).expect("few values")
    }

    fn links(query: &str, count: u64) -> Result<(serde_json::Value, serde_json::Value)> {
        let Answer::Plain(body) = page(query).envelope(count, b"")? else {
            return Err(Error::internal("a list answers 200"));
        };
        let body: serde_json::Value = serde_json::from_slice(&body).map_err(Error::internal)?;
        Ok((body["next"].clone(), body["previous"].clone()))
    }

    #[test]
    fn odd_limits_and_offsets_fall_back() {
        for (query, limit, offset) in [
            ("", 100, 0),
            ("limit=0&offset=-1", 100, 0),
            ("limit=-5&offset=x", 100, 0),
            ("limit=2.5&offset=1.5", 100, 0),
            ("limit=&offset=", 100, 0),
            ("limit=%202%20&offset=00002", 2, 2),
            ("limit=1_0&offset=1__0", 10, 0),
            ("limit=_1&offset=%2B7", 100, 7),
            ("limit=3&limit=4", 4, 0),
            ("limit=100000", 1000, 0),
            ("limit=99999999999999999999999&offset=99999999999999999999999", 1000, usize::MAX),
        ] {
            let page = page(query);
            assert_eq!((page.limit, page.offset), (limit, offset), "{query}");
        }
    }

    #[test]
    fn links_carry_the_other_parameters_sorted_by_name() -> Result<()> {
        let (next, previous) = links("search=a+b&offset=2&limit=2&b=%C3%A9", 10)?;
        assert_eq!(next, "http://a.example/api/x/?b=%C3%A9&limit=2&offset=4&search=a+b");
        assert_eq!(previous, "http://a.example/api/x/?b=%C3%A9&limit=2&search=a+b");
        Ok(())
    }

    #[test]
    fn the_ends_have_no_links() -> Result<()> {
        assert_eq!(links("limit=5", 5)?, (serde_json::Value::Null, serde_json::Value::Null));
        let (next, previous) = links("limit=5&offset=50", 5)?;
        assert_eq!(next, serde_json::Value::Null);
        assert_eq!(previous, "http://a.example/api/x/?limit=5&offset=45");
        Ok(())
    }

    proptest! {
        #[test]
        fn any_query_makes_a_page_and_links(query in ".*", count in 0u64..50) {
            let page = page(&query);
            prop_assert!((1..=1000).contains(&page.limit));
            prop_assert!(links(&query, count).is_ok());
        }

        #[test]
        fn following_next_shows_every_row_once(count in 0usize..300, limit in 1usize..40) {
            let mut seen = 0;
            let mut query = format!("limit={limit}");
            loop {
                let at = page(&query);
                prop_assert_eq!(at.offset, seen);
                seen += at.limit.min(count - at.offset);
                match links(&query, count as u64)?.0.as_str() {
                    Some(next) => query = next.split_once('?').expect("a query").1.to_owned(),
                    None => break,
                }
            }
            prop_assert_eq!(seen, count);
        }
    }
}
