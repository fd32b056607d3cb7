//! What a page shows about a form or a button that was sent.

use askama::Template;
use axum::http::StatusCode;

use crate::base::error::Error;
use crate::console::headers::status_of;
use crate::console::layout::{self, Frame};
use crate::console::registry::PageResult;
use crate::console::visit::SignedIn;

use super::Form;

/// The feedback of a page on a form or a button that was sent. A page that was only opened has none.
#[derive(Default)]
pub(in crate::console) struct Feedback {
    /// The form that has to be corrected.
    form: Option<Form>,
    /// Why the request of a button was refused.
    pub(in crate::console) refusal: Option<Error>,
    status: StatusCode,
}

impl Feedback {
    /// Returns whether a form has to be corrected.
    pub(in crate::console) const fn has_form(&self) -> bool {
        self.form.is_some()
    }

    /// Returns the form with this id, if it was sent.
    pub(in crate::console) fn take(&mut self, id: &str) -> Option<Form> {
        self.form.take_if(|form| form.spec.id == id)
    }

    /// Shows the refusal in the frame of the page, and sets the page's status.
    pub(in crate::console) fn on(self, frame: Frame) -> Frame {
        frame.with_refusal(self.refusal).with_status(self.status)
    }

    /// Shows a page with the feedback in its frame.
    ///
    /// # Errors
    /// As [`Frame::load`].
    pub(in crate::console) async fn show(
        self,
        request: &SignedIn,
        title: impl Into<String>,
        page: &impl Template,
    ) -> PageResult {
        let frame = Frame::load(request).await?.titled(title);
        Ok(layout::page(&self.on(frame), page)?)
    }
}

impl From<Box<Form>> for Feedback {
    fn from(form: Box<Form>) -> Self {
        Self { status: form.status, form: Some(*form), refusal: None }
    }
}

impl From<Error> for Feedback {
    fn from(refusal: Error) -> Self {
        Self { form: None, status: status_of(&refusal), refusal: Some(refusal) }
    }
}
