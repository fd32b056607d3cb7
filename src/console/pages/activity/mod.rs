//! The activity log of an organization or a project: entries as sentences with what changed, filters and paging. Also the
//! last change of each field of an object, and the latest entries for the start page.

mod diff;
mod log;
mod reversal;
mod revert;
mod words;

use std::collections::BTreeSet;
use std::fmt::Display;

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::response::IntoResponse;

use crate::exchange::etag::matches_any;

use super::people::People;
use super::prelude::*;
use diff::DiffBudget;
use log::{
    ChangeRow, Entry, Log, Row, Sentence, api_query, filters, item_query, keep_open_projects,
    name_object, since,
};

/// The number of entries on a page.
const PAGE_SIZE: u64 = 50;
/// With more changes than this, the page is rendered on a thread of its own.
const MAX_INLINE_CHANGES: usize = 40;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get("/console/organizations/{organization_id}/activity/", &list);
    pages.get("/console/projects/{project_id}/activity/", &list);
    pages.get("/console/organizations/{organization_id}/activity/news/", &news);
    pages.get("/console/projects/{project_id}/activity/news/", &news);
    pages.get("/console/organizations/{organization_id}/activity/fields/", &fields);
    pages.get("/console/projects/{project_id}/activity/fields/", &fields);
    pages.form("/console/organizations/{organization_id}/activity/revert/", &revert::revert);
    pages.form("/console/projects/{project_id}/activity/revert/", &revert::revert);
}

#[derive(Template)]
#[template(path = "console/pages/activity/page.html")]
struct ActivityPage {
    base: String,
    filters: ListFilters,
    /// The object that the entries are about, if the filters name one.
    object: Option<Sentence>,
    people: People,
    /// Why the API refuses the filters.
    error: Option<String>,
    rows: Vec<Row>,
    /// The projects of the organization, with their ids.
    projects: Vec<(String, String)>,
    paging: Paging,
    /// The URL of the page with the oldest entries.
    oldest: String,
    /// The moment of the newest entry, if new ones would be on this page.
    newest: Option<String>,
    command: Command,
}

impl ActivityPage {
    fn project_name(&self, id: impl Display) -> String {
        let id = id.to_string();
        let known = self.projects.iter().find(|(known, _)| *known == id);
        known.map_or_else(|| format!("Project {id}"), |(_, name)| name.clone())
    }
}

async fn list(request: SignedIn) -> PageResult {
    let log = Log::of(&request.visit)?;
    let filters = filters(&request.visit);
    let mut offset = Paging::offset(&request.visit);
    let path = api_query(&filters, PAGE_SIZE, offset).url(&log.api());
    let (mut found, error) = match request.api.get(&path).await.read::<List<Entry>>() {
        Ok(found) => (found, None),
        Err(error) if error.status() == 400 && error.attr().is_some() => {
            offset = 0;
            (List::default(), Some(error.detail().to_owned()))
        }
        Err(error) => return Err(error.into()),
    };
    let base = log.page();
    let url = |offset| filters.to_query().at(offset).url(&base);
    let paging =
        Paging::new(&request.visit, OFFSET, found.results.len(), found.count, PAGE_SIZE, &url)?;
    let oldest = url(found.count.saturating_sub(1) / PAGE_SIZE * PAGE_SIZE);
    let frame = Frame::load(&request).await?.titled("Activity");
    let people = People::load(&request.api, frame.organization()).await?;
    keep_open_projects(&request, &mut found.results).await?;
    let revertible = revert::revertible(&request, &found.results, &log, &people).await?;
    let command = Command::get(&request.visit, &path);
    let size: usize = found.results.iter().map(|entry| entry.detail.changes.len()).sum();
    let render = move || {
        let mut budget = DiffBudget::of_page();
        let entries = &found.results;
        let is_live = offset == 0 && filters.value("before").is_empty() && error.is_none();
        let status = if error.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let newest = || entries.first().map_or(String::new(), |entry| entry.created_at.clone());
        let of_item = entries.first().filter(|_| !filters.value("item_id").is_empty());
        let rows = entries.iter().zip(revertible);
        let rows =
            rows.map(|(entry, revertible)| entry.row(&log, &people, revertible, &mut budget));
        let page = ActivityPage {
            rows: rows.collect(),
            projects: frame.projects(),
            base,
            object: of_item.map(|entry| entry.object(&log, &people)),
            newest: is_live.then(newest),
            paging,
            oldest,
            filters,
            people,
            error,
            command,
        };
        layout::page(&frame.with_status(status), &page)
    };
    let is_long = size > MAX_INLINE_CHANGES;
    let page = if is_long { run_low_priority(Priority::Answer, render).await? } else { render() };
    Ok(page?)
}

