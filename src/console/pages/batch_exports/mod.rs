//! The batch exports of a project: the list, with pause and unpause for many, and the pages of one export.

mod destinations;
mod export;
mod new;

use askama::Template;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use crate::console::assets::icon;
use crate::console::entrance::see_other;
use crate::console::form::{ONCE, once_key};
use crate::console::layout::{self, Command, Frame, In, Section, Target, with_notice};
use crate::console::operation::{Operation, Write};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

const LIST: &str = "/console/projects/{project_id}/batch_exports/";

/// The number of exports on a page.
const PAGE_SIZE: usize = 50;

/// Adds the pages and their actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
    pages.signed_in(Method::POST, LIST, act);
    new::routes(pages);
    export::routes(pages);
}

/// Returns the path of the list.
fn base(project: &str) -> String {
    format!("/console/projects/{project}/batch_exports/")
}

/// An action that needs no further input.
#[derive(Clone, Copy)]
struct Action {
    name: &'static str,
    operation: &'static str,
    notice: &'static str,
}

const PAUSE: Action =
    Action { name: "pause", operation: "projects_batch_exports_pause_create", notice: "paused" };
const UNPAUSE: Action = Action {
    name: "unpause",
    operation: "projects_batch_exports_unpause_create",
    notice: "unpaused",
};

impl Action {
    /// Sends the request for one export.
    async fn send(self, request: &SignedIn, project: &str, id: &str, once: &str) -> Result<()> {
        let write = Write::new(self.operation, [project, id]).body(json!({})).once(once);
        request.api.write(&write).await.map(drop)
    }
}

#[derive(Deserialize)]
struct Exports {
    count: usize,
    results: Vec<Export>,
}

/// An export in the list.
#[derive(Deserialize)]
struct Export {
    id: String,
    name: String,
    destination: Destination,
    interval: String,
    paused: bool,
    created_at: String,
}

#[derive(Deserialize)]
struct Destination {
    r#type: String,
}

impl Export {
    fn destination(&self) -> &str {
        destinations::label(&self.destination.r#type)
    }

    fn interval(&self) -> &str {
        destinations::interval(&self.interval)
    }
}

#[derive(Template)]
#[template(path = "console/pages/batch_exports/list.html")]
struct ListPage {
    base: String,
    exports: Vec<Export>,
    /// The key of the form, if the session may pause and unpause exports.
    once: Option<String>,
    may_create: bool,
    /// What became of an action that was refused for some exports.
    refusals: Option<Refusals>,
    count: usize,
    first: usize,
    last: usize,
    previous: Option<usize>,
    next: Option<usize>,
    command: Command,
}

/// Returns the number of exports before those of the page.
fn offset(request: &SignedIn) -> usize {
    request.visit.query("offset").parse::<u16>().map_or(0, usize::from)
}

async fn list(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    Ok(show(&request, &project, None).await?)
}

async fn show(request: &SignedIn, project: &str, refusals: Option<Refusals>) -> Result<Response> {
    let offset = offset(request);
    let path = format!("/api/projects/{project}/batch_exports/?limit={PAGE_SIZE}&offset={offset}");
    let found: Exports = request.api.get(&path).await?;
    if found.results.is_empty() && offset > 0 {
        return Err(Error::not_found_as("The list of batch exports has no such page."));
    }
    let base = base(project);
    let targets = found.results.iter().map(|export| Target {
        icon: icon("database-backup"),
        text: export.name.clone(),
        kind: "batch export",
        href: format!("{base}{}/", export.id),
    });
    let frame = Frame::load(request, Section::BatchExports, In::Project(project)).await?;
    let frame = frame.titled("Batch exports").with_targets(targets);
    let create = Operation::new("projects_batch_exports_create", [project]);
    let may_act = match found.results.first() {
        Some(first) => {
            request.api.may(&Operation::new(PAUSE.operation, [project, &first.id])).await?
        }
        None => false,
    };
    let status = refusals.as_ref().map_or(StatusCode::OK, |refusals| refusals.status);
    let last = offset + found.results.len();
    let page = ListPage {
        once: may_act.then(once_key),
        may_create: request.api.may(&create).await?,
        refusals,
        previous: (offset > 0).then(|| offset.saturating_sub(PAGE_SIZE)),
        next: (last < found.count).then_some(last),
        command: Command::get(&request.visit, &path),
        base,
        count: found.count,
        first: offset + 1,
        last,
        exports: found.results,
    };
    layout::page_with_status(&frame, &page, status)
}

/// Returns the status of a page that shows an error.
fn status(error: &Error) -> StatusCode {
    StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST)
}

/// What became of an action that was refused for some exports.
struct Refusals {
    done: usize,
    refused: usize,
    /// Why the first one was refused.
    reason: String,
    status: StatusCode,
}

async fn act(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    let form = &request.visit.form;
    let known = [PAUSE, UNPAUSE].into_iter().find(|action| action.name == form.value("action"));
    let Some(action) = known else { return Err(Error::not_found().into()) };
    let (mut done, mut refused) = (0, Vec::new());
    for (index, id) in form.values("id").take(PAGE_SIZE).enumerate() {
        let once = format!("{}-{index}", form.value(ONCE));
        match action.send(&request, &project, id, &once).await {
            Ok(()) => done += 1,
            Err(error) if matches!(error.status(), 401 | 500) => return Err(error.into()),
            Err(error) => refused.push(error),
        }
    }
    let Some(first) = refused.first() else {
        let list = format!("{}?offset={}", base(&project), offset(&request));
        let list = if done > 0 { with_notice(&list, action.notice) } else { list };
        return Ok(see_other(&list)?);
    };
    let refusals = Refusals {
        done,
        refused: refused.len(),
        reason: first.detail().to_owned(),
        status: status(first),
    };
    Ok(show(&request, &project, Some(refusals)).await?)
}
