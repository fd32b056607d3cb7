//! The form for a new text on a dashboard.

use askama::Template;
use axum::http::Method;

use crate::console::entrance::see_other;
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::pages::dashboard::address::Address;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::{COLORS, UPDATE};

const NEW: &str = "/console/projects/{project_id}/dashboards/{id}/tiles/new/";

const FORM: FormSpec = FormSpec::create(
    "Add the text",
    &[
        Input::new("tiles.0.text.body").label("Text").hint("Markdown.").markdown(),
        Input::new("tiles.0.color").label("Color").hint("").choices(COLORS),
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
    form: Form,
}

async fn page(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let form = FORM.empty(&request, &address.operation(UPDATE), &address.page("tiles/new/"))?;
    show(&request, address, form).await
}

async fn add(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let mut sent = FORM.sent(&request, address.operation(UPDATE), &address.page("tiles/new/"))?;
    if sent.text("tiles.0.text.body").trim().is_empty() {
        sent.set_error("tiles.0.text.body", "Enter a text.");
    }
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&address.page(""), "added"))?),
        Outcome::Again(form) => show(&request, address, *form).await,
    }
}

async fn show(request: &SignedIn, address: Address, form: Form) -> PageResult {
    let frame = Frame::load(request, Section::Dashboards, In::Project(&address.project)).await?;
    let status = form.status();
    let page = NewTilePage { address, form };
    Ok(layout::page_with_status(&frame.titled("Add a text"), &page, status)?)
}
