//! Fair turns on the threads that serve requests.
//!
//! The runtime runs tasks in the order in which they became ready. Without turns, a client with hundreds of
//! connections would run hundreds of requests before another client's next one. While several clients send requests,
//! each has a few turns per round, and further tasks wait behind everything that is ready. A request takes one turn.
//! Each further part of a large body or response takes [`LARGE_PART_TURNS`] turns.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use crate::fair::fair_queue::RecentConsumers;

/// The turns of one client per round.
const TURNS_PER_ROUND: u32 = 8;
/// The turns that a large part of a body takes: to send 64 KiB takes about as long as a few small requests.
pub(super) const LARGE_PART_TURNS: u32 = 4;
/// The most clients counted in a round.
const MAX_CLIENTS_PER_ROUND: usize = 1024;

/// The turns of all clients of a listener.
#[derive(Default)]
pub(super) struct ClientTurns(Mutex<State>);

/// The state of a waiting task: the round in which it was deferred.
#[derive(Debug, Default)]
pub(super) struct TurnWaiter(Option<u64>);

#[derive(Default)]
struct State {
    /// The current round. It ends when a deferred task runs again, because everything that was ready before it has
    /// run then.
    round: u64,
    taken: HashMap<IpAddr, u32>,
    latest: RecentConsumers<IpAddr>,
}

impl TurnWaiter {
    /// Lets everything run first that is ready now.
    pub(super) fn poll_yield(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.take().is_some() {
            return Poll::Ready(());
        }
        self.0 = Some(0);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl ClientTurns {
    /// Waits for `turns` turns of `client`. Ready at once unless the client has fewer left in this round. `waiting`
    /// belongs to the waiting task.
    pub(super) fn poll_take(
        &self,
        client: IpAddr,
        turns: u32,
        waiting: &mut TurnWaiter,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        match self.try_take(client, turns, waiting.0, Instant::now()) {
            Ok(()) => {
                waiting.0 = None;
                Poll::Ready(())
            }
            Err(round) => {
                waiting.0 = Some(round);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Takes `turns` turns. Returns the current round if the client has fewer left in it. `put_off` is the round in
    /// which the task was deferred before.
    fn try_take(
        &self,
        client: IpAddr,
        turns: u32,
        put_off: Option<u64>,
        now: Instant,
    ) -> Result<(), u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.latest.note(client, now);
        if state.latest.others_active_for(client, now).is_none() {
            return Ok(());
        }
        if put_off == Some(state.round) || state.taken.len() >= MAX_CLIENTS_PER_ROUND {
            state.round += 1;
            state.taken.clear();
        }
        let round = state.round;
        let taken = state.taken.entry(client).or_default();
        if *taken + turns > TURNS_PER_ROUND {
            return Err(round);
        }
        *taken += turns;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::task::Waker;
    use std::time::Duration;

    use super::*;

    fn client(number: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, number).into()
    }

    #[test]
    fn busy_client_yields_to_other_clients_after_its_turns() {
        let (turns, now) = (ClientTurns::default(), Instant::now());
        let take = |number| turns.try_take(client(number), 1, None, now);
        for _ in 0..3 * TURNS_PER_ROUND {
            assert_eq!(take(1), Ok(()), "no other client sends requests");
        }
        assert_eq!(take(2), Ok(()));
        for _ in 0..TURNS_PER_ROUND {
            assert_eq!(take(1), Ok(()));
        }
        assert_eq!([take(1), take(1)], [Err(0), Err(0)]);
        assert_eq!(take(2), Ok(()), "the other client has its own turns");
        assert_eq!(turns.try_take(client(1), 1, Some(0), now), Ok(()), "a new round");
        assert_eq!(turns.try_take(client(1), 1, Some(0), now), Ok(()), "the same round");
        let later = now + Duration::from_secs(2);
        for _ in 0..3 * TURNS_PER_ROUND {
            let taken = turns.try_take(client(1), 1, None, later);
            assert_eq!(taken, Ok(()), "the other client is gone");
        }
    }

    #[test]
    fn large_part_costs_several_turns() {
        let (turns, now) = (ClientTurns::default(), Instant::now());
        assert_eq!(turns.try_take(client(1), 1, None, now), Ok(()));
        assert_eq!(turns.try_take(client(2), 1, None, now), Ok(()));
        for _ in 0..TURNS_PER_ROUND / LARGE_PART_TURNS {
            assert_eq!(turns.try_take(client(1), LARGE_PART_TURNS, None, now), Ok(()));
        }
        assert_eq!(turns.try_take(client(1), LARGE_PART_TURNS, None, now), Err(0));
        assert_eq!(turns.try_take(client(1), LARGE_PART_TURNS, Some(0), now), Ok(()), "new round");
    }

    #[test]
    fn yielding_task_runs_after_ready_tasks() {
        let (mut waiting, mut cx) = (TurnWaiter::default(), Context::from_waker(Waker::noop()));
        for _ in 0..2 {
            assert_eq!(waiting.poll_yield(&mut cx), Poll::Pending);
            assert_eq!(waiting.poll_yield(&mut cx), Poll::Ready(()));
        }
    }

    #[test]
    fn turn_table_has_a_maximum_size() {
        let (turns, now) = (ClientTurns::default(), Instant::now());
        for number in 0..3_000 {
            let client = Ipv4Addr::from_bits(number).into();
            assert_eq!(turns.try_take(client, 1, None, now), Ok(()));
        }
        assert!(turns.0.lock().unwrap().taken.len() <= MAX_CLIENTS_PER_ROUND);
    }
}
