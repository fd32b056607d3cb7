//! The numbers of a running service that are gathered when somebody asks for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::meters::{Counter, Gauge, Meters, Series, took};
use crate::store::{Figures, PageCache, Records, Store};

use super::App;

/// How long what was gathered counts.
const FRESH: Duration = Duration::from_secs(1);
/// How long the writer is waited for; while it is busy, what only it knows stays as it was.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often histograms are added up, whether or not anybody asks.
const ADD_UP_EVERY: Duration = Duration::from_secs(5);

/// Where gathered numbers go.
pub(super) struct Gathering {
    last: Arc<Mutex<Option<Gathered>>>,
    ready: Gauge,
    queued: Gauge,
    refused: Counter,
    bytes: Gauge,
    letters: Gauge,
    sweeps: Gauge,
    transfer: Gauge,
    values: Gauge,
    near_quota: Gauge,
    largest: Gauge,
    cache: Option<Cache>,
}

/// Where those of the page cache go. redb counts them only where it is built to.
struct Cache {
    bytes: Gauge,
    hits: Risen,
    misses: Risen,
    evictions: Risen,
}

/// The text, and when it was gathered.
type Gathered = (Instant, Arc<str>);

/// A counter of what is counted elsewhere, where it may begin anew.
struct Risen {
    counter: Counter,
    last: AtomicU64,
}

impl Risen {
    fn to(&self, now: u64) {
        let last = self.last.swap(now, Ordering::Relaxed);
        self.counter.increment(now.checked_sub(last).unwrap_or(now));
    }
}

impl Gathering {
    pub(super) fn new(meters: &Meters) -> Self {
        let gauge = |series| meters.gauge(series, &[]);
        let risen =
            |series| Risen { counter: meters.counter(series, &[]), last: AtomicU64::new(0) };
        meters.gauge(Series::BUILD, &[("version", env!("CARGO_PKG_VERSION"))]).set(1);
        Self {
            last: Arc::default(),
            ready: gauge(Series::READY),
            queued: gauge(Series::QUEUED),
            refused: meters.counter(Series::REFUSED, &[]),
            bytes: gauge(Series::FILE_SIZE),
            letters: gauge(Series::LETTERS),
            sweeps: gauge(Series::SWEEPS),
            transfer: gauge(Series::TRANSFER),
            values: gauge(Series::VALUES),
            near_quota: gauge(Series::NEAR_QUOTA),
            largest: gauge(Series::LARGEST),
            cache: cfg!(feature = "cache-metrics").then(|| Cache {
                bytes: gauge(Series::CACHE_SIZE),
                hits: risen(Series::CACHE_HITS),
                misses: risen(Series::CACHE_MISSES),
                evictions: risen(Series::CACHE_EVICTIONS),
            }),
        }
    }

    fn show(&self, app: &App, cache: Option<PageCache>) {
        let (ready, store) = (app.known_ready(), app.store());
        let quota = app.config().caps.organization_bytes as u64;
        let figure = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.ready.set(i32::from(ready));
        self.transfer.set(as_float(app.transfer_memory().used() as u64));
        let Figures { bytes, queued, refused, records } = store.figures(quota / 5 * 4);
        self.queued.set(figure(queued));
        self.refused.absolute(refused);
        self.bytes.set(as_float(bytes));
        // While the file is closed they stay as they were.
        if let Some(Records { letters, sweeps, values, large, largest }) = records {
            self.letters.set(as_float(letters));
            self.sweeps.set(as_float(sweeps));
            self.values.set(as_float(values));
            self.near_quota.set(as_float(large));
            self.largest.set(as_float(largest));
        }
        if let (Some(shown), Some(PageCache { bytes, hits, misses, evictions })) =
            (&self.cache, cache)
        {
            shown.bytes.set(as_float(bytes as u64));
            shown.hits.to(hits);
            shown.misses.to(misses);
            shown.evictions.to(evictions);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "what Prometheus reads are floats")]
fn as_float(number: u64) -> f64 {
    number as f64
}

/// Has `meters` hear of each commit, and adds them up for as long as `store` is there.
pub(super) fn watch(store: &Store, meters: &Meters) {
    if !meters.is_on() {
        return;
    }
    let times = meters.histogram(Series::COMMIT_TIME, &[]);
    let sizes = meters.histogram(Series::COMMIT_WRITES, &[]);
    store.on_commit(move |commit| {
        took(&times, commit.took);
        sizes.record(u32::try_from(commit.writes).unwrap_or(u32::MAX));
    });
}

impl App {
    /// The numbers of this service as text, at most a second old; empty where they are not counted.
    ///
    /// # Errors
    /// 500 where they cannot be written.
    pub async fn numbers(&self) -> Result<Arc<str>> {
        // Whoever asks meanwhile waits, and is given the same.
        let mut last = Arc::clone(&self.0.gathering.last).lock_owned().await;
        if let Some((_, text)) = last.as_ref().filter(|(moment, _)| moment.elapsed() < FRESH) {
            return Ok(Arc::clone(text));
        }
        let app = self.clone();
        // It goes on when its client has gone, so that others wait for it still.
        let gathered = tokio::spawn(async move {
            let text = app.gather().await?;
            *last = Some((Instant::now(), Arc::clone(&text)));
            Ok(text)
        });
        gathered.await.map_err(Error::internal)?
    }

    async fn gather(&self) -> Result<Arc<str>> {
        let cache = match self.0.gathering.cache {
            Some(_) => timeout(PATIENCE, self.store().page_cache()).await.ok().and_then(Result::ok),
            None => None,
        };
        let app = self.clone();
        let gathered = tokio::task::spawn_blocking(move || {
            app.0.gathering.show(&app, cache);
            app.0.config.meters.render()
        });
        Ok(gathered.await.map_err(Error::internal)?.into())
    }

    /// Adds up what histograms take in, for as long as the service is there.
    pub(super) fn add_up(&self) {
        let (meters, inner) = (self.0.config.meters.clone(), Arc::downgrade(&self.0));
        if meters.is_on() {
            tokio::spawn(async move {
                while inner.strong_count() > 0 {
                    meters.add_up();
                    tokio::time::sleep(ADD_UP_EVERY).await;
                }
            });
        }
    }
}
