//! The entries of a page that the session can revert, and the operations on their objects.

use std::collections::HashMap;

use crate::console::pages::people::People;
use crate::console::pages::prelude::*;

use super::log::{Entry, Log, entry_query};
use super::reversal::Reversal;

/// The maximum number of kinds and tenants for which a page asks the gate.
const MAX_PROBES: usize = 50;

/// A link that reverts an entry.
pub(super) struct Offer {
    /// The query of the page that asks.
    pub(super) query: Query,
    pub(super) is_restore: bool,
}

/// Returns an offer for each entry that the session may revert. `entries` begin with the newest.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn of(
    request: &SignedIn,
    entries: &[Entry],
    log: &Log,
    people: &People,
) -> Result<Vec<Option<Offer>>> {
    let mut offers = Vec::new();
    // The newest deletion or restoration of each object on the page.
    let mut states: HashMap<(&str, &str), &str> = HashMap::new();
    // The schema of an update, if the gate admits the session.
    let mut schemas: HashMap<String, Option<Value>> = HashMap::new();
    for entry in entries {
        let object = (entry.scope.as_str(), entry.item_id.as_str());
        let state = states.get(&object).copied();
        let is_settled =
            if entry.activity == "deleted" { state.is_some() } else { state == Some("deleted") };
        if matches!(entry.activity.as_str(), "deleted" | "restored") {
            states.entry(object).or_insert(&entry.activity);
        }
        let operations = if is_settled { None } else { ObjectOperations::of(entry, log, people) };
        let Some(operations) = operations else {
            offers.push(None);
            continue;
        };
        if !schemas.contains_key(&operations.gate) && schemas.len() < MAX_PROBES {
            let is_admitted = request.api.may(&operations.update).await?;
            let schema = || operations.update.body_schema(request.api.table());
            schemas.insert(operations.gate.clone(), is_admitted.then(schema).transpose()?);
        }
        let schema = schemas.get(&operations.gate).and_then(Option::as_ref);
        let reversal = schema.and_then(|schema| Reversal::of(entry, schema));
        offers.push(
            reversal.map(|reversal| Offer {
                query: entry_query(entry),
                is_restore: reversal.is_restore,
            }),
        );
    }
    Ok(offers)
}

/// The operations on an object that the API can update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectOperations {
    pub(super) read: Operation,
    pub(super) update: Operation,
    /// Entries with the same tenant and kind are admitted by the gate alike.
    gate: String,
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
