//! The target of an activity entry: which filters match the entry and who may read it.

use std::borrow::Cow;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::resources::access_controls::rules::AccessRule;
use crate::resources::api_keys::ApiKey;
use crate::resources::collaborators::Collaborator;
use crate::resources::dashboards::Dashboard;
use crate::store::Row;

use super::Entry;
use super::log_target::Loggable;

/// The target of an entry, parsed without its list of changes.
#[derive(Deserialize)]
pub(super) struct EntityRef<'e> {
    /// The type of the changed object.
    #[serde(borrow)]
    pub(super) scope: Cow<'e, str>,
    /// The id of the changed object.
    #[serde(borrow)]
    pub(super) item_id: Cow<'e, str>,
    /// The action, for example `created`.
    #[serde(borrow)]
    pub(super) activity: Cow<'e, str>,
}

impl<'e> EntityRef<'e> {
    /// Reads the target from the stored JSON of an entry.
    pub(super) fn of(row: &Row<'e, Entry>) -> Result<Self> {
        serde_json::from_slice(row.fields).map_err(Error::internal)
    }

    /// Returns the dashboard that the entry, collaborator or access rule refers to.
    pub(super) fn dashboard(&self) -> Option<DashboardId> {
        let mut parts = self.item_id.split(':');
        let id = match self.scope.as_ref() {
            Dashboard::SCOPE => Some(self.item_id.as_ref()),
            Collaborator::SCOPE => parts.next(),
            // A rule on a project has no such part. A rule on all dashboards has `*`, which is not a number.
            AccessRule::SCOPE if parts.nth(1) == Some("dashboard") => parts.next(),
            _ => None,
        };
        id?.parse().ok()
    }

    /// Returns whether only admins may read the entry: plain members may not see other users' keys.
    pub(super) fn is_for_admins(&self) -> bool {
        self.scope == ApiKey::SCOPE
    }
}

impl Entry {
    /// Returns the target of the entry.
    pub(super) fn entity_ref(&self) -> EntityRef<'_> {
        EntityRef {
            scope: Cow::Borrowed(&self.fields.scope),
            item_id: Cow::Borrowed(&self.fields.item_id),
            activity: Cow::Borrowed(&self.fields.activity),
        }
    }
}
