//! One export: its fields, pause and unpause, and delete.

use askama::Template;
use axum::http::Method;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::console::api::Versioned;
use crate::console::assets::icon;
use crate::console::entrance::see_other;
use crate::console::form::{Confirm, ConfirmState, Form, ONCE, Outcome, once_key};
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::operation::{Operation, Write};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::destinations::{self, Destination};
use super::{Action, PAUSE, UNPAUSE};

const EXPORT: &str = "/console/projects/{project_id}/batch_exports/{id}/";
const PAUSES: &str = "/console/projects/{project_id}/batch_exports/{id}/pause/";
const UNPAUSES: &str = "/console/projects/{project_id}/batch_exports/{id}/unpause/";
const DELETE: &str = "/console/projects/{project_id}/batch_exports/{id}/delete/";

/// Adds the page and its actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, EXPORT, page);
    pages.signed_in(Method::POST, EXPORT, save);
    pages.signed_in(Method::POST, PAUSES, |request| act(request, PAUSE));
    pages.signed_in(Method::POST, UNPAUSES, |request| act(request, UNPAUSE));
    pages.signed_in(Method::GET, DELETE, delete);
    pages.signed_in(Method::POST, DELETE, delete);
}

/// An export of a project, by the ids in the path of the page.
struct Ids {
    project: String,
    id: String,
}

impl Ids {
    fn of(request: &SignedIn) -> Result<Self> {
        let id = request.visit.parameter("id");
        let id = id.parse::<Uuid>().map_err(|_| Error::not_found())?.to_string();
        Ok(Self { project: super::super::project_id(&request.visit)?, id })
    }

    fn page(&self) -> String {
        format!("{}{}/", super::base(&self.project), self.id)
    }

    fn operation(&self, id: &'static str) -> Operation {
        Operation::new(id, [&self.project, &self.id])
    }

    async fn read(&self, request: &SignedIn) -> Result<Versioned> {
        let path = format!("/api/projects/{}/batch_exports/{}/", self.project, self.id);
        request.api.get_versioned(&path).await
    }
}

const UPDATE: &str = "projects_batch_exports_partial_update";
const DESTROY: &str = "projects_batch_exports_destroy";

/// What the head of the page shows.
#[derive(Deserialize)]
struct Export {
    name: String,
    paused: bool,
    created_at: String,
    last_updated_at: String,
    last_paused_at: Option<String>,
}

#[derive(Template)]
#[template(path = "console/pages/batch_exports/export.html")]
struct ExportPage {
    base: String,
    path: String,
    export: Export,
    destination: &'static Destination,
    form: Form,
    may_delete: bool,
    /// The key of the button that pauses or unpauses, if the session may do that.
    once: Option<String>,
    /// Why an action was refused.
    refusal: Option<String>,
}

/// Returns the destination of an export.
fn destination(export: &Value) -> Result<&'static Destination> {
    let name = export.pointer("/destination/type").and_then(Value::as_str).unwrap_or_default();
    destinations::find(name).ok_or_else(|| Error::internal(format!("an unknown service {name}")))
}

async fn page(request: SignedIn) -> PageResult {
    let ids = Ids::of(&request)?;
    let object = ids.read(&request).await?;
    let form = form(&request, &ids, &object)?;
    Ok(show(&request, &ids, object, form, None).await?)
}

fn form(request: &SignedIn, ids: &Ids, object: &Versioned) -> Result<Form> {
    let destination = destination(&object.body)?;
    destination.change.filled(request, &ids.operation(UPDATE), &ids.page(), object)
}

async fn save(request: SignedIn) -> PageResult {
    let ids = Ids::of(&request)?;
    let object = ids.read(&request).await?;
    let destination = destination(&object.body)?;
    let sent = destination.change.sent(&request, ids.operation(UPDATE), &ids.page())?;
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&ids.page(), "saved"))?),
        Outcome::Again(form) => Ok(show(&request, &ids, object, *form, None).await?),
    }
}

async fn show(
    request: &SignedIn,
    ids: &Ids,
    object: Versioned,
    form: Form,
    refusal: Option<&Error>,
) -> Result<Response> {
    let destination = destination(&object.body)?;
    let export: Export = serde_json::from_value(object.body).map_err(Error::internal)?;
    let may_update = request.api.may(&ids.operation(UPDATE)).await?;
    let frame = Frame::load(request, Section::BatchExports, In::Project(&ids.project)).await?;
    let frame = frame.titled(export.name.clone());
    let status = match refusal {
        Some(error) => super::status(error),
        None => form.status(),
    };
    let page = ExportPage {
        base: super::base(&ids.project),
        path: ids.page(),
        export,
        destination,
        form: form.read_only(!may_update),
        may_delete: request.api.may(&ids.operation(DESTROY)).await?,
        once: request.api.may(&ids.operation(PAUSE.operation)).await?.then(once_key),
        refusal: refusal.map(|error| error.detail().to_owned()),
    };
    layout::page_with_status(&frame, &page, status)
}

async fn act(request: SignedIn, action: Action) -> PageResult {
    let ids = Ids::of(&request)?;
    let once = request.visit.form.value(ONCE);
    match action.send(&request, &ids.project, &ids.id, once).await {
        Ok(()) => Ok(see_other(&with_notice(&ids.page(), action.notice))?),
        Err(error) if matches!(error.status(), 401 | 404 | 500) => Err(error.into()),
        Err(error) => {
            let object = ids.read(&request).await?;
            let form = form(&request, &ids, &object)?;
            Ok(show(&request, &ids, object, form, Some(&error)).await?)
        }
    }
}

async fn delete(request: SignedIn) -> PageResult {
    let ids = Ids::of(&request)?;
    let write = Write::new(DESTROY, [&ids.project, &ids.id]);
    let list = super::base(&ids.project);
    let name = match ids.read(&request).await {
        Ok(found) => found.body.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        // A form that was sent twice.
        Err(error) if error.status() == 404 && !request.visit.head.method.is_safe() => {
            return Ok(see_other(&with_notice(&list, "deleted"))?);
        }
        Err(error) => return Err(error.into()),
    };
    let frame = Frame::load(&request, Section::BatchExports, In::Project(&ids.project)).await?;
    let confirm = Confirm {
        question: format!("Delete {name}?"),
        text: "The export and the secrets of its destination are deleted. They cannot be restored."
            .to_owned(),
        name: None,
        submit: "Delete",
        action: format!("{}delete/", ids.page()),
        back: ids.page(),
        write,
        state: ConfirmState::default(),
    };
    confirm.respond(&request, frame, &with_notice(&list, "deleted")).await
}
