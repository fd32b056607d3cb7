//! Which connections may be open: a share for each client network, and idle connections that make room.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::ServerLimits;
use super::activity::{Activity, Attempt};
use super::turns::{Turns, Waiting};
use crate::fair;
use crate::http::client::TrustedProxies;

/// Connections from loopback addresses that are open beyond the limit when no idle connection makes room, so that
/// probes get in.
pub(super) const LOOPBACK_RESERVE: usize = 16;

/// Sockets beyond all slots: of connections that were closed for another one and are not dropped yet, and of the
/// one that was just accepted.
pub(super) const CLOSING_SOCKETS: usize = 16;

/// The connections that are open. Clones share one table.
#[derive(Clone)]
pub(super) struct ConnectionTable(Arc<Shared>);

struct Shared {
    limits: Limits,
    sockets: Arc<Semaphore>,
    started: Instant,
    table: Mutex<Table>,
    turns: Turns,
}

struct Limits {
    connections: usize,
    each: usize,
    proxies: TrustedProxies,
}

/// A connection's place in the table, until this is dropped.
pub(super) struct Slot {
    id: u64,
    holder: Holder,
    table: ConnectionTable,
    activity: Arc<Activity>,
    _socket: OwnedSemaphorePermit,
}

/// A connection that may be open.
pub(super) struct Admitted {
    pub(super) slot: Arc<Slot>,
    /// Ready when the slot was given to another connection; this one is to be dropped at once.
    pub(super) closed: oneshot::Receiver<Infallible>,
    /// Whether an idle connection was closed to make room.
    pub(super) is_in_place_of_another: bool,
}

/// Clients that share their connections: one network, or one trusted proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Holder {
    network: IpAddr,
    is_proxy: bool,
}

/// The connections of one holder.
#[derive(Default)]
struct Share {
    open: usize,
    /// Connections that may be idle, by the moment since which they are at least and by id. Those that are missing
    /// were found active, and list themselves once they are idle.
    idle: BTreeMap<(u64, u64), Arc<Activity>>,
}

struct Entry {
    holder: Holder,
    activity: Arc<Activity>,
    /// Its moment in [`Share::idle`], if it is there.
    listed: Option<u64>,
    _close: oneshot::Sender<Infallible>,
}

#[derive(Default)]
struct Table {
    last_id: u64,
    entries: HashMap<u64, Entry>,
    shares: HashMap<Holder, Share>,
    /// Holders with connections that may be idle: by weight, and among equals by the one that is idle longest. The
    /// last one gives up a connection first.
    ranking: BTreeSet<(usize, Reverse<u64>, Holder)>,
}

impl ConnectionTable {
    pub(super) fn new(limits: &ServerLimits) -> Self {
        let connections = limits.connections;
        let sockets = connections.saturating_add(LOOPBACK_RESERVE + CLOSING_SOCKETS);
        let limits = Limits {
            connections,
            each: limits.connections_per_address,
            proxies: limits.trusted_proxies.clone(),
        };
        Self(Arc::new(Shared {
            limits,
            sockets: Arc::new(Semaphore::new(sockets.min(Semaphore::MAX_PERMITS))),
            started: Instant::now(),
            table: Mutex::default(),
            turns: Turns::default(),
        }))
    }

    /// Waits until one more socket may be open. What holds sockets beyond the limits is on its way out.
    pub(super) async fn socket(&self) -> io::Result<OwnedSemaphorePermit> {
        Arc::clone(&self.0.sockets).acquire_owned().await.map_err(io::Error::other)
    }

