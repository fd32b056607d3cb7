//! Turns for dear work that anybody may ask for: one at a time, and only so many who wait.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::error::{Error, Result};

/// How long who finds the queue full is told to stay away, in seconds.
const RETRY_AFTER: u32 = 2;

/// One turn, and places for those who wait for it.
pub struct Turns {
    turn: Arc<Semaphore>,
    /// The places of those who wait, and of who has the turn.
    places: Semaphore,
}

impl Turns {
    /// A turn that at most `waiting` wait for.
    pub fn new(waiting: usize) -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), places: Semaphore::new(waiting + 1) }
    }

    /// Runs `work` off the request threads when it is its turn.
    ///
    /// # Errors
    /// 503 where too many wait; what `work` answers.
    pub async fn take<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let full = |_| Error::unavailable(RETRY_AFTER, "too many wait for a public page");
        let _place = self.places.try_acquire().map_err(full)?;
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(Error::internal)?;
        let done = tokio::task::spawn_blocking(move || {
            // The work goes on when its client has gone, and so must its turn.
            let _turn = turn;
            work()
        });
        done.await.map_err(Error::internal)?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_works_some_wait_and_the_rest_are_sent_away() {
        let (turns, (end, ended)) = (Turns::new(1), mpsc::channel::<()>());
        let mut working = Box::pin(turns.take(move || Ok(ended.recv().is_ok())));
        let mut waiting = Box::pin(turns.take(|| Ok("waited")));
        assert!(working.as_mut().now_or_never().is_none());
        assert!(waiting.as_mut().now_or_never().is_none());
        let refused = turns.take(|| Ok(())).await.expect_err("full");
        assert_eq!(refused.status(), 503);
        end.send(()).expect("working");
        assert!(working.await.expect("worked"));
        assert_eq!(waiting.await.expect("worked"), "waited");
        turns.take(|| Ok(())).await.expect("free again");
    }

    #[tokio::test]
    async fn who_stops_waiting_leaves_a_place_and_who_stops_working_no_turn() {
        let (turns, (end, ended)) = (Turns::new(1), mpsc::channel::<()>());
        assert!(turns.take(move || Ok(ended.recv().is_ok())).now_or_never().is_none());
        for _ in 0..3 {
            assert!(turns.take(|| Ok(())).now_or_never().is_none());
        }
        end.send(()).expect("working");
        turns.take(|| Ok(())).await.expect("a turn");
    }
}
