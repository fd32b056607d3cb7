//! Leases: which node of a shared database does the work that only one node may do.
//!
//! A lease is a record with a holder and an end. A node takes a free lease and renews its own with ordinary writes. The
//! shared database puts these in one order, so a lease has one holder. A lease that is not renewed expires, and another node
//! takes it. A data file belongs to one process, which needs no lease.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::base::error::Result;
use crate::base::tasks::spawn;
use crate::base::time::{Clock, Timestamp};
use crate::store::{
    CommitsOf, Order, RecordType, RecordTypeOf, Redaction, Store, Table, Tx, Window, WriteTx,
    impl_record,
};

/// The type of records of leases. Backups and exports leave them out.
pub const RECORD_TYPES: &[&dyn RecordType] = &[&RecordTypeOf::<Lease>(Redaction::Open)];

/// How long a lease lasts after it was taken or renewed.
const LEASE_TIME: Duration = Duration::from_mins(1);
/// The age at which its holder renews a lease.
const RENEWAL_AGE: Duration = Duration::from_secs(20);
/// The wait after an error of the database.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Work that only one node does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// Sending the mails in the outbox.
    Mail,
    /// Completing deletions, and deleting expired data.
    Maintenance,
}

impl Duty {
    /// Returns the name by which the lease is stored and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Maintenance => "maintenance",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Mail, Self::Maintenance].into_iter().find(|duty| duty.name() == name)
    }
}

/// The process that has a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The name of the node.
    pub node: String,
    /// A random id of the process. A node that starts again is another holder, and so is a second node of the same name.
    pub process: Uuid,
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The [name](Duty::name) of the duty. A newer release may have duties that this one does not know.
    pub duty: String,
    /// The process that has the lease.
    pub holder: Holder,
    /// When the lease ends unless it is renewed, by the clock of the holder.
    pub expires_at: Timestamp,
}

impl_record!(Lease {
    table: Leases,
    key: |lease| -> String { lease.duty.clone() },
    owner: |_, _| Ok(None),
});

impl Lease {
    /// Whether the lease has its holder at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_end_of_current(LEASE_TIME, now)
    }

    /// Returns when the holder renews the lease.
    fn renewal_at(&self) -> Timestamp {
        self.expires_at.minus(LEASE_TIME.saturating_sub(RENEWAL_AGE))
    }
}

/// Takes the lease of `duty` if it is free, or renews it if `holder` has it and that is due. Returns the lease. If it needs
/// no change it is not written: the commit would wake the other nodes.
fn claim(tx: &mut WriteTx<'_>, duty: Duty, holder: &Holder, now: Timestamp) -> Result<Lease> {
    let duty = duty.name().to_owned();
    if let Some(lease) = tx.find::<Lease>(&duty)?
        && lease.is_valid(now)
        && (lease.holder != *holder || now < lease.renewal_at())
    {
        return Ok(lease);
    }
    let lease = Lease { duty, holder: holder.clone(), expires_at: now.plus(LEASE_TIME) };
    tx.put(&lease)?;
    Ok(lease)
}

/// Ends the leases of `holder`.
fn release(tx: &mut WriteTx<'_>, holder: &Holder) -> Result<()> {
    let leases = list(tx)?;
    for lease in leases.into_iter().filter(|lease| lease.holder == *holder) {
        tx.remove::<Lease>(&lease.duty)?;
    }
    Ok(())
}

/// Returns all leases, also those that have expired.
pub fn list(tx: &impl Tx) -> Result<Vec<Lease>> {
    let mut leases = Vec::new();
    tx.scan::<Lease, _>(&(), Window::all(Order::Ascending), |row| {
        leases.push(row.into_record()?);
        Ok(())
    })?;
    Ok(leases)
}

/// The task that takes and renews leases. When it is dropped, it releases them.
pub struct LeaseRenewal {
    /// `None` if the data lies in a file: its only process needs no lease.
    held: Option<watch::Receiver<HeldLeases>>,
    /// The task, and the channel that stops it when dropped.
    task: Mutex<Option<(watch::Sender<()>, JoinHandle<()>)>>,
}

impl LeaseRenewal {
    /// Begins to claim the leases of `duties`, if the data lies in a shared database. Must be called within a tokio runtime.
    pub fn start(store: &Store, clock: &Clock, duties: &'static [Duty]) -> Self {
        let Some(node) = store.node() else {
            return Self { held: None, task: Mutex::new(None) };
        };
        let (held, shown) = watch::channel(HeldLeases::default());
        let (stop, stopped) = watch::channel(());
        let claims = Claims {
            store: store.clone(),
            clock: clock.clone(),
            duties,
            holder: Holder { node: node.to_owned(), process: Uuid::from_bytes(rand::random()) },
            held: Arc::new(held),
            changed: Arc::default(),
            stopped,
        };
        claims.listen();
        let task = (!duties.is_empty()).then(|| (stop, spawn(claims.run())));
        Self { held: Some(shown), task: Mutex::new(task) }
    }

    /// Returns what a worker with this duty needs.
    pub fn watch(&self, duty: Duty) -> LeaseWatch {
        LeaseWatch { held: self.held.clone().map(|held| (duty, held)) }
    }

    /// Releases the leases, so that another node takes them at once. Concurrent calls wait too.
    pub async fn stop(&self) {
        let mut task = self.task.lock().await;
        if let Some((stop, task)) = task.take() {
            drop(stop);
            let _ = task.await;
        }
    }
}

