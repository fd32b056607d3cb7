//! The pace of mails: at most one a minute to a mailbox, and 100 an hour of an organization and for the invites of a
//! user.
//!
//! Each organization, user and mailbox has one record with its last attempts. Failed attempts count too, except against
//! a mailbox that certainly got no mail.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::error::Result;
use crate::base::time::Timestamp;
use crate::ids::{OrganizationId, UserId};
use crate::store::{Index, Key, Order, Table, Tx, Window, WriteTx, impl_record};

/// The minimum time between two mails to a mailbox.
const MAILBOX_INTERVAL: Duration = Duration::from_mins(1);
/// How long an attempt counts against its organization and its user.
const QUOTA_WINDOW: Duration = Duration::from_hours(1);
/// The maximum number of attempts for an organization, or for a user across all organizations, within an hour.
const MAX_PER_WINDOW: usize = 100;
/// The longest wait for a limit, after which the limit is checked again.
pub(super) const MAX_WAIT: Duration = QUOTA_WINDOW;
/// Attempts shorter than this cause no pause.
const SLOW_ATTEMPT: Duration = Duration::from_secs(1);
/// The length of a pause, as a multiple of the slow attempt.
const PAUSE_FACTOR: u32 = 4;
/// The maximum number of records that one transaction deletes from each end of the order of expiry.
const DELETE_BATCH: usize = 250;

/// Whose mails a limit counts together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaceKey {
    /// The mails of an organization.
    Organization(OrganizationId),
    /// The invites of a user in all organizations.
    User(UserId),
    /// The mails to a mailbox, in its canonical spelling.
    Mailbox(String),
}

impl PaceKey {
    /// Returns how many attempts the limit allows, and within which time.
    const fn limit(&self) -> (usize, Duration) {
        match self {
            Self::Organization(_) | Self::User(_) => (MAX_PER_WINDOW, QUOTA_WINDOW),
            Self::Mailbox(_) => (1, MAILBOX_INTERVAL),
        }
    }

    /// Whether mails to a mailbox are counted.
    pub(super) const fn is_mailbox(&self) -> bool {
        matches!(self, Self::Mailbox(_))
    }
}

impl Key for PaceKey {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Organization(organization) => (0_u8, *organization).write(out),
            Self::User(user) => (1_u8, *user).write(out),
            Self::Mailbox(mailbox) => (2_u8, mailbox.clone()).write(out),
        }
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        match u8::read(input)? {
            0 => OrganizationId::read(input).map(Self::Organization),
            1 => UserId::read(input).map(Self::User),
            2 => String::read(input).map(Self::Mailbox),
            _ => None,
        }
    }
}

/// The last attempts to send mails that a limit counts together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Whose mails these are.
    pub key: PaceKey,
    /// When the attempts ended, oldest first: as many as the limit allows at once.
    pub attempts: Vec<Timestamp>,
    /// The end of the pause after a slow attempt.
    pub paused_until: Option<Timestamp>,
}

/// The records in the order in which they expire.
const BY_EXPIRY: Index<Pace, Timestamp> = Index::many(Table::MailPacesByExpiry, Pace::expires_at);

impl_record!(Pace {
    table: MailPaces,
    key: |pace| -> PaceKey { pace.key.clone() },
    indexes: [&BY_EXPIRY],
    owner: |_, _| Ok(None),
});

impl Pace {
    /// Reads what counts at `now`.
    fn read(tx: &impl Tx, key: PaceKey, now: Timestamp) -> Result<Self> {
        let stored = tx.meta::<Self>(&key)?;
        let mut pace = stored.unwrap_or(Self { key, attempts: Vec::new(), paused_until: None });
        pace.forget(now);
        Ok(pace)
    }

    /// Removes what does not count at `now`. What lies further ahead than its window was written before the clock was
    /// set back.
    fn forget(&mut self, now: Timestamp) {
        let (_, window) = self.key.limit();
        self.attempts.retain(|at| at.plus(window) > now && *at <= now.plus(window));
        self.paused_until =
            self.paused_until.filter(|until| *until > now && *until <= now.plus(MAX_WAIT));
    }

