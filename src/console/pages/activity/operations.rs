//! The operations that read and update the objects whose entries can be reverted.

use crate::console::api::Operation;
use crate::console::pages::people::People;

use super::entry::Entry;
use super::log::Log;

/// The operations on an object that the API can update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectOperations {
    pub(super) read: Operation,
    pub(super) update: Operation,
    /// Entries with the same tenant and kind are admitted by the gate alike.
    pub(super) gate: String,
}

impl ObjectOperations {
    /// Returns the operations on the object of an entry, or `None` if the console cannot update objects of its kind.
    pub(super) fn of(entry: &Entry, log: &Log, people: &People) -> Option<Self> {
        let item = entry.item_id.as_str();
        let within = |tenant: &str, read, update, item: &str| {
            let [read, update] = [read, update].map(|id| Operation::new(id, [tenant, item]));
            Some(Self { read, update, gate: format!("{} {tenant}", entry.scope) })
        };
        let alone = |read, update| {
            let [read, update] = [read, update].map(|id| Operation::new(id, [item]));
            Some(Self { read, update, gate: format!("{} {item}", entry.scope) })
        };
        let project = entry.project_id.map(|id| id.to_string());
        match (entry.scope.as_str(), log) {
            ("Project", _) => alone("projects_retrieve", "projects_partial_update"),
            ("Organization", _) => alone("organizations_retrieve", "organizations_partial_update"),
            ("Dashboard", _) => {
                within(&project?, "dashboards_retrieve", "dashboards_partial_update", item)
            }
            ("Insight", _) => {
                within(&project?, "insights_retrieve", "insights_partial_update", item)
            }
            ("BatchExport", Log::Project(id)) => {
                let update = "projects_batch_exports_partial_update";
                within(id, "projects_batch_exports_retrieve", update, item)
            }
            ("BatchExport", Log::Organization(id)) => {
                within(id, "batch_exports_retrieve", "batch_exports_partial_update", item)
            }
            ("OrganizationDomain", Log::Organization(id)) => {
                within(id, "domains_retrieve", "domains_partial_update", item)
            }
            ("Role", Log::Organization(id)) => {
                within(id, "roles_retrieve", "roles_partial_update", item)
            }
            ("OrganizationMembership", Log::Organization(id)) => {
                let user = &people.by_membership(item)?.uuid;
                within(id, "members_retrieve", "members_partial_update", user)
            }
            _ => None,
        }
    }
}
