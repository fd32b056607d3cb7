//! Long reads: on threads of their own, shared out by tenant, and only for as long as somebody waits for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::access::Admitted;
use crate::background::{Priority, in_background};
use crate::error::{Error, Result};
use crate::fair::{Consumer, FairLimits, FairQueue, QueueFull};
use crate::meters::{Counter, Histogram, Meters, Series, took};
use crate::store::{BoundedRead, Interest, Snapshot};

/// What a client whose read finds the queue full is told to wait, in seconds.
const RETRY_AFTER: u32 = 2;

/// Slots for long reads, which tenants take in turns. Clones share the same slots.
#[derive(Clone)]
pub struct BlockingPool {
    queue: FairQueue,
    /// How long a read may wait and run in all.
    time_limit: Duration,
    refused: Counter,
    times: Histogram,
}

impl BlockingPool {
    /// A pool that runs as many reads at a time as `limits` says.
    pub fn new(limits: FairLimits, time_limit: Duration, meters: &Meters) -> Self {
        Self {
            queue: FairQueue::new(limits),
            time_limit,
            refused: meters.counter(Series::READS_REFUSED, &[]),
            times: meters.histogram(Series::READ_TIME, &[]),
        }
    }

    /// Answers an admitted request by `read`: on this thread while that is short, and else from the start on a
    /// blocking thread.
    ///
    /// # Errors
    /// What `read` answers; 503 when too many reads of the tenant wait, or it takes longer than a request may.
    pub async fn read<P: Send + 'static, T: Send + 'static>(
        &self,
        at: Admitted<P>,
        read: impl Fn(&BoundedRead<'_>, &Admitted<P>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        {
            let short = BoundedRead::short(&at.tx);
            let answer = read(&short, &at);
            if !short.is_exceeded() {
                return answer;
            }
        }
        self.read_long(at, read).await
    }

    /// Answers an admitted request by `read` on a blocking thread, for what is known to be long.
    ///
    /// # Errors
    /// What `read` answers; 503 when too many reads of the tenant wait, or it takes longer than a request may.
    pub async fn read_long<P: Send + 'static, T: Send + 'static>(
        &self,
        at: Admitted<P>,
        read: impl FnOnce(&BoundedRead<'_>, &Admitted<P>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (consumer, tx) = (at.consumer, Arc::clone(&at.tx));
        self.run(consumer, tx, move |tx| read(tx, &at)).await
    }

    /// Runs `work` over a snapshot on a blocking thread when it is the consumer's turn. A caller that drops the future
    /// ends the work too.
    ///
    /// # Errors
    /// What `work` answers; 503 when too many reads of the consumer wait, or it takes longer than a request may.
    pub async fn run<T: Send + 'static>(
        &self,
        consumer: Consumer,
        tx: Arc<Snapshot>,
        work: impl FnOnce(&BoundedRead<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let interest = Arc::new(Interest::for_at_most(self.time_limit));
        let _waiting = Waiting(Arc::clone(&interest));
        let slot = self.queue.acquire(consumer).await.map_err(|QueueFull| self.refuse())?;
        let times = self.times.clone();
        let done = in_background(Priority::Answer, move || {
            // The work may outlive its client for a moment, and so must its slot.
            let _slot = slot;
            let begun = Instant::now();
            let answer = work(&BoundedRead::long(&tx, &interest));
            took(&times, begun.elapsed());
            answer
        });
        done.await?
    }

    fn refuse(&self) -> Error {
        self.refused.increment(1);
        Error::overloaded(RETRY_AFTER, "too many long reads of the tenant wait")
    }

    /// How many reads run.
    pub fn used(&self) -> usize {
        self.queue.used()
    }

    /// How many reads wait for a slot.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }
}

/// Held by whoever waits for a read.
struct Waiting(Arc<Interest>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}
