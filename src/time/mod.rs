//! Points in time, and the clock.

mod clock;
mod parse;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub use clock::{Clock, ManualClock, Stopwatch};

/// A point in time in UTC, with microseconds.
///
/// In JSON it is RFC 3339 with `Z` and six fractional digits, or none if the fraction is zero. The metadata of
/// records stores microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
        let moment = moment.replace_date(date);
        let micros = i64::try_from(moment.unix_timestamp_nanos() / 1_000).ok()?;
        (FIRST..=LAST).contains(&micros).then_some(Self(micros))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_second_is_formatted_without_a_fraction() {
        assert_eq!(Timestamp(1_735_787_045_000_000).to_string(), "2025-01-02T03:04:05Z");
    }

    #[test]
    fn fraction_is_formatted_with_six_digits() {
        assert_eq!(Timestamp(1_735_787_045_678_900).to_string(), "2025-01-02T03:04:05.678900Z");
    }

    #[test]
    fn minute_is_formatted_for_display() {
        assert_eq!(Timestamp(1_735_787_045_678_900).minute(), "2025-01-02 03:04 UTC");
    }

    #[test]
    fn formatted_timestamp_parses_back() {
        let moment = Timestamp(1_735_787_045_678_901);
        for moment in [moment, moment.plus_seconds(i64::MAX), moment.plus_seconds(i64::MIN)] {
            let json = serde_json::to_string(&moment).expect("a timestamp serializes");
            assert_eq!(serde_json::from_str::<Timestamp>(&json).expect("and reads back"), moment);
        }
    }

    #[test]
    fn timestamps_are_parsed_in_every_format() {
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
    fn relative_times_are_hours_days_weeks_months_and_years() {
        let moment = Timestamp::parse("2024-03-31T12:00").expect("a time");
        for (amount, shown) in [
            ("0h", "2024-03-31T12:00:00Z"),
            ("1h", "2024-03-31T11:00:00Z"),
            ("7d", "2024-03-24T12:00:00Z"),
            ("2w", "2024-03-17T12:00:00Z"),
            ("1m", "2024-02-29T12:00:00Z"),
            ("13m", "2023-02-28T12:00:00Z"),
            ("1y", "2023-03-31T12:00:00Z"),
            ("2024y", "0000-03-31T12:00:00Z"),
        ] {
            assert_eq!(moment.before(amount).map(|it| it.to_string()), Some(shown.to_owned()));
        }
        for amount in
            ["", "d", "7", "7q", "-7d", "1.5d", "7é", "2025y", "99999999999d", "4294967295y"]
        {
            assert_eq!(moment.before(amount), None, "{amount}");
        }
        assert!(moment.before("4294967295w").is_some_and(|it| it.to_string().starts_with("0000")));
    }

    #[test]
    fn timestamp_arithmetic_saturates_at_the_displayable_range() {
        let last = Timestamp(0).plus_seconds(i64::MAX);
        assert_eq!(last.to_string(), "9999-12-31T23:59:59.999999Z");
        assert_eq!(Timestamp(0).plus_seconds(i64::MIN).to_string(), "0000-01-01T00:00:00Z");
    }
}
