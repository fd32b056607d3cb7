//! Caps: how much of the service one tenant may have.

use clap::Args;

/// How much of the service one tenant may have. A request that would exceed a cap fails with 400
/// `limit_reached`; the operator's own commands are not capped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct Caps {
    /// How many organizations a user may belong to and create more.
    #[arg(
        long = "max-organizations",
        env = "STEWARD_MAX_ORGANIZATIONS",
        value_name = "COUNT",
        default_value_t = Caps::DEFAULT.organizations
    )]
    pub organizations: u64,

    /// How many projects an organization may have.
    #[arg(
        long = "max-projects",
        env = "STEWARD_MAX_PROJECTS",
        value_name = "COUNT",
        default_value_t = Caps::DEFAULT.projects
    )]
    pub projects: u64,

    /// How many members an organization may have.
    #[arg(
        long = "max-members",
        env = "STEWARD_MAX_MEMBERS",
        value_name = "COUNT",
        default_value_t = Caps::DEFAULT.members
    )]
    pub members: u64,

    /// How many live dashboards, and how many live insights, a project may have.
    #[arg(
        long = "max-dashboards",
        env = "STEWARD_MAX_DASHBOARDS",
        value_name = "COUNT",
        default_value_t = Caps::DEFAULT.dashboards
    )]
    pub dashboards: u64,

    /// How many pending invites an organization may have.
    #[arg(
        long = "max-invites",
        env = "STEWARD_MAX_INVITES",
        value_name = "COUNT",
        default_value_t = Caps::DEFAULT.invites
    )]
    pub invites: u64,

    /// How many different values one query parameter may have.
    #[arg(
        long = "max-query-values",
        env = "STEWARD_MAX_QUERY_VALUES",
        value_name = "COUNT",
        default_value_t = Caps::DEFAULT.query_values
    )]
    pub query_values: usize,

    /// How many bytes the records of one organization may take in the data file.
    #[arg(
        long = "organization-quota",
        env = "STEWARD_ORGANIZATION_QUOTA",
        value_name = "SIZE",
        default_value = "4GiB",
        value_parser = super::size
    )]
    pub organization_bytes: usize,

    /// How much free space the disk keeps: with less, changes that add something fail with 503, and changes
    /// that remove something go on. By default 256 MiB, or a twentieth of the file system where that is less.
    #[arg(
        long = "disk-reserve",
        env = "STEWARD_DISK_RESERVE",
        value_name = "SIZE",
        value_parser = super::size
    )]
    pub disk_reserve: Option<usize>,
}

impl Caps {
    /// What holds where the operator sets nothing.
    pub const DEFAULT: Self = Self {
        organizations: 100,
        projects: 1_000,
        members: 10_000,
        dashboards: 100_000,
        invites: 1_000,
        query_values: 200,
        organization_bytes: 4 << 30,
        disk_reserve: None,
    };
}

impl Default for Caps {
    fn default() -> Self {
        Self::DEFAULT
    }
}
