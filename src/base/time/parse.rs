//! Reads times as Django's `parse_datetime` does: ISO 8601 in the forms of Python's `datetime.fromisoformat`, or with
//! single digits and a space before the offset, as shells and Java write it. See `docs/spec/values.md`.

use std::ops::RangeInclusive;

use time::{Date, Month, PrimitiveDateTime, Time, Weekday};

const DAY: i64 = 86_400_000_000;

/// Returns the microseconds since 1970-01-01T00:00:00Z. Without an offset the time is UTC, without a time it is midnight.
pub(super) fn micros(text: &str) -> Option<i64> {
    iso(text).or_else(|| spaced(text))
}

/// A time of day, or the length of an offset.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
}

impl Clock {
    fn time(self) -> Option<Time> {
        let Self { hour, minute, second, micros } = self;
        let part = |number: u32| u8::try_from(number).ok();
        Time::from_hms_micro(part(hour)?, part(minute)?, part(second)?, micros).ok()
    }

    /// Returns the microseconds of an offset, which is less than a day.
    fn offset(self) -> Option<i64> {
        let Self { hour, minute, second, micros } = self;
        let seconds = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
        Some(seconds * 1_000_000 + i64::from(micros)).filter(|length| *length < DAY)
    }
}

fn iso(text: &str) -> Option<i64> {
    let mut rest = Rest(text);
    let date = iso_date(&mut rest)?;
    if rest.is_empty() {
        return moment(date, Clock::default(), 0);
    }
    // A digit would let a number be a time.
    rest.skip(|separator| !separator.is_ascii_digit())?;
    let clock = iso_clock(&mut rest)?;
    let mut offset = 0;
    if let Some(sign) = rest.sign() {
        let length = iso_clock(&mut rest).filter(|of| of.minute < 60 && of.second < 60)?;
        offset = sign * length.offset()?;
    } else {
        rest.zulu();
    }
    if rest.is_empty() { moment(date, clock, offset) } else { None }
}

/// Reads `2026-01-02`, `20260102`, `2026-W01-5` or `2026W015`.
fn iso_date(rest: &mut Rest<'_>) -> Option<Date> {
    let year = i32::try_from(rest.digits(4..=4)?).ok()?;
    let has_hyphens = rest.eat('-');
    if rest.eat('W') {
        let week = u8::try_from(rest.digits(2..=2)?).ok()?;
        let has_day = if has_hyphens { rest.eat('-') } else { rest.begins_with_digit() };
        let day = if has_day { rest.digits(1..=1)? } else { 1 };
        let after_monday = u8::try_from(day.checked_sub(1)?).ok().filter(|after| *after < 7)?;
        return Date::from_iso_week_date(year, week, Weekday::Monday.nth_next(after_monday)).ok();
    }
    let month = rest.digits(2..=2)?;
    if rest.eat('-') != has_hyphens {
        return None;
    }
    date(year, month, rest.digits(2..=2)?)
}

/// Reads `10`, `10:00`, `10:00:05.25`, or the same without colons.
fn iso_clock(rest: &mut Rest<'_>) -> Option<Clock> {
    let mut clock = Clock { hour: rest.digits(2..=2)?, ..Clock::default() };
    let has_colons = rest.eat(':');
    if !has_colons && !rest.begins_with_digit() {
        return Some(clock);
    }
    clock.minute = rest.digits(2..=2)?;
    let has_seconds = if has_colons { rest.eat(':') } else { rest.begins_with_digit() };
    if has_seconds {
        clock.second = rest.digits(2..=2)?;
        clock.micros = rest.fraction(usize::MAX)?;
    }
    Some(clock)
}

/// Reads `2026-1-2 9:05:07.25 +0100`.
fn spaced(text: &str) -> Option<i64> {
    let mut rest = Rest(text.strip_suffix('\n').unwrap_or(text));
    let year = i32::try_from(rest.digits(4..=4)?).ok()?;
    let month = rest.after('-', 1..=2)?;
    let date = date(year, month, rest.after('-', 1..=2)?)?;
    rest.skip(|separator| matches!(separator, 'T' | 't' | ' '))?;
    let (hour, minute) = (rest.digits(1..=2)?, rest.after(':', 1..=2)?);
    let mut clock = Clock { hour, minute, ..Clock::default() };
    if rest.eat(':') {
        clock.second = rest.digits(1..=2)?;
        clock.micros = rest.fraction(12)?;
    }
    rest.0 = rest.0.trim_start();
    let mut offset = 0;
    if let Some(sign) = rest.sign() {
        let hour = rest.digits(2..=2)?;
        let has_minutes = rest.eat(':') || rest.begins_with_digit();
        let minute = if has_minutes { rest.digits(2..=2)? } else { 0 };
        offset = sign * Clock { hour, minute, ..Clock::default() }.offset()?;
    } else {
        rest.zulu();
    }
    if rest.is_empty() { moment(date, clock, offset) } else { None }
}

fn date(year: i32, month: u32, day: u32) -> Option<Date> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok()
}

fn moment(date: Date, clock: Clock, offset: i64) -> Option<i64> {
    let moment = PrimitiveDateTime::new(date, clock.time()?).assume_utc();
    i64::try_from(moment.unix_timestamp_nanos() / 1_000).ok()?.checked_sub(offset)
}

/// The part of a text that is not yet read.
struct Rest<'t>(&'t str);

