//! The forms of a dashboard: the change of one, and a new one, which is empty, from a template, a copy, or from JSON. Also
//! what pages read about a dashboard before they show a form.

use crate::console::model::{Dashboard, dashboard_name};
use crate::console::pages::prelude::*;
use crate::console::pages::shareable::DASHBOARD;
use crate::console::words::{EVERYONE_EDITS, RESTRICTIONS};
use crate::resources::dashboards::templates::{BuiltIn, built_in};

use super::dashboard_choices;

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
    pages.form("/console/projects/{project_id}/dashboards/new/", new_page, create);
    pages.form("/console/projects/{project_id}/dashboards/{id}/edit/", edit_page, save);
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/edit.html")]
struct EditPage {
    object: ObjectPath,
    name: String,
    form: Form,
}

async fn edit_page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let dashboard = request.api.get_versioned(&object.api("")).await?;
    let operation = object.operation(DASHBOARD.update);
    let form = FORM.filled(&request, &operation, &object.page("edit/"), &dashboard)?;
    let name = name_in(&dashboard.body);
    let rights = serde_json::from_value(dashboard.body).map_err(Error::internal)?;
    let refusal = DASHBOARD.refusal(&request, &object.tenant, &rights).await?;
    show_edit(&request, object, name, form.refused_for(refusal)).await
}

async fn save(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let sent = FORM.sent(&request, object.operation(DASHBOARD.update), &object.page("edit/"))?;
    match sent.send(&request).await? {
        Outcome::Done(_) => finish(&object.page(""), "dashboard-saved"),
        Outcome::Again(form) => {
            let name = name_of(&request, &object).await?;
            show_edit(&request, object, name, *form).await
        }
    }
}

