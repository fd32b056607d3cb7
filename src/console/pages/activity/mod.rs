//! The activity log of an organization or a project: entries as sentences with what changed, filters and paging.

mod case;
mod comparison;
mod diff;
mod entry;
mod fields;
mod filters;
mod labels;
mod latest;
mod log;
mod news;
mod offers;
mod operations;
mod parts;
mod reversal;
mod revert;
mod row;
mod sentence;
mod summary;
mod words;

use std::fmt::Display;

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::console::assets::icon;
use crate::console::layout::{self, Command};
use crate::console::model::List;
use crate::console::pages::people::People;
use crate::console::paging::Paging;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;
use crate::low_priority::{Priority, run_low_priority};

use comparison::DiffBudget;
use entry::{Entry, keep_open_projects};
use filters::Filters;
use log::Log;
use row::Row;
use sentence::Sentence;

pub(super) use latest::Latest;

const OF_ORGANIZATION: &str = "/console/organizations/{organization_id}/activity/";
const OF_PROJECT: &str = "/console/projects/{project_id}/activity/";

/// The number of entries on a page.
const PAGE_SIZE: u64 = 50;
/// With more changes than this, the page is rendered on a thread of its own.
const MAX_INLINE_CHANGES: usize = 40;

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
    let filters = Filters::of(&request.visit);
    let mut offset = Paging::offset(&request.visit);
    let path = filters.to_api_query(PAGE_SIZE, offset).url(&log.api());
    let (mut found, error) = match request.api.get::<List<Entry>>(&path).await {
        Ok(found) => (found, None),
        Err(error) if error.status() == 400 && error.attr().is_some() => {
            offset = 0;
            (List::default(), Some(error.detail().to_owned()))
        }
        Err(error) => return Err(error.into()),
    };
    let base = log.page();
    let url = |offset| filters.to_query(offset).url(&base);
    let paging = Paging::new(&request.visit, found.results.len(), found.count, PAGE_SIZE, url)?;
    let oldest = url(found.count.saturating_sub(1) / PAGE_SIZE * PAGE_SIZE);
    let frame = log.frame(&request).await?.titled("Activity");
    let people = People::load(&request.api, frame.organization()).await?;
    keep_open_projects(&request, &mut found.results).await?;
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
        let mut response = layout::page(&frame, &page)?;
        *response.status_mut() = status;
        Ok::<_, Error>(response)
    };
    let is_long = size > MAX_INLINE_CHANGES;
    let page = if is_long { run_low_priority(Priority::Answer, render).await? } else { render() };
    Ok(page?)
}
