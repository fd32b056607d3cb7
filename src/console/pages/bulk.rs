//! One action on several objects: the choices in its form, and a request to the API for each of them.

use std::fmt::Display;

use crate::http::form::Form;

use super::prelude::*;

/// The maximum number of objects of one form, which is that of a page.
pub(super) const MAX_OBJECTS: usize = 50;

/// The feedback of a page on a form for several objects.
#[derive(Default)]
pub(super) struct BulkFeedback {
    /// The ids of the objects that were changed.
    pub(super) done: Vec<String>,
    /// The ids of the objects that the API refused to change, each with the error.
    refused: Vec<(String, Error)>,
    /// Why the whole form was refused.
    refusal: Option<Error>,
    /// The form that undoes what was done, although the rest was refused.
    pub(super) undo: Option<Undo>,
}

impl BulkFeedback {
    /// Adds the outcome of the request for one object.
    ///
    /// # Errors
    /// 401 if the session has ended; 500. The other requests are then not sent.
    pub(super) fn add<T>(&mut self, id: String, outcome: Result<T>) -> Result<()> {
        match outcome {
            Ok(_) => self.done.push(id),
            Err(error) if matches!(error.status(), 401 | 500) => return Err(error),
            Err(error) => self.refused.push((id, error)),
        }
        Ok(())
    }

    pub(super) const fn has_refusals(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Shows the refusal of the form in the frame of the page, and sets the page's status: an error if all requests were
    /// refused.
    pub(super) fn on(&mut self, frame: Frame) -> Frame {
        let first = self.refused.first().filter(|_| self.done.is_empty());
        let status = first.map_or(StatusCode::OK, |(_, error)| status_of(error));
        frame.with_refusal(self.refusal.take()).with_status(status)
    }

    /// Returns the refusals for the page. `name` returns the name of an object.
    pub(super) fn refusals(self, name: impl Fn(&str) -> String) -> Option<Refusals> {
        let refused = self.refused.iter().map(|(id, error)| (name(id), error.detail().to_owned()));
        let refused: Vec<_> = refused.collect();
        let (done, undo) = (self.done.len(), self.undo);
        (!refused.is_empty()).then_some(Refusals { done, refused, undo })
    }
}

impl From<Error> for BulkFeedback {
    fn from(refusal: Error) -> Self {
        Self { refusal: Some(refusal), ..Self::default() }
    }
}

/// The objects that were not changed, and why.
#[derive(Template)]
#[template(path = "console/pages/refusals.html")]
pub(super) struct Refusals {
    /// The number of objects that were changed.
    done: usize,
    /// The names of the objects that were not changed, each with the reason.
    refused: Vec<(String, String)>,
    /// The form that undoes what was done.
    undo: Option<Undo>,
}

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
