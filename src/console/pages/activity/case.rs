//! A change to revert, with its object as it is now.

use serde_json::Value;

use crate::console::api::{Versioned, Write};
use crate::console::layout::Frame;
use crate::console::model::List;
use crate::console::pages::people::People;
use crate::console::urls::Query;
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::entry::{Entry, keep_open_projects};
use super::filters::{Filters, item_query};
use super::log::Log;
use super::operations::ObjectOperations;
use super::reversal::{Reversal, value_of};

/// The most entries of one object that have the same time.
const MAX_ENTRIES: u64 = 100;

/// A change to revert, with its object as it is now.
pub(super) struct Case {
    pub(super) log: Log,
    pub(super) entry: Entry,
    pub(super) people: People,
    operations: ObjectOperations,
    pub(super) reversal: Reversal,
    /// The object as it is now; null if it is deleted.
    pub(super) object: Versioned,
    /// The insight as it was deleted; null for other objects.
    deleted: Value,
}

impl Case {
    pub(super) async fn load(request: &SignedIn) -> Result<(Self, Frame)> {
        let log = Log::of(&request.visit)?;
        let filters = Filters::of_entry(&request.visit).ok_or_else(Error::not_found)?;
        let path = filters.to_api_query(MAX_ENTRIES, 0).url(&log.api());
        let mut found: List<Entry> = request.api.get(&path).await?;
        keep_open_projects(request, &mut found.results).await?;
        let id = request.visit.query("entry");
        let entry = found.results.into_iter().find(|entry| entry.id == id);
        let entry = entry.ok_or_else(Error::not_found)?;
        let frame = log.frame(request).await?;
        let people = People::load(&request.api, frame.organization()).await?;
        let cannot = || Error::not_found_as("This change cannot be reverted.");
        let operations = ObjectOperations::of(&entry, &log, &people).ok_or_else(cannot)?;
        let schema = operations.update.body_schema(request.api.table())?;
        let mut reversal = Reversal::of(&entry, &schema).ok_or_else(cannot)?;
        let (_, path) = operations.read.target(request.api.table())?;
        let object = if reversal.is_restore {
            let found = request.api.get_if_allowed(&path).await?;
            Versioned { body: found.unwrap_or_default(), version: None }
        } else {
            request.api.get_versioned(&path).await?
        };
        reversal.keep_lost(&object.body);
        let is_deleted = reversal.is_restore && object.body.is_null();
        let deleted =
            if is_deleted { deleted_insight(request, &entry).await? } else { Value::Null };
        Ok((Self { log, entry, people, operations, reversal, object, deleted }, frame))
    }

    /// Returns whether the object is already as the request would make it.
    pub(super) fn is_done(&self) -> bool {
        let mut changes = self.reversal.changes.iter();
        if self.reversal.is_restore {
            return !self.object.body.is_null();
        }
        changes.all(|change| {
            value_of(&self.object.body, &change.field).as_ref() == Some(&change.before)
        })
    }

    /// Returns the request that reverts the change, if the object has this version.
    pub(super) fn write(&self, version: Option<String>) -> Write {
        let now = if self.reversal.is_restore { &self.deleted } else { &self.object.body };
        let body = self.reversal.body(&self.entry.scope, now);
        Write { operation: self.operations.update.clone(), body: Some(body), version, key: None }
    }

    /// Returns the page with all changes of the object.
    pub(super) fn history(&self) -> String {
        item_query(&self.entry.scope, &self.entry.item_id).url(&self.log.page())
    }
}

/// Reads the deleted insight of an entry from the trash. Returns null for other objects, and for an insight that the session
/// does not see there.
async fn deleted_insight(request: &SignedIn, entry: &Entry) -> Result<Value> {
    let (Some(project), Some(short_id)) = (entry.project_id, &entry.detail.short_id) else {
        return Ok(Value::Null);
    };
    let query = Query::of([("deleted", "true"), ("basic", "true"), ("short_id", short_id)]);
    let path = query.url(&format!("/api/projects/{project}/insights/"));
    let found = request.api.get_if_allowed::<List<Value>>(&path).await?.unwrap_or_default();
    let id = entry.item_id.parse::<u64>().ok();
    let is_sought = |insight: &Value| insight["id"].as_u64() == id;
    Ok(found.results.into_iter().find(is_sought).unwrap_or_default())
}
