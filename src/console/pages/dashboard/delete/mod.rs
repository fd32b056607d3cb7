//! The question before a dashboard is moved to the trash.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::console::entrance::see_other;
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::pages::name_or;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::address::Address;

const DELETE: &str = "/console/projects/{project_id}/dashboards/{id}/delete/";

const UPDATE: &str = "dashboards_partial_update";

const FORM: FormSpec = FormSpec::create(
    "Delete the dashboard",
    &[Input::new("delete_insights")
        .label("Delete its insights too")
        .hint("Those that no other dashboard shows and that you may edit.")],
);

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, DELETE, page);
    pages.signed_in(Method::POST, DELETE, delete);
}

#[derive(Deserialize)]
struct Dashboard {
    name: Option<String>,
    is_shared: bool,
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/delete/page.html")]
struct DeletePage {
    address: Address,
    name: String,
    is_shared: bool,
    form: Form,
}

async fn page(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let form = FORM.empty(&request, &address.operation(UPDATE), &address.page("delete/"))?;
    show(&request, address, form).await
}

async fn delete(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let mut sent = FORM.sent(&request, address.operation(UPDATE), &address.page("delete/"))?;
    sent.body.insert("deleted".to_owned(), true.into());
    match sent.send(&request).await? {
        Outcome::Done(_) => {
            let list = with_notice(&address.list(), "deleted");
            Ok(see_other(&format!("{list}&undo={}", address.id))?)
        }
        Outcome::Again(form) => show(&request, address, *form).await,
    }
}

async fn show(request: &SignedIn, address: Address, form: Form) -> PageResult {
    let found: Dashboard = request.api.get(&address.api("")).await?;
    let frame = Frame::load(request, Section::Dashboards, In::Project(&address.project)).await?;
    let name = name_or(found.name.as_deref(), "Untitled dashboard").to_owned();
    let status = form.status();
    let frame = frame.titled(format!("Delete {name}?"));
    let page = DeletePage { address, name, is_shared: found.is_shared, form };
    Ok(layout::page_with_status(&frame, &page, status)?)
}
