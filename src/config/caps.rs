//! Limits on the resources of one tenant, and on the rate of requests.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

/// Limits on the resources of one tenant. A request that would exceed a limit fails with 400 `limit_reached`. The
/// operator's commands have no limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Caps {
    /// A user who belongs to this many organizations cannot create another one.
    #[arg(long, env = "STEWARD_MAX_ORGANIZATIONS", value_name = "COUNT", default_value_t = 100)]
    pub max_organizations: u64,

    /// The maximum number of projects of an organization.
    #[arg(long, env = "STEWARD_MAX_PROJECTS", value_name = "COUNT", default_value_t = 1_000)]
    pub max_projects: u64,

    /// The maximum number of members of an organization.
    #[arg(long, env = "STEWARD_MAX_MEMBERS", value_name = "COUNT", default_value_t = 10_000)]
    pub max_members: u64,

    /// The maximum number of roles of an organization.
    #[arg(long, env = "STEWARD_MAX_ROLES", value_name = "COUNT", default_value_t = 500)]
    pub max_roles: u64,

    /// The maximum number of dashboards, and of insights, of a project. Deleted ones do not count.
    #[arg(long, env = "STEWARD_MAX_DASHBOARDS", value_name = "COUNT", default_value_t = 100_000)]
    pub max_dashboards: u64,

    /// The maximum number of pending invites of an organization.
    #[arg(long, env = "STEWARD_MAX_INVITES", value_name = "COUNT", default_value_t = 1_000)]
    pub max_invites: u64,

    /// The maximum number of different values of one query parameter.
    #[arg(long, env = "STEWARD_MAX_QUERY_VALUES", value_name = "COUNT", default_value_t = 200)]
    pub max_query_values: usize,

    /// The maximum number of bytes that the records of one organization take in the data file.
    #[arg(long, env = "STEWARD_ORGANIZATION_QUOTA", value_name = "SIZE", default_value = "4GiB", value_parser = super::parse_size)]
    pub organization_quota: usize,

    /// The free disk space to keep. With less, changes that add data fail with 503, and changes that delete data
    /// still work. By default 256 MiB, or a twentieth of the file system if that is less.
    #[arg(long, env = "STEWARD_DISK_RESERVE", value_name = "SIZE", value_parser = super::parse_size)]
    pub disk_reserve: Option<usize>,
}

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
