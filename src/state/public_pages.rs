//! Public pages of dashboards: rendered once for each version, and kept within a budget of bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::error::{Error, Result};
use crate::fair::{Consumer, FairLimits};
use crate::ids::{DashboardId, ProjectId};
use crate::meters::{Counter, Meters, Series};
use crate::resources::sharing::TokenHash;
use crate::store::{BoundedRead, Snapshot};

use super::blocking::BlockingPool;

/// How many bytes of rendered pages are kept.
const BUDGET: u64 = 32 * 1024 * 1024;
/// About how many pages that is.
const EXPECTED_PAGES: usize = 2_048;
/// What a kept page takes besides its text, in bytes.
const OVERHEAD: usize = 512;

/// What a rendered page shows: two pages with the same key are the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PageKey {
    /// [`Snapshot::opening`]: versions are compared within one opening of the data file.
    pub opening: u64,
    /// The dashboard.
    pub dashboard: (ProjectId, DashboardId),
    /// Its version, which moves with everything that the page shows.
    pub version: u64,
    /// For HTML, which links to its own JSON: the token in that link. None for JSON.
    pub html: Option<TokenHash>,
}

/// The public pages of dashboards, rendered. Whether a token opens one is not decided here, but before each request
/// comes here.
pub struct PublicPages {
    kept: Cache<PageKey, Bytes, ByBytes>,
    pool: BlockingPool,
    rendered: Counter,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<PageKey, Bytes> for ByBytes {
    fn weight(&self, _: &PageKey, page: &Bytes) -> u64 {
        (page.len() + OVERHEAD) as u64
    }
}

impl PublicPages {
    /// No page yet. `limits` says how many are rendered at a time, `time_limit` how long one may take with its wait.
    ///
    /// # Errors
    /// None in practice: the cache is built of constants.
    pub fn new(limits: FairLimits, time_limit: Duration, meters: &Meters) -> Result<Self> {
        // One shard: each would have a part of the budget, and refuse a page that is larger than that.
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(EXPECTED_PAGES)
            .weight_capacity(BUDGET)
            .build()
            .map_err(Error::internal)?;
        let (hashes, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Ok(Self {
            kept: Cache::with_options(options, ByBytes, hashes, lifecycle),
            pool: BlockingPool::new(limits, time_limit, meters),
            rendered: meters.counter(Series::PAGES_RENDERED, &[]),
        })
    }

    /// The page with this key. One that is not kept is rendered on a blocking thread, when it is the turn of `owner`,
    /// the dashboard's organization; once for all who wait for it.
    ///
    /// # Errors
    /// What `render` answers; 503 when too many pages of the organization wait, or it takes longer than a request may.
    pub async fn get(
        &self,
        key: &PageKey,
        owner: Consumer,
        tx: Arc<Snapshot>,
        render: impl FnOnce(&BoundedRead<'_>) -> Result<Vec<u8>> + Send + 'static,
    ) -> Result<Bytes> {
        let rendered = self.rendered.clone();
        let render = move |tx: &BoundedRead<'_>| {
            rendered.increment(1);
            // Boxed, it takes no more memory than it is counted with.
            Ok(Bytes::from(render(tx)?.into_boxed_slice()))
        };
        self.kept.get_or_insert_async(key, self.pool.run(owner, tx, render)).await
    }

    /// How many bytes of pages are kept.
    pub fn bytes(&self) -> u64 {
        self.kept.weight()
    }

    /// Where pages are rendered.
    pub fn pool(&self) -> &BlockingPool {
        &self.pool
    }
}
