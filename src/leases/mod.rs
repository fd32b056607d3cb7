//! Leases: which node of a shared database does the work that only one node may do.
//!
//! A lease is a record with a holder and an end. A node takes a free lease and renews its own with ordinary writes. The
//! shared database puts these in one order, so a lease has one holder. A lease that is not renewed expires, and another node
//! takes it. A data file belongs to one process, which needs no lease.

mod renewal;

pub use renewal::{LeaseRenewal, LeaseWatch};

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::base::error::Result;
use crate::base::time::Timestamp;
use crate::store::{Order, RecordType, RecordTypeOf, Redaction, Tx, Window, WriteTx, impl_record};

/// The type of records of leases. Backups and exports leave them out.
pub const RECORD_TYPES: &[&dyn RecordType] = &[&RecordTypeOf::<Lease>(Redaction::Open)];

/// How long a lease lasts after it was taken or renewed.
const LEASE_TIME: Duration = Duration::from_mins(1);
/// The age at which its holder renews a lease.
const RENEWAL_AGE: Duration = Duration::from_secs(20);

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

/// Takes the leases of `duties` that are free, and renews those of `holder` that are due. Returns the leases of all of them.
fn claim(
    tx: &mut WriteTx<'_>,
    duties: &[Duty],
    holder: &Holder,
    now: Timestamp,
) -> Result<Vec<Lease>> {
    duties.iter().map(|duty| claim_one(tx, *duty, holder, now)).collect()
}

/// A lease that needs no change is not written: the commit would wake the other nodes.
fn claim_one(tx: &mut WriteTx<'_>, duty: Duty, holder: &Holder, now: Timestamp) -> Result<Lease> {
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

#[cfg(test)]
mod tests;
