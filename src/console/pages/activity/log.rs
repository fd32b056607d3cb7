//! The two logs: that of an organization and that of a project. Their entries are as the API describes them, and so are
//! their filters, which stand in the query of the page.

use std::collections::HashMap;
use std::time::Duration;

use url::form_urlencoded::byte_serialize;

use crate::console::pages::prelude::*;

use super::words::{KINDS, VERBS};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Log {
    /// The log of the organization with this id. It includes the projects.
    Organization(String),
    /// The log of the project with this id.
    Project(String),
}

impl Log {
    /// Returns the log in the page's path.
    ///
    /// # Errors
    /// 404 if the id is malformed.
    pub(super) fn of(visit: &Visit) -> Result<Self> {
        let organization = visit.organization_id().map(Self::Organization);
        organization.or_else(|_| visit.project_id().map(Self::Project))
    }

    /// Returns the path of the API.
    pub(super) fn api(&self) -> String {
        match self {
            Self::Organization(id) => format!("/api/organizations/{id}/activity_log/"),
            Self::Project(id) => format!("/api/projects/{id}/activity_log/"),
        }
    }

    /// Returns the path of the page.
    pub(super) fn page(&self) -> String {
        match self {
            Self::Organization(id) => format!("/console/organizations/{id}/activity/"),
            Self::Project(id) => format!("/console/projects/{id}/activity/"),
        }
    }

    /// Returns the page of the object of an entry, if the console has one.
    pub(super) fn page_of(&self, entry: &Entry) -> Option<String> {
        let item: String = byte_serialize(entry.item_id.as_bytes()).collect();
        let (objects, tenant) = match (entry.scope.as_str(), entry.project_id, self) {
            ("Project", Some(id), _) => return Some(DASHBOARDS.list(&id.to_string())),
            ("Dashboard", Some(id), _) => (DASHBOARDS, id.to_string()),
            ("Insight", Some(id), _) => (INSIGHTS, id.to_string()),
            ("BatchExport", Some(id), _) => (BATCH_EXPORTS, id.to_string()),
            ("OrganizationDomain", _, Self::Organization(id)) => (DOMAINS, id.clone()),
            ("Role", _, Self::Organization(id)) => (ROLES, id.clone()),
            _ => return None,
        };
        Some(format!("{}{item}/", objects.list(&tenant)))
    }

    /// Returns the page of the log of the entry's project, for a log with several projects.
    pub(super) fn of_project(&self, entry: &Entry) -> Option<String> {
        let id = entry.project_id.filter(|_| matches!(self, Self::Organization(_)))?;
        Some(Self::Project(id.to_string()).page())
    }
}

/// An entry of the log, as the API describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    /// The user; `None` for the operator.
    pub(super) user: Option<Person>,
    pub(super) scope: String,
    pub(super) item_id: String,
    pub(super) activity: String,
    pub(super) detail: Detail,
    /// The project of the object. [`keep_open_projects`] removes it if the session cannot open the project.
    pub(super) project_id: Option<u64>,
    pub(super) created_at: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Detail {
    pub(super) name: Option<String>,
    /// The short ID of an insight.
    pub(super) short_id: Option<String>,
    pub(super) changes: Vec<Change>,
}

/// A field that changed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Change {
    pub(super) field: String,
    pub(super) before: Value,
    pub(super) after: Value,
}

/// Removes the projects that the session cannot open from entries: those that were deleted since.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn keep_open_projects(request: &SignedIn, entries: &mut [Entry]) -> Result<()> {
    let mut known: HashMap<u64, bool> = HashMap::new();
    for entry in entries {
        let Some(project) = entry.project_id else { continue };
        let is_open = if let Some(is_open) = known.get(&project) {
            *is_open
        } else {
            let log = Operation::new("activity_log_list", [project.to_string().as_str()]);
            request.api.may(&log).await?
        };
        known.insert(project, is_open);
        entry.project_id = entry.project_id.filter(|_| is_open);
    }
    Ok(())
}

impl Entry {
    /// Returns the name of the user, or the operator.
    pub(super) fn actor(&self) -> String {
        self.user.as_ref().map_or("The operator".to_owned(), Person::name)
    }
}

/// The names of the filters, which are those of the API.
const FILTERS: [&str; 6] = ["scope", "activity", "item_id", "user", "after", "before"];

/// Reads the filters. Unknown kinds and activities filter nothing.
pub(super) fn filters(visit: &Visit) -> ListFilters {
    ListFilters::of(visit, &FILTERS, |name, text| {
        let is_known = match name {
            "scope" => KINDS.iter().any(|kind| kind.scope == text),
            "activity" => VERBS.iter().any(|verb| verb.activity == text),
            _ => true,
        };
        if is_known { text.to_owned() } else { String::new() }
    })
}

/// Returns whether filters name an object.
pub(super) fn name_object(filters: &ListFilters) -> bool {
    ["scope", "item_id"].iter().all(|name| !filters.value(name).is_empty())
}

/// Returns the filters that list the entries of the moment and the object in the query of an entry.
pub(super) fn filters_of_entry(visit: &Visit) -> Option<ListFilters> {
    let at = Timestamp::parse(visit.query("at"))?;
    let filters = filters(visit).with("activity", "").with("user", "");
    let filters = filters.with("after", &at.to_string()).with("before", &next(at).to_string());
    name_object(&filters).then_some(filters)
}

/// Returns the query of the API's list.
pub(super) fn api_query(filters: &ListFilters, limit: u64, offset: u64) -> Query {
    Query::of([("limit", limit.to_string().as_str())]).and(filters.fields()).at(offset)
}

/// Returns these filters for entries after a moment, or these if they begin later.
pub(super) fn since(filters: ListFilters, moment: Timestamp) -> ListFilters {
    let moment = next(moment);
    let after = Timestamp::parse(filters.value("after"));
    let begin_later = after.is_some_and(|after| after > moment);
    if begin_later { filters } else { filters.with("after", &moment.to_string()) }
}

/// Returns the next moment. Times of the log have microseconds.
fn next(moment: Timestamp) -> Timestamp {
    moment.plus(Duration::from_micros(1))
}

/// Returns the query of the entries about one object.
pub(super) fn item_query(scope: &str, item: &str) -> Query {
    Query::of([("scope", scope), ("item_id", item)])
}

/// Returns the query of one entry, as [`filters_of_entry`] reads it.
pub(super) fn entry_query(entry: &Entry) -> Query {
    let (at, id) = (entry.created_at.as_str(), entry.id.as_str());
    item_query(&entry.scope, &entry.item_id).and([("at", at), ("entry", id)])
}
