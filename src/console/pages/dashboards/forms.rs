//! The form of a dashboard, and what pages read about one before they show a form.

use askama::Template;
use axum::http::Method;
use serde_json::Value;

use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::headers::see_other;
use crate::console::layout::{self, with_notice};
use crate::console::model::dashboard_name;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::pages::shareable::DASHBOARD;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

const EDIT: &str = "/console/projects/{project_id}/dashboards/{id}/edit/";

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

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, EDIT, page);
    pages.signed_in(Method::POST, EDIT, save);
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/edit.html")]
struct EditPage {
    object: ObjectPath,
    name: String,
    form: Form,
}

async fn page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let dashboard = request.api.get_versioned(&object.api("")).await?;
    let operation = object.operation(DASHBOARD.update);
    let form = FORM.filled(&request, &operation, &object.page("edit/"), &dashboard)?;
    let name = name_in(&dashboard.body);
    let rights = serde_json::from_value(dashboard.body).map_err(Error::internal)?;
    let refusal = DASHBOARD.refusal(&request, &object.tenant, &rights).await?;
    show(&request, object, name, form.refused_for(refusal)).await
}

async fn save(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let sent = FORM.sent(&request, object.operation(DASHBOARD.update), &object.page("edit/"))?;
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

/// Returns the name in the JSON of a dashboard.
pub(super) fn name_in(dashboard: &Value) -> String {
    dashboard_name(dashboard.get("name").and_then(Value::as_str)).to_owned()
}

/// Reads the name of a dashboard. One that was deleted meanwhile has only its id.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn name_of(request: &SignedIn, dashboard: &ObjectPath) -> Result<String> {
    let found: Option<Value> = request.api.get_if_allowed(&dashboard.api("")).await?;
    Ok(found.map_or_else(|| format!("Dashboard {}", dashboard.id), |found| name_in(&found)))
}

/// Reads a dashboard. Returns its name, its version, and why the session cannot change it.
///
/// # Errors
/// The error of the API.
pub(super) async fn name_version_and_refusal(
    request: &SignedIn,
    object: &ObjectPath,
) -> Result<(String, Option<String>, Option<String>)> {
    let found = request.api.get_versioned(&object.api("")).await?;
    let name = name_in(&found.body);
    let rights = serde_json::from_value(found.body).map_err(Error::internal)?;
    Ok((name, found.version, DASHBOARD.refusal(request, &object.tenant, &rights).await?))
}
