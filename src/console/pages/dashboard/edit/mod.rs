//! Name, description, tags and filters of a dashboard.

use askama::Template;
use axum::http::Method;

use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, with_notice};
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::pages::shareable::DASHBOARD;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use super::rights::{name_in, name_of};

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
    object: ObjectPath,
    name: String,
    form: Form,
}

async fn page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let dashboard = request.api.get_versioned(&object.api("")).await?;
    let form =
        FORM.filled(&request, &object.operation(UPDATE), &object.page("edit/"), &dashboard)?;
    let name = name_in(&dashboard.body);
    let rights = serde_json::from_value(dashboard.body).map_err(Error::internal)?;
    let refusal = DASHBOARD.refusal(&request, &object.tenant, &rights).await?;
    show(&request, object, name, form.refused_for(refusal)).await
}

async fn save(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let sent = FORM.sent(&request, object.operation(UPDATE), &object.page("edit/"))?;
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&object.page(""), "dashboard-saved"))?),
        Outcome::Again(form) => {
            let name = name_of(&request, &object).await?;
            show(&request, object, name, *form).await
        }
    }
}

async fn show(request: &SignedIn, object: ObjectPath, name: String, form: Form) -> PageResult {
    let frame = object.frame(request).await?;
    let status = form.status();
    let page = EditPage { object, name, form };
    Ok(layout::page_with_status(&frame.titled("Edit the dashboard"), &page, status)?)
}
