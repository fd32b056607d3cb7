//! Public pages. Each version is rendered once and cached within a memory budget.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::app::blocking_pool::BlockingPool;
use crate::base::error::{Error, Result};
use crate::fair::fair_queue::{Consumer, FairQueueLimits};
use crate::metrics::{Counter, Metrics, Series};
use crate::resources::sharing::{SharingKey, TokenHash};
use crate::store::{BoundedRead, Snapshot};

/// The size of the cache, in bytes.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// The expected number of cached pages.
const EXPECTED_PAGES: usize = 2_048;
/// The memory of a cached page besides its text, in bytes.
const ENTRY_OVERHEAD: usize = 512;

/// Identifies a rendered page. Two pages with the same key have the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PageKey {
    /// [`Snapshot::generation`]. Versions are comparable only within one opening of the data file.
    pub generation: u64,
    /// The project and the shared object.
    pub object: SharingKey,
    /// The version of the object, which changes with everything that the page shows.
    pub version: u64,
    /// The hash of the token in the page's link to its own JSON. `None` for JSON.
    pub html: Option<TokenHash>,
}

/// The cache of rendered public pages. It does not check tokens: callers must check them for each request.
pub struct PublicPages {
    cache: Cache<PageKey, Bytes, WeightByBytes>,
    pool: BlockingPool,
    rendered: Counter,
}

#[derive(Clone)]
struct WeightByBytes;

impl Weighter<PageKey, Bytes> for WeightByBytes {
    fn weight(&self, _: &PageKey, page: &Bytes) -> u64 {
        (page.len() + ENTRY_OVERHEAD) as u64
    }
}

impl PublicPages {
    /// Creates an empty cache. `limits` bounds concurrent renderings, and `time_limit` the time of a rendering
    /// including its wait.
    pub fn new(limits: FairQueueLimits, time_limit: Duration, metrics: &Metrics) -> Result<Self> {
        // A single shard, because each shard would have part of the budget and refuse larger pages.
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(EXPECTED_PAGES)
            .weight_capacity(CACHE_BYTES)
            .build()
            .map_err(Error::internal)?;
        let (hashes, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Ok(Self {
            cache: Cache::with_options(options, WeightByBytes, hashes, lifecycle),
            pool: BlockingPool::new(limits, time_limit, metrics),
            rendered: metrics.counter(Series::PAGES_RENDERED, &[]),
        })
    }

    /// Returns the page with this key. A page that is not cached is rendered on a blocking thread, in the turn of
    /// `owner`, the object's organization. Concurrent callers wait for the same rendering.
    ///
    /// # Errors
    /// The errors of `render`; 503 if too many pages of the organization wait, or if the rendering exceeds its time
    /// limit.
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
            // A boxed slice has no spare capacity, so it takes exactly the memory that is counted.
            Ok(Bytes::from(render(tx)?.into_boxed_slice()))
        };
        self.cache.get_or_insert_async(key, self.pool.run(owner, tx, render)).await
    }

    /// Returns the size of all cached pages, in bytes.
    pub fn bytes(&self) -> u64 {
        self.cache.weight()
    }

    /// Returns the pool that renders pages.
    pub fn pool(&self) -> &BlockingPool {
        &self.pool
    }
}
