//! `steward init`.

use std::path::Path;

use clap::Args;
use serde_json::Value;

use crate::bootstrap::{self, InitialRecords};
use crate::config::Config;
use crate::error::Error;

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
    /// Creates the data file, and returns the ids and the key of its first records.
    pub(super) async fn run(self, data: &Path) -> Result<Value, Failure> {
        let Self { email, organization, project, first_name } = self;
        let first = InitialRecords { email, first_name, organization, project };
        let (app, created) = bootstrap::create(data, Config::default(), &first)?;
        app.close().await;
        Ok(serde_json::to_value(created).map_err(Error::internal)?)
    }
}
