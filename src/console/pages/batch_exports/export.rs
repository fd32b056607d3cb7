//! One batch export and the form of its fields.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::console::api::Versioned;
use crate::console::assets::icon;
use crate::console::form::{Form, Outcome, once_key};
use crate::console::layout::{self, with_notice};
use crate::console::pages::object::{BATCH_EXPORTS, ObjectPath};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::destinations::{self, Destination};
use super::state::PAUSE;

const EXPORT: &str = "/console/projects/{project_id}/batch_exports/{id}/";
/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, EXPORT, page);
    pages.signed_in(Method::POST, EXPORT, save);
}

const UPDATE: &str = "projects_batch_exports_partial_update";
/// The operation that deletes an export.
pub(super) const DESTROY: &str = "projects_batch_exports_destroy";
/// The facts in the head of the page.
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
}

/// Returns the destination of an export.
fn destination(export: &Value) -> Result<&'static Destination> {
    let name = export.pointer("/destination/type").and_then(Value::as_str).unwrap_or_default();
    destinations::find(name).ok_or_else(|| Error::internal(format!("an unknown service {name}")))
}

async fn page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, BATCH_EXPORTS)?;
    let stored = request.api.get_versioned(&object.api("")).await?;
    let form = form(&request, &object, &stored)?;
    show(&request, &object, stored, form, None).await
}

/// Returns the form with the fields of an export.
///
/// # Errors
/// 500 if the export has an unknown destination.
pub(super) fn form(request: &SignedIn, object: &ObjectPath, stored: &Versioned) -> Result<Form> {
    let destination = destination(&stored.body)?;
    destination.change.filled(request, &object.operation(UPDATE), &object.page(""), stored)
}

async fn save(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, BATCH_EXPORTS)?;
    let stored = request.api.get_versioned(&object.api("")).await?;
    let destination = destination(&stored.body)?;
    let sent = destination.change.sent(&request, object.operation(UPDATE), &object.page(""))?;
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&object.page(""), "export-saved"))?),
        Outcome::Again(form) => show(&request, &object, stored, *form, None).await,
    }
}

/// Shows the export, and why an action was refused.
pub(super) async fn show(
    request: &SignedIn,
    object: &ObjectPath,
    stored: Versioned,
    form: Form,
    refusal: Option<Error>,
) -> PageResult {
    let destination = destination(&stored.body)?;
    let export: Export = serde_json::from_value(stored.body).map_err(Error::internal)?;
    let may_update = request.api.may(&object.operation(UPDATE)).await?;
    let frame = object.frame(request).await?;
    let frame = frame.titled(export.name.clone()).with_refusal(refusal);
    let status = form.status();
    let page = ExportPage {
        base: object.list(),
        path: object.page(""),
        export,
        destination,
        form: form.read_only(!may_update),
        may_delete: request.api.may(&object.operation(DESTROY)).await?,
        once: request.api.may(&object.operation(PAUSE.operation)).await?.then(once_key),
    };
    Ok(layout::page_with_status(&frame, &page, status)?)
}
