//! The dashboards that can be copied.

use serde::Deserialize;

use crate::console::form::{Choice, Form};
use crate::console::pages::dashboard::dashboard_choices;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The fields that a copy takes over.
#[derive(Deserialize)]
struct Source {
    id: u64,
    name: Option<String>,
    description: String,
    tags: Vec<String>,
}

/// Fills the form from the dashboard that the query names, if there is one that the session may view.
pub(super) async fn with_source(form: Form, request: &SignedIn, project: &str) -> Result<Form> {
    let Ok(id) = request.visit.query("dashboard").parse::<u64>() else { return Ok(form) };
    let path = format!("/api/projects/{project}/dashboards/{id}/");
    let Some(source) = request.api.get_if_allowed::<Source>(&path).await? else {
        return Ok(form);
    };
    let form = match source.name {
        Some(name) => form.with_value("name", &format!("{name} (copy)").into()),
        None => form,
    };
    Ok(form
        .with_value("use_dashboard", &source.id.into())
        .with_value("description", &source.description.into())
        .with_value("tags", &source.tags.into()))
}

/// Offers the dashboards of the project. With too many, the field takes the id of one.
pub(super) async fn with_choices(form: Form, request: &SignedIn, project: &str) -> Result<Form> {
    let found = dashboard_choices(request, project).await?.unwrap_or_default();
    if !found.is_complete() {
        return Ok(form.with_hint(
            "use_dashboard",
            "The ID of the dashboard, which is in the URL of its page.",
        ));
    }
    let choices = found.results.iter().map(|one| Choice::new(one.id, one.name()));
    Ok(form.with_choices("use_dashboard", choices.collect()))
}
