//! Name, description, tags and filters of a dashboard.

use askama::Template;
use axum::http::Method;

use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use super::address::{Address, name_in};
use super::rights::refusal;

const EDIT: &str = "/console/projects/{project_id}/dashboards/{id}/edit/";

const UPDATE: &str = "dashboards_partial_update";

const FORM: FormSpec = FormSpec::change(
    "Save",
    &[
        Input::new("name").label("Name"),
        Input::new("description").label("Description").area(),
        Input::new("tags").label("Tags"),
        Input::new("pinned").label("Pin it").hint("Lists show pinned dashboards first."),
        Input::new("filters")
            .label("Filters")
            .hint("JSON that applies to every tile. An empty object changes nothing."),
        Input::new("variables")
            .label("Variables")
            .hint("JSON with values for the queries of tiles. An empty object changes nothing."),
    ],
);

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, EDIT, page);
    pages.signed_in(Method::POST, EDIT, save);
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/edit/page.html")]
struct EditPage {
    address: Address,
    name: String,
    form: Form,
}

async fn page(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let dashboard = request.api.get_versioned(&address.api("")).await?;
    let form =
        FORM.filled(&request, &address.operation(UPDATE), &address.page("edit/"), &dashboard)?;
    let name = name_in(&dashboard.body);
    let rights = serde_json::from_value(dashboard.body).map_err(Error::internal)?;
    let refusal = refusal(&request, &address.project, &rights).await?;
    show(&request, address, name, form.refused_for(refusal)).await
}

async fn save(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    let sent = FORM.sent(&request, address.operation(UPDATE), &address.page("edit/"))?;
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&address.page(""), "dashboard-saved"))?),
        Outcome::Again(form) => {
            let name = address.name(&request).await?;
            show(&request, address, name, *form).await
        }
    }
}

async fn show(request: &SignedIn, address: Address, name: String, form: Form) -> PageResult {
    let frame = Frame::load(request, Section::Dashboards, In::Project(&address.project)).await?;
    let status = form.status();
    let page = EditPage { address, name, form };
    Ok(layout::page_with_status(&frame.titled("Edit the dashboard"), &page, status)?)
}
