//! `steward init`.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::bootstrap::{self, InitialRecords};
use crate::config::{Config, file_path};
use crate::error::Error;
use crate::store::{Cell, Place, signing_secret_of};

use super::Failure;

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
            bootstrap::create_at(&place, Config::default(), &first, |_| Ok(()))
        };
        let created = tokio::task::spawn_blocking(create).await.map_err(Error::internal)?;
        let (app, created) = created?;
        app.close().await;
        Ok(serde_json::to_value(created).map_err(Error::internal)?)
    }
}
