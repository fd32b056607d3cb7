//! Timestamps.

use serde_json::Value;
use utoipa::openapi::schema::Type;

use super::spec::formatted;
use super::{FieldType, Schema};
use crate::base::error::{Error, Result};
use crate::base::time::Timestamp;

/// A timestamp: a date, optionally with a time and an offset. See `docs/spec/values.md`. Times outside the years
/// 0 to 9999 in UTC are invalid, because no response could show them. Fails with `invalid_input`.
#[derive(Debug, Clone, Copy)]
pub struct DateTime;

impl FieldType for DateTime {
    type Value = Timestamp;

    fn read(value: &Value) -> Result<Timestamp> {
        let moment = value.as_str().and_then(Timestamp::parse);
        moment.filter(|moment| moment.plus_seconds(0) == *moment).ok_or_else(|| {
            let forms = "YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]";
            Error::invalid(
                "invalid_input",
                format!("Datetime has wrong format. Use one of these formats instead: {forms}."),
            )
        })
    }

    fn schema() -> Schema {
        formatted(Type::String, "date-time").into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{assert_invalid, assert_reads};
    use super::*;

    const WRONG: &str = "Datetime has wrong format. Use one of these formats instead: \
                         YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";

    #[test]
    fn date_times_are_read_with_and_without_time_and_offset() {
        let moment = Timestamp::from_micros;
        assert_reads::<DateTime>([
            (json!("2025-01-02T03:04:05Z"), moment(1_735_787_045_000_000)),
            (json!("2025-01-02T05:04:05.5+02:00"), moment(1_735_787_045_500_000)),
            (json!("2025-01-02 03:04"), moment(1_735_787_040_000_000)),
            (json!("2025-01-02"), moment(1_735_776_000_000_000)),
        ]);
    }

    #[test]
    fn invalid_or_unrepresentable_date_times_are_rejected() {
        let invalid = [
            json!(""),
            json!("now"),
            json!(5),
            json!(true),
            json!(["2025-01-02"]),
            json!("2025-02-30"),
            json!("0000-01-01T00:00+01:00"),
            json!("9999-12-31T23:59-01:00"),
        ];
        assert_invalid::<DateTime>(invalid, WRONG);
    }

    #[test]
    fn date_time_schema_has_the_format() {
        let schema = serde_json::to_value(DateTime::schema()).unwrap();
        assert_eq!(schema, json!({"type": "string", "format": "date-time"}));
    }
}
