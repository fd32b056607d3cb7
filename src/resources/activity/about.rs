//! What an entry is about, as far as it decides who reads it and what finds it.

use std::borrow::Cow;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::resources::access_controls::rules::Rule;
use crate::resources::api_keys::ApiKey;
use crate::resources::collaborators::Collaborator;
use crate::resources::dashboards::Dashboard;
use crate::store::Row;

use super::Entry;
use super::subject::Loggable;

/// What an entry is about, read without the changes that it tells.
#[derive(Deserialize)]
pub(super) struct About<'e> {
    /// What kind of thing was changed.
    #[serde(borrow)]
    pub(super) scope: Cow<'e, str>,
    /// Which one.
    #[serde(borrow)]
    pub(super) item_id: Cow<'e, str>,
    /// What was done with it.
    #[serde(borrow)]
    pub(super) activity: Cow<'e, str>,
}

impl<'e> About<'e> {
    /// What the entry of a row is about.
    pub(super) fn of(row: &Row<'e, Entry>) -> Result<Self> {
        serde_json::from_slice(row.shown).map_err(Error::internal)
    }

    /// The dashboard that it is about, or says who may see and edit.
    pub(super) fn dashboard(&self) -> Option<DashboardId> {
        let mut parts = self.item_id.split(':');
        let id = match self.scope.as_ref() {
            Dashboard::SCOPE => Some(self.item_id.as_ref()),
            Collaborator::SCOPE => parts.next(),
            // A rule on a project has no such part, one on all dashboards no number.
            Rule::SCOPE if parts.nth(1) == Some("dashboard") => parts.next(),
            _ => None,
        };
        id?.parse().ok()
    }

    /// Whether it is about what plain members may not read otherwise: other people's keys.
    pub(super) fn is_for_admins(&self) -> bool {
        self.scope == ApiKey::SCOPE
    }
}

impl Entry {
    /// What it is about.
    pub(super) fn about(&self) -> About<'_> {
        About {
            scope: Cow::Borrowed(&self.shown.scope),
            item_id: Cow::Borrowed(&self.shown.item_id),
            activity: Cow::Borrowed(&self.shown.activity),
        }
    }
}