    /// Returns when an attempt may begin that comes after `ahead` others which are not made yet.
    fn free_at(&self, ahead: usize, now: Timestamp) -> Timestamp {
        let (limit, window) = self.key.limit();
        let surplus = (self.attempts.len() + ahead % limit).checked_sub(limit);
        let oldest = surplus.and_then(|surplus| self.attempts.get(surplus));
        let windows = u32::try_from(ahead / limit).unwrap_or(u32::MAX);
        let allowed_at = oldest.map_or(now, |at| at.plus(window));
        let free_at = allowed_at.plus(window.saturating_mul(windows)).max(now);
        self.paused_until.map_or(free_at, |until| until.max(free_at)).min(now.plus(MAX_WAIT))
    }

    /// Adds an attempt that took `took` and ended at `now`. After a slow one, the organization and the user pause, so
    /// that they use at most a fixed share of the sending time.
    fn add(&mut self, took: Duration, now: Timestamp) {
        let (limit, _) = self.key.limit();
        self.attempts.push(now);
        self.attempts.sort_unstable();
        self.attempts.drain(..self.attempts.len().saturating_sub(limit));
        if took >= SLOW_ATTEMPT && !self.key.is_mailbox() {
            self.paused_until = Some(now.plus(took.saturating_mul(PAUSE_FACTOR).min(MAX_WAIT)));
        }
    }

    /// Returns when nothing in the record counts any more. The record of a mailbox may stay as long as the others of the
    /// same mail, so that they are deleted together.
    fn expires_at(&self) -> Option<Timestamp> {
        self.attempts.last().map(|last| last.plus(QUOTA_WINDOW))
    }

    /// Whether nothing in the record counts at `now`, because it is old or was written before the clock was set back.
    fn is_expired(&self, now: Timestamp) -> bool {
        let last = now.plus(QUOTA_WINDOW).plus(QUOTA_WINDOW);
        self.expires_at().is_none_or(|expires_at| expires_at <= now || expires_at > last)
    }
}

/// Returns when all limits of a mail allow it: at `now` or later.
pub(super) fn free_at(tx: &impl Tx, keys: Vec<PaceKey>, now: Timestamp) -> Result<Timestamp> {
    let mut free_at = now;
    for key in keys {
        free_at = free_at.max(Pace::read(tx, key, now)?.free_at(0, now));
    }
    Ok(free_at)
}

/// Counts an attempt that took `took` and ended at `now`.
pub(super) fn count_attempt(
    tx: &mut WriteTx<'_>,
    keys: Vec<PaceKey>,
    took: Duration,
    now: Timestamp,
) -> Result<()> {
    for key in keys {
        let mut pace = Pace::read(tx, key, now)?;
        pace.add(took, now);
        tx.put(&pace)?;
    }
    Ok(())
}

/// Returns when the next record expires: at `now` if one has expired, or `None` if there are no records.
pub(super) fn expires_at(tx: &impl Tx, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut next = None;
    visit_ends(tx, 1, |pace| {
        let expires_at = pace.expires_at().filter(|_| !pace.is_expired(now)).unwrap_or(now);
        next = next.into_iter().chain([expires_at]).min();
    })?;
    Ok(next)
}

/// Deletes expired records, up to a limited number.
pub(super) fn delete_expired(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<()> {
    let mut expired = Vec::new();
    visit_ends(tx, DELETE_BATCH, |pace| {
        if pace.is_expired(now) {
            expired.push(pace.key);
        }
    })?;
    expired.iter().try_for_each(|key| tx.remove::<Pace>(key).map(drop))
}

/// Visits up to `limit` records at each end of the order of expiry.
fn visit_ends(tx: &impl Tx, limit: usize, mut visit: impl FnMut(Pace)) -> Result<()> {
    for order in [Order::Ascending, Order::Descending] {
        tx.walk(&BY_EXPIRY, &(), Window { offset: 0, limit, order }, |row| {
            visit(row.meta);
            Ok(())
        })?;
    }
    Ok(())
}

/// The limits of several mails at one time. Each record is read once.
pub(super) struct Paces<'t, T> {
    tx: &'t T,
    now: Timestamp,
    /// The records, each with the number of mails that come before the next one and are not counted yet.
    known: HashMap<PaceKey, (Pace, usize)>,
}

impl<'t, T: Tx> Paces<'t, T> {
    pub(super) fn new(tx: &'t T, now: Timestamp) -> Self {
        Self { tx, now, known: HashMap::new() }
    }

