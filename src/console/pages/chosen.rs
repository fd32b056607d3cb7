//! The choices in a form for several objects. A page that refuses the form shows them again.

use std::fmt::Display;

use crate::console::visit::SignedIn;
use crate::http::form::Form;

/// The choices of the form that the browser has sent. A page that was only opened has none.
pub(super) struct Chosen(Form);

impl Chosen {
    pub(super) fn of(request: &SignedIn) -> Self {
        Self(request.visit.form.clone())
    }

    /// Whether the object with this id is selected.
    pub(super) fn has(&self, id: impl Display) -> bool {
        let id = id.to_string();
        self.0.values("id").any(|chosen| chosen == id)
    }

    /// Returns the text of a field of the form.
    pub(super) fn text<'f>(&'f self, field: &'f str) -> &'f str {
        self.0.value(field)
    }
}