/// The number of changes that are searched for the fields.
const MAX_SEARCHED: u64 = 100;

/// The last change of a field.
struct LastChange {
    change: ChangeRow,
    actor: String,
    created_at: String,
}

#[derive(Template)]
#[template(path = "console/pages/activity/fields.html")]
struct FieldsPage {
    base: String,
    /// The query of all changes of the object.
    history: Query,
    object: Sentence,
    fields: Vec<LastChange>,
    /// Whether older changes were not searched.
    is_cut: bool,
    command: Command,
}

/// Shows the last change of each field of an object.
async fn fields(request: SignedIn) -> PageResult {
    let log = Log::of(&request.visit)?;
    let filters = filters(&request.visit);
    let path = api_query(&filters, MAX_SEARCHED, 0).url(&log.api());
    if !name_object(&filters) {
        return Err(Error::not_found().into());
    }
    let mut found: List<Entry> = request.api.get(&path).await.read()?;
    let frame = Frame::load(&request).await?.titled("Last changes");
    keep_open_projects(&request, &mut found.results).await?;
    let people = People::load(&request.api, frame.organization()).await?;
    let command = Command::get(&request.visit, &path);
    let render = move || {
        let newest = found.results.first().ok_or_else(Error::not_found)?;
        let page = FieldsPage {
            base: log.page(),
            history: item_query(filters.value("scope"), filters.value("item_id")),
            object: newest.object(&log, &people),
            fields: last_changes(&found.results),
            is_cut: found.count > MAX_SEARCHED,
            command,
        };
        layout::page(&frame, &page)
    };
    Ok(run_low_priority(Priority::Answer, render).await??)
}

/// Returns the newest change of each field, in the order of the labels. `entries` begin with the newest.
fn last_changes(entries: &[Entry]) -> Vec<LastChange> {
    let (mut known, mut budget) = (BTreeSet::new(), DiffBudget::of_page());
    let mut found = Vec::new();
    for entry in entries {
        for change in &entry.detail.changes {
            if known.insert(change.field.as_str()) {
                found.push(LastChange {
                    change: change.row(&entry.scope, &mut budget),
                    actor: entry.actor(),
                    created_at: entry.created_at.clone(),
                });
            }
        }
    }
    found.sort_by(|one, other| one.change.label.cmp(&other.change.label));
    found
}

/// The number of entries on the start page.
const LATEST: usize = 8;

/// The latest entries of a project, for the start page.
#[derive(Template)]
#[template(path = "console/pages/activity/latest.html")]
pub(super) struct Latest {
    base: String,
    rows: Vec<Row>,
}

impl Latest {
    /// Loads the entries. Returns `None` for a session that may not read the log.
    pub(super) async fn load(
        request: &SignedIn,
        project: &str,
        organization: Option<&str>,
    ) -> Result<Option<Self>> {
        let log = Log::Project(project.to_owned());
        let path = format!("{}?limit={LATEST}", log.api());
        let Some(found) = request.api.get(&path).await.read_if_allowed::<List<Entry>>()? else {
            return Ok(None);
        };
        let people = People::load(&request.api, organization).await?;
        let mut budget = DiffBudget::of_page();
        let rows = found.results.iter().map(|entry| entry.row(&log, &people, false, &mut budget));
        Ok(Some(Self { base: log.page(), rows: rows.collect() }))
    }
}

/// Returns the number of entries after the moment `since`, with the filters of the page. The script of the page asks for it.
/// Its entity tag changes with every new entry.
async fn news(request: SignedIn) -> PageResult {
    let log = Log::of(&request.visit)?;
    let mut filters = filters(&request.visit);
    if let Some(newest) = Timestamp::parse(request.visit.query("since")) {
        filters = since(filters, newest);
    }
    let path = api_query(&filters, 1, 0).url(&log.api());
    let found: List<Entry> = request.api.get(&path).await.read()?;
    let newest = found.results.first().map_or("", |entry| entry.id.as_str());
    let tag = format!("\"{}-{newest}\"", found.count);
    let known = request.visit.head.headers.get(IF_NONE_MATCH).and_then(|sent| sent.to_str().ok());
    let header = HeaderValue::try_from(&tag).map_err(Error::internal)?;
    if known.is_some_and(|known| matches_any(known, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, header)]).into_response());
    }
    let json_type = HeaderValue::from_static("application/json");
    let body = json!({ "count": found.count }).to_string();
    Ok(([(ETAG, header), (CONTENT_TYPE, json_type)], body).into_response())
}
