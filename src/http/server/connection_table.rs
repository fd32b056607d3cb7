//! Limits open connections: a share per client network, with idle connections closed to make room.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use crate::fair::fair_queue;

use super::ServerLimits;
use super::turns::{ClientTurns, LARGE_PART_TURNS, TurnWaiter};

/// The number of loopback connections accepted beyond the limit if no idle connection can be closed, so that probes
/// get in.
pub(super) const LOOPBACK_RESERVE: usize = 16;

/// Sockets beyond all slots: those of closed connections that are not dropped yet, and the one just accepted.
pub(super) const CLOSING_SOCKETS: usize = 16;

/// The open connections. Clones share one table.
#[derive(Clone)]
pub(super) struct ConnectionTable(Arc<Shared>);

struct Shared {
    limits: ServerLimits,
    sockets: Arc<Semaphore>,
    groups: Mutex<ClientGroups>,
    /// The number of the next connection that becomes idle.
    next_idle: AtomicU64,
    turns: ClientTurns,
    is_stopping: watch::Sender<bool>,
}

/// The slot of an open connection. Dropping it frees the slot.
pub(super) struct Slot {
    group: ClientGroup,
    table: ConnectionTable,
    state: Arc<ConnectionState>,
    /// What the service left of the body of the current request.
    pub(super) unread: Mutex<Option<Incoming>>,
    /// Whether the bytes that arrive belong to a request that has its response.
    pub(super) is_arriving: AtomicBool,
    _socket: OwnedSemaphorePermit,
}

/// A connection that was admitted.
pub(super) struct AcceptedConnection {
    pub(super) slot: Arc<Slot>,
    /// Ready when the slot was given to another connection. Drop this connection at once.
    pub(super) closed: oneshot::Receiver<Infallible>,
    /// Whether an idle connection was closed to make room.
    pub(super) replaced_idle: bool,
}

/// Clients that share a connection limit: one network, or all clients of one trusted proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ClientGroup {
    network: IpAddr,
    is_proxy: bool,
}

/// An open connection in the table. Dropping it closes the connection.
struct ConnectionEntry {
    state: Arc<ConnectionState>,
    _close: oneshot::Sender<Infallible>,
}

/// The open connections of each group. A group without connections has no entry.
#[derive(Default)]
struct ClientGroups(HashMap<ClientGroup, Vec<ConnectionEntry>>);

impl ConnectionTable {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        let sockets = limits.connections.saturating_add(LOOPBACK_RESERVE + CLOSING_SOCKETS);
        Self(Arc::new(Shared {
            limits: limits.clone(),
            sockets: Arc::new(Semaphore::new(sockets.min(Semaphore::MAX_PERMITS))),
            groups: Mutex::default(),
            next_idle: AtomicU64::new(0),
            turns: ClientTurns::default(),
            is_stopping: watch::Sender::new(false),
        }))
    }

    /// Ends the wait for bodies that no handler reads.
    pub(super) fn stop(&self) {
        self.0.is_stopping.send_replace(true);
    }

    /// Waits until another socket may be open. Sockets beyond the limits are about to be dropped.
    pub(super) async fn socket(&self) -> io::Result<OwnedSemaphorePermit> {
        Arc::clone(&self.0.sockets).acquire_owned().await.map_err(io::Error::other)
    }

    /// Admits a connection from `peer`. Returns `None` if no slot is free and no idle connection may be closed.
    pub(super) fn admit(
        &self,
        peer: SocketAddr,
        socket: OwnedSemaphorePermit,
    ) -> Option<AcceptedConnection> {
        let limits = &self.0.limits;
        let address = peer.ip().to_canonical();
        let group = if limits.trusted_proxies.trusts(address) {
            ClientGroup { network: address, is_proxy: true }
        } else {
            ClientGroup { network: fair_queue::client_network(address), is_proxy: false }
        };
        let mut groups = self.lock();
        let replaced_idle = groups.make_room(group, address, limits)?;
        let state = Arc::new(ConnectionState(AtomicU64::new(self.next_idle())));
        let (close, closed) = oneshot::channel();
        let entry = ConnectionEntry { state: Arc::clone(&state), _close: close };
        groups.0.entry(group).or_default().push(entry);
        drop(groups);
        let (unread, is_arriving) = (Mutex::default(), AtomicBool::default());
        let slot = Slot { group, table: self.clone(), state, unread, is_arriving, _socket: socket };
        Some(AcceptedConnection { slot: Arc::new(slot), closed, replaced_idle })
    }

    fn lock(&self) -> MutexGuard<'_, ClientGroups> {
        self.0.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_idle(&self) -> u64 {
        self.0.next_idle.fetch_add(1, Ordering::Relaxed)
    }
}

