//! The operator's subcommands.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::base::error::Error;
use crate::base::tasks::run_blocking;
use crate::config::{Config, MailConfig, file_path, parse_public_url};
use crate::ids::{ApiKeyId, InviteId};
use crate::operator::bootstrap::{self, InitialRecords};
use crate::operator::{KeyOptions, OrganizationOptions, UserOptions};
use crate::store::{Cell, Place, signing_secret_of};

use super::Failure;

#[derive(Subcommand)]
pub(super) enum OrganizationCommand {
    /// Create an organization with its first project, and its owner if the address is new.
    Create(OrganizationOptions),
    /// List all organizations.
    List,
}

#[derive(Subcommand)]
pub(super) enum UserCommand {
    /// Create a user, and its membership if an organization is given.
    Create(UserOptions),
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
    Create(KeyOptions),
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
    pub(super) email: Option<String>,
    /// Let the session see the page about the server's health.
    #[arg(long)]
    pub(super) operator: bool,
    /// Accept an existing user whose address is unverified because an invite's link created the account.
    #[arg(long)]
    pub(super) existing: bool,
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

#[derive(Args)]
pub(super) struct Init {
    /// The owner's email address.
    #[arg(long)]
    email: String,
    /// The organization's name.
    #[arg(long, value_name = "NAME", default_value = "My organization")]
    organization: String,
    /// The project's name.
    #[arg(long, value_name = "NAME", default_value = "Default project")]
    project: String,
    /// The owner's first name.
    #[arg(long, value_name = "N", default_value = "")]
    first_name: String,
    /// The number of this installation among several that organizations move between, 0 to 20. Each creates ids of its
    /// own range.
    #[arg(long, value_name = "N", default_value_t)]
    cell: Cell,
    /// Use the signing secret of this backup of another installation, so that the API keys of organizations stay valid
    /// when they move.
    #[arg(long, value_name = "BACKUP", value_parser = file_path())]
    secrets_of: Option<PathBuf>,
}

impl Init {
    /// Creates the data, and returns the ids and the key of its first records.
    pub(super) async fn run(self, place: &Place) -> Result<Value, Failure> {
        let Self { email, organization, project, first_name, cell, secrets_of } = self;
        let place = place.clone();
        let create = move || {
            let secret = secrets_of.as_deref().map(signing_secret_of).transpose()?;
            let first = InitialRecords { email, first_name, organization, project, cell, secret };
            bootstrap::create_at(&place, Config::default(), &first, &mut |_| Ok(()))
        };
        let (app, created) = run_blocking(create).await??;
        app.close().await;
        Ok(serde_json::to_value(created).map_err(Error::internal)?)
    }
}
