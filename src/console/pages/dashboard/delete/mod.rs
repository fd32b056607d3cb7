//! The question before a dashboard is moved to the trash.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::pages::dashboard_name;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::address::Address;
use super::rights::{Rights, refusal};

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
    #[serde(flatten)]
    rights: Rights,
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/delete/page.html")]
struct DeletePage {
    address: Address,
    name: String,
    is_shared: bool,
    /// Why the session cannot delete it.
    refusal: Option<String>,
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
        Outcome::Done(_) => Ok(see_other(&done(&address))?),
        // A form that was sent twice.
        Outcome::Again(form) if form.status() == StatusCode::NOT_FOUND => {
            Ok(see_other(&done(&address))?)
        }
        Outcome::Again(form) => show(&request, address, *form).await,
    }
}

/// Returns the page after the dashboard is deleted.
fn done(address: &Address) -> String {
    format!("{}&undo={}", with_notice(&address.list(), "dashboard-deleted"), address.id)
}

async fn show(request: &SignedIn, address: Address, form: Form) -> PageResult {
    let found: Dashboard = request.api.get(&address.api("")).await?;
    let frame = Frame::load(request, Section::Dashboards, In::Project(&address.project)).await?;
    let name = dashboard_name(found.name.as_deref()).to_owned();
    let status = form.status();
    let frame = frame.titled(format!("Delete {name}?"));
    let refusal = refusal(request, &address.project, &found.rights).await?;
    let page = DeletePage { address, name, is_shared: found.is_shared, refusal, form };
    Ok(layout::page_with_status(&frame, &page, status)?)
}
