//! Limits open connections: a share per client network, with idle connections closed to make room.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use super::ServerLimits;
use super::connection_state::{CloseAttempt, ConnectionState, UnreadBody};
use super::turns::{ClientTurns, LARGE_PART_TURNS, TurnWaiter};
use crate::fair_queue;
use crate::trusted_proxies::TrustedProxies;

/// The number of loopback connections accepted beyond the limit if no idle connection can be closed, so that probes
/// get in.
pub(super) const LOOPBACK_RESERVE: usize = 16;

/// Sockets beyond all slots: those of closed connections that are not dropped yet, and the one just accepted.
pub(super) const CLOSING_SOCKETS: usize = 16;

/// The open connections. Clones share one table.
#[derive(Clone)]
pub(super) struct ConnectionTable(Arc<Shared>);

struct Shared {
    limits: ConnectionLimits,
    sockets: Arc<Semaphore>,
    started: Instant,
    table: Mutex<TableState>,
    turns: ClientTurns,
    is_stopping: watch::Sender<bool>,
}

struct ConnectionLimits {
    connections: usize,
    per_address: usize,
    proxies: TrustedProxies,
}

/// A connection's entry in the table. Dropping it removes the entry.
pub(super) struct Slot {
    id: u64,
    group: ClientGroup,
    table: ConnectionTable,
    state: Arc<ConnectionState>,
    unread: UnreadBody,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ClientGroup {
    network: IpAddr,
    is_proxy: bool,
}

/// The connections of one holder.
#[derive(Default)]
struct GroupConnections {
    open: usize,
    /// Connections that may be idle, by the earliest time since which they may be idle and by id. Connections found
    /// active are removed and add themselves when they are idle.
    idle: BTreeMap<(u64, u64), Arc<ConnectionState>>,
}

struct ConnectionEntry {
    group: ClientGroup,
    state: Arc<ConnectionState>,
    /// The key in [`GroupConnections::idle`], if the connection is listed.
    idle_since: Option<u64>,
    _close: oneshot::Sender<Infallible>,
}

#[derive(Default)]
struct TableState {
    last_id: u64,
    entries: HashMap<u64, ConnectionEntry>,
    groups: HashMap<ClientGroup, GroupConnections>,
    /// Holders with connections that may be idle, by weight and then by idle time. The last one gives up a connection
    /// first.
    ranking: BTreeSet<(usize, Reverse<u64>, ClientGroup)>,
}

impl ConnectionTable {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        let connections = limits.connections;
        let sockets = connections.saturating_add(LOOPBACK_RESERVE + CLOSING_SOCKETS);
        let limits = ConnectionLimits {
            connections,
            per_address: limits.connections_per_address,
            proxies: limits.trusted_proxies.clone(),
        };
        Self(Arc::new(Shared {
            limits,
            sockets: Arc::new(Semaphore::new(sockets.min(Semaphore::MAX_PERMITS))),
            started: Instant::now(),
            table: Mutex::default(),
            turns: ClientTurns::default(),
            is_stopping: watch::Sender::new(false),
        }))
    }