impl Slot {
    /// Records the arrival of a request.
    ///
    /// # Errors
    /// `ConnectionAborted` if the slot was given to another connection.
    pub(super) fn begin_request(&self) -> io::Result<()> {
        let begin = |state: u64| (state != CLOSED).then_some(ACTIVE);
        if self.state.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, begin).is_ok() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "the connection was closed to make room for another",
        ))
    }

    /// Waits for the client's turn. Connections of a proxy carry many clients and do not wait.
    pub(super) fn poll_turn(&self, waiting: &mut TurnWaiter, cx: &mut Context<'_>) -> Poll<()> {
        if self.group.is_proxy {
            return Poll::Ready(());
        }
        self.table.0.turns.poll_take(self.group.network, 1, waiting, cx)
    }

    /// Waits until the connection may receive or send another large part of a body. A connection of a proxy lets
    /// everything run first that is ready.
    pub(super) fn poll_large_part(
        &self,
        waiting: &mut TurnWaiter,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if self.group.is_proxy {
            return waiting.poll_yield(cx);
        }
        self.table.0.turns.poll_take(self.group.network, LARGE_PART_TURNS, waiting, cx)
    }

    /// Completes when the server stops.
    pub(super) async fn stopping(&self) {
        // The table holds the sender, so the wait cannot fail.
        let _ = self.table.0.is_stopping.subscribe().wait_for(|is| *is).await;
    }

    /// Records that the response is complete.
    pub(super) fn end_answer(&self) {
        self.state.change(ACTIVE, ANSWERED);
    }

    /// Records that the kernel has everything written so far.
    pub(super) fn flushed(&self) {
        if self.state.0.load(Ordering::Acquire) == ANSWERED {
            self.state.change(ANSWERED, self.table.next_idle());
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.table.lock().remove(self.group, &self.state);
    }
}

impl ClientGroup {
    /// Returns the number that decides which group gives up a connection first: the largest.
    fn weight(self, open: usize) -> usize {
        // A proxy carries many clients, so it gives up a connection last.
        if self.is_proxy { 0 } else { open }
    }
}

impl ClientGroups {
    /// Makes room for a connection of `group` from `address`. Returns whether an idle connection was closed, or
    /// `None` if there is no room.
    fn make_room(
        &mut self,
        group: ClientGroup,
        address: IpAddr,
        limits: &ServerLimits,
    ) -> Option<bool> {
        let own = group.weight(self.0.get(&group).map_or(0, Vec::len));
        if own >= limits.connections_per_address {
            return self.close_idle(|other, _| other == group).then_some(true);
        }
        let open: usize = self.0.values().map(Vec::len).sum();
        if open < limits.connections {
            return Some(false);
        }
        // No group loses a connection to one that has more.
        if self.close_idle(|_, weight| weight >= own) {
            return Some(true);
        }
        let is_reserved =
            address.is_loopback() && open < limits.connections.saturating_add(LOOPBACK_RESERVE);
        is_reserved.then_some(false)
    }

    /// Closes the longest idle connection of the group with the largest weight. `may_lose` gets a group and its weight.
    /// Returns false if no connection of these groups is idle.
    fn close_idle(&mut self, may_lose: impl Fn(ClientGroup, usize) -> bool) -> bool {
        while let Some((group, number, state)) = self.longest_idle(&may_lose) {
            // False if a request came meanwhile. A closed connection accepts no further requests.
            if state.change(number, CLOSED) {
                self.remove(group, &state);
                return true;
            }
        }
        false
    }

    /// Returns the connection that [`Self::close_idle`] closes: its group, its number and its state.
    fn longest_idle(
        &self,
        may_lose: impl Fn(ClientGroup, usize) -> bool,
    ) -> Option<(ClientGroup, u64, Arc<ConnectionState>)> {
        let groups =
            self.0.iter().map(|(group, entries)| (*group, group.weight(entries.len()), entries));
        let losing = groups.filter(|(group, weight, _)| may_lose(*group, *weight));
        let idle = losing.flat_map(|(group, weight, entries)| {
            entries.iter().filter_map(move |entry| {
                Some((Reverse(weight), entry.state.idle_number()?, group, &entry.state))
            })
        });
        let (_, number, group, state) =
            idle.min_by_key(|(weight, number, ..)| (*weight, *number))?;
        Some((group, number, Arc::clone(state)))
    }

    fn remove(&mut self, group: ClientGroup, state: &Arc<ConnectionState>) {
        let Some(entries) = self.0.get_mut(&group) else { return };
        entries.retain(|entry| !Arc::ptr_eq(&entry.state, state));
        if entries.is_empty() {
            self.0.remove(&group);
        }
    }
}

/// A request is arriving or in progress.
const ACTIVE: u64 = u64::MAX;
/// The response is complete, but the kernel may not have all of it yet.
const ANSWERED: u64 = u64::MAX - 1;
/// The slot was given to another connection.
const CLOSED: u64 = u64::MAX - 2;

/// The state of one connection. An idle connection has a number below [`CLOSED`], which is smaller the longer it is idle.
struct ConnectionState(AtomicU64);

impl ConnectionState {
    /// Returns the number of an idle connection, or `None` if the connection is not idle.
    fn idle_number(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|state| *state < CLOSED)
    }

    /// Replaces the state `from`. Returns false if the connection is in another one.
    fn change(&self, from: u64, to: u64) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests;
