//! The restriction of a dashboard and its collaborators, as the API describes them.

use serde::Deserialize;
use serde_json::json;

use crate::console::api::Versioned;
use crate::console::levels;
use crate::console::pages::dashboard::Rights;
use crate::console::pages::dashboard::address::Address;
use crate::console::person::Person;
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::forms::UPDATE;

/// The facts about the dashboard that the page shows.
#[derive(Deserialize)]
pub(super) struct Dashboard {
    name: Option<String>,
    restriction_level: u8,
    #[serde(flatten)]
    rights: Rights,
}

impl Dashboard {
    /// Reads the dashboard, with its restriction for the form. A session that manages the dashboard may be unable to view it.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn load(
        request: &SignedIn,
        address: &Address,
    ) -> Result<Option<(Self, Versioned)>> {
        let Versioned { body, version } = match request.api.get_versioned(&address.api("")).await {
            Ok(found) => found,
            Err(error) if error.status() == 403 => return Ok(None),
            Err(error) => return Err(error),
        };
        let dashboard: Self = serde_json::from_value(body).map_err(Error::internal)?;
        let body = json!({ "restriction_level": dashboard.restriction_level });
        Ok(Some((dashboard, Versioned { body, version })))
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) const fn is_restricted(&self) -> bool {
        levels::is_restricted(self.restriction_level)
    }

    pub(super) fn may_edit(&self) -> bool {
        self.rights.may_edit()
    }

    /// Returns whether the session may change the restriction. The request that asks changes nothing.
    ///
    /// # Errors
    /// As [`dry_run`](crate::console::api::Api::dry_run).
    pub(super) async fn may_restrict(&self, request: &SignedIn, address: &Address) -> Result<bool> {
        let same = json!({ "restriction_level": self.restriction_level });
        let write = address.write(UPDATE).body(same);
        Ok(request.api.dry_run(&write).await?.is_none())
    }
}

/// A collaborator, as the API describes one.
#[derive(Deserialize)]
pub(super) struct Collaborator {
    pub(super) user: Person,
    pub(super) user_uuid: String,
}

/// Loads the collaborators that the session may see.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn collaborators(
    request: &SignedIn,
    address: &Address,
) -> Result<Vec<Collaborator>> {
    let found = request.api.get_if_allowed(&address.api("collaborators/")).await?;
    Ok(found.unwrap_or_default())
}
