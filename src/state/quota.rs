//! What callers' changes may add: caps on counts, the quota of bytes, and free space on the disk.
//!
//! All of it is checked after the rule, by what its write changed, so that no way of adding something is
//! forgotten. A change that removes more records than it adds, and makes the others at most a little longer, is never
//! refused for its bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::Caps;
use crate::error::{Error, Result};
use crate::fair::Consumer;
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::Insight;
use crate::resources::members::Membership;
use crate::resources::projects::Project;
use crate::store::{FreeSpace, Owner, Record, Store, Table, WriteTx};

use super::App;

/// How many bytes a user may store outside organizations: the profile, the log of what the user changed there, and
/// answers kept for an `Idempotency-Key`.
const USER_BYTES: u64 = 64 << 20;
/// What part of a quota, and of the disk's reserve, small edits may use besides.
const EDITS_PART: u64 = 16;
/// By how many bytes an edit or a removal may grow the file, without its activity entry: mails and timestamps.
const BOOKKEEPING: u64 = 4096;
/// The same for each record that it changes.
const BOOKKEEPING_EACH: u64 = 64;
/// The reserve of free space where the operator sets none: this, or a twentieth of the file system where that is less.
const RESERVE: u64 = 256 << 20;
/// How many seconds a client waits where the disk is nearly full.
const RETRY_AFTER: u32 = 30;

/// The free space of the disk, and whether it was said that it is low.
pub(super) struct Disk {
    space: FreeSpace,
    warned: AtomicBool,
}

impl Disk {
    pub(super) fn of(store: &Store) -> Arc<Self> {
        Arc::new(Self { space: FreeSpace::of(store), warned: AtomicBool::new(false) })
    }

    /// Whether less than one part in `part` of the reserve is free.
    fn is_low(&self, reserve: Option<usize>, part: u64) -> bool {
        let Some(space) = self.space.look() else { return false };
        let reserve =
            reserve.map_or_else(|| RESERVE.min(space.total / 20), |reserve| reserve as u64);
        let low = space.free < reserve;
        if low && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::error!(
                free = space.free,
                reserve,
                "the disk is nearly full: only changes that free space are made"
            );
        }
        if !low && self.warned.swap(false, Ordering::Relaxed) {
            tracing::info!(free = space.free, "the disk has room again");
        }
        space.free < reserve / part
    }
}

/// What one change may add.
pub(super) struct Allowance {
    caps: Caps,
    disk: Arc<Disk>,
    /// The tenant that the request works for; none for a request without a key.
    consumer: Option<Consumer>,
}

/// What a change does to the amount of what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It removes more records than it adds.
    Removes,
    /// It adds no record but rights, and makes none much longer.
    Edits,
    /// It adds something.
    Adds,
}

impl App {
    /// What a change for this tenant may add.
    pub(super) fn allowance(&self, consumer: Option<Consumer>) -> Allowance {
        Allowance { caps: self.config().caps, disk: Arc::clone(&self.0.disk), consumer }
    }
}

impl Allowance {
    /// Refuses a write that adds more than it may, once its rule has run.
    ///
    /// # Errors
    /// 400 `limit_reached` beyond a cap or the quota; 503 where the disk is nearly full.
    pub(super) fn require(&self, tx: &WriteTx<'_>) -> Result<()> {
        self.require_counts(tx)?;
        let grows = tx.total_growth() > 0 || tx.growth().iter().any(|(_, grown)| *grown > 0);
        if !grows {
            return Ok(());
        }
        let part = match effect(tx) {
            Effect::Removes => return Ok(()),
            Effect::Edits => 2,
            Effect::Adds => 1,
        };
        if self.disk.is_low(self.caps.disk_reserve, part) {
            return Err(Error::overloaded(RETRY_AFTER, "the disk is nearly full"));
        }
        let edits = part > 1;
        tx.growth().iter().try_for_each(|grown| self.require_bytes(tx, *grown, edits))?;
        // What is refused takes no space: one tenant's refusals must not look like a full disk to the others.
        self.disk.space.take(tx.total_growth().max(0).unsigned_abs());
        Ok(())
    }

