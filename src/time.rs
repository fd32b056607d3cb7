//! Points in time, as they are stored and shown.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::parsing::Parsed;
use time::{Date, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};
use tokio::sync::watch;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A moment in UTC, to the microsecond.
///
/// Shown as RFC 3339 with `Z` and six fractional digits, none when the fraction is zero
/// (decisions §1); kept in record heads as microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// 0000-01-01T00:00:00Z: RFC 3339 has four digits for a year.
const FIRST: i64 = -62_167_219_200_000_000;
/// 9999-12-31T23:59:59.999999Z.
const LAST: i64 = 253_402_300_799_999_999;

impl Timestamp {
    /// Before every moment that can be shown.
    pub const MIN: Self = Self(i64::MIN);
    /// After every moment that can be shown.
    pub const MAX: Self = Self(i64::MAX);

    /// The moment `micros` microseconds after (before, when negative) 1970-01-01T00:00:00Z.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970-01-01T00:00:00Z.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The day, for people to read: `2026-11-20`.
    pub fn day(self) -> String {
        self.to_string().split('T').next().unwrap_or_default().to_owned()
    }

    /// The minute, for people to read: `2026-11-20 13:04 UTC`.
    pub fn minute(self) -> String {
        let shown = self.to_string();
        let (day, time) = shown.split_once('T').unwrap_or_default();
        format!("{day} {} UTC", time.get(..5).unwrap_or_default())
    }

    /// Its second in UTC, as names of files tell it: `20260102T030405Z`.
    pub fn stamp(self) -> String {
        let mut text = self.to_string();
        text.truncate(19);
        text.retain(|c| c != '-' && c != ':');
        text + "Z"
    }

    /// The second that [`stamp`](Self::stamp) tells.
    pub fn of_stamp(text: &str) -> Option<Self> {
        const FORM: &[BorrowedFormatItem<'_>] =
            format_description!("[year][month][day]T[hour][minute][second]Z");
        let moment = PrimitiveDateTime::parse(text, FORM).ok()?;
        Some(Self(moment.assume_utc().unix_timestamp().saturating_mul(1_000_000)))
    }

    /// Whole milliseconds since 1970-01-01T00:00:00Z, zero for earlier moments.
    pub fn millis(self) -> u64 {
        u64::try_from(self.0.div_euclid(1_000)).unwrap_or(0)
    }

    /// The moment that a client wrote: a date, with or without a time of day and an offset from UTC. What
    /// names no offset is in UTC, what names no time of day is its beginning (facts-crosscutting §b). No offset is a
    /// day long.
    pub fn parse(text: &str) -> Option<Self> {
        const FORM: &[BorrowedFormatItem<'_>] = format_description!(
            version = 2,
            "[year]-[month]-[day][optional [[first [T][t][ ]][hour]:[minute]\
             [optional [:[second][optional [.[subsecond]]]]]\
             [optional [[first [Z][z][[offset_hour sign:mandatory]:[offset_minute]]]]]]]"
        );
        let mut parsed = Parsed::new();
        let rest = parsed.parse_items(text.as_bytes(), FORM).ok()?;
        let date = Date::try_from(parsed).ok().filter(|_| rest.is_empty())?;
        let time = parsed.hour_24().map_or(Ok(Time::MIDNIGHT), |_| Time::try_from(parsed)).ok()?;
        let offset = parsed
            .offset_hour()
            .map_or(Ok(UtcOffset::UTC), |_| UtcOffset::try_from(parsed))
            .ok()?;
        if offset.whole_hours().abs() >= 24 {
            return None;
        }
        let moment = OffsetDateTime::new_in_offset(date, time, offset);
        i64::try_from(moment.unix_timestamp_nanos() / 1_000).ok().map(Self)
    }

    /// This moment moved on by `time`, held at the last one that can be shown.
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(LAST))
    }

    /// This moment moved back by `time`, held at the first one that can be shown.
    #[must_use]
    pub fn minus(self, time: Duration) -> Self {
        let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(micros).max(FIRST))
    }

    /// This moment moved by `seconds`, held at the ends of what can be shown.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        match self.0.saturating_add(seconds.saturating_mul(1_000_000)) {
            ..FIRST => Self(FIRST),
            moved @ FIRST..=LAST => Self(moved),
            _ => Self(LAST),
        }
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
        let moment = OffsetDateTime::parse(&text, &Rfc3339).map_err(de::Error::custom)?;
        i64::try_from(moment.unix_timestamp_nanos() / 1_000).map(Self).map_err(de::Error::custom)
    }
}

