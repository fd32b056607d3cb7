//! A new export: first the destination, then a form with its fields.

use askama::Template;
use axum::http::Method;
use serde_json::{Value, json};

use crate::console::api::Operation;
use crate::console::form::{Form, Outcome};
use crate::console::headers::see_other;
use crate::console::layout::{self, with_notice};
use crate::console::pages::object::BATCH_EXPORTS;
use crate::console::pages::project_id;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::destinations::{self, CREATE, DESTINATIONS, Destination};

const NEW: &str = "/console/projects/{project_id}/batch_exports/new/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, NEW, page);
    pages.signed_in(Method::POST, NEW, create);
}

#[derive(Template)]
#[template(path = "console/pages/batch_exports/choose.html")]
struct ChoosePage {
    base: String,
    destinations: &'static [Destination],
}

#[derive(Template)]
#[template(path = "console/pages/batch_exports/new.html")]
struct NewPage {
    base: String,
    destination: &'static Destination,
    form: Form,
}

/// Returns the destination that the query names, or `None` if it names none.
fn chosen(request: &SignedIn) -> Result<Option<&'static Destination>> {
    match request.visit.query("destination") {
        "" => Ok(None),
        name => destinations::find(name).map(Some).ok_or_else(Error::not_found),
    }
}

fn action(project: &str, destination: &Destination) -> String {
    format!("{}new/?destination={}", BATCH_EXPORTS.list(project), destination.name)
}

async fn page(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let operation = Operation::new(CREATE, [&project]);
    if !request.api.may(&operation).await? {
        return Err(Error::denied("You may not create batch exports in this project.").into());
    }
    let Some(destination) = chosen(&request)? else {
        let frame = BATCH_EXPORTS.frame(&request, &project).await?;
        let page = ChoosePage { base: BATCH_EXPORTS.list(&project), destinations: &DESTINATIONS };
        return Ok(layout::page(&frame.titled("New batch export"), &page)?);
    };
    let action = action(&project, destination);
    let form = destination.create.empty(&request, &operation, &action)?;
    let form = form.with_value("interval", &json!("hour")).with_value("model", &json!("events"));
    show(&request, &project, destination, form).await
}

async fn create(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let destination = chosen(&request)?.ok_or_else(Error::not_found)?;
    let operation = Operation::new(CREATE, [&project]);
    let action = action(&project, destination);
    let mut sent = destination.create.sent(&request, operation, &action)?;
    let target = sent.body.entry("destination").or_insert_with(|| json!({}));
    target["type"] = json!(destination.name);
    if target["config"].is_null() {
        target["config"] = json!({});
    }
    match sent.send(&request).await? {
        Outcome::Done(export) => {
            let id = export.get("id").and_then(Value::as_str).unwrap_or_default();
            let path = format!("{}{id}/", BATCH_EXPORTS.list(&project));
            Ok(see_other(&with_notice(&path, "export-created"))?)
        }
        Outcome::Again(form) => show(&request, &project, destination, *form).await,
    }
}

async fn show(
    request: &SignedIn,
    project: &str,
    destination: &'static Destination,
    form: Form,
) -> PageResult {
    let frame = BATCH_EXPORTS.frame(request, project).await?;
    let status = form.status();
    let page = NewPage { base: BATCH_EXPORTS.list(project), destination, form };
    Ok(layout::page_with_status(&frame.titled("New batch export"), &page, status)?)
}
