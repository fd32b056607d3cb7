//! `steward init`.

use clap::Args;
use serde_json::Value;

use crate::bootstrap::{self, InitialRecords};
use crate::config::Config;
use crate::error::Error;
use crate::store::Place;

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
}

impl Init {
    /// Creates the data, and returns the ids and the key of its first records.
    pub(super) async fn run(self, place: &Place) -> Result<Value, Failure> {
        let Self { email, organization, project, first_name } = self;
        let first = InitialRecords { email, first_name, organization, project };
        let place = place.clone();
        let create = move || bootstrap::create_at(&place, Config::default(), &first, |_| Ok(()));
        let created = tokio::task::spawn_blocking(create).await.map_err(Error::internal)?;
        let (app, created) = created?;
        app.close().await;
        Ok(serde_json::to_value(created).map_err(Error::internal)?)
    }
}
