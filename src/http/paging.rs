//! Paginated lists: `limit` and `offset` in, `count`, `next`, `previous` and `results` out. See
//! `docs/spec/paging.md`.

use url::form_urlencoded::Serializer;

use crate::app::ReadAccess;
use crate::base::error::Result;
use crate::base::json::{WriteJson, WrittenBy, output};
use crate::exchange::response::{ApiResponse, ApiResult};
use crate::input::python_integer;
use crate::store::{Order, Raw, Window};

use super::client::Client;
use super::extract::{Extract, ReceivedRequest};
use super::query::QueryParams;

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;
/// Larger offsets are read off the request threads, because skipping rows takes time.
const MAX_INLINE_OFFSET: usize = 1500;

output! {
    /// A page of a list.
    pub(super) struct Page<'a> {
        /// The total number of objects.
        count: u64,
        /// The URL of the next page, or null on the last page.
        #[schema(format = "uri")]
        next: Option<String>,
        /// The URL of the previous page, or null on the first page.
        #[schema(format = "uri")]
        previous: Option<String>,
        #[schema(max_items = 1000)]
        results: WrittenBy<'a> as Vec<serde_json::Value>,
    }
}

/// The requested page of a list, with the parts of its links.
#[derive(Clone)]
pub struct PageParams {
    limit: usize,
    offset: usize,
    /// Whether the list reads more rows than it returns.
    scans: bool,
    base: String,
    path: String,
    /// The other query parameters.
    query: QueryParams,
}

impl Extract for PageParams {
    fn extract(ReceivedRequest { app, parts, .. }: &mut ReceivedRequest) -> Result<Self> {
        let client = Client::of(parts, app.proxies());
        let base = client.base_url(app.config().public_url.as_deref()).into_owned();
        let query = parts.uri.query().unwrap_or_default();
        let most_values = app.config().caps.max_query_values;
        Self::parse(base, parts.uri.path(), query, most_values)
    }
}

impl PageParams {
    fn parse(base: String, path: &str, query: &str, max_values: usize) -> Result<Self> {
        let mut query = QueryParams::parse(query, max_values)?;
        let paging = query.take(&["limit", "offset"]);
        let number = |wanted: &str| {
            let (_, text) = paging.iter().rev().find(|(name, _)| name == wanted)?;
            let number = python_integer(text.trim()).filter(|number| *number >= 0)?;
            Some(usize::try_from(number).unwrap_or(usize::MAX))
        };
        Ok(Self {
            limit: number("limit")
                .filter(|limit| *limit > 0)
                .unwrap_or(DEFAULT_LIMIT)
                .min(MAX_LIMIT),
            offset: number("offset").unwrap_or(0),
            scans: false,
            base,
            path: path.to_owned(),
            query,
        })
    }

    /// Returns the requested range of the list, in the given order.
    pub fn window(&self, order: Order) -> Window {
        Window { offset: self.offset, limit: self.limit, order }
    }

    /// Sets whether the list reads all rows, as a search does.
    #[must_use]
    pub fn with_scan(self, scans: bool) -> Self {
        Self { scans, ..self }
    }

    /// Returns the query parameters other than `limit` and `offset`.
    pub const fn query(&self) -> &QueryParams {
        &self.query
    }

    /// Runs `list`, which returns the count and the items of a JSON array, and wraps the result in the list envelope.
    /// The list runs on this thread, and again on a blocking thread if it takes long. A deep offset, a large page and a
    /// list that reads all rows start on a blocking thread.
    ///
    /// # Errors
    /// The errors of `list`; 503 if too many long reads of the tenant wait, or if the read exceeds its time limit.
    pub fn respond<P: Send + 'static>(
        self,
        access: ReadAccess<P>,
        list: impl Fn(&dyn Raw, &ReadAccess<P>, &Self) -> Result<(u64, Vec<u8>)> + Send + 'static,
    ) -> impl Future<Output = ApiResult> + Send {
        let is_long = self.offset > MAX_INLINE_OFFSET || self.limit > DEFAULT_LIMIT || self.scans;
        access.read_maybe_long(is_long, move |tx, at| {
            let (count, items) = list(tx, at, &self)?;
            self.envelope(count, &items)
        })
    }

    fn envelope(&self, count: u64, items: &[u8]) -> ApiResult {
        let total = usize::try_from(count).unwrap_or(usize::MAX);
        let end = self.offset.saturating_add(self.limit);
        let next = (end < total).then(|| self.link(end));
        let previous = (self.offset > 0).then(|| self.link(self.offset.saturating_sub(self.limit)));
        let results = WrittenBy(&mut |out| {
            out.push(b'[');
            out.extend_from_slice(items);
            out.push(b']');
            Ok(())
        });
        let out = Page { count, next, previous, results }.to_json(items.len() + 512)?;
        Ok(ApiResponse::Json(out))
    }

    /// Returns the absolute URL of the page at `offset`. It keeps the other parameters, without duplicates and sorted
    /// by name, and omits an offset of 0.
    fn link(&self, offset: usize) -> String {
        let (limit, start) = (self.limit.to_string(), offset.to_string());
        let mut pairs: Vec<_> = self.query.pairs().chain([("limit", limit.as_str())]).collect();
        if offset > 0 {
            pairs.push(("offset", &start));
        }
        pairs.sort_by_key(|(name, _)| *name);
        let query = Serializer::new(String::new()).extend_pairs(pairs).finish();
        format!("{}{}?{query}", self.base, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> PageParams {
        let base = "http://a.example".to_owned();
        PageParams::parse(base, "/api/x/", query, usize::MAX).expect("within the limit")
    }

    #[test]
    fn invalid_limits_and_offsets_fall_back_to_defaults() {
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
    fn page_links_keep_the_other_parameters_sorted_by_name() {
        let page = page("search=a+b&offset=2&limit=2&b=%C3%A9");
        let base = "http://a.example/api/x/?b=%C3%A9&limit=2";
        assert_eq!(page.link(4), format!("{base}&offset=4&search=a+b"));
        assert_eq!(page.link(0), format!("{base}&search=a+b"));
    }
}
