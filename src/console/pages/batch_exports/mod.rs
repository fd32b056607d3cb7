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
use crate::console::layout::{self, Command, Frame, In, Paging, Section, Target, with_notice};
use crate::console::operation::{Operation, Write};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::chosen::Chosen;

const LIST: &str = "/console/projects/{project_id}/batch_exports/";

/// The number of exports on a page.
const PAGE_SIZE: u64 = 50;

/// The maximum number of exports of one form, which is that of a page.
const MAX_CHANGES: usize = 50;

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
    count: u64,
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
    paging: Paging,
    chosen: Chosen,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    Ok(show(&request, &project, None).await?)
}

async fn show(request: &SignedIn, project: &str, refusals: Option<Refusals>) -> Result<Response> {
    let offset = Paging::offset(&request.visit);
    let path = format!("/api/projects/{project}/batch_exports/?limit={PAGE_SIZE}&offset={offset}");
    let found: Exports = request.api.get(&path).await?;
    let base = base(project);
    let url = |offset| format!("{base}?offset={offset}");
    let paging = Paging::new(offset, found.results.len(), found.count, PAGE_SIZE, url)?;
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
    let page = ListPage {
        once: may_act.then(once_key),
        may_create: request.api.may(&create).await?,
        refusals,
        paging,
        chosen: Chosen::of(request),
        command: Command::get(&request.visit, &path),
        base,
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
    /// 0 if no export was selected.
    refused: usize,
    /// Why the first one was refused, or why none was sent.
    reason: String,
    status: StatusCode,
}

async fn act(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    let form = &request.visit.form;
    let known = [PAUSE, UNPAUSE].into_iter().find(|action| action.name == form.value("action"));
    let Some(action) = known else { return Err(Error::not_found().into()) };
    if form.values("id").next().is_none() {
        let reason = "Select the batch exports first.".to_owned();
        let refusals = Refusals { done: 0, refused: 0, reason, status: StatusCode::BAD_REQUEST };
        return Ok(show(&request, &project, Some(refusals)).await?);
    }
    let (mut done, mut refused) = (0, Vec::new());
    for (index, id) in form.values("id").take(MAX_CHANGES).enumerate() {
        let once = format!("{}-{index}", form.value(ONCE));
        match action.send(&request, &project, id, &once).await {
            Ok(()) => done += 1,
            Err(error) if matches!(error.status(), 401 | 500) => return Err(error.into()),
            Err(error) => refused.push(error),
        }
    }
    let Some(first) = refused.first() else {
        let list = format!("{}?offset={}", base(&project), Paging::offset(&request.visit));
        return Ok(see_other(&with_notice(&list, action.notice))?);
    };
    let refusals = Refusals {
        done,
        refused: refused.len(),
        reason: first.detail().to_owned(),
        status: status(first),
    };
    Ok(show(&request, &project, Some(refusals)).await?)
}
