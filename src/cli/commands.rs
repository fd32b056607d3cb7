//! The operator's subcommands, and the operation each stands for.

use std::time::Duration;

use clap::Subcommand;

use crate::config::{MailConfig, duration, public_url};
use crate::ids::{ApiKeyId, InviteId, OrganizationId, ProjectId};
use crate::operator::Operation;
use crate::resources::api_keys::is_scope;
use crate::resources::members::Level;

#[derive(Subcommand)]
pub(super) enum OrganizationCommand {
    /// Make an organization with its first project. Makes the owner too, where the address is new.
    Create {
        /// Its name.
        name: String,
        /// The owner's e-mail address.
        #[arg(long, value_name = "EMAIL")]
        owner: String,
        /// Take the user with this address, even if only an invite's link made the account and nobody has proven
        /// the address.
        #[arg(long)]
        existing: bool,
    },
    /// List all organizations.
    List,
}

#[derive(Subcommand)]
pub(super) enum UserCommand {
    /// Make a user, and a member of an organization where one is named.
    Create {
        /// The e-mail address, unique in whatever case.
        #[arg(long)]
        email: String,
        /// Given name.
        #[arg(long, value_name = "N", default_value = "")]
        first_name: String,
        /// Family name.
        #[arg(long, value_name = "N", default_value = "")]
        last_name: String,
        /// The organization to join.
        #[arg(long, value_name = "ID")]
        organization: Option<OrganizationId>,
        /// At which level: member, admin or owner.
        #[arg(long, default_value = "member", value_parser = level, requires = "organization")]
        level: Level,
        /// Take the user with this address, if there is one, even if only an invite's link made the account.
        #[arg(long)]
        existing: bool,
    },
    /// List all users. `link_account` tells of those whose account only an invite's link made and whose address is
    /// unproven.
    List,
    /// Stop a user: their keys open nothing from now on, and members' lists leave them out.
    Deactivate {
        /// The e-mail address.
        email: String,
    },
    /// Undo deactivate.
    Activate {
        /// The e-mail address.
        email: String,
    },
}

#[derive(Subcommand)]
pub(super) enum KeyCommand {
    /// Make an API key and print it. It is shown only this once.
    Create {
        /// Whose key it is: the user's e-mail address.
        #[arg(long)]
        email: String,
        /// What to call it, in up to 40 characters.
        #[arg(long)]
        label: String,
        /// What it may do, such as dashboard:read, project:write or '*' (repeatable).
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = scope)]
        scopes: Vec<String>,
        /// Limit it to this organization (repeatable).
        #[arg(long = "organization", value_name = "ID")]
        organizations: Vec<OrganizationId>,
        /// Limit it to this project (repeatable).
        #[arg(long = "project", value_name = "ID", value_parser = project)]
        projects: Vec<ProjectId>,
        /// Let it end by itself after this time, such as 90d.
        #[arg(long, value_name = "TIME", value_parser = duration)]
        expires_in: Option<Duration>,
        /// Take the user with this address, even if only an invite's link made the account and nobody has proven
        /// the address.
        #[arg(long)]
        existing: bool,
    },
    /// List all keys, masked.
    List,
    /// End a key at once.
    Revoke {
        /// The key's id, as `steward key list` shows it.
        id: ApiKeyId,
    },
}

#[derive(Subcommand)]
pub(super) enum InviteCommand {
    /// Print the link by which an invite is accepted, to hand over where no mail is sent.
    Link {
        /// The invite's id, as `GET /api/organizations/:id/invites/` shows it.
        id: InviteId,
        /// What the link begins with, such as `https://admin.example.org`; by default where
        /// `steward serve` listens by default. Beside a server the server's own counts.
        #[arg(long, env = "STEWARD_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
        public_url: Option<String>,
    },
}

#[derive(Subcommand)]
pub(super) enum MailCommand {
    /// Send one short mail at once and tell what the mail server said. Beside a running server, which then
    /// sends it, the server's own flags count.
    Test {
        /// The e-mail address to send it to.
        #[arg(value_name = "ADDR")]
        to: String,

        #[command(flatten)]
        mail: MailConfig,
    },
}

#[derive(Subcommand)]
pub(super) enum SecretsCommand {
    /// Renew what links to invites, public pages and live events tokens are signed with: those made before end, and each
    /// public page gets a new token. API keys go on. A running server takes it at once.
    Rotate,
}

fn level(text: &str) -> Result<Level, String> {
    let found = Level::ALL.into_iter().find(|level| level.word() == text);
    found.ok_or_else(|| "write member, admin or owner".to_owned())
}

fn scope(text: &str) -> Result<String, String> {
    if is_scope(text) {
        return Ok(text.to_owned());
    }
    Err("write *, or an object and read or write, such as dashboard:read".to_owned())
}

fn project(text: &str) -> Result<ProjectId, String> {
    text.parse().map_err(|_| "write a project's number".to_owned())
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
