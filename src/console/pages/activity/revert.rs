//! The entries of a page that the session can revert, the question before a change is reverted or an object is restored, and the
//! one request that does it.

use std::collections::{HashMap, hash_map};

use crate::console::pages::people::People;
use crate::console::pages::prelude::*;

use super::diff::DiffBudget;
use super::log::{
    Change, ChangeRow, Entry, Log, Row, api_query, entry_query, filters_of_entry, item_query,
    keep_open_projects,
};
use super::reversal::{Reversal, is_unchanged, value_of};
use super::words;

/// The hidden field with the version that the page showed.
const VERSION: &str = "version";

#[derive(Template)]
#[template(path = "console/pages/activity/revert.html")]
struct RevertPage {
    title: String,
    case: Case,
    row: Row,
    /// For each field, the change from the value as it is now to the former one, and from the value of the entry to the one as it
    /// is now, if others have changed it since.
    fields: Vec<(ChangeRow, Option<ChangeRow>)>,
    error: Option<String>,
    /// The command of the request, if it would succeed.
    command: Option<Command>,
}

impl RevertPage {
    /// Returns whether others have changed a field since.
    fn is_conflict(&self) -> bool {
        self.fields.iter().any(|(_, since)| since.is_some())
    }
}

/// Shows what the request would do. A dry run decides whether it is offered.
pub(super) async fn revert(request: SignedIn) -> PageResult {
    let (mut case, frame) = Case::load(&request).await?;
    let mut failure = None;
    if request.visit.sends_form() {
        let sent = request.visit.form.value(VERSION);
        let version =
            if sent.is_empty() { case.object.version.clone() } else { Some(sent.to_owned()) };
        let Err(error) = request.api.attempt(&case.write(version)).await? else {
            return Ok(see_other(&case.done())?);
        };
        if error.status() == 412 {
            // If the form was sent twice, the first request has reverted the change.
            (case, _) = Case::load(&request).await?;
            if case.is_done() {
                return Ok(see_other(&case.done())?);
            }
        }
        failure = Some(error);
    }
    let write = case.write(case.object.version.clone());
    let is_done = case.is_done();
    let refusal = if is_done { None } else { request.api.dry_run(&write).await? };
    let is_offered = !is_done && refusal.is_none();
    let command = is_offered.then(|| Command::write(&request, &write)).transpose()?;
    let status = failure.as_ref().map_or(StatusCode::OK, status_of);
    let error = failure.or(refusal).as_ref().map(text_of);
    let render = move || {
        let page = case.page(error, command);
        layout::page(&frame.titled(page.title.clone()).with_status(status), &page)
    };
    Ok(run_low_priority(Priority::Answer, render).await??)
}

fn text_of(error: &Error) -> String {
    match error.status() {
        412 => "This has changed since you opened the page. Look at it again.".to_owned(),
        _ => error.detail().to_owned(),
    }
}

/// The most entries of one object that have the same time.
pub(super) const MAX_ENTRIES: u64 = 100;

/// A change to revert, with its object as it is now.
struct Case {
    log: Log,
    entry: Entry,
    people: People,
    update: Operation,
    reversal: Reversal,
    /// The object as it is now; null if it is deleted.
    object: Versioned,
    /// The insight as it was deleted; null for other objects.
    deleted: Value,
}

impl Case {
    /// Returns the page after the change is reverted.
    fn done(&self) -> String {
        let notice = match self.entry.scope.as_str() {
            _ if !self.reversal.is_restore => "change-reverted",
            "Dashboard" => "dashboard-restored",
            _ => "insight-restored",
        };
        with_notice(&self.history(), notice)
    }

    fn page(self, error: Option<String>, command: Option<Command>) -> RevertPage {
        let mut budget = DiffBudget::of_page();
        let row = self.entry.row(&self.log, &self.people, false, &mut budget);
        let title = if self.reversal.is_restore {
            format!("Restore {}?", row.object.text())
        } else {
            "Revert this change?".to_owned()
        };
        let changes = self.reversal.changes.iter();
        let fields = changes.map(|change| self.field(change, &mut budget)).collect();
        RevertPage { title, case: self, row, fields, error, command }
    }

    fn field(&self, change: &Change, budget: &mut DiffBudget) -> (ChangeRow, Option<ChangeRow>) {
        let now = value_of(&self.object.body, &change.field).unwrap_or_default();
        let between = |before: &Value, after: &Value| Change {
            field: change.field.clone(),
            before: before.clone(),
            after: after.clone(),
        };
        let since = (!is_unchanged(&now, &change.after)).then(|| between(&change.after, &now));
        let scope = &self.entry.scope;
        let reverted = between(&now, &change.before).row(scope, budget).open();
        (reverted, since.map(|change| change.row(scope, budget).open()))
    }

