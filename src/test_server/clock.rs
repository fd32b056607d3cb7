//! The clock of a test run.

use std::time::Duration;

use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::base::json::output;
use crate::base::time::{Hand, ManualClock, Timestamp};
use crate::input::{DateTime, FieldType, Flag, Schema, input};
use crate::resources::activity::Entry;
use crate::resources::api_keys::ApiKey;
use crate::resources::invites::Invite;
use crate::resources::shared::reading::collect;
use crate::store::{Record, Snapshot, Table};

use super::mails::Mails;

/// The most moments at which one move stops because a mail is due.
const MAX_STOPS: usize = 10_000;
/// The tables whose records expire, besides the activity log, whose entries expire if a retention is set.
const EXPIRING: [Table; 4] =
    [Table::Idempotency, Table::Sessions, Table::SignInLinks, Table::SignInRequests];

/// A length of time, such as `72h` or `1day 12h`.
pub(super) struct Length;

impl FieldType for Length {
    type Value = Duration;

    fn read(value: &Value) -> Result<Duration> {
        let detail = "Write a time such as 72h or 15m.";
        let parsed = value.as_str().and_then(|text| humantime::parse_duration(text).ok());
        parsed.ok_or_else(|| Error::invalid("invalid_input", detail))
    }

    fn schema() -> Schema {
        ObjectBuilder::new().schema_type(Type::String).examples(["72h"]).into()
    }
}

input! {
    /// How to set the clock: to a time or by a length of time, and whether it stands.
    pub(super) struct ClockChange {
        /// The time to move to, which is not before the time of the clock.
        now: DateTime,
        /// The time to move by.
        advance: Length,
        /// Whether the clock stands from then on. Otherwise it runs.
        frozen: Flag,
    }
}

output! {
    /// The clock of the service.
    pub(super) struct ClockBody {
        /// Its time.
        now: Timestamp,
        /// Whether it stands.
        frozen: bool,
    }
}

output! {
    /// The clock of the service, after it was set.
    pub(super) struct SetClockBody {
        /// Its time.
        now: Timestamp,
        /// Whether it stands.
        frozen: bool,
        /// What became due, and is done.
        due: DueBody,
    }
}

/// What became due while the clock was moved.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub(super) struct DueBody {
    /// The mails that were sent.
    mails: u64,
    /// The invites that expired.
    invites: usize,
    /// The keys that expired.
    keys: usize,
    /// The records that were deleted because they expired.
    deletions: u64,
}

/// Shows the clock.
pub(super) fn show(clock: &ManualClock) -> ClockBody {
    let hand = clock.hand();
    ClockBody { now: hand.shown(), frozen: matches!(hand, Hand::Stands(_)) }
}

/// Sets the clock, and does what becomes due on the way, in order.
///
/// # Errors
/// 400 for a time before that of the clock or after the year 9999, and for a change that says nothing or too much.
pub(super) async fn set(
    app: &App,
    clock: &ManualClock,
    mails: &Mails,
    change: ClockChange,
) -> Result<SetClockBody> {
    let begin = app.now();
    let target = target(&change, begin)?;
    let (sent, kept) = (mails.count(), expiring(app)?);
    if change.frozen == Some(true) {
        clock.replace(Hand::Stands(begin));
    }
    if let Some(target) = target {
        move_to(app, clock, target).await?;
    }
    if change.frozen == Some(false) {
        clock.replace(Hand::Runs(0).moved_to(app.now()));
    }
    let (ClockBody { now, frozen }, tx) = (show(clock), app.store().snapshot()?);
    let invites = ended::<Invite>(&tx, |invite| Some(invite.expires_at), (begin, now))?;
    let keys = ended::<ApiKey>(&tx, |key| key.expires_at, (begin, now))?;
    let deletions = kept.saturating_sub(expiring(app)?);
    let due = DueBody { mails: mails.count() - sent, invites, keys, deletions };
    Ok(SetClockBody { now, frozen, due })
}

/// Returns where to move to, if the clock is to be moved.
fn target(change: &ClockChange, now: Timestamp) -> Result<Option<Timestamp>> {
    let last = Timestamp::MAX.plus(Duration::ZERO);
    let refused = |attr, detail| Err(Error::field(attr, "invalid_input", detail));
    match (change.now, change.advance) {
        (Some(_), Some(_)) => refused("advance", "Send either now or advance."),
        (Some(target), None) if target < now => {
            refused("now", "The clock only moves forward. To go back, restore a snapshot or reset.")
        }
        (Some(target), None) => Ok(Some(target)),
        (None, Some(by)) if last.since(now) < by => {
            refused("advance", "The clock ends with the year 9999.")
        }
        (None, Some(by)) => Ok(Some(now.plus(by))),
        (None, None) if change.frozen.is_some() => Ok(None),
        (None, None) => refused("now", "Send now, advance or frozen."),
    }
}

/// Moves the clock, with a stop at each moment at which a mail is due.
async fn move_to(app: &App, clock: &ManualClock, target: Timestamp) -> Result<()> {
    for _ in 0..MAX_STOPS {
        let next = app.settle_mails().await.filter(|next| *next > app.now() && *next < target);
        let Some(next) = next else { break };
        clock.set(next);
    }
    clock.set(target.max(app.now()));
    app.do_due_work().await
}

/// Returns the number of records that expire at some time.
fn expiring(app: &App) -> Result<u64> {
    let tx = app.store().snapshot()?;
    let others = EXPIRING.iter().map(|table| tx.len(*table)).sum::<Result<u64>>()?;
    if app.config().activity_retention.is_none() {
        return Ok(others);
    }
    let entries: Vec<()> = collect::<Entry, _, _>(&*tx, &(), |_| Some(()))?;
    Ok(others + entries.len() as u64)
}

/// Returns the number of records that ended after `begin` and not after `end`.
fn ended<R: Record>(
    tx: &Snapshot,
    end_of: impl Fn(&R::Meta) -> Option<Timestamp>,
    (begin, end): (Timestamp, Timestamp),
) -> Result<usize> {
    let is_between = |moment: Timestamp| moment > begin && moment <= end;
    let found: Vec<Timestamp> =
        collect::<R, _, _>(tx, &(), |meta| end_of(&meta).filter(|at| is_between(*at)))?;
    Ok(found.len())
}
