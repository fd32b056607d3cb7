//! Limits on what a write may add: counts, stored bytes and free disk space.
//!
//! The limits are checked after the rule, against everything that its transaction changed, so no way of adding data
//! can avoid them. A write that removes more records than it adds, and lengthens the others only a little, is never
//! refused for its bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::error::{Error, Result};
use crate::config::Caps;
use crate::fair::fair_queue::Consumer;
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::Insight;
use crate::resources::members::Membership;
use crate::resources::projects::Project;
use crate::resources::roles::Role;
use crate::store::{FreeSpace, Owner, Record, Store, Table, WriteTx};

use super::App;

/// The bytes that a user may store outside organizations: the profile, the log of the user's own changes there, and
/// responses stored under idempotency keys.
const MAX_USER_BYTES: u64 = 64 << 20;
/// Small edits may exceed the quota by this fraction of it.
const EDIT_RESERVE_DIVISOR: u64 = 16;
/// The bytes by which an edit or a removal may grow the file besides its activity entry: mails and timestamps.
const EDIT_GROWTH: u64 = 4096;
/// Further bytes for each changed record.
const EDIT_GROWTH_PER_RECORD: u64 = 64;
/// The default reserve of free disk space: this, or a twentieth of the file system if that is less.
const DEFAULT_RESERVE: u64 = 256 << 20;
/// The `Retry-After` while the disk is nearly full, in seconds.
const RETRY_AFTER: u32 = 30;

/// The free disk space, and whether low space was logged.
pub(super) struct DiskReserve {
    space: FreeSpace,
    warned: AtomicBool,
}

impl DiskReserve {
    pub(super) fn of(store: &Store) -> Arc<Self> {
        Arc::new(Self { space: FreeSpace::of(store), warned: AtomicBool::new(false) })
    }

    /// Whether less than `1 / part` of the reserve is free.
    fn is_low(&self, reserve: Option<usize>, part: u64) -> bool {
        let Some(space) = self.space.get() else { return false };
        let reserve = reserve_of(reserve, space.total);
        let low = space.free < reserve;
        if low && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::error!(
                free = space.free,
                reserve,
                "the disk is nearly full: only writes that free space are accepted"
            );
        }
        if !low && self.warned.swap(false, Ordering::Relaxed) {
            tracing::info!(free = space.free, "the disk has enough free space again");
        }
        space.free < reserve / part
    }
}

/// Returns how many bytes of a disk of this size are kept free.
fn reserve_of(configured: Option<usize>, total: u64) -> u64 {
    configured.map_or_else(|| DEFAULT_RESERVE.min(total / 20), |reserve| reserve as u64)
}

impl App {
    /// Returns how many bytes of the disk are kept free; 0 if its size is unknown.
    pub(super) fn disk_reserve(&self) -> u64 {
        let space = self.0.disk_space.space.get();
        space.map_or(0, |space| reserve_of(self.0.config.caps.disk_reserve, space.total))
    }

    /// Fails unless the disk keeps its reserve beside a copy of the data file. Otherwise the copy could fill the disk, and
    /// writes would fail.
    ///
    /// # Errors
    /// 503 if it does not.
    pub(crate) fn require_room_for_copy(&self) -> Result<()> {
        self.store().require_room(self.disk_reserve())
    }
}

/// The limits of one write.
#[derive(Clone)]
pub(super) struct Allowance {
    caps: Caps,
    disk: Arc<DiskReserve>,
    /// The tenant of the request. `None` for a request without a key.
    consumer: Option<Consumer>,
}

/// The effect of a write on the stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Removes more records than it adds.
    Removes,
    /// Adds no content, and lengthens no record much.
    Edits,
    /// Adds content, or lengthens records.
    Adds,
}

impl App {
    /// Returns the limits of a write for this tenant.
    pub(super) fn allowance(&self, consumer: Option<Consumer>) -> Allowance {
        Allowance { caps: self.config().caps, disk: Arc::clone(&self.0.disk_space), consumer }
    }
}