    /// Ends the wait for bodies that nobody reads.
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
        let group = if limits.proxies.trusts(address) {
            ClientGroup { network: address, is_proxy: true }
        } else {
            ClientGroup { network: fair_queue::client_network(address), is_proxy: false }
        };
        let mut table = self.lock();
        let replaced_idle = table.make_room(group, address, limits)?;
        let now = self.now();
        let state = Arc::new(ConnectionState::idle(now));
        let (close, closed) = oneshot::channel();
        let entry =
            ConnectionEntry { group, state: Arc::clone(&state), idle_since: None, _close: close };
        let id = table.insert(entry, now);
        drop(table);
        let unread = UnreadBody::default();
        let slot = Slot { id, group, table: self.clone(), state, unread, _socket: socket };
        Some(AcceptedConnection { slot: Arc::new(slot), closed, replaced_idle })
    }

    fn lock(&self) -> MutexGuard<'_, TableState> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the table was created.
    fn now(&self) -> u64 {
        u64::try_from(self.0.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Slot {
    /// Records the arrival of a request.
    ///
    /// # Errors
    /// `ConnectionAborted` if the slot was given to another connection.
    pub(super) fn begin_request(&self) -> io::Result<()> {
        if self.state.begin() {
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

    /// Returns what the service left of the body of the current request.
    pub(super) fn unread(&self) -> &UnreadBody {
        &self.unread
    }

    /// Completes when the server stops.
    pub(super) async fn stopping(&self) {
        // The table holds the sender, so the wait cannot fail.
        let _ = self.table.0.is_stopping.subscribe().wait_for(|is| *is).await;
    }

    /// Records that the response is complete.
    pub(super) fn end_answer(&self) {
        self.state.end();
    }

    /// Records that the kernel has everything written so far.
    pub(super) fn flushed(&self) {
        if !self.state.is_answered() {
            return;
        }
        let now = self.table.now();
        if self.state.finish(now) {
            self.table.lock().move_to(self.id, Some(now));
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.table.lock().remove(self.id);
    }
}

impl ClientGroup {
    fn weight(self, share: &GroupConnections) -> usize {
        // A proxy carries many clients, so it gives up a connection last.
        if self.is_proxy { 0 } else { share.open }
    }
}

impl TableState {
    /// Makes room for a connection of `holder` from `address`. Returns whether an idle connection was closed, or
    /// `None` if there is no room.
    fn make_room(
        &mut self,
        holder: ClientGroup,
        address: IpAddr,
        limits: &ConnectionLimits,
    ) -> Option<bool> {
        let own = self.groups.get(&holder).map_or(0, |share| share.open);
        if !holder.is_proxy && own >= limits.per_address {
            return self.close_idle_of(holder).then_some(true);
        }
        if self.entries.len() < limits.connections {
            return Some(false);
        }
        if self.close_idle_of_largest(if holder.is_proxy { 0 } else { own }) {
            return Some(true);
        }
        let is_reserved = address.is_loopback()
            && self.entries.len() < limits.connections.saturating_add(LOOPBACK_RESERVE);
        is_reserved.then_some(false)
    }

    /// Closes an idle connection of the largest holder. Returns false if every holder with idle connections has fewer
    /// than `own` connections.
    fn close_idle_of_largest(&mut self, own: usize) -> bool {
        while let Some(&(weight, _, holder)) = self.ranking.last() {
            if weight < own {
                return false;
            }
            if self.close_idle_of(holder) {
                return true;
            }
        }
        false
    }

    /// Closes the connection of `holder` that has been idle longest. Returns false if none is idle; the holder's idle
    /// list is then empty.
    fn close_idle_of(&mut self, holder: ClientGroup) -> bool {
        loop {
            let first = self.groups.get(&holder).and_then(|share| share.idle.first_key_value());
            let Some((&(moment, id), activity)) = first else { return false };
            match activity.close(moment) {
                CloseAttempt::Closed => {
                    self.remove(id);
                    return true;
                }
                CloseAttempt::IdleSince(later) => self.move_to(id, Some(later)),
                CloseAttempt::Active => self.move_to(id, None),
            }
        }
    }

    fn insert(&mut self, entry: ConnectionEntry, now: u64) -> u64 {
        self.last_id += 1;
        let (id, holder) = (self.last_id, entry.group);
        self.entries.insert(id, entry);
        self.change(holder, |share| share.open += 1);
        self.move_to(id, Some(now));
        id
    }

    fn remove(&mut self, id: u64) {
        self.move_to(id, None);
        let Some(entry) = self.entries.remove(&id) else { return };
        self.change(entry.group, |share| share.open -= 1);
        if self.groups.get(&entry.group).is_some_and(|share| share.open == 0) {
            self.groups.remove(&entry.group);
        }
    }

    /// Moves a connection in its holder's idle list, or removes it if `moment` is `None`.
    fn move_to(&mut self, id: u64, moment: Option<u64>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let (holder, before) = (entry.group, entry.idle_since);
        let activity = Arc::clone(&entry.state);
        entry.idle_since = moment;
        self.change(holder, |share| {
            if let Some(before) = before {
                share.idle.remove(&(before, id));
            }
            if let Some(moment) = moment {
                share.idle.insert((moment, id), activity);
            }
        });
    }

    /// Changes a share and updates its rank.
    fn change(&mut self, holder: ClientGroup, change: impl FnOnce(&mut GroupConnections)) {
        let share = self.groups.entry(holder).or_default();
        let rank = |share: &GroupConnections| {
            let (first, _) = share.idle.first_key_value()?;
            Some((holder.weight(share), Reverse(first.0), holder))
        };
        let before = rank(share);
        change(share);
        let after = rank(share);
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.ranking.remove(&before);
        }
        self.ranking.extend(after);
    }
}

#[cfg(test)]
mod tests;