async fn show_edit(request: &SignedIn, object: ObjectPath, name: String, form: Form) -> PageResult {
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

#[derive(Template)]
#[template(path = "console/pages/dashboards/new.html")]
struct NewPage {
    base: String,
    origin: Origin,
    /// The templates with their tiles, if the form creates from one.
    templates: Vec<BuiltIn>,
    form: Form,
}

async fn new_page(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let origin = Origin::of(&request.visit);
    let mut form =
        origin.form().empty(&request, &origin.operation(&project), &origin.href(&project))?;
    form = with_defaults(form, origin);
    if origin == Origin::Dashboard {
        form = with_source(form, &request, &project).await?;
    }
    let refusal = (!DASHBOARD.may_create(&request, &project).await?)
        .then(|| "You may not create dashboards in this project.".to_owned());
    show_new(&request, &project, origin, form.refused_for(refusal)).await
}

async fn create(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let origin = Origin::of(&request.visit);
    let sent = origin.form().sent(&request, origin.operation(&project), &origin.href(&project))?;
    match sent.send(&request).await? {
        Outcome::Done(dashboard) => {
            let page = page_of(&DASHBOARDS.list(&project), &dashboard);
            finish(&page, "dashboard-created")
        }
        Outcome::Again(form) => show_new(&request, &project, origin, *form).await,
    }
}

async fn show_new(request: &SignedIn, project: &str, origin: Origin, mut form: Form) -> PageResult {
    let mut templates = Vec::new();
    match origin {
        Origin::Template => {
            // The API has no operation that lists the built-in templates.
            templates = built_in()?;
            form = with_templates(form, &templates);
        }
        Origin::Dashboard => form = with_dashboards(form, request, project).await?,
        Origin::Empty | Origin::Json => {}
    }
    let frame = DASHBOARDS.frame(request, project).await?;
    let status = form.status();
    let page = NewPage { base: DASHBOARDS.list(project), origin, templates, form };
    Ok(layout::page_with_status(&frame.titled("New dashboard"), &page, status)?)
}

/// Fills the form from the dashboard that the query names, if there is one that the session may view.
async fn with_source(form: Form, request: &SignedIn, project: &str) -> Result<Form> {
    let Ok(id) = request.visit.query("dashboard").parse::<u64>() else { return Ok(form) };
    let path = format!("/api/projects/{project}/dashboards/{id}/");
    let Some(source) = request.api.get_if_allowed::<Dashboard>(&path).await? else {
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
async fn with_dashboards(form: Form, request: &SignedIn, project: &str) -> Result<Form> {
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

/// The content that a new dashboard begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Empty,
    Template,
    Dashboard,
    Json,
}

const NAME: Input = Input::new("name").label("Name");
const DESCRIPTION: Input = Input::new("description").label("Description").area();
const TAGS: Input = Input::new("tags").label("Tags");
const PINNED: Input =
    Input::new("pinned").label("Pin it").hint("Lists show pinned dashboards first.");
const RESTRICTION: Input =
    Input::new("restriction_level").label("Who may edit").choices(RESTRICTIONS);

const EMPTY: FormSpec =
    FormSpec::create("Create", &[NAME.required(), DESCRIPTION, TAGS, PINNED, RESTRICTION]);

const FROM_TEMPLATE: FormSpec = FormSpec::create(
    "Create",
    &[
        Input::new("use_template").label("Template"),
        NAME.hint("Leave it empty to use the name of the template."),
        TAGS.hint("In addition to those of the template."),
        PINNED,
        RESTRICTION,
    ],
);

const COPY: FormSpec = FormSpec::create(
    "Duplicate",
    &[
        Input::new("use_dashboard").label("Dashboard"),
        Input::new("duplicate_tiles").label("Copy the insights and texts too").hint(
            "Otherwise both dashboards show the same ones, and a change of one shows on both.",
        ),
        NAME.required(),
        DESCRIPTION,
        TAGS,
        PINNED,
        RESTRICTION,
    ],
);

const FROM_JSON: FormSpec = FormSpec::create(
    "Create",
    &[Input::new("template").label("Template as JSON").hint(
        "An object with template_name, dashboard_description, dashboard_filters, tags and tiles.",
    )],
);

impl Origin {
    /// The origins with their names in the query and their labels.
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Empty, "empty", "Empty"),
        (Self::Template, "template", "From a template"),
        (Self::Dashboard, "dashboard", "As a copy"),
        (Self::Json, "json", "From JSON"),
    ];

    /// Reads the origin that the query names.
    fn of(visit: &Visit) -> Self {
        let sent = visit.query("from");
        let known = Self::ALL.iter().find(|(_, name, _)| *name == sent);
        known.map_or(Self::Empty, |(origin, ..)| *origin)
    }

    /// Returns the path of the page with the form.
    fn href(self, project: &str) -> String {
        let name = Self::ALL.iter().find(|(origin, ..)| *origin == self);
        let name = name.map_or("empty", |(_, name, _)| name);
        format!("/console/projects/{project}/dashboards/new/?from={name}")
    }

    const fn form(self) -> &'static FormSpec {
        match self {
            Self::Empty => &EMPTY,
            Self::Template => &FROM_TEMPLATE,
            Self::Dashboard => &COPY,
            Self::Json => &FROM_JSON,
        }
    }

    fn operation(self, project: &str) -> Operation {
        let id = match self {
            Self::Json => "dashboards_create_from_template_json_create",
            Self::Empty | Self::Template | Self::Dashboard => "dashboards_create",
        };
        Operation::new(id, [project])
    }
}

/// A template for the form with JSON.
const EXAMPLE: &str = include_str!("example.json");

/// Fills an empty form.
fn with_defaults(form: Form, origin: Origin) -> Form {
    let form = form.with_value("restriction_level", &EVERYONE_EDITS.into());
    match serde_json::from_str(EXAMPLE) {
        Ok(example) if origin == Origin::Json => form.with_value("template", &example),
        _ => form,
    }
}

/// Offers the templates in a form.
fn with_templates(form: Form, templates: &[BuiltIn]) -> Form {
    let choices = templates.iter().map(|template| Choice::new(template.key, template.name.clone()));
    form.with_choices("use_template", choices.collect())
}
