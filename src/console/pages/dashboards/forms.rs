//! The forms of a dashboard: the change of one, and a new one, which is empty, from a template, a copy, or from JSON. Also
//! what pages read about a dashboard before they show a form.

use crate::console::model::dashboard_name;
use crate::console::pages::prelude::*;
use crate::console::pages::shareable::DASHBOARD;
use crate::console::words::{EVERYONE_EDITS, RESTRICTIONS};
use crate::resources::dashboards::templates::{BuiltIn, built_in};

use super::dashboard_choices;

const FORM: FormSpec = FormSpec::change(
    "Save",
    &[
        NAME,
        DESCRIPTION,
        TAGS,
        PINNED,
        Input::new("filters")
            .label("Filters")
            .hint("JSON that applies to every tile. An empty object changes nothing."),
        Input::new("variables")
            .label("Variables")
            .hint("JSON with values for the queries of tiles. An empty object changes nothing."),
    ],
);

pub(super) async fn edit(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let (update, action) = (object.operation(DASHBOARD.update), object.page("edit/"));
    let (form, name) = if request.visit.sends_form() {
        match FORM.sent(&request, update, &action)?.send(&request).await? {
            Ok(_) => return finish(&object.page(""), "dashboard-saved"),
            Err(form) => (*form, name_of(&request, &object).await?),
        }
    } else {
        let dashboard = request.api.get_versioned(&object.api("")).await?;
        let form = FORM.filled(&request, &update, &action, &dashboard)?;
        let refusal = DASHBOARD.refusal_of(&request, &object, &dashboard.body).await?;
        (form.refused_for(refusal), name_in(&dashboard.body))
    };
    let page = FormPage::new("Edit the dashboard", form).of_dashboard(&object, name);
    page.show(&request).await
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
    let found: Option<Value> = request.api.get(&dashboard.api("")).await.read_if_allowed()?;
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
    let refusal = DASHBOARD.refusal_of(request, object, &found.body).await?;
    Ok((name_in(&found.body), found.version, refusal))
}

#[derive(Template)]
#[template(path = "console/pages/dashboards/new.html")]
struct NewPage {
    base: String,
    origins: &'static [Origin],
    origin: &'static Origin,
    /// The templates with their tiles, if the form creates from one.
    templates: Vec<BuiltIn>,
    form: Form,
}

pub(super) async fn new(request: SignedIn) -> PageResult {
    let project = request.visit.project_id()?;
    let base = DASHBOARDS.list(&project);
    let origin = Origin::of(&request.visit);
    let (create, action) = (Operation::new(origin.operation, [&project]), origin.href(&project));
    let mut form = if request.visit.sends_form() {
        match origin.form.sent(&request, create, &action)?.send(&request).await? {
            Ok(created) => return finish(&page_of(&base, &created), "dashboard-created"),
            Err(form) => *form,
        }
    } else {
        let form = origin.form.empty(&request, &create, &action)?;
        let mut form = form.with_value("restriction_level", &EVERYONE_EDITS.into());
        if origin.name == JSON
            && let Ok(example) = serde_json::from_str(EXAMPLE)
        {
            form = form.with_value("template", &example);
        }
        if origin.name == COPY {
            form = with_source(form, &request, &project).await?;
        }
        let refusal = (!DASHBOARD.may_create(&request, &project).await?)
            .then(|| "You may not create dashboards in this project.".to_owned());
        form.refused_for(refusal)
    };
    let mut templates = Vec::new();
    match origin.name {
        TEMPLATE => {
            // The API has no operation that lists the built-in templates.
            templates = built_in()?;
            let choices = templates.iter().map(|one| Choice::new(one.key, one.name.clone()));
            form = form.with_choices("use_template", choices.collect());
        }
        COPY => form = with_dashboards(form, &request, &project).await?,
        _ => {}
    }
    let page = NewPage { base, origins: &ORIGINS, origin, templates, form };
    Feedback::from(page.form.status).show(&request, "New dashboard", &page).await
}

/// Fills the form from the dashboard that the query names, if there is one that the session may view.
async fn with_source(form: Form, request: &SignedIn, project: &str) -> Result<Form> {
    let Ok(id) = request.visit.query("dashboard").parse::<u64>() else { return Ok(form) };
    let path = format!("/api/projects/{project}/dashboards/{id}/");
    let Some(source) = request.api.get(&path).await.read_if_allowed::<Dashboard>()? else {
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

const NAME: Input = Input::new("name").label("Name");
const DESCRIPTION: Input = Input::new("description").label("Description").shape(Shape::Area);
const TAGS: Input = Input::new("tags").label("Tags");
const PINNED: Input =
    Input::new("pinned").label("Pin it").hint("Lists show pinned dashboards first.");
const RESTRICTION: Input =
    Input::new("restriction_level").label("Who may edit").choices(RESTRICTIONS);

/// The content that a new dashboard begins with.
struct Origin {
    /// The name in the query.
    name: &'static str,
    label: &'static str,
    operation: &'static str,
    form: FormSpec,
}

const TEMPLATE: &str = "template";
const COPY: &str = "dashboard";
const JSON: &str = "json";

/// All origins. The first one is that of a page whose query names none.
static ORIGINS: [Origin; 4] = [
    Origin {
        name: "empty",
        label: "Empty",
        operation: DASHBOARD.create,
        form: FormSpec::create(
            "Create",
            &[NAME.required(), DESCRIPTION, TAGS, PINNED, RESTRICTION],
        ),
    },
    Origin {
        name: TEMPLATE,
        label: "From a template",
        operation: DASHBOARD.create,
        form: FormSpec::create(
            "Create",
            &[
                Input::new("use_template").label("Template"),
                NAME.hint("Leave it empty to use the name of the template."),
                TAGS.hint("In addition to those of the template."),
                PINNED,
                RESTRICTION,
            ],
        ),
    },
    Origin {
        name: COPY,
        label: "As a copy",
        operation: DASHBOARD.create,
        form: FormSpec::create(
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
        ),
    },
    Origin {
        name: JSON,
        label: "From JSON",
        operation: "dashboards_create_from_template_json_create",
        form: FormSpec::create(
            "Create",
            &[Input::new("template").label("Template as JSON").hint(
                "An object with template_name, dashboard_description, dashboard_filters, tags and tiles.",
            )],
        ),
    },
];

impl Origin {
    /// Reads the origin that the query names.
    fn of(visit: &Visit) -> &'static Self {
        let [default, ..] = &ORIGINS;
        let sent = visit.query("from");
        ORIGINS.iter().find(|origin| origin.name == sent).unwrap_or(default)
    }

    /// Returns the path of the page with the form.
    fn href(&self, project: &str) -> String {
        format!("{}new/?from={}", DASHBOARDS.list(project), self.name)
    }
}

/// A template for the form with JSON.
const EXAMPLE: &str = include_str!("example.json");
