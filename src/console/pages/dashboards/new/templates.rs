//! The built-in templates. The API has no operation that lists them, so they are read from the program, whose constants they
//! are. No other module of the console names them.

use crate::console::form::{Choice, Form};

pub(super) use crate::resources::dashboards::templates::{BuiltIn, built_in};

/// Offers the templates in a form.
pub(super) fn offer(form: Form, templates: &[BuiltIn]) -> Form {
    let choices = templates.iter().map(|template| Choice::new(template.key, template.name.clone()));
    form.with_choices("use_template", choices.collect())
}
