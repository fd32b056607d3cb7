//! Points in time, and the clock.

mod parse;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A point in time in UTC, with microseconds.
///
/// In JSON it is RFC 3339 with `Z` and six fractional digits, or none if the fraction is zero. The metadata of
/// records stores microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// 0000-01-01T00:00:00Z, the first time that RFC 3339 can express.
const FIRST: i64 = -62_167_219_200_000_000;
/// 9999-12-31T23:59:59.999999Z, the last time that RFC 3339 can express.
const LAST: i64 = 253_402_300_799_999_999;
/// How far the clocks of two nodes may differ.
pub(crate) const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_hours(1);

impl Timestamp {
    /// Earlier than every time that can be shown.
    pub const MIN: Self = Self(i64::MIN);
    /// Later than every time that can be shown.
    pub const MAX: Self = Self(i64::MAX);

    /// Creates a timestamp from microseconds since 1970-01-01T00:00:00Z, which may be negative.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since 1970-01-01T00:00:00Z.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since 1970-01-01T00:00:00Z.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Returns the day in readable form: `2026-11-20`.
    pub fn day(self) -> String {
        self.to_string().split('T').next().unwrap_or_default().to_owned()
    }

    /// Returns the minute in readable form: `2026-11-20 13:04 UTC`.
    pub fn minute(self) -> String {
        let shown = self.to_string();
        let (day, time) = shown.split_once('T').unwrap_or_default();
        format!("{day} {} UTC", time.get(..5).unwrap_or_default())
    }

    /// Returns the second in UTC, in the form of file names: `20260102T030405Z`.
    pub fn to_file_stamp(self) -> String {
        let mut text = self.to_string();
        text.truncate(19);
        text.retain(|c| c != '-' && c != ':');
        text + "Z"
    }

    /// Parses the text that [`to_file_stamp`](Self::to_file_stamp) returns.
    pub fn from_file_stamp(text: &str) -> Option<Self> {
        const FORM: &[BorrowedFormatItem<'_>] =
            format_description!("[year][month][day]T[hour][minute][second]Z");
        let moment = PrimitiveDateTime::parse(text, FORM).ok()?;
        Some(Self(moment.assume_utc().unix_timestamp().saturating_mul(1_000_000)))
    }

    /// Returns the whole milliseconds since 1970-01-01T00:00:00Z, or zero for an earlier time.
    pub fn millis(self) -> u64 {
        u64::try_from(self.0.div_euclid(1_000)).unwrap_or(0)
    }

    /// Parses a time in a request: a date, optionally with a time of day and an offset from UTC.
    ///
    /// The default time is midnight and the default offset is UTC. An offset must be less than 24 hours. See
    /// `docs/spec/values.md`.
    pub fn parse(text: &str) -> Option<Self> {
        parse::micros(text).map(Self)
    }

    /// Adds `time`, up to the last time that can be shown.
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(LAST))
    }

    /// Subtracts `time`, down to the first time that can be shown.
    #[must_use]
    pub fn minus(self, time: Duration) -> Self {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros).max(FIRST))
    }

    /// Whether a period of at most `length` that ends at this time lasts at `now`, which may be from the clock of another
    /// node. An end that is later than the clock of any node allows does not count: the clock that set it has since been
    /// set back.
    pub(crate) fn is_end_of_current(self, length: Duration, now: Self) -> bool {
        now < self && self <= now.plus(length).plus(MAX_CLOCK_DIFFERENCE)
    }

    /// Whether a period from `begin` to this time lasts at `now`, as for [`is_end_of_current`](Self::is_end_of_current). It may
    /// have any length if its begin is unknown.
    pub(crate) fn is_end_of_current_since(self, begin: Option<Self>, now: Self) -> bool {
        self.is_end_of_current(begin.map_or(Duration::MAX, |begin| self.since(begin)), now)
    }

    /// Whether a period of `length` that began at this time lasts at `now`, as for
    /// [`is_end_of_current`](Self::is_end_of_current).
    pub(crate) fn is_begin_of_current(self, length: Duration, now: Self) -> bool {
        self.plus(length).is_end_of_current(length, now)
    }

    /// Returns the time that lies an amount before this one: a number and `h`, `d`, `w`, `m` for months or `y`. A day that
    /// the month lacks becomes its last day. `None` for another form, or if the result cannot be shown.
    pub fn before(self, amount: &str) -> Option<Self> {
        let unit = amount.chars().next_back()?;
        let count: u32 = amount.strip_suffix(unit)?.parse().ok()?;
        let hours = |each: i64| {
            let seconds = i64::from(count).checked_mul(each * 3_600)?;
            Some(self.plus_seconds(seconds.checked_neg()?))
        };
        match unit {
            'h' => hours(1),
            'd' => hours(24),
            'w' => hours(7 * 24),
            'm' => self.before_months(count),
            'y' => self.before_months(count.checked_mul(12)?),
            _ => None,
        }
    }

    fn before_months(self, count: u32) -> Option<Self> {
        let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000).ok()?;
        let months =
            moment.year().checked_mul(12)?.checked_add(i32::from(u8::from(moment.month())) - 1)?;
        let months = months.checked_sub(i32::try_from(count).ok()?)?;
        let month = Month::try_from(u8::try_from(months.rem_euclid(12) + 1).ok()?).ok()?;
        let year = months.div_euclid(12);
        let day = moment.day().min(month.length(year));
        let date = Date::from_calendar_date(year, month, day).ok()?;
        let before = Self::from(moment.replace_date(date));
        (FIRST..=LAST).contains(&before.0).then_some(before)
    }

    /// Returns the time from `earlier` to this time, or zero if it is later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        let micros = self.0.saturating_sub(earlier.0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    /// Adds `seconds`, which may be negative, within the range that can be shown.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        match self.0.saturating_add(seconds.saturating_mul(1_000_000)) {
            ..FIRST => Self(FIRST),
            moved @ FIRST..=LAST => Self(moved),
            _ => Self(LAST),
        }
    }
}

