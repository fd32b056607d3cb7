//! The dashboards that can be copied.

use serde::Deserialize;

use crate::console::form::{Choice, Form};
use crate::console::pages::name_or;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The maximum number of dashboards that the form offers.
const MAX_CHOICES: usize = 500;

#[derive(Deserialize)]
struct Dashboards {
    results: Vec<Dashboard>,
}

#[derive(Deserialize)]
struct Dashboard {
    id: u64,
    name: Option<String>,
}

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

/// Offers the first dashboards of the project.
pub(super) async fn with_choices(form: Form, request: &SignedIn, project: &str) -> Result<Form> {
    let path = format!("/api/projects/{project}/dashboards/?limit={MAX_CHOICES}");
    let found: Dashboards = request.api.get(&path).await?;
    let choices = found.results.iter().map(|dashboard| {
        let name = name_or(dashboard.name.as_deref(), "Untitled dashboard");
        Choice::new(dashboard.id, name)
    });
    Ok(form.with_choices("use_dashboard", choices.collect()))
}