    /// Gives a slot to a connection from `peer`; none if no slot is free and no idle connection may be closed for it.
    pub(super) fn admit(&self, peer: SocketAddr, socket: OwnedSemaphorePermit) -> Option<Admitted> {
        let limits = &self.0.limits;
        let address = peer.ip().to_canonical();
        let holder = if limits.proxies.trusts(address) {
            Holder { network: address, is_proxy: true }
        } else {
            Holder { network: fair::network(address), is_proxy: false }
        };
        let mut table = self.lock();
        let is_in_place_of_another = table.make_room(holder, address, limits)?;
        let now = self.now();
        let activity = Arc::new(Activity::idle(now));
        let (close, closed) = oneshot::channel();
        let entry = Entry { holder, activity: Arc::clone(&activity), listed: None, _close: close };
        let id = table.insert(entry, now);
        drop(table);
        let slot = Slot { id, holder, table: self.clone(), activity, _socket: socket };
        Some(Admitted { slot: Arc::new(slot), closed, is_in_place_of_another })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the table was made.
    fn now(&self) -> u64 {
        u64::try_from(self.0.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl Slot {
    /// Notes that a request arrives.
    ///
    /// # Errors
    /// `ConnectionAborted` if the slot was given to another connection.
    pub(super) fn begin_request(&self) -> io::Result<()> {
        if self.activity.begin() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::ConnectionAborted, "it was closed for another one"))
    }

    /// Ready when it is the client's turn among other clients. What comes through a proxy is of many clients, and does
    /// not wait.
    pub(super) fn poll_turn(&self, waiting: &mut Waiting, cx: &mut Context<'_>) -> Poll<()> {
        if self.holder.is_proxy {
            return Poll::Ready(());
        }
        self.table.0.turns.poll_take(self.holder.network, waiting, cx)
    }

    /// Notes that no more of an answer will come.
    pub(super) fn end_answer(&self) {
        self.activity.end();
    }

    /// Notes that everything written so far is with the kernel.
    pub(super) fn flushed(&self) {
        if !self.activity.is_answered() {
            return;
        }
        let now = self.table.now();
        if self.activity.rest(now) {
            self.table.lock().move_to(self.id, Some(now));
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.table.lock().remove(self.id);
    }
}

impl Holder {
    fn weight(self, share: &Share) -> usize {
        // Many clients come through a proxy: it gives up a connection after everybody else.
        if self.is_proxy { 0 } else { share.open }
    }
}

impl Table {
    /// Makes room for one more connection of `holder`, from `address`, and tells whether it closed another one for that. None if
    /// there is no room.
    fn make_room(&mut self, holder: Holder, address: IpAddr, limits: &Limits) -> Option<bool> {
        let own = self.shares.get(&holder).map_or(0, |share| share.open);
        if !holder.is_proxy && own >= limits.each {
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

    /// Closes a connection of the holder that holds most, unless all holders with idle ones hold fewer than `own`.
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

    /// Closes the connection of `holder` that is idle longest. If none is idle, its list is empty afterwards.
    fn close_idle_of(&mut self, holder: Holder) -> bool {
        loop {
            let first = self.shares.get(&holder).and_then(|share| share.idle.first_key_value());
            let Some((&(moment, id), activity)) = first else { return false };
            match activity.close(moment) {
                Attempt::Closed => {
                    self.remove(id);
                    return true;
                }
                Attempt::IdleSince(later) => self.move_to(id, Some(later)),
                Attempt::Active => self.move_to(id, None),
            }
        }
    }

    fn insert(&mut self, entry: Entry, now: u64) -> u64 {
        self.last_id += 1;
        let (id, holder) = (self.last_id, entry.holder);
        self.entries.insert(id, entry);
        self.change(holder, |share| share.open += 1);
        self.move_to(id, Some(now));
        id
    }

    fn remove(&mut self, id: u64) {
        self.move_to(id, None);
        let Some(entry) = self.entries.remove(&id) else { return };
        self.change(entry.holder, |share| share.open -= 1);
        if self.shares.get(&entry.holder).is_some_and(|share| share.open == 0) {
            self.shares.remove(&entry.holder);
        }
    }

    /// Moves a connection in its holder's list of idle ones, or takes it off.
    fn move_to(&mut self, id: u64, moment: Option<u64>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let (holder, before) = (entry.holder, entry.listed);
        let activity = Arc::clone(&entry.activity);
        entry.listed = moment;
        self.change(holder, |share| {
            if let Some(before) = before {
                share.idle.remove(&(before, id));
            }
            if let Some(moment) = moment {
                share.idle.insert((moment, id), activity);
            }
        });
    }

    /// Changes a share, and its place in the ranking with it.
    fn change(&mut self, holder: Holder, change: impl FnOnce(&mut Share)) {
        let share = self.shares.entry(holder).or_default();
        let rank = |share: &Share| {
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
