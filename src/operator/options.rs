//! What an operation creates, as the command line names it. A command passes it on to a running server.

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::config::parse_duration;
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::api_keys::is_scope;
use crate::resources::members::Level;

/// A new organization.
#[derive(Debug, Clone, Serialize, Deserialize, Args)]
pub struct OrganizationOptions {
    /// The organization's name.
    pub name: String,
    /// The owner's email address.
    #[arg(long, value_name = "EMAIL")]
    pub owner: String,
    /// Accept an existing user whose address is unverified because an invite's link created the account.
    #[arg(long)]
    pub existing: bool,
}

/// A new user.
#[derive(Debug, Clone, Serialize, Deserialize, Args)]
pub struct UserOptions {
    /// The user's email address, unique regardless of case.
    #[arg(long)]
    pub email: String,
    /// The first name.
    #[arg(long, value_name = "N", default_value = "")]
    pub first_name: String,
    /// The last name.
    #[arg(long, value_name = "N", default_value = "")]
    pub last_name: String,
    /// The organization to join.
    #[arg(long, value_name = "ID")]
    pub organization: Option<OrganizationId>,
    /// The level in the organization: member, admin or owner.
    #[arg(long, default_value = "member", value_parser = level, requires = "organization")]
    pub level: Level,
    /// Use the existing user with this address, even if it is unverified because an invite's link created the
    /// account.
    #[arg(long)]
    pub existing: bool,
}

/// A new API key.
#[derive(Debug, Clone, Serialize, Deserialize, Args)]
pub struct KeyOptions {
    /// The email address of the key's user.
    #[arg(long)]
    pub email: String,
    /// The key's label, up to 40 characters.
    #[arg(long)]
    pub label: String,
    /// A scope of the key, such as dashboard:read, project:write or '*' (repeatable).
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
    pub scopes: Vec<String>,
    /// Restrict the key to this organization (repeatable).
    #[arg(long = "organization", value_name = "ID")]
    pub organizations: Vec<OrganizationId>,
    /// Restrict the key to this project (repeatable).
    #[arg(long = "project", value_name = "ID", value_parser = project)]
    pub projects: Vec<ProjectId>,
    /// Let the key expire after this time, such as 90d.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub expires_in: Option<i64>,
    /// Accept an existing user whose address is unverified because an invite's link created the account.
    #[arg(long)]
    pub existing: bool,
}

fn level(text: &str) -> Result<Level, String> {
    let found = Level::ALL.into_iter().find(|level| level.as_str() == text);
    found.ok_or_else(|| "write member, admin or owner".to_owned())
}

fn scope(text: &str) -> Result<String, String> {
    if is_scope(text) {
        return Ok(text.to_owned());
    }
    Err("write *, or an object and read or write, such as dashboard:read".to_owned())
}

fn project(text: &str) -> Result<ProjectId, String> {
    text.parse().map_err(|_| "write a project's numeric id".to_owned())
}

fn seconds(text: &str) -> Result<i64, String> {
    parse_duration(text).map(|time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}