    async fn load(request: &SignedIn) -> Result<(Self, Frame)> {
        let log = Log::of(&request.visit)?;
        let filters = filters_of_entry(&request.visit).ok_or_else(Error::not_found)?;
        let path = api_query(&filters, MAX_ENTRIES, 0).url(&log.api());
        let mut found: List<Entry> = request.api.get(&path).await.read()?;
        keep_open_projects(request, &mut found.results).await?;
        let id = request.visit.query("entry");
        let entry = found.results.into_iter().find(|entry| entry.id == id);
        let entry = entry.ok_or_else(Error::not_found)?;
        let frame = Frame::load(request).await?;
        let people = People::load(&request.api, frame.organization()).await?;
        let cannot = || Error::not_found_as("This change cannot be reverted.");
        let update = update_of(&entry, &log, &people).ok_or_else(cannot)?;
        let schema = update.body_schema(&request.api.table)?;
        let mut reversal = Reversal::of(&entry, &schema).ok_or_else(cannot)?;
        let (_, path) = update.target(&request.api.table)?;
        let object = if reversal.is_restore {
            let found = request.api.get(&path).await.read_if_allowed()?;
            Versioned { body: found.unwrap_or_default(), version: None }
        } else {
            request.api.get_versioned(&path).await?
        };
        reversal.keep_lost(&object.body);
        let is_deleted = reversal.is_restore && object.body.is_null();
        let deleted =
            if is_deleted { deleted_insight(request, &entry).await? } else { Value::Null };
        Ok((Self { log, entry, people, update, reversal, object, deleted }, frame))
    }

    /// Returns whether the object is already as the request would make it.
    fn is_done(&self) -> bool {
        let mut changes = self.reversal.changes.iter();
        if self.reversal.is_restore {
            return !self.object.body.is_null();
        }
        changes.all(|change| {
            value_of(&self.object.body, &change.field).as_ref() == Some(&change.before)
        })
    }

    /// Returns the request that reverts the change, if the object has this version.
    fn write(&self, version: Option<String>) -> Write {
        let now = if self.reversal.is_restore { &self.deleted } else { &self.object.body };
        let body = self.reversal.body(&self.entry.scope, now);
        Write { operation: self.update.clone(), body: Some(body), version, key: None }
    }

    /// Returns the page with all changes of the object.
    fn history(&self) -> String {
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
    let found = request.api.get(&path).await.read_if_allowed::<List<Value>>()?.unwrap_or_default();
    let id = entry.item_id.parse::<u64>().ok();
    let is_sought = |insight: &Value| insight["id"].as_u64() == id;
    Ok(found.results.into_iter().find(is_sought).unwrap_or_default())
}

/// Returns for each entry whether the session may revert it. `entries` begin with the newest.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn revertible(
    request: &SignedIn,
    entries: &[Entry],
    log: &Log,
    people: &People,
) -> Result<Vec<bool>> {
    let mut revertible = Vec::new();
    // The newest deletion or restoration of each object on the page.
    let mut states: HashMap<(&str, &str), &str> = HashMap::new();
    // The schema of an update, if the gate admits the session.
    let mut schemas: HashMap<(&'static str, String), Option<Value>> = HashMap::new();
    for entry in entries {
        let object = (entry.scope.as_str(), entry.item_id.as_str());
        let state = states.get(&object).copied();
        let is_settled =
            if entry.activity == "deleted" { state.is_some() } else { state == Some("deleted") };
        if matches!(entry.activity.as_str(), "deleted" | "restored") {
            states.entry(object).or_insert(&entry.activity);
        }
        let update = if is_settled { None } else { update_of(entry, log, people) };
        let Some(update) = update else {
            revertible.push(false);
            continue;
        };
        let schema = match schemas.entry(update.gate()) {
            hash_map::Entry::Occupied(known) => known.into_mut(),
            hash_map::Entry::Vacant(place) => {
                let is_admitted = request.api.may(&update).await?;
                let schema = || update.body_schema(&request.api.table);
                place.insert(is_admitted.then(schema).transpose()?)
            }
        };
        revertible
            .push(schema.as_ref().is_some_and(|schema| Reversal::of(entry, schema).is_some()));
    }
    Ok(revertible)
}

/// Returns the operation that updates the object of an entry, or `None` if the console cannot update objects of its kind. The
/// object is read at the same path.
fn update_of(entry: &Entry, log: &Log, people: &People) -> Option<Operation> {
    let item = entry.item_id.as_str();
    let project = || entry.project_id.map(|id| id.to_string());
    let (update, tenant) = match (entry.scope.as_str(), log) {
        ("Project", _) => return Some(Operation::new("projects_partial_update", [item])),
        ("Organization", _) => return Some(Operation::new("organizations_partial_update", [item])),
        ("Dashboard", _) => ("dashboards_partial_update", project()?),
        ("Insight", _) => ("insights_partial_update", project()?),
        ("BatchExport", Log::Project(id)) => ("projects_batch_exports_partial_update", id.clone()),
        ("BatchExport", Log::Organization(id)) => ("batch_exports_partial_update", id.clone()),
        ("OrganizationDomain", Log::Organization(id)) => ("domains_partial_update", id.clone()),
        ("Role", Log::Organization(id)) => ("roles_partial_update", id.clone()),
        ("OrganizationMembership", Log::Organization(id)) => {
            let user = &people.by_membership(item)?.uuid;
            return Some(Operation::new("members_partial_update", [id, user]));
        }
        _ => return None,
    };
    Some(Operation::new(update, [&tenant, item]))
}
