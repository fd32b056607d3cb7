//! The form for a new dashboard: empty, from a template, as a copy, or from JSON.

mod copies;
mod forms;
mod templates;

use askama::Template;
use axum::http::Method;
use serde_json::Value;

use crate::console::form::{Form, Outcome};
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::pages::creation::may_create_dashboards;
use crate::console::pages::object::DASHBOARDS;
use crate::console::pages::project_id;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use forms::Origin;
use templates::{BuiltIn, built_in};

const NEW: &str = "/console/projects/{project_id}/dashboards/new/";

/// Adds the page and its forms to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, NEW, page);
    pages.signed_in(Method::POST, NEW, create);
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/new/page.html")]
struct NewPage {
    base: String,
    origin: Origin,
    /// The templates with their tiles, if the form creates from one.
    templates: Vec<BuiltIn>,
    form: Form,
}

async fn page(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let origin = Origin::of(&request.visit);
    let mut form =
        origin.form().empty(&request, &origin.operation(&project), &origin.href(&project))?;
    form = forms::with_defaults(form, origin);
    if origin == Origin::Dashboard {
        form = copies::with_source(form, &request, &project).await?;
    }
    let refusal = (!may_create_dashboards(&request, &project).await?)
        .then(|| "You may not create dashboards in this project.".to_owned());
    show(&request, &project, origin, form.refused_for(refusal)).await
}

async fn create(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let origin = Origin::of(&request.visit);
    let sent = origin.form().sent(&request, origin.operation(&project), &origin.href(&project))?;
    match sent.send(&request).await? {
        Outcome::Done(body) => {
            let id = body.get("id").map_or(String::new(), Value::to_string);
            let page = format!("{}{id}/", DASHBOARDS.list(&project));
            Ok(see_other(&with_notice(&page, "dashboard-created"))?)
        }
        Outcome::Again(form) => show(&request, &project, origin, *form).await,
    }
}

async fn show(request: &SignedIn, project: &str, origin: Origin, mut form: Form) -> PageResult {
    let mut templates = Vec::new();
    match origin {
        Origin::Template => {
            templates = built_in()?;
            form = templates::offer(form, &templates);
        }
        Origin::Dashboard => form = copies::with_choices(form, request, project).await?,
        Origin::Empty | Origin::Json => {}
    }
    let frame = Frame::load(request, Section::Dashboards, In::Project(project)).await?;
    let status = form.status();
    let page = NewPage { base: DASHBOARDS.list(project), origin, templates, form };
    Ok(layout::page_with_status(&frame.titled("New dashboard"), &page, status)?)
}
