//! Points in time.

use serde_json::Value;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::parsing::Parsed;
use time::{Date, OffsetDateTime, Time, UtcOffset};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};

use super::{Kind, Schema};
use crate::error::{Error, Result};

const FORMAT: &[BorrowedFormatItem<'_>] = format_description!(
    version = 2,
    "[year]-[month]-[day]\
     [optional [[first [T][ ]][hour]:[minute][optional [:[second][optional [.[subsecond]]]]]\
     [optional [[first [Z]\
     [[offset_hour sign:mandatory]:[offset_minute]]\
     [[offset_hour sign:mandatory][offset_minute]]\
     [[offset_hour sign:mandatory]]]]]]]"
);

/// A date and time, as UTC: naive ones are UTC, a bare date is its midnight, fractions of a second are cut
/// to microseconds (facts-crosscutting §b). Years from 1 to 9999. Refused with `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct DateTime;

impl Kind for DateTime {
    type Value = OffsetDateTime;

    fn read(value: &Value) -> Result<OffsetDateTime> {
        value.as_str().and_then(instant).ok_or_else(|| {
            Error::invalid(
                "invalid_input",
                "Datetime has wrong format. Use one of these formats instead: \
                 YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].",
            )
        })
    }

    fn schema() -> Schema {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

fn instant(text: &str) -> Option<OffsetDateTime> {
    // `[year]` alone would take a sign.
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut parsed = Parsed::new();
    if !parsed.parse_items(text.as_bytes(), FORMAT).ok()?.is_empty() {
        return None;
    }
    let micros = parsed.subsecond().unwrap_or(0) / 1000;
    let time = Time::from_hms_micro(
        parsed.hour_24().unwrap_or(0),
        parsed.minute().unwrap_or(0),
        parsed.second().unwrap_or(0),
        micros,
    );
    let offset_hour = parsed.offset_hour().unwrap_or(0);
    let offset = UtcOffset::from_hms(offset_hour, parsed.offset_minute_signed().unwrap_or(0), 0);
    let date = Date::try_from(parsed).ok()?;
    let local = OffsetDateTime::new_in_offset(date, time.ok()?, offset.ok()?);
    let utc = local.checked_to_offset(UtcOffset::UTC)?;
    let plausible = offset_hour.unsigned_abs() < 24
        && [date.year(), utc.year()].iter().all(|year| (1..=9999).contains(year));
    plausible.then_some(utc)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use time::macros::datetime;

    use super::super::testing::{any_json, read, reads, refuses};
    use super::*;

    #[test]
    fn every_form_is_read_as_utc() {
        let ten = datetime!(2024-01-01 10:00 UTC);
        reads::<DateTime>([
            (json!("2024-01-01"), datetime!(2024-01-01 00:00 UTC)),
            (json!("2024-01-01 10:00"), ten),
            (json!("2024-01-01T10:00"), ten),
            (json!("2024-01-01T10:00:00"), ten),
            (json!("2024-01-01T10:00Z"), ten),
            (json!("2024-01-01T10:00:00.000Z"), ten),
            (json!("2024-01-01T12:00:00+02:00"), ten),
            (json!("2024-01-01T12:00:00+0200"), ten),
            (json!("2024-01-01T12:00+02"), ten),
            (json!("2024-01-01T04:30:00-05:30"), ten),
            (json!("2024-01-01T09:30:00-00:30"), ten),
            (json!("2024-01-01T10:00:00.5"), datetime!(2024-01-01 10:00:00.5 UTC)),
            (json!("2024-01-01T10:00:00.1234567Z"), datetime!(2024-01-01 10:00:00.123456 UTC)),
            (json!("2024-02-29"), datetime!(2024-02-29 00:00 UTC)),
        ]);
    }

    #[test]
    fn every_other_form_is_refused() {
        let text = "Datetime has wrong format. Use one of these formats instead: \
                    YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
        let wrong = [
            "bad",
            "",
            "2024",
            "2024-13-01",
            "2023-02-29",
            "2024-01-01T",
            "2024-01-01T10",
            "2024-01-01T24:00",
            "2024-01-01T10:60",
            "2024-01-01T10:00:60",
            "2024-01-01T10:00:00Zx",
            "2024-01-01T10:00+24:00",
            "+2024-01-01",
            "-2024-01-01",
            "2024-01-01T10:00+02:60",
            "0000-01-01",
            "0001-01-01T00:00+01:00",
            "9999-12-31T23:59-01:00",
            "2024-01-01Z",
            "2024-01-01T10:00 ",
        ];
        refuses::<DateTime>(wrong.map(|value| (json!(value), "invalid_input", text)));
        refuses::<DateTime>(
            [json!(5), json!(true), json!([])].map(|value| (value, "invalid_input", text)),
        );
        refuses::<DateTime>([(json!(null), "null", "This field may not be null.")]);
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(value in any_json()) {
            if let Ok(Some(instant)) = read::<DateTime>(&value) {
                prop_assert!(instant.offset().is_utc());
            }
        }
    }
}
