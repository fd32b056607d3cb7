//! Turns on the threads that serve requests. The runtime runs what is ready in the order in which it became ready, so
//! a client with hundreds of connections would have hundreds of requests run before another client's one. While
//! several clients send requests, each has a few turns in a round; what wants more waits behind what is ready. A request
//! takes a turn, and so does each further part of a large body or answer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use crate::fair::Latest;

/// How many turns one client has in a round.
const EACH: u32 = 8;
/// How many clients are counted in a round.
const CLIENTS: usize = 1024;

/// The turns of all clients of a listener.
#[derive(Default)]
pub(super) struct Turns(Mutex<State>);

/// What a task that waits for its turn remembers: the round in which it was put off.
#[derive(Debug, Default)]
pub(super) struct Waiting(Option<u64>);

#[derive(Default)]
struct State {
    /// Ends when a task that was put off asks again: everything that was ready before it has run.
    round: u64,
    taken: HashMap<IpAddr, u32>,
    latest: Latest<IpAddr>,
}

impl Turns {
    /// Ready when it is `client`'s turn: at once, unless the client has had its turns in this round. `waiting` belongs to
    /// the task that waits.
    pub(super) fn poll_take(
        &self,
        client: IpAddr,
        waiting: &mut Waiting,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        match self.try_take(client, waiting.0, Instant::now()) {
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

    /// Takes a turn; the present round if there is none left in it. `put_off` is the round in which the task was put off
    /// before.
    fn try_take(&self, client: IpAddr, put_off: Option<u64>, now: Instant) -> Result<(), u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.latest.note(client, now);
        if state.latest.others_count_for(client, now).is_none() {
            return Ok(());
        }
        if put_off == Some(state.round) || state.taken.len() >= CLIENTS {
            state.round += 1;
            state.taken.clear();
        }
        let round = state.round;
        let taken = state.taken.entry(client).or_default();
        if *taken >= EACH {
            return Err(round);
        }
        *taken += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    fn client(number: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, number).into()
    }

    #[test]
    fn a_client_with_many_requests_waits_behind_what_is_ready() {
        let (turns, now) = (Turns::default(), Instant::now());
        for _ in 0..3 * EACH {
            assert_eq!(turns.try_take(client(1), None, now), Ok(()), "nobody else asks");
        }
        assert_eq!(turns.try_take(client(2), None, now), Ok(()));
        for _ in 0..EACH {
            assert_eq!(turns.try_take(client(1), None, now), Ok(()));
        }
        assert_eq!(turns.try_take(client(1), None, now), Err(0));
        assert_eq!(turns.try_take(client(1), None, now), Err(0));
        assert_eq!(turns.try_take(client(2), None, now), Ok(()), "the other has its own turns");
        assert_eq!(turns.try_take(client(1), Some(0), now), Ok(()), "another round");
        assert_eq!(turns.try_take(client(1), Some(0), now), Ok(()), "the same round");
        let later = now + Duration::from_secs(2);
        for _ in 0..3 * EACH {
            assert_eq!(turns.try_take(client(1), None, later), Ok(()), "the other has gone");
        }
    }

    #[test]
    fn any_number_of_clients_takes_a_bounded_amount_of_memory() {
        let (turns, now) = (Turns::default(), Instant::now());
        for number in 0..3_000 {
            let client = Ipv4Addr::from_bits(number).into();
            assert_eq!(turns.try_take(client, None, now), Ok(()));
        }
        assert!(turns.0.lock().unwrap().taken.len() <= CLIENTS);
    }
}
