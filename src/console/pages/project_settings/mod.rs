//! The settings of a project, its token, and its deletion.

mod fields;
mod loss;

use askama::Template;
use axum::http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::console::assets::icon;
use crate::console::form::{Choice, Form, Outcome};
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::list::List;
use crate::console::model::Project;
use crate::console::operation::{Operation, Write};
use crate::console::pages::dashboards::dashboard_choices;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use fields::{ACCESS_FORM, FORM};

const SETTINGS: &str = "/console/projects/{project_id}/settings/";
const ACCESS: &str = "/console/projects/{project_id}/settings/access/";

const UPDATE: &str = "projects_partial_update";

/// Adds the pages to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, SETTINGS, page);
    pages.signed_in(Method::POST, SETTINGS, save);
    pages.signed_in(Method::POST, ACCESS, save_access);
    loss::routes(pages);
}

fn path(project: &str) -> String {
    format!("/console/projects/{project}/settings/")
}

fn update(project: &str) -> Operation {
    Operation::new(UPDATE, [project])
}

#[derive(Template)]
#[template(path = "console/pages/project_settings/page.html")]
struct SettingsPage {
    id: String,
    base: String,
    project: Project,
    form: Form,
    access: Form,
    may_reset: bool,
    may_delete: bool,
}

async fn page(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    show(&request, &project, None, None).await
}

async fn save(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    let base = path(&project);
    match FORM.sent(&request, update(&project), &base)?.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&base, "settings-saved"))?),
        Outcome::Again(form) => show(&request, &project, Some(*form), None).await,
    }
}

async fn save_access(request: SignedIn) -> PageResult {
    let project = super::project_id(&request.visit)?;
    let base = path(&project);
    let sent = ACCESS_FORM.sent(&request, update(&project), &format!("{base}access/"))?;
    match sent.send(&request).await? {
        Outcome::Done(_) => Ok(see_other(&with_notice(&base, "settings-saved"))?),
        Outcome::Again(form) => show(&request, &project, None, Some(*form)).await,
    }
}

/// Shows the page. A form that the browser has sent takes the place of the stored values.
async fn show(
    request: &SignedIn,
    project: &str,
    form: Option<Form>,
    access: Option<Form>,
) -> PageResult {
    let found = request.api.get_versioned(&format!("/api/projects/{project}/")).await?;
    let (base, operation) = (path(project), update(project));
    let status = form.as_ref().or(access.as_ref()).map_or_else(Default::default, Form::status);
    let form = match form {
        Some(form) => form,
        None => FORM.filled(request, &operation, &base, &found)?,
    };
    let access = match access {
        Some(access) => access,
        None => ACCESS_FORM.filled(request, &operation, &format!("{base}access/"), &found)?,
    };
    let about = Project::deserialize(&found.body).map_err(Error::internal)?;
    let refusals = refusals(request, project, &about).await?;
    let may = async |id| request.api.may(&Operation::new(id, [project])).await;
    let page = SettingsPage {
        id: project.to_owned(),
        form: offer_dashboards(request, project, form).await?.refused_for(refusals.0),
        access: access.with_id("access").refused_for(refusals.1),
        may_reset: may("projects_reset_token_partial_update").await?,
        may_delete: may("projects_destroy").await?,
        base,
        project: about,
    };
    let frame = Frame::load(request, Section::ProjectSettings, In::Project(project)).await?;
    Ok(layout::page_with_status(&frame.titled("Project settings"), &page, status)?)
}

/// Returns why the session cannot change the settings, and why it cannot change who sees the project.
async fn refusals(
    request: &SignedIn,
    project: &str,
    now: &Project,
) -> Result<(Option<String>, Option<String>)> {
    let change = |body| Write::new(UPDATE, [project]).body(body);
    let detail = |error: Error| error.detail().to_owned();
    let all = request.api.dry_run(&change(json!({}))).await?.map(detail);
    // Every member may send the value that the project has.
    let access = json!({ "access_control": !now.access_control });
    Ok((all, request.api.dry_run(&change(access)).await?.map(detail)))
}

/// Offers the dashboards of the project by name, if there are few.
async fn offer_dashboards(request: &SignedIn, project: &str, form: Form) -> Result<Form> {
    let found = dashboard_choices(request, project).await?;
    let Some(found) = found.filter(List::is_complete) else { return Ok(form) };
    let named = found.results.iter();
    let named = named.map(|one| Choice::new(one.id, format!("{} ({})", one.name(), one.id)));
    let choices = std::iter::once(Choice::new(Value::Null, "None")).chain(named);
    Ok(form.with_choices("primary_dashboard", choices.collect()))
}
