//! Long reads. They run on threads of their own, shared fairly among tenants, and stop when their client has
//! disconnected.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::auth::Caller;
use crate::base::erased::{AnyValue, downcast, erase, typed};
use crate::base::error::{Error, Result};
use crate::fair::fair_queue::{Consumer, FairQueue, FairQueueLimits, QueueFull};
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::metrics::{Counter, Histogram, Metrics, Series, record_seconds};
use crate::store::{BoundedRead, CancelToken, Raw, Snapshot};

use super::App;

/// The `Retry-After` when the queue is full, in seconds.
const RETRY_AFTER: u32 = 2;

/// Proof that the caller is authorized to read, with the snapshot that authorization used. The whole response is read
/// from that snapshot.
pub struct ReadAccess<P> {
    /// The service that reads.
    pub app: App,
    /// The authenticated caller.
    pub caller: Caller,
    /// The tenant of the route.
    pub tenant: P,
    /// The tenant that the request counts towards.
    pub consumer: Consumer,
    /// The snapshot of the response.
    pub snapshot: Arc<Snapshot>,
}

impl<P: Send + 'static> ReadAccess<P> {
    /// Returns the snapshot as a transaction of the type that reads and renderings use.
    pub fn tx(&self) -> &dyn Raw {
        &*self.snapshot
    }

    /// Runs `read`: on this thread while it is short, otherwise again from the start on a blocking thread.
    ///
    /// # Errors
    /// The errors of `read`; 503 if too many reads of the tenant wait, or if the read exceeds its time limit.
    pub fn read<T: Send + 'static>(
        self,
        read: impl Fn(&dyn Raw, &Self) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        self.read_maybe_long(false, read)
    }

    /// Runs `read` as [`read`](Self::read) does. If it is known to be long, it begins on a blocking thread.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_maybe_long<T: Send + 'static>(
        self,
        is_long: bool,
        read: impl Fn(&dyn Raw, &Self) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        let short = BoundedRead::short(&self.snapshot);
        let response = (!is_long).then(|| read(&short, &self));
        let response = response.filter(|_| !short.is_exceeded());
        complete(response.ok_or_else(|| {
            let (app, consumer, tx) = (self.app.clone(), self.consumer, Arc::clone(&self.snapshot));
            LongRead { app, consumer, tx, work: Box::new(move |tx| read(tx, &self).map(erase)) }
        }))
    }
}

/// The work of a long read.
type Work = Box<dyn FnOnce(&BoundedRead<'_>) -> Result<AnyValue> + Send>;

/// A read that runs on a blocking thread.
struct LongRead {
    app: App,
    consumer: Consumer,
    tx: Arc<Snapshot>,
    work: Work,
}

/// Returns the response of a short read, or runs the long one.
async fn complete<T: 'static>(response: Result<Result<T>, LongRead>) -> Result<T> {
    match response {
        Ok(response) => response,
        Err(LongRead { app, consumer, tx, work }) => {
            downcast(app.long_reads().run_erased(consumer, tx, work).await?)
        }
    }
}

/// Slots for long reads, given to tenants in turn.
pub struct BlockingPool {
    queue: FairQueue,
    /// The longest time for a read, including its wait.
    time_limit: Duration,
    refused: Counter,
    times: Histogram,
}

impl BlockingPool {
    /// Creates a pool with the slots and queues of `limits`.
    pub fn new(limits: FairQueueLimits, time_limit: Duration, metrics: &Metrics) -> Self {
        Self {
            queue: FairQueue::new(limits),
            time_limit,
            refused: metrics.counter(Series::READS_REFUSED, &[]),
            times: metrics.histogram(Series::READ_TIME, &[]),
        }
    }

    /// Runs `work` over a snapshot on a blocking thread when it is the consumer's turn. Dropping the future stops the
    /// work too.
    ///
    /// # Errors
    /// The errors of `work`; 503 if too many reads of the consumer wait, or if the read exceeds its time limit.
    pub fn run<T: Send + 'static>(
        &self,
        consumer: Consumer,
        tx: Arc<Snapshot>,
        work: impl FnOnce(&BoundedRead<'_>) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        typed(self.run_erased(consumer, tx, Box::new(move |tx| work(tx).map(erase))))
    }

    async fn run_erased(
        &self,
        consumer: Consumer,
        tx: Arc<Snapshot>,
        work: Work,
    ) -> Result<AnyValue> {
        let interest = Arc::new(CancelToken::with_timeout(self.time_limit));
        let _waiting = CancelOnDrop(Arc::clone(&interest));
        let slot = self.queue.acquire(consumer).await.map_err(|QueueFull| {
            self.refused.increment(1);
            Error::overloaded(RETRY_AFTER, "too many long reads of the tenant are waiting")
        })?;
        let times = self.times.clone();
        let done = run_low_priority(Priority::Answer, move || {
            // The work may run a moment longer than its client waits, so it holds the slot itself.
            let _slot = slot;
            let begun = Instant::now();
            let response = work(&BoundedRead::long(&tx, &interest));
            record_seconds(&times, begun.elapsed());
            response
        });
        done.await?
    }

    /// Returns the number of running reads.
    pub fn used(&self) -> usize {
        self.queue.used()
    }

    /// Returns the number of reads that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }
}

/// Cancels a read when its caller drops the future.
struct CancelOnDrop(Arc<CancelToken>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
