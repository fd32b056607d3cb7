//! Rates in flags: `480/m` is 480 requests a minute.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

/// A number of requests in a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// The number of requests.
    pub requests: NonZeroU32,
    /// The period.
    pub per: Duration,
}

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write a rate such as 10/s, 480/m, 4800/h or 20000/d".to_owned();
        let (count, unit) = text.trim().split_once('/').ok_or_else(wrong)?;
        let per = match unit {
            "s" => Duration::from_secs(1),
            "m" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            "d" => Duration::from_hours(24),
            _ => return Err(wrong()),
        };
        Ok(Self { requests: count.parse().map_err(|_| wrong())?, per })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limit_is_a_count_per_unit() {
        for (text, count, seconds) in
            [("1/s", 1, 1), ("480/m", 480, 60), (" 4800/h", 4800, 3600), ("9/d", 9, 86_400)]
        {
            let rate: RateLimit = text.parse().expect(text);
            assert_eq!((rate.requests.get(), rate.per.as_secs()), (count, seconds));
        }
        for text in ["", "0/m", "-1/m", "m", "/m", "5", "5/", "5/w", "5/m/h", "5.5/m", "5 / m"] {
            assert!(text.parse::<RateLimit>().is_err(), "{text:?}");
        }
    }
}