impl Allowance {
    /// Fails if a write exceeds the limits. Call it after the write's rule.
    ///
    /// # Errors
    /// 400 `limit_reached` if the write exceeds a cap or the quota, 503 if the disk is nearly full.
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
        tx.growth().iter().try_for_each(|grown| self.require_bytes(tx, *grown, edits))
    }

    /// Subtracts what a kept write adds from the free disk space. Do not call it for a write that is refused or undone,
    /// or the requests of one tenant would count as a full disk for all tenants.
    pub(super) fn note_growth(&self, tx: &WriteTx<'_>) {
        self.disk.space.note_added(tx.total_growth().max(0).unsigned_abs());
    }

    fn require_counts(&self, tx: &WriteTx<'_>) -> Result<()> {
        let (caps, most) = (&self.caps, self.caps.max_dashboards);
        for (tenant, count) in tx.raised_counts::<Membership>()? {
            // The id of an organization has 16 bytes, the number of a user has eight.
            if tenant.len() == 16 {
                require(count, caps.max_members, "An organization can have", "members")?;
            } else {
                require(count, caps.max_organizations, "A user can belong to", "organizations")?;
            }
        }
        require_raised::<Project>(tx, caps.max_projects, "An organization can have", "projects")?;
        require_raised::<Role>(tx, caps.max_roles, "An organization can have", "roles")?;
        require_raised::<Dashboard>(tx, most, "A project can have", "live dashboards")?;
        require_raised::<Insight>(tx, most, "A project can have", "live insights")
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
                    // A request of a user without an organization adds entries to the logs of organizations. It
                    // counts as a small edit there.
                    Some(Consumer::User(_)) => true,
                    // One organization's full quota does not limit requests of another organization or of a new
                    // member.
                    _ => return Ok(()),
                };
                (self.caps.organization_quota as u64, edits, "The organization")
            }
            (Owner::Requester(_), _) => (MAX_USER_BYTES, edits, "Your account"),
        };
        let most = if edits { quota.saturating_add(quota / EDIT_RESERVE_DIVISOR) } else { quota };
        if grown <= 0 || owner.stored_bytes(tx)? <= most {
            return Ok(());
        }
        Err(Error::limit_reached(format!(
            "{whose} may store at most {quota} bytes. This change would exceed that."
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

/// Tables of records about a change itself. They are not tenant content, and their size says nothing about what the
/// change adds.
const CHANGE_RECORD_TABLES: [Table; 2] = [Table::Activity, Table::ApiKeyMakers];
/// Tables of other records that are not tenant content when they are added: mails, stored responses, and access
/// rules.
const UNCOUNTED_TABLES: [Table; 5] = [
    Table::Outbox,
    Table::Idempotency,
    Table::IdempotencyParts,
    Table::IdempotencyObjects,
    Table::AccessRules,
];
/// Tables of records about removals.
const REMOVAL_TABLES: [Table; 2] = [Table::Deletions, Table::Sweeps];

fn effect(tx: &WriteTx<'_>) -> Effect {
    let (mut added, mut removed, mut grown) = (0_u64, 0_u64, 0);
    for change in tx.changes().iter().filter(|change| !CHANGE_RECORD_TABLES.contains(&change.table))
    {
        grown += change.growth();
        let adds = match (&change.before, &change.after) {
            (None, Some(_)) => true,
            (Some(_), None) => false,
            _ => continue,
        };
        if adds == REMOVAL_TABLES.contains(&change.table) {
            // Removing a stored response or a sent mail does not count as a removal. Removing an access rule does.
            let ends =
                change.table == Table::AccessRules || !UNCOUNTED_TABLES.contains(&change.table);
            removed += u64::from(ends);
        } else if !UNCOUNTED_TABLES.contains(&change.table) {
            added += 1;
        }
    }
    let small = EDIT_GROWTH + tx.changes().len() as u64 * EDIT_GROWTH_PER_RECORD;
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
