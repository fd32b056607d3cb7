//! The page that shows the requests of a form as commands, instead of sending them.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::error::Result;
use crate::http::form::Form;
use crate::http::routes::RouteTable;

use super::api::Recorder;
use super::assets::icon;
use super::failure::Failure;
use super::layout::{Command, card};
use super::next::Next;
use super::visit::{SHOW, SignedIn};

/// A form that asks for its command.
pub(super) struct AsCommand {
    recorder: Recorder,
    base_url: String,
    table: RouteTable,
    action: Next,
    form: Form,
}

impl AsCommand {
    /// Returns `None` for a request that does not ask for a command.
    pub(super) fn of(request: &SignedIn) -> Option<Self> {
        let visit = &request.visit;
        Some(Self {
            recorder: request.api.recorder()?,
            base_url: visit.base_url().into_owned(),
            table: request.api.table().clone(),
            action: Next::parse(visit.path_and_query()),
            form: visit.form.clone(),
        })
    }

    /// Replaces the response of the page by the commands of its requests. The response remains if the form has to be
    /// corrected first, or if it shows something else.
    ///
    /// # Errors
    /// The error of the page.
    pub(super) fn replace(&self, response: Result<Response, Failure>) -> Result<Response, Failure> {
        let writes = self.recorder.writes();
        let is_done = response.as_ref().is_ok_and(|page| page.status() == StatusCode::SEE_OTHER);
        if writes.is_empty() && !is_done {
            return response;
        }
        let commands = writes.iter().map(|write| Command::of(&self.base_url, &self.table, write));
        let fields = self.form.fields().filter(|(name, _)| *name != SHOW);
        let page = AsCommandPage {
            commands: commands.collect::<Result<_>>()?,
            action: &self.action,
            fields: fields.collect(),
        };
        Ok(card("As a command", &page)?.into_response())
    }
}

#[derive(Template)]
#[template(path = "console/as_command.html")]
struct AsCommandPage<'f> {
    /// One for each request. None if the form would send no request.
    commands: Vec<Command>,
    /// Where the browser sends the form.
    action: &'f Next,
    fields: Vec<(&'f str, &'f str)>,
}
