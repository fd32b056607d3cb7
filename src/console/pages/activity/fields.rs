//! The last change of each field of an object.

use std::collections::BTreeSet;

use askama::Template;
use axum::http::Method;

use crate::console::layout::{self, Command};
use crate::console::model::List;
use crate::console::pages::people::People;
use crate::console::registry::{PageResult, Pages};
use crate::console::urls::Query;
use crate::console::visit::SignedIn;
use crate::error::Error;
use crate::low_priority::{Priority, run_low_priority};

use super::comparison::DiffBudget;
use super::entry::{Entry, keep_open_projects};
use super::filters::{Filters, item_query};
use super::log::Log;
use super::row::ChangeRow;
use super::sentence::Sentence;

const OF_ORGANIZATION: &str = "/console/organizations/{organization_id}/activity/fields/";
const OF_PROJECT: &str = "/console/projects/{project_id}/activity/fields/";

/// The number of changes that are searched for the fields.
const MAX_ENTRIES: u64 = 100;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, OF_ORGANIZATION, fields);
    pages.signed_in(Method::GET, OF_PROJECT, fields);
}

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

async fn fields(request: SignedIn) -> PageResult {
    let log = Log::of(&request.visit)?;
    let filters = Filters::of(&request.visit);
    let path = filters.to_api_query(MAX_ENTRIES, 0).url(&log.api());
    let is_complete = !filters.scope.is_empty() && !filters.item_id.is_empty();
    if !is_complete {
        return Err(Error::not_found().into());
    }
    let mut found: List<Entry> = request.api.get(&path).await?;
    let frame = log.frame(&request).await?.titled("Last changes");
    keep_open_projects(&request, &mut found.results).await?;
    let people = People::load(&request.api, frame.organization()).await?;
    let command = Command::get(&request.visit, &path);
    let render = move || {
        let newest = found.results.first().ok_or_else(Error::not_found)?;
        let page = FieldsPage {
            base: log.page(),
            history: item_query(&filters.scope, &filters.item_id),
            object: newest.object(&log, &people),
            fields: last_changes(&found.results),
            is_cut: found.count > MAX_ENTRIES,
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