    /// Returns when all limits of a mail allow it, after the mails before it: now or later. A mail that has to wait is
    /// ahead of others only for the limits that delay it.
    pub(super) fn reserve(&mut self, keys: &[PaceKey]) -> Result<Timestamp> {
        let now = self.now;
        let mut free_at = now;
        for key in keys {
            let (pace, ahead) = self.pace(key)?;
            free_at = free_at.max(pace.free_at(*ahead, now));
        }
        for key in keys {
            let (pace, ahead) = self.pace(key)?;
            if free_at == now || pace.free_at(*ahead, now) > now {
                *ahead += 1;
            }
        }
        Ok(free_at)
    }

    /// Returns when the last attempt of an organization ended, if that was within the last hour.
    pub(super) fn last_attempt(
        &mut self,
        organization: OrganizationId,
    ) -> Result<Option<Timestamp>> {
        let (pace, _) = self.pace(&PaceKey::Organization(organization))?;
        Ok(pace.attempts.last().copied())
    }

    fn pace(&mut self, key: &PaceKey) -> Result<&mut (Pace, usize)> {
        match self.known.entry(key.clone()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let pace = Pace::read(self.tx, key.clone(), self.now)?;
                Ok(new.insert((pace, 0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_750_000_000_000_000);

    fn pace(key: PaceKey, attempts: impl IntoIterator<Item = Timestamp>) -> Pace {
        let mut pace = Pace { key, attempts: attempts.into_iter().collect(), paused_until: None };
        pace.forget(NOW);
        pace
    }

    fn user() -> PaceKey {
        PaceKey::User(UserId(1))
    }

    fn mailbox() -> PaceKey {
        PaceKey::Mailbox("ann@x.example".to_owned())
    }

    /// Returns for how many seconds attempts wait that come after these numbers of others.
    fn waits<const N: usize>(pace: &Pace, ahead: [usize; N]) -> [u64; N] {
        ahead.map(|ahead| pace.free_at(ahead, NOW).since(NOW).as_secs())
    }

    #[test]
    fn waiting_mails_get_the_next_times_that_the_limit_leaves() {
        assert_eq!(waits(&pace(mailbox(), []), [0, 1, 2, 60, 1_000]), [0, 60, 120, 3_600, 3_600]);
        assert_eq!(waits(&pace(mailbox(), [NOW.plus_seconds(-20)]), [0, 1, 2]), [40, 100, 160]);
        let half = pace(user(), (1..=50).map(|number| NOW.plus_seconds(number - 3_000)));
        assert_eq!(waits(&half, [0, 49, 50, 51, 99, 100]), [0, 0, 601, 602, 650, 3_600]);
        let full = pace(user(), (1..=100).map(|number| NOW.plus_seconds(number - 3_600)));
        assert_eq!(waits(&full, [0, 1, 99, 100, usize::MAX]), [1, 2, 100, 3_600, 3_600]);
    }

    #[test]
    fn only_attempts_near_the_clock_count() {
        let times = |seconds: [i64; 4]| seconds.map(|seconds| NOW.plus_seconds(seconds));
        let counts = |key, seconds| pace(key, times(seconds)).attempts.len();
        assert_eq!(counts(mailbox(), [-60, -59, 60, 61]), 2);
        assert_eq!(counts(user(), [-3_600, -3_599, 3_600, 3_601]), 2);
        let expired = [-3_600, -3_599, 3_600, 3_601].map(|seconds| {
            let attempts = vec![NOW.plus_seconds(seconds)];
            Pace { key: mailbox(), attempts, paused_until: None }.is_expired(NOW)
        });
        assert_eq!(expired, [true, false, false, true]);
    }

    #[test]
    fn slow_attempt_pauses_organization_and_user_for_four_times_as_long() {
        let after = |key, seconds| {
            let mut pace = pace(key, []);
            pace.add(Duration::from_secs(seconds), NOW);
            pace.paused_until.map(|until| until.since(NOW).as_secs())
        };
        let organization = || PaceKey::Organization(OrganizationId(uuid::Uuid::nil()));
        assert_eq!(after(user(), 0), None);
        assert_eq!(after(user(), 30), Some(120));
        assert_eq!(after(organization(), 1), Some(4));
        assert_eq!(after(organization(), 10_000), Some(3_600));
        assert_eq!(after(mailbox(), 30), None);
        let mut paused = pace(user(), []);
        paused.add(Duration::from_secs(30), NOW);
        assert_eq!(waits(&paused, [0, 98, 99]), [120, 120, 3_600]);
        paused.forget(NOW.plus_seconds(120));
        assert_eq!(paused.paused_until, None);
    }
}
