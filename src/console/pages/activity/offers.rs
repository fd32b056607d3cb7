//! The entries of a page that the session can revert.

use std::collections::HashMap;

use serde_json::Value;

use crate::console::pages::people::People;
use crate::console::urls::Query;
use crate::console::visit::SignedIn;
use crate::error::Result;

use super::entry::Entry;
use super::filters::entry_query;
use super::log::Log;
use super::operations::ObjectOperations;
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