impl Rest<'_> {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn begins_with_digit(&self) -> bool {
        self.0.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Skips one character that `is_valid` accepts.
    fn skip(&mut self, is_valid: impl Fn(char) -> bool) -> Option<char> {
        let mut characters = self.0.chars();
        let first = characters.next().filter(|first| is_valid(*first))?;
        self.0 = characters.as_str();
        Some(first)
    }

    /// Skips this character. Returns whether it was there.
    fn eat(&mut self, expected: char) -> bool {
        self.skip(|found| found == expected).is_some()
    }

    fn zulu(&mut self) -> bool {
        self.skip(|found| matches!(found, 'Z' | 'z')).is_some()
    }

    /// Reads a sign, as a factor.
    fn sign(&mut self) -> Option<i64> {
        self.skip(|found| matches!(found, '+' | '-')).map(|sign| if sign == '-' { -1 } else { 1 })
    }

    /// Reads as many digits as `counts` allows.
    fn digits(&mut self, counts: RangeInclusive<usize>) -> Option<u32> {
        let found = self.0.bytes().take(*counts.end()).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at_checked(found)?;
        let number = if counts.contains(&found) { digits.parse().ok()? } else { return None };
        self.0 = rest;
        Some(number)
    }

    /// Reads digits behind this character.
    fn after(&mut self, expected: char, counts: RangeInclusive<usize>) -> Option<u32> {
        if self.eat(expected) { self.digits(counts) } else { None }
    }

    /// Reads a fraction of a second of at most `most` digits as microseconds. Further places are cut off.
    fn fraction(&mut self, most: usize) -> Option<u32> {
        if !self.eat('.') && !self.eat(',') {
            return Some(0);
        }
        let found = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at_checked(found)?;
        if !(1..=most).contains(&found) {
            return None;
        }
        self.0 = rest;
        let places = digits.bytes().chain([b'0'; 6]).take(6);
        Some(places.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::base::time::Timestamp;

    fn shown(text: &str) -> Option<String> {
        Timestamp::parse(text).map(|moment| moment.to_string())
    }

    #[test]
    fn times_of_shells_and_programs_are_parsed_as_django_does() {
        let moment = "2026-01-02T03:04:05Z";
        for text in [
            "2026-01-02T03:04:05Z",
            "2026-01-02t03:04:05z",
            "2026-01-02 03:04:05",
            "2026-01-02T05:34:05+02:30",
            "2026-01-01T23:04:05-04:00",
            "2026-01-03T03:03:05+23:59",
            "2026-01-01T03:05:05-23:59",
            "2026-01-02T03:04:05+0000",
            "2026-01-02T03:04:05+00",
            "2026-01-02 03:04:05 +0000",
            "2026-01-02 03:04:05 +00:00",
            "2026-01-02 03:04:05 Z",
            "2026-01-02T04:04:05+01",
            "2026-01-02T04:04:05.000+0100",
            "2026-01-01T22:34:05-0430",
            "2026-01-02T03:04:05,000000000+00:00",
            "2026-01-02T03:04:05+00:00:00",
            "2026-01-02T03:04:06.5+00:00:01.500000",
            "2026-01-02_03:04:05",
            "2026-1-2 3:4:5",
            "2026-1-2T3:4:5 -00:00",
            "2026-01-02 04:03:05+00:59",
            "2026-01-02 04:43:05 +0099",
            "2026-01-02T03:04:05Z\n",
            "20260102T030405",
            "20260102T030405Z",
            "20260102T030405.000-0000",
            "2026-W01-5T03:04:05",
            "2026W015T030405Z",
        ] {
            assert_eq!(shown(text).as_deref(), Some(moment), "{text}");
        }
        for (text, moment) in [
            ("20260102", "2026-01-02T00:00:00Z"),
            ("2026-W01", "2025-12-29T00:00:00Z"),
            ("2026W017", "2026-01-04T00:00:00Z"),
            ("2026-01-02T03", "2026-01-02T03:00:00Z"),
            ("2026-01-02T03+01", "2026-01-02T02:00:00Z"),
            ("2026-01-02 03:04:05.1234567 +0000", "2026-01-02T03:04:05.123456Z"),
            ("2026-01-02T03:04:05,5", "2026-01-02T03:04:05.500000Z"),
            ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901Z"),
            ("2026-01-02T03:04", "2026-01-02T03:04:00Z"),
            ("2026-01-02", "2026-01-02T00:00:00Z"),
            ("0000-01-01", "0000-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(moment), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "garbage",
            "2026",
            "2026-13-01",
            "2026-02-30",
            "2026-01-02T",
            "2026-01-02T25:00",
            "2026-01-02Z",
            " 2026-01-02",
            "2026-01-02 ",
            "20260-01-02",
            "２０２６-01-02",
            "01/01/2020",
            "1735787045",
            "1735787045123",
            "1712011201123",
            "2026-01-02T03:04:05 00:00",
            "2026-01-02T03:04:05+0",
            "2026-01-02T03:04:05+000",
            "2026-01-02T03:04:05+24",
            "2026-01-02T03:04:05+24:00",
            "2026-01-02T03:04:05-24:00",
            "2026-01-02T03:04:05+99:00",
            "2026-01-02T03:04:05Z[UTC]",
            "2026-01-02T03:04:05 UTC",
            "2026-01-02T03:04:05.",
            "2026-01-02T03:04:60",
            "2026-01-02T24:00",
            "2026-0102",
            "202601-02",
            "2026-W54-1",
            "2026-W01-8",
            "2026-W01-0",
            "2026-1-2",
            "Fri, 02 Jan 2026 03:04:05 GMT",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_any_text_does_not_panic(text in ".{0,40}", near in "[0-9]{4}-?W?[0-9]{1,2}-?[0-9]{0,2}[T ]?[0-9:.,+Z -]{0,24}") {
            let _ = (Timestamp::parse(&text), Timestamp::parse(&near));
        }
    }
}
