//! The forms, one for each origin of a new dashboard.

use crate::console::form::{Form, FormSpec, Input};
use crate::console::levels::{EVERYONE_EDITS, RESTRICTIONS};
use crate::console::operation::Operation;
use crate::console::visit::Visit;

/// The content that a new dashboard begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
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
    pub(super) const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Empty, "empty", "Empty"),
        (Self::Template, "template", "From a template"),
        (Self::Dashboard, "dashboard", "As a copy"),
        (Self::Json, "json", "From JSON"),
    ];

    /// Reads the origin that the query names.
    pub(super) fn of(visit: &Visit) -> Self {
        let sent = visit.query("from");
        let known = Self::ALL.iter().find(|(_, name, _)| *name == sent);
        known.map_or(Self::Empty, |(origin, ..)| *origin)
    }

    /// Returns the path of the page with the form.
    pub(super) fn href(self, project: &str) -> String {
        let name = Self::ALL.iter().find(|(origin, ..)| *origin == self);
        let name = name.map_or("empty", |(_, name, _)| name);
        format!("/console/projects/{project}/dashboards/new/?from={name}")
    }

    pub(super) const fn form(self) -> &'static FormSpec {
        match self {
            Self::Empty => &EMPTY,
            Self::Template => &FROM_TEMPLATE,
            Self::Dashboard => &COPY,
            Self::Json => &FROM_JSON,
        }
    }

    pub(super) fn operation(self, project: &str) -> Operation {
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
pub(super) fn with_defaults(form: Form, origin: Origin) -> Form {
    let form = form.with_value("restriction_level", &EVERYONE_EDITS.into());
    match serde_json::from_str(EXAMPLE) {
        Ok(example) if origin == Origin::Json => form.with_value("template", &example),
        _ => form,
    }
}
