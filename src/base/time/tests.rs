//! Times as text, and the clock.

use super::*;

#[test]
fn fraction_is_formatted_with_six_digits_unless_it_is_zero() {
    let moment = Timestamp(1_735_787_045_678_900);
    assert_eq!(moment.to_string(), "2025-01-02T03:04:05.678900Z");
    assert_eq!(Timestamp(1_735_787_045_000_000).to_string(), "2025-01-02T03:04:05Z");
    assert_eq!(moment.minute(), "2025-01-02 03:04 UTC");
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
    for amount in ["", "d", "7", "7q", "-7d", "1.5d", "7é", "2025y", "99999999999d", "4294967295y"]
    {
        assert_eq!(moment.before(amount), None, "{amount}");
    }
    assert!(moment.before("4294967295w").is_some_and(|it| it.to_string().starts_with("0000")));
}

#[test]
fn period_that_began_with_a_wrong_clock_does_not_last() {
    let (now, hours) = (Timestamp(1_735_787_045_000_000), Duration::from_hours);
    let length = hours(6);
    for (begun, lasts) in [
        (now, true),
        (now.minus(hours(6)), false),
        (now.minus(hours(5)), true),
        (now.plus(MAX_CLOCK_DIFFERENCE), true),
        (now.plus(hours(2)), false),
        (now.plus(hours(4 * 365 * 24)), false),
    ] {
        assert_eq!(begun.is_begin_of_current(length, now), lasts, "{begun}");
    }
}

#[tokio::test]
async fn wait_ends_when_the_clock_is_set_back_too_far() {
    let start = Timestamp(1_735_787_045_000_000);
    let clock = ManualClock::at(start.plus(Duration::from_hours(35_000)));
    let (waits, every) = (Clock::Manual(clock.clone()), Duration::from_hours(6));
    let next = waits.now().plus(every);
    let mut waiting = std::pin::pin!(waits.wait_until(next, every));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    clock.advance(Duration::from_hours(5));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    clock.set(start);
    waiting.await;
    // Nor does a wait begin.
    waits.wait_until(next, every).await;
    assert_eq!(waits.now(), start);
}

#[test]
fn timestamp_arithmetic_saturates_at_the_displayable_range() {
    assert_eq!(Timestamp(0).plus_seconds(i64::MAX).to_string(), "9999-12-31T23:59:59.999999Z");
    assert_eq!(Timestamp(0).plus_seconds(i64::MIN).to_string(), "0000-01-01T00:00:00Z");
}
