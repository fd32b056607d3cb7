//! A page that asks before something is lost.

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::base::error::{Error, Result};
use crate::console::api::Write;
use crate::console::assets::icon;
use crate::console::failure::Failure;
use crate::console::headers::{see_other, status_of};
use crate::console::layout::Command;
use crate::console::registry::PageResult;
use crate::console::visit::SignedIn;

use super::{Feedback, ONCE, once_key};

/// The field with the typed name.
const NAME: &str = "name";

/// A question before an action that cannot be undone, or only with effort.
#[derive(Template)]
#[template(path = "console/form/confirm.html")]
pub(in crate::console) struct Confirm {
    /// The question, which is also the title.
    question: String,
    /// The consequences of the action.
    text: String,
    /// A text that has to be typed before the action, for example the name of a project.
    name: Option<String>,
    /// The label of the button.
    submit: String,
    /// The URL that the browser sends the form to: that of the question.
    action: String,
    /// The page that the user came from.
    back: String,
    write: Write,
    once: String,
    typed: String,
    error: Option<String>,
    command: Option<Command>,
    /// A box beside the question.
    pub(in crate::console) option: Option<ConfirmOption>,
    /// Why the session cannot do it, which stands in place of the form.
    pub(in crate::console) refusal: Option<String>,
}

/// A box beside the question, for more that the action may do.
pub(in crate::console) struct ConfirmOption {
    pub(in crate::console) name: &'static str,
    pub(in crate::console) label: &'static str,
    pub(in crate::console) hint: &'static str,
    pub(in crate::console) is_checked: bool,
}

impl Confirm {
    /// Asks a question before `write` is sent. `text` names the consequences, and `submit` is the label of the button.
    pub(in crate::console) fn new(question: &str, text: &str, submit: &str, write: Write) -> Self {
        Self {
            question: question.to_owned(),
            text: text.to_owned(),
            name: None,
            submit: submit.to_owned(),
            action: String::new(),
            back: String::new(),
            write,
            once: once_key(),
            typed: String::new(),
            error: None,
            command: None,
            option: None,
            refusal: None,
        }
    }

    /// Requires that this text is typed before the action.
    pub(in crate::console) fn by_name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// Answers a GET with the question. Answers a POST by sending the request, or with the question and the error. `back` is
    /// the page that the user came from, and `done` the page after success.
    ///
    /// # Errors
    /// 401 if the session has ended, errors of the service, and those of [`Feedback::show`].
    pub(in crate::console) async fn respond(
        mut self,
        request: &SignedIn,
        back: &str,
        done: &str,
    ) -> PageResult {
        let mut status = StatusCode::OK;
        request.visit.head.uri.path().clone_into(&mut self.action);
        back.clone_into(&mut self.back);
        if request.visit.sends_form() {
            request.visit.form.value(NAME).clone_into(&mut self.typed);
            if self.name.as_deref().is_some_and(|name| !is_name(&self.typed, name)) {
                status = StatusCode::BAD_REQUEST;
                self.error = Some("This is not the name.".to_owned());
            } else {
                match self.send(request).await {
                    Ok(()) => return Ok(see_other(done)?),
                    Err(error) if matches!(error.status(), 401 | 500) => return Err(error.into()),
                    Err(error) => {
                        status = status_of(&error);
                        self.error = Some(error.detail().to_owned());
                    }
                }
            }
        }
        self.command = Some(Command::write(request, &self.write)?);
        Feedback::from(status).show(request, &self.question, &self).await
    }

    async fn send(&self, request: &SignedIn) -> Result<()> {
        let write = self.write.clone().once(request.visit.form.value(ONCE));
        let (method, _) = write.operation.target(&request.api.table)?;
        match request.api.write(&write).await {
            // A form that was sent twice.
            Err(error) if error.status() == 404 && method == Method::DELETE => Ok(()),
            result => result.map(drop),
        }
    }
}

/// Returns the failure of a question about an object that cannot be read. If the object is gone and a browser sends the form of
/// the question, the same form was sent before: the failure leads to the page after success.
pub(in crate::console) fn answered_before(request: &SignedIn, error: Error, done: &str) -> Failure {
    let is_done = error.status() == 404 && request.visit.sends_form();
    Failure { instead: is_done.then(|| done.to_owned()), ..Failure::from(error) }
}

/// Returns whether a text is a name as browsers show it, or as they let it be pasted: a page shows white space of any kind
/// and length as one space, and a field for one line has no line breaks.
fn is_name(typed: &str, name: &str) -> bool {
    let pasted = name.replace(['\r', '\n'], "");
    [name, &pasted].iter().any(|name| typed.split_whitespace().eq(name.split_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_typed_as_the_page_shows_it() {
        for (typed, name, expected) in [
            ("Web", "Web", true),
            (" Web ", "Web", true),
            ("web", "Web", false),
            ("My web", "My  web", true),
            ("My  web", "My  web", true),
            ("My web", "My\u{a0}\tweb", true),
            ("My web", "My\nweb", true),
            ("Myweb", "My\r\nweb", true),
            ("Myweb", "My web", false),
            ("", "Web", false),
        ] {
            assert_eq!(is_name(typed, name), expected, "{typed:?} {name:?}");
        }
    }
}
