//! The operator's subcommands, and the operations that they perform.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::config::{MailConfig, parse_duration, parse_public_url};
use crate::ids::{ApiKeyId, InviteId, OrganizationId, ProjectId};
use crate::operator::Operation;
use crate::resources::api_keys::is_scope;
use crate::resources::members::Level;

#[derive(Subcommand)]
pub(super) enum OrganizationCommand {
    /// Create an organization with its first project, and its owner if the address is new.
    Create {
        /// The organization's name.
        name: String,
        /// The owner's email address.
        #[arg(long, value_name = "EMAIL")]
        owner: String,
        /// Accept an existing user whose address is unverified because an invite's link created the account.
        #[arg(long)]
        existing: bool,
    },
    /// List all organizations.
    List,
}

#[derive(Subcommand)]
pub(super) enum UserCommand {
    /// Create a user, and its membership if an organization is given.
    Create {
        /// The user's email address, unique regardless of case.
        #[arg(long)]
        email: String,
        /// The first name.
        #[arg(long, value_name = "N", default_value = "")]
        first_name: String,
        /// The last name.
        #[arg(long, value_name = "N", default_value = "")]
        last_name: String,
        /// The organization to join.
        #[arg(long, value_name = "ID")]
        organization: Option<OrganizationId>,
        /// The level in the organization: member, admin or owner.
        #[arg(long, default_value = "member", value_parser = level, requires = "organization")]
        level: Level,
        /// Use the existing user with this address, even if it is unverified because an invite's link created the
        /// account.
        #[arg(long)]
        existing: bool,
    },
    /// List all users. `link_account` is set for users whose address is unverified because an invite's link created
    /// the account.
    List,
    /// Deactivate a user: their API keys become invalid, and lists of members omit them.
    Deactivate {
        /// The user's email address.
        email: String,
    },
    /// Activate a deactivated user.
    Activate {
        /// The user's email address.
        email: String,
    },
}

#[derive(Subcommand)]
pub(super) enum KeyCommand {
    /// Create an API key and print it. It is shown only once.
    Create {
        /// The email address of the key's user.
        #[arg(long)]
        email: String,
        /// The key's label, up to 40 characters.
        #[arg(long)]
        label: String,
        /// A scope of the key, such as dashboard:read, project:write or '*' (repeatable).
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
        scopes: Vec<String>,
        /// Restrict the key to this organization (repeatable).
        #[arg(long = "organization", value_name = "ID")]
        organizations: Vec<OrganizationId>,
        /// Restrict the key to this project (repeatable).
        #[arg(long = "project", value_name = "ID", value_parser = project)]
        projects: Vec<ProjectId>,
        /// Let the key expire after this time, such as 90d.
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        expires_in: Option<Duration>,
        /// Accept an existing user whose address is unverified because an invite's link created the account.
        #[arg(long)]
        existing: bool,
    },
    /// List all keys, masked.
    List,
    /// Revoke a key. It becomes invalid at once.
    Revoke {
        /// The key's id, as `steward key list` shows it.
        id: ApiKeyId,
    },
}

#[derive(Subcommand)]
pub(super) enum InviteCommand {
    /// Print the link that accepts an invite, to pass it on without mail.
    Link {
        /// The invite's id, as `GET /api/organizations/:id/invites/` shows it.
        id: InviteId,
        /// The scheme and host of the link, such as `https://admin.example.org`. By default those of serve's default
        /// address. If a server runs, its own setting applies.
        #[arg(long, env = "STEWARD_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
        public_url: Option<String>,
    },
}

#[derive(Args)]
pub(super) struct ConsoleCommand {
    /// The email address of the user to sign in. By default the only active user.
    email: Option<String>,
    /// Let the session see the page about the server's health.
    #[arg(long)]
    operator: bool,
    /// Accept an existing user whose address is unverified because an invite's link created the account.
    #[arg(long)]
    existing: bool,
    /// The scheme and host of the link, such as `https://admin.example.org`. By default those of serve's default
    /// address, with the host `steward.localhost`. If a server runs, its own setting and address apply.
    #[arg(long, env = "STEWARD_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub(super) public_url: Option<String>,
}

#[derive(Subcommand)]
pub(super) enum MailCommand {
    /// Send a test mail at once and print the mail server's answer. If a server runs, it sends the mail with its own
    /// settings.
    Test {
        /// The recipient's email address.
        #[arg(value_name = "ADDR")]
        to: String,

        #[command(flatten)]
        mail: MailConfig,
    },
}

#[derive(Subcommand)]
pub(super) enum SecretsCommand {
    /// Rotate the secret that signs invite links, public pages and live events tokens. Old links and tokens become
    /// invalid at once, every public page has a new token, and all console sessions end. API keys stay valid.
    Rotate,
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

impl OrganizationCommand {
    pub(super) fn operation(self) -> Operation {
        match self {
            Self::Create { name, owner, existing } => {
                Operation::OrganizationCreate { name, owner, existing }
            }
            Self::List => Operation::OrganizationList,
        }
    }
}

impl UserCommand {
    pub(super) fn operation(self) -> Operation {
        match self {
            Self::Create { email, first_name, last_name, organization, level, existing } => {
                Operation::UserCreate {
                    email,
                    first_name,
                    last_name,
                    organization,
                    level,
                    existing,
                }
            }
            Self::List => Operation::UserList,
            Self::Deactivate { email } => Operation::UserSetActive { email, active: false },
            Self::Activate { email } => Operation::UserSetActive { email, active: true },
        }
    }
}

impl KeyCommand {
    pub(super) fn operation(self) -> Operation {
        match self {
            Self::Create {
                email,
                label,
                scopes,
                organizations,
                projects,
                expires_in,
                existing,
            } => {
                let expires_in =
                    expires_in.map(|after| i64::try_from(after.as_secs()).unwrap_or(i64::MAX));
                Operation::KeyCreate {
                    email,
                    label,
                    scopes,
                    organizations,
                    projects,
                    expires_in,
                    existing,
                }
            }
            Self::List => Operation::KeyList,
            Self::Revoke { id } => Operation::KeyRevoke { id },
        }
    }
}

impl ConsoleCommand {
    pub(super) fn operation(self) -> Operation {
        let Self { email, operator, existing, public_url: _ } = self;
        Operation::ConsoleLink { email, is_operator: operator, existing }
    }
}
