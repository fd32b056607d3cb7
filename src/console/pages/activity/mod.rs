//! The activity log of an organization or a project: entries as sentences with what changed, filters and paging.

mod case;
mod diff;
mod entry;
mod fields;
mod filters;
mod latest;
mod log;
mod news;
mod offers;
mod parts;
mod people;
mod reversal;
mod revert;
mod row;
mod target;
mod words;

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::console::assets::icon;
use crate::console::layout::{self, Command};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;
use crate::low_priority::{Priority, run_low_priority};

use diff::DiffBudget;
use entry::Entries;
use filters::Filters;
use log::Log;
use people::People;
use row::{Row, Sentence};

pub(super) use latest::Latest;

const OF_ORGANIZATION: &str = "/console/organizations/{organization_id}/activity/";
const OF_PROJECT: &str = "/console/projects/{project_id}/activity/";

/// The number of entries on a page.
const PAGE_SIZE: u64 = 50;
/// With more changes than this, the page is rendered on a thread of its own.
const MAX_INLINE_CHANGES: usize = 40;
/// The number of changes of an entry that are shown without a click.
const MAX_OPEN_CHANGES: usize = 8;

/// Adds the pages to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, OF_ORGANIZATION, list);
    pages.signed_in(Method::GET, OF_PROJECT, list);
    news::routes(pages);
    fields::routes(pages);
    revert::routes(pages);
}

#[derive(Template)]
#[template(path = "console/pages/activity/page.html")]
struct ActivityPage {
    base: String,
    filters: Filters,
    /// The object that the entries are about, if the filters name one.
    object: Option<Sentence>,
    people: People,
    /// Why the API refuses the filters.
    error: Option<String>,
    rows: Vec<Row>,
    count: u64,
    offset: u64,
    /// The moment of the newest entry, if new ones would be on this page.
    newest: Option<String>,
    command: Command,
}

impl ActivityPage {
    /// Returns the number of the last entry on the page.
    fn last(&self) -> u64 {
        self.offset + self.rows.len() as u64
    }

    /// Returns the queries of the newest and the newer entries.
    fn newer(&self) -> Option<[String; 2]> {
        let before = self.offset.saturating_sub(PAGE_SIZE);
        (self.offset > 0).then(|| [self.filters.to_query(0), self.filters.to_query(before)])
    }

    /// Returns the queries of the older and the oldest entries.
    fn older(&self) -> Option<[String; 2]> {
        let last = self.count.saturating_sub(1) / PAGE_SIZE * PAGE_SIZE;
        let next = self.filters.to_query(self.last());
        (self.last() < self.count).then(|| [next, self.filters.to_query(last)])
    }
}

async fn list(request: SignedIn) -> PageResult {
    let log = Log::of(&request.visit)?;
    let filters = Filters::of(&request.visit);
    let offset = request.visit.query("offset").parse::<u32>().map_or(0, u64::from);
    let path = format!("{}?{}", log.api(), filters.to_api_query(PAGE_SIZE, offset));
    let (found, error) = match request.api.get::<Entries>(&path).await {
        Ok(found) => (found, None),
        Err(error) if error.status() == 400 && error.attr().is_some() => {
            (Entries { count: 0, results: Vec::new() }, Some(error.detail().to_owned()))
        }
        Err(error) => return Err(error.into()),
    };
    if found.results.is_empty() && offset > 0 && error.is_none() {
        return Err(Error::not_found_as("The activity log has no such page.").into());
    }
    let frame = log.frame(&request).await?.titled("Activity");
    let people = People::load(&request.api, frame.organization()).await?;
    let offers = offers::of(&request, &found.results, &log, &people).await?;
    let command = Command::get(&request.visit, &path);
    let size: usize = found.results.iter().map(|entry| entry.detail.changes.len()).sum();
    let render = move || {
        let mut budget = DiffBudget::of_page();
        let entries = &found.results;
        let is_live = offset == 0 && filters.before.is_empty() && error.is_none();
        let status = if error.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let newest = || entries.first().map_or(String::new(), |entry| entry.created_at.clone());
        let of_item = entries.first().filter(|_| !filters.item_id.is_empty());
        let rows = entries.iter().zip(offers);
        let rows = rows.map(|(entry, offer)| entry.row(&log, &people, offer, &mut budget));
        let page = ActivityPage {
            rows: rows.collect(),
            base: log.page(),
            object: of_item.map(|entry| entry.object(&log, &people)),
            newest: is_live.then(newest),
            count: found.count,
            filters,
            people,
            error,
            offset,
            command,
        };
        let mut response = layout::page(&frame, &page)?;
        *response.status_mut() = status;
        Ok::<_, Error>(response)
    };
    let is_long = size > MAX_INLINE_CHANGES;
    let page = if is_long { run_low_priority(Priority::Answer, render).await? } else { render() };
    Ok(page?)
}