    fn require_counts(&self, tx: &WriteTx<'_>) -> Result<()> {
        let Caps { organizations, projects, members, dashboards, .. } = self.caps;
        for (tenant, count) in tx.raised_counts::<Membership>()? {
            // An organization's id has 16 bytes, a user's number has eight.
            if tenant.len() == 16 {
                require(count, members, "An organization can have", "members")?;
            } else {
                require(count, organizations, "A user can belong to", "organizations")?;
            }
        }
        require_raised::<Project>(tx, projects, "An organization can have", "projects")?;
        require_raised::<Dashboard>(tx, dashboards, "A project can have", "live dashboards")?;
        require_raised::<Insight>(tx, dashboards, "A project can have", "live insights")
    }

    fn require_bytes(
        &self,
        tx: &WriteTx<'_>,
        (owner, grown): (Owner, i64),
        edits: bool,
    ) -> Result<()> {
        let (quota, edits, whose) = match (owner, self.consumer) {
            (Owner::Organization(id), consumer) => {
                let edits = match consumer {
                    Some(Consumer::Organization(own)) if own == id => edits,
                    // A request of a user that leads into no organization leaves entries in the logs of some: as
                    // small edits do.
                    Some(Consumer::User(_)) => true,
                    // One organization's full quota is no limit for the requests of another, or of whoever joins.
                    _ => return Ok(()),
                };
                (self.caps.organization_bytes as u64, edits, "The organization")
            }
            (Owner::Requester(_), _) => (USER_BYTES, edits, "Your account"),
        };
        let most = if edits { quota.saturating_add(quota / EDITS_PART) } else { quota };
        if grown <= 0 || owner.stored_bytes(tx)?.saturating_add_signed(grown) <= most {
            return Ok(());
        }
        Err(Error::limit_reached(format!(
            "{whose} may take {quota} bytes. This change would exceed that."
        )))
    }
}

fn require_raised<R: Record>(tx: &WriteTx<'_>, most: u64, whose: &str, what: &str) -> Result<()> {
    let raised = tx.raised_counts::<R>()?;
    raised.into_iter().try_for_each(|(_, count)| require(count, most, whose, what))
}

fn require(count: u64, most: u64, whose: &str, what: &str) -> Result<()> {
    if count <= most {
        return Ok(());
    }
    Err(Error::limit_reached(format!("{whose} at most {most} {what}.")))
}

/// Tables of records that the service writes about a change. They are no content of a tenant's, and how long they are
/// says nothing of what the change adds.
const ABOUT_CHANGES: [Table; 3] = [Table::Activity, Table::ApiKeyMakers, Table::ApiKeyVerifiers];
/// Tables of other records that are no content of a tenant's when they are added: mails, kept answers, and rights.
const NO_CONTENT: [Table; 5] = [
    Table::Outbox,
    Table::Idempotency,
    Table::IdempotencyParts,
    Table::IdempotencyObjects,
    Table::AccessRules,
];
/// Tables of records that say that something was removed.
const REMOVALS: [Table; 2] = [Table::Removals, Table::Sweeps];

fn effect(tx: &WriteTx<'_>) -> Effect {
    let (mut added, mut removed, mut grown) = (0_u64, 0_u64, 0);
    for change in tx.changes().iter().filter(|change| !ABOUT_CHANGES.contains(&change.table)) {
        grown += change.growth();
        let adds = match (&change.before, &change.after) {
            (None, Some(_)) => true,
            (Some(_), None) => false,
            _ => continue,
        };
        if adds == REMOVALS.contains(&change.table) {
            // To forget a kept answer or to send a mail makes no removal of a change; to end a right does.
            let ends = change.table == Table::AccessRules || !NO_CONTENT.contains(&change.table);
            removed += u64::from(ends);
        } else if !NO_CONTENT.contains(&change.table) {
            added += 1;
        }
    }
    let small = BOOKKEEPING + tx.changes().len() as u64 * BOOKKEEPING_EACH;
    if grown > small.cast_signed() {
        Effect::Adds
    } else if removed > added {
        Effect::Removes
    } else if added == 0 {
        Effect::Edits
    } else {
        Effect::Adds
    }
}