impl From<OffsetDateTime> for Timestamp {
    fn from(moment: OffsetDateTime) -> Self {
        i64::try_from(moment.unix_timestamp_nanos() / 1_000).map_or(Self::MAX, Self)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000)
            .map_err(|_| fmt::Error)?;
        let text = if self.0.rem_euclid(1_000_000) == 0 {
            moment.format(format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z"))
        } else {
            moment.format(format_description!(
                "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z"
            ))
        };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for Timestamp {}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return i64::deserialize(deserializer).map(Self);
        }
        let text = String::deserialize(deserializer)?;
        OffsetDateTime::parse(&text, &Rfc3339).map(Self::from).map_err(de::Error::custom)
    }
}

/// The longest sleep without a look at the system clock, which may be set: a machine may start with a wrong time, or resume.
const MAX_SLEEP: Duration = Duration::from_mins(1);

/// The source of the current time. Rules do not use it: they receive the time as an argument.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The system clock.
    #[default]
    System,
    /// A clock that tests set.
    Manual(ManualClock),
}

/// A clock that tests set: it stands, or it runs ahead of the system clock. Clones share the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<watch::Sender<Hand>>);

/// What a [`ManualClock`] shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hand {
    /// Always this time.
    Stands(Timestamp),
    /// The time of the system clock, and this many microseconds more.
    Runs(i64),
}

impl Hand {
    /// Returns the time that it shows.
    pub fn shown(self) -> Timestamp {
        match self {
            Self::Stands(moment) => moment,
            Self::Runs(ahead) => Timestamp(system_now().0.saturating_add(ahead).clamp(FIRST, LAST)),
        }
    }

    /// Returns this hand with another time.
    #[must_use]
    pub fn moved_to(self, moment: Timestamp) -> Self {
        match self {
            Self::Stands(_) => Self::Stands(moment),
            Self::Runs(_) => Self::Runs(moment.0.saturating_sub(system_now().0)),
        }
    }
}

impl ManualClock {
    /// Creates a clock that shows `moment` until it is advanced.
    pub fn at(moment: Timestamp) -> Self {
        Self::new(Hand::Stands(moment))
    }

    /// Creates a clock.
    pub fn new(hand: Hand) -> Self {
        Self(Arc::new(watch::Sender::new(hand)))
    }

    /// Returns whether the clock stands, and where.
    pub fn hand(&self) -> Hand {
        *self.0.borrow()
    }

    /// Advances the clock, and wakes the tasks whose time has come.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|hand| *hand = hand.moved_to(hand.shown().plus(by)));
    }

    /// Sets the clock, also to an earlier time, as an operator or a time server does.
    pub fn set(&self, moment: Timestamp) {
        self.0.send_modify(|hand| *hand = hand.moved_to(moment));
    }

    /// Replaces the hand, and wakes the tasks whose time has come.
    pub fn replace(&self, hand: Hand) {
        self.0.send_replace(hand);
    }
}

#[expect(clippy::disallowed_methods, reason = "the only reader of the system clock")]
fn system_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

impl Clock {
    /// Waits until the clock shows `moment`, which is `at_most` away when it is computed. If it is further away, the clock was
    /// set back since, and the wait is over.
    pub async fn wait_until(&self, moment: Timestamp, at_most: Duration) {
        // Before the first look, so that no change is missed.
        let mut changes = match self {
            Self::System => None,
            Self::Manual(clock) => Some(clock.0.subscribe()),
        };
        loop {
            let now = self.now();
            if !moment.is_end_of_current(at_most, now) {
                return;
            }
            let left = Duration::from_micros(moment.0.abs_diff(now.0)).min(MAX_SLEEP);
            match &mut changes {
                None => sleep(left).await,
                // `self` holds the sender, so the wait cannot fail.
                Some(changes) if matches!(*changes.borrow(), Hand::Stands(_)) => {
                    let _ = changes.changed().await;
                }
                Some(changes) => {
                    let _ = timeout(left, changes.changed()).await;
                }
            }
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => system_now(),
            Self::Manual(clock) => clock.hand().shown(),
        }
    }

    /// Starts to measure a time.
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch { clock: self.clone(), begun: Instant::now(), shown: self.now() }
    }
}

/// Measures a time. The result does not change if the system clock is set meanwhile. Of a manual clock, it is the time by which
/// the clock was advanced.
#[derive(Debug, Clone)]
pub struct Stopwatch {
    clock: Clock,
    begun: Instant,
    shown: Timestamp,
}

impl Stopwatch {
    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        match &self.clock {
            Clock::System => self.begun.elapsed(),
            Clock::Manual(_) => {
                let micros = self.clock.now().0.saturating_sub(self.shown.0);
                Duration::from_micros(micros.unsigned_abs())
            }
        }
    }
}

#[cfg(test)]
mod tests;
