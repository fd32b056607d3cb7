//! The form for a new text on a dashboard.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::Value;

use crate::console::api::Versioned;
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, with_notice};
use crate::console::pages::dashboard::rights::{name_of, name_version_and_refusal};
use crate::console::pages::dashboard::tile::COLORS;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Result;

use super::UPDATE;

const NEW: &str = "/console/projects/{project_id}/dashboards/{id}/tiles/new/";

const FORM: FormSpec = FormSpec::create(
    "Add the text",
    &[
        Input::new("tiles.0.text.body").label("Text").hint("Markdown.").markdown(),
        Input::new("tiles.0.color").label("Color").choices(COLORS),
    ],
);

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, NEW, page);
    pages.signed_in(Method::POST, NEW, add);
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/tiles/new/page.html")]
struct NewTilePage {
    object: ObjectPath,
    name: String,
    form: Form,
}

async fn page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let (name, version, refusal) = name_version_and_refusal(&request, &object).await?;
    // With the version, a text that is sent twice is added once.
    let empty = Versioned { body: Value::Null, version };
    let action = object.page("tiles/new/");
    let form = FORM.filled(&request, &object.operation(UPDATE), &action, &empty)?;
    show(&request, object, name, form.refused_for(refusal)).await
}

async fn add(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let sent = FORM.sent(&request, object.operation(UPDATE), &object.page("tiles/new/"))?;
    // The form shows no tile that the dashboard has.
    let mut sent = sent.with_view(|_| Value::Null);
    if sent.text("tiles.0.text.body").trim().is_empty() {
        sent.set_error("tiles.0.text.body", "Enter a text.");
    }
    let text = sent.body.get("tiles").and_then(|tiles| tiles.pointer("/0/text/body")).cloned();
    let done = with_notice(&object.page(""), "text-added");
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&done)?),
        // A form that was sent twice.
        Outcome::Again(form)
            if form.status() == StatusCode::PRECONDITION_FAILED
                && newest_text(&request, &object).await? == text =>
        {
            Ok(see_other(&done)?)
        }
        Outcome::Again(form) => {
            let name = name_of(&request, &object).await?;
            show(&request, object, name, *form).await
        }
    }
}

/// Returns the text of the newest tile, if it has one.
async fn newest_text(request: &SignedIn, object: &ObjectPath) -> Result<Option<Value>> {
    let dashboard: Value = request.api.get(&object.api("")).await?;
    let tiles = dashboard.get("tiles").and_then(Value::as_array).into_iter().flatten();
    let newest = tiles.max_by_key(|tile| tile.get("id").and_then(Value::as_u64));
    Ok(newest.and_then(|tile| tile.pointer("/text/body")).cloned())
}

async fn show(request: &SignedIn, object: ObjectPath, name: String, form: Form) -> PageResult {
    let frame = object.frame(request).await?;
    let status = form.status();
    let page = NewTilePage { object, name, form };
    Ok(layout::page_with_status(&frame.titled("Add a text"), &page, status)?)
}
