//! The target of an activity entry: which filters match the entry and who may read it.

use std::borrow::Cow;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::resources::access_objects::Object;
use crate::resources::collaborators::Collaborator;
use crate::resources::loggable::Loggable;
use crate::resources::projects::grants::Grant;
use crate::resources::registration::VisitUser;
use crate::store::Row;

use super::scopes::Scope;
use super::{Entry, Fields};

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

    /// Returns the object that a member must see to read the entry.
    pub(super) fn object(&self) -> Option<Object> {
        Scope::find(&self.scope)?.object_of(&self.item_id)
    }

    /// Returns whether only admins may read the entry.
    pub(super) fn is_for_admins(&self) -> bool {
        Scope::find(&self.scope).is_some_and(|scope| scope.admins_only)
    }
}

impl Entry {
    /// Calls `visit` with the user that made the change, and with the member that an access rule or a collaborator names:
    /// the last part of the item's id.
    pub(super) fn visit_users(&mut self, visit: &mut VisitUser<'_>) {
        self.meta.user.iter_mut().for_each(&mut *visit);
        let Fields { scope, item_id, .. } = &mut self.fields;
        let names_member = [Grant::SCOPE, Collaborator::SCOPE].contains(&scope.as_str());
        if let Some((rest, last)) = item_id.rsplit_once(':').filter(|_| names_member)
            && let Ok(mut user) = last.parse()
        {
            visit(&mut user);
            *item_id = format!("{rest}:{user}");
        }
    }

    /// Returns the target of the entry.
    pub(super) fn entity_ref(&self) -> EntityRef<'_> {
        EntityRef {
            scope: Cow::Borrowed(&self.fields.scope),
            item_id: Cow::Borrowed(&self.fields.item_id),
            activity: Cow::Borrowed(&self.fields.activity),
        }
    }
}
