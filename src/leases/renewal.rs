//! The task that takes and renews the leases of a node.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::error::Result;
use crate::store::{Store, Table};
use crate::time::{Clock, Timestamp};

use super::watch::{HeldLeases, LeaseWatch};
use super::{Duty, Holder, Lease, claim, release};

/// The wait after an error of the database.
const RETRY_DELAY: Duration = Duration::from_secs(1);

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
        let (held, shown) = watch::channel(HeldLeases::new());
        let (stop, stopped) = watch::channel(());
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        store.on_taken(&[Table::Leases], move || wake.notify_one());
        let process = Uuid::from_bytes(rand::random());
        let claims = Claims {
            store: store.clone(),
            clock: clock.clone(),
            duties,
            holder: Holder { node: node.to_owned(), process },
            held,
            changed,
            stopped,
        };
        let task = (!duties.is_empty()).then(|| (stop, tokio::spawn(claims.run())));
        Self { held: Some(shown), task: Mutex::new(task) }
    }

    /// Returns what a worker with this duty needs.
    pub fn watch(&self, duty: Duty) -> LeaseWatch {
        match &self.held {
            None => LeaseWatch::unneeded(),
            Some(held) => LeaseWatch::of(duty, held.clone()),
        }
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
    held: watch::Sender<HeldLeases>,
    /// Woken when another node changed a lease.
    changed: Arc<Notify>,
    stopped: watch::Receiver<()>,
}

impl Claims {
    async fn run(mut self) {
        loop {
            let claimed = self.claim().await;
            tokio::select! {
                _ = self.stopped.changed() => break,
                () = self.changed.notified() => {}
                () = wait(&self.clock, claimed) => {}
            }
        }
        self.held.send_replace(HeldLeases::new());
        let holder = self.holder.clone();
        if let Err(error) = self.store.write(move |tx| release(tx, &holder)).await {
            tracing::warn!(%error, "could not release the leases of this node; they expire within a minute");
        }
    }

    /// Takes and renews what it can. Returns when to try again.
    async fn claim(&self) -> Result<Timestamp> {
        let (duties, holder, now) = (self.duties, self.holder.clone(), self.clock.now());
        let leases = self.store.write(move |tx| claim(tx, duties, &holder, now)).await?;
        let is_own = |lease: &Lease| lease.holder == self.holder;
        let own = duties.iter().zip(&leases).filter(|(_, lease)| is_own(lease));
        self.show(own.map(|(duty, lease)| (*duty, lease.expires_at)).collect());
        let next = |lease: &Lease| {
            if is_own(lease) { lease.renewal_at() } else { lease.expires_at }
        };
        Ok(leases.iter().map(next).min().unwrap_or(Timestamp::MAX))
    }

    fn show(&self, held: HeldLeases) {
        let before = self.held.send_replace(held.clone());
        for duty in self.duties {
            match (before.contains_key(duty), held.contains_key(duty)) {
                (false, true) => tracing::info!(duty = duty.name(), "this node took the lease"),
                (true, false) => tracing::warn!(duty = duty.name(), "this node lost the lease"),
                _ => {}
            }
        }
    }
}

/// Waits until the leases are to be claimed again.
async fn wait(clock: &Clock, claimed: Result<Timestamp>) {
    match claimed {
        Ok(next) => clock.wait_until(next).await,
        Err(error) => {
            tracing::debug!(%error, "could not claim the leases");
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}
