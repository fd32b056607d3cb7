//! The form for a new text on a dashboard.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::Value;

use crate::console::api::Versioned;
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::pages::dashboard::address::Address;
use crate::console::pages::dashboard::rights::name_version_and_refusal;
use crate::console::pages::dashboard::tile::COLORS;
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
    address: Address,
    name: String,
    form: Form,
}

async fn page(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let (name, version, refusal) = name_version_and_refusal(&request, &address).await?;
    // With the version, a text that is sent twice is added once.
    let empty = Versioned { body: Value::Null, version };
    let action = address.page("tiles/new/");
    let form = FORM.filled(&request, &address.operation(UPDATE), &action, &empty)?;
    show(&request, address, name, form.refused_for(refusal)).await
}

async fn add(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let sent = FORM.sent(&request, address.operation(UPDATE), &address.page("tiles/new/"))?;
    // The form shows no tile that the dashboard has.
    let mut sent = sent.with_view(|_| Value::Null);
    if sent.text("tiles.0.text.body").trim().is_empty() {
        sent.set_error("tiles.0.text.body", "Enter a text.");
    }
    let text = sent.body.get("tiles").and_then(|tiles| tiles.pointer("/0/text/body")).cloned();
    let done = with_notice(&address.page(""), "text-added");
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&done)?),
        // A form that was sent twice.
        Outcome::Again(form)
            if form.status() == StatusCode::PRECONDITION_FAILED
                && newest_text(&request, &address).await? == text =>
        {
            Ok(see_other(&done)?)
        }
        Outcome::Again(form) => {
            let name = address.name(&request).await?;
            show(&request, address, name, *form).await
        }
    }
}

/// Returns the text of the newest tile, if it has one.
async fn newest_text(request: &SignedIn, address: &Address) -> Result<Option<Value>> {
    let dashboard: Value = request.api.get(&address.api("")).await?;
    let tiles = dashboard.get("tiles").and_then(Value::as_array).into_iter().flatten();
    let newest = tiles.max_by_key(|tile| tile.get("id").and_then(Value::as_u64));
    Ok(newest.and_then(|tile| tile.pointer("/text/body")).cloned())
}

async fn show(request: &SignedIn, address: Address, name: String, form: Form) -> PageResult {
    let frame = Frame::load(request, Section::Dashboards, In::Project(&address.project)).await?;
    let status = form.status();
    let page = NewTilePage { address, name, form };
    Ok(layout::page_with_status(&frame.titled("Add a text"), &page, status)?)
}