/// Where the service takes the time from; rules are handed the moment instead.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine's own clock.
    #[default]
    System,
    /// A clock that is set by hand, for tests that depend on the time.
    Manual(ManualClock),
}

/// A clock that stands still until it is moved. Its clones are the same clock.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<watch::Sender<Timestamp>>);

impl ManualClock {
    /// A clock that shows `moment`.
    pub fn at(moment: Timestamp) -> Self {
        Self(Arc::new(watch::Sender::new(moment)))
    }

    /// Moves the clock on. Whoever waits for a moment that has come by now goes on.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|moment| *moment = moment.plus(by));
    }
}

impl Clock {
    /// Waits until this clock shows `moment` or a later one.
    pub async fn reaches(&self, moment: Timestamp) {
        match self {
            Self::System => {
                let micros = u64::try_from(moment.0.saturating_sub(self.now().0)).unwrap_or(0);
                tokio::time::sleep(Duration::from_micros(micros)).await;
            }
            Self::Manual(clock) => {
                // The sender is held by `self`, so the wait cannot fail.
                let _ = clock.0.subscribe().wait_for(|shown| *shown >= moment).await;
            }
        }
    }

    /// The present moment by this clock.
    pub fn now(&self) -> Timestamp {
        match self {
            #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
            }
            Self::Manual(clock) => *clock.0.borrow(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_second_is_shown_without_a_fraction() {
        assert_eq!(Timestamp(1_735_787_045_000_000).to_string(), "2025-01-02T03:04:05Z");
    }

    #[test]
    fn a_fraction_is_shown_with_six_digits() {
        assert_eq!(Timestamp(1_735_787_045_678_900).to_string(), "2025-01-02T03:04:05.678900Z");
    }

    #[test]
    fn a_minute_is_shown_for_people() {
        assert_eq!(Timestamp(1_735_787_045_678_900).minute(), "2025-01-02 03:04 UTC");
    }

    #[test]
    fn what_is_shown_reads_back() {
        let moment = Timestamp(1_735_787_045_678_901);
        for moment in [moment, moment.plus_seconds(i64::MAX), moment.plus_seconds(i64::MIN)] {
            let json = serde_json::to_string(&moment).expect("a timestamp serializes");
            assert_eq!(serde_json::from_str::<Timestamp>(&json).expect("and reads back"), moment);
        }
    }

    #[test]
    fn moments_are_read_in_every_form() {
        let second = 1_735_787_045_000_000;
        for (text, micros) in [
            ("2025-01-02T03:04:05Z", second),
            ("2025-01-02t03:04:05z", second),
            ("2025-01-02T03:04:05.678901Z", second + 678_901),
            ("2025-01-02T03:04:05.678901999Z", second + 678_901),
            ("2025-01-02T03:04:05.5", second + 500_000),
            ("2025-01-02 03:04:05", second),
            ("2025-01-02T03:04", second - 5_000_000),
            ("2025-01-02T05:34:05+02:30", second),
            ("2025-01-01T23:04:05-04:00", second),
            ("2025-01-02", second - 11_045_000_000),
            ("2025-01-03T03:03:05+23:59", second),
            ("2025-01-01T03:05:05-23:59", second),
            ("0000-01-01", FIRST),
            ("9999-12-31T23:59:59.999999Z", LAST),
        ] {
            assert_eq!(Timestamp::parse(text), Some(Timestamp(micros)), "{text}");
        }
        for text in [
            "",
            "now",
            "1735787045",
            "2025",
            "2025-13-01",
            "2025-02-30",
            "2025-01-02T",
            "2025-01-02T25:00",
            "2025-01-02T03",
            "2025-01-02T03:04:05 00:00",
            "2025-01-02T03:04:05+24:00",
            "2025-01-02T03:04:05-24:00",
            "2025-01-02T03:04:05+25:00",
            "2025-01-02T03:04:05+99:00",
            "2025-01-02Z",
            " 2025-01-02",
            "2025-01-02 ",
            "20250-01-02",
            "２０２５-01-02",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_moment_moved_too_far_is_held_at_the_last_one_that_can_be_shown() {
        let last = Timestamp(0).plus_seconds(i64::MAX);
        assert_eq!(last.to_string(), "9999-12-31T23:59:59.999999Z");
        assert_eq!(Timestamp(0).plus_seconds(i64::MIN).to_string(), "0000-01-01T00:00:00Z");
    }
}