/// The state of the task.
struct Claims {
    store: Store,
    clock: Clock,
    duties: &'static [Duty],
    holder: Holder,
    held: Arc<watch::Sender<HeldLeases>>,
    /// Woken when another node changed a lease.
    changed: Arc<Notify>,
    stopped: watch::Receiver<()>,
}

impl Claims {
    /// Takes its duty from a worker before the worker reads a state in which another node has the lease.
    fn listen(&self) {
        // Weak: the channel ends with the task, and workers wait for its end.
        let (held, changed) = (Arc::downgrade(&self.held), Arc::clone(&self.changed));
        let holder = self.holder.clone();
        self.store.before_shown(&[Table::Leases], CommitsOf::OtherNodes, move |tx| {
            if let Some(held) = held.upgrade() {
                let own = own_leases(&list(tx).unwrap_or_default(), &holder);
                held.send_modify(|held| {
                    held.ends.retain(|duty, _| own.contains_key(duty));
                    held.foreign_changes += 1;
                });
            }
            changed.notify_one();
            Ok(())
        });
    }

    async fn run(mut self) {
        let mut shown = BTreeMap::new();
        loop {
            let claimed = self.claim().await;
            shown = log_changes(&shown, &self.held.borrow().ends);
            tokio::select! {
                _ = self.stopped.changed() => break,
                () = self.changed.notified() => {}
                () = wait(&self.clock, claimed) => {}
            }
        }
        self.held.send_replace(HeldLeases::default());
        let holder = self.holder.clone();
        if let Err(error) = self.store.write(move |tx| release(tx, &holder)).await {
            tracing::warn!(%error, "could not release the leases of this node; they expire within a minute");
        }
    }

    /// Takes and renews what it can. Returns when to try again.
    async fn claim(&self) -> Result<Timestamp> {
        let foreign_changes = self.held.borrow().foreign_changes;
        let (duties, holder, now) = (self.duties, self.holder.clone(), self.clock.now());
        let claim_all = move |tx: &mut WriteTx<'_>| -> Result<Vec<_>> {
            duties.iter().map(|duty| claim(tx, *duty, &holder, now)).collect()
        };
        let leases = self.store.write(claim_all).await?;
        self.held.send_modify(|held| {
            // Otherwise another node may have taken a lease since, and the listener has woken this task.
            if held.foreign_changes == foreign_changes {
                held.ends = own_leases(&leases, &self.holder);
            }
        });
        let next = |lease: &Lease| {
            if lease.holder == self.holder { lease.renewal_at() } else { lease.expires_at }
        };
        Ok(leases.iter().map(next).min().unwrap_or(Timestamp::MAX))
    }
}

/// Returns the duties whose leases `holder` has, and when these end.
fn own_leases(leases: &[Lease], holder: &Holder) -> BTreeMap<Duty, Timestamp> {
    let own = leases.iter().filter(|lease| lease.holder == *holder);
    own.filter_map(|lease| Some((Duty::named(&lease.duty)?, lease.expires_at))).collect()
}

/// Logs which leases this node took or lost since `before`. Returns `now`.
fn log_changes(
    before: &BTreeMap<Duty, Timestamp>,
    now: &BTreeMap<Duty, Timestamp>,
) -> BTreeMap<Duty, Timestamp> {
    for duty in now.keys().filter(|duty| !before.contains_key(*duty)) {
        tracing::info!(duty = duty.name(), "this node took the lease");
    }
    for duty in before.keys().filter(|duty| !now.contains_key(*duty)) {
        tracing::warn!(duty = duty.name(), "this node lost the lease");
    }
    now.clone()
}

/// Waits until the leases are to be claimed again.
async fn wait(clock: &Clock, claimed: Result<Timestamp>) {
    match claimed {
        Ok(next) => {
            // Another node's clock may be ahead.
            clock.wait_until(next.min(clock.now().plus(LEASE_TIME)), LEASE_TIME).await;
        }
        Err(error) => {
            tracing::debug!(%error, "could not claim the leases");
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

/// The leases that this process has.
#[derive(Debug, Default)]
struct HeldLeases {
    /// When the lease of each duty ends.
    ends: BTreeMap<Duty, Timestamp>,
    /// How often other nodes changed leases.
    foreign_changes: u64,
}

impl HeldLeases {
    /// Whether the lease of `duty` lasts for this time from `now` on.
    fn lasts_for(&self, duty: Duty, time: Duration, now: Timestamp) -> bool {
        self.ends.get(&duty).is_some_and(|end| end.is_end_of_current(LEASE_TIME, now.plus(time)))
    }
}

/// Tells a worker whether this process has the lease of its duty.
#[derive(Debug, Clone)]
pub struct LeaseWatch {
    /// `None` if the work needs no lease.
    held: Option<(Duty, watch::Receiver<HeldLeases>)>,
}

impl LeaseWatch {
    /// Returns the watch of a worker on a data file, which needs no lease.
    pub const fn unneeded() -> Self {
        Self { held: None }
    }

    /// Whether this process may work at `now`, and for this time afterwards.
    pub fn is_held_for(&self, time: Duration, now: Timestamp) -> bool {
        let lasts = |(duty, held): &(Duty, watch::Receiver<HeldLeases>)| {
            held.borrow().lasts_for(*duty, time, now)
        };
        self.held.as_ref().is_none_or(lasts)
    }

    /// Waits until this process may work for this time. Returns false if it never will, because it stops or leaves the work
    /// to others.
    pub async fn wait_until_held_for(&mut self, time: Duration, clock: &Clock) -> bool {
        let Some((duty, held)) = &mut self.held else { return true };
        held.wait_for(|held| held.lasts_for(*duty, time, clock.now())).await.is_ok()
    }
}

#[cfg(test)]
mod tests;
