//! The pages behind the sign-in, and the files that all pages load.

mod activity;
mod batch_exports;
mod dashboards;
mod domains;
mod health;
mod home;
mod insights;
mod invites;
mod keys;
mod members;
mod object;
mod organization;
mod people;
mod prelude;
mod profile;
mod projects;
mod roles;
mod shareable;

use std::fmt::Display;

use askama::filters::HtmlSafe;

use crate::http;
use crate::http::assets::VERSION;

use super::assets;
use super::form::SubmittedForm;
use super::headers::EmbeddedFile;
use super::registry::PageWithFeedback;
use prelude::*;

pub(super) fn routes(pages: &mut Pages<'_>) {
    home::routes(pages);
    dashboards::routes(pages);
    insights::routes(pages);
    shareable::routes(pages);
    batch_exports::routes(pages);
    activity::routes(pages);
    members::routes(pages);
    invites::routes(pages);
    roles::routes(pages);
    domains::routes(pages);
    projects::routes(pages);
    organization::routes(pages);
    keys::routes(pages);
    profile::routes(pages);
    health::routes(pages);
}

/// Leads to a page with a notice.
fn finish(path: &str, notice: &'static str) -> PageResult {
    Ok(see_other(&with_notice(path, notice))?)
}

/// A page of forms and buttons, which is shown again if the request of one is refused.
type FormsPage = &'static dyn PageWithFeedback<Feedback>;

/// Sends a form. Leads to a page with a notice, or shows the page of the form again.
async fn submit(
    request: SignedIn,
    sent: SubmittedForm,
    done: &str,
    notice: &'static str,
    page: FormsPage,
) -> PageResult {
    match sent.send(&request).await? {
        Ok(_) => finish(done, notice),
        Err(form) => page.show(request, form.into()).await,
    }
}

/// Sends the request of a button. Leads to a page with a notice, or shows the page of the button again.
async fn press(
    request: SignedIn,
    write: Write,
    done: &str,
    notice: &'static str,
    page: FormsPage,
) -> PageResult {
    match request.api.attempt(&write).await? {
        Ok(_) => finish(done, notice),
        Err(refusal) => page.show(request, refusal.into()).await,
    }
}

/// A page with one form and nothing else.
#[derive(Template)]
#[template(path = "console/pages/form_page.html")]
struct FormPage {
    title: &'static str,
    /// The path of the list above the page, and its name.
    list: Option<(String, &'static str)>,
    /// The path of the object above the page, and its name.
    object: Option<(String, String)>,
    /// A button beside the title: its path and its text.
    action: Option<(String, &'static str)>,
    /// The text below the title.
    lede: &'static str,
    form: Form,
}

impl FormPage {
    fn new(title: &'static str, form: Form) -> Self {
        Self { title, list: None, object: None, action: None, lede: "", form }
    }

    /// Links to the list above the page.
    fn below(mut self, list: String, name: &'static str) -> Self {
        self.list = Some((list, name));
        self
    }

    /// Links to a dashboard above the page.
    fn of_dashboard(mut self, dashboard: &ObjectPath, name: String) -> Self {
        self.object = Some((dashboard.page(""), name));
        self.below(dashboard.list(), "Dashboards")
    }

    /// Shows the page with the status of its form.
    async fn show(self, request: &SignedIn) -> PageResult {
        Feedback::from(self.form.status).show(request, self.title, &self).await
    }
}

/// The maximum number of objects of one form, which is that of a page.
const MAX_OBJECTS: usize = 50;

/// The feedback of a page on a form for several objects.
#[derive(Default)]
struct BulkFeedback {
    /// The ids of the objects that were changed.
    done: Vec<String>,
    /// The ids of the objects that the API refused to change, each with the error.
    refused: Vec<(String, Error)>,
    /// Why the whole form was refused.
    refusal: Option<Error>,
    /// The form that undoes what was done.
    undo: Option<Undo>,
}

impl BulkFeedback {
    /// Adds the outcome of the request for one object.
    ///
    /// # Errors
    /// 401 if the session has ended; 500. The other requests are then not sent.
    fn add<T>(&mut self, id: String, outcome: Result<T>) -> Result<()> {
        match outcome {
            Ok(_) => self.done.push(id),
            Err(error) if matches!(error.status(), 401 | 500) => return Err(error),
            Err(error) => self.refused.push((id, error)),
        }
        Ok(())
    }

    /// Shows the refusal of the form in the frame of the page, and sets the page's status: an error if all requests were
    /// refused.
    fn on(&mut self, frame: Frame) -> Frame {
        let first = self.refused.first().filter(|_| self.done.is_empty());
        let status = first.map_or(StatusCode::OK, |(_, error)| status_of(error));
        frame.with_refusal(self.refusal.take()).with_status(status)
    }

    /// Returns the refusals for the page. `name` returns the name of an object.
    fn refusals(self, name: impl Fn(&str) -> String) -> Option<Refusals> {
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
struct Refusals {
    /// The number of objects that were changed.
    done: usize,
    /// The names of the objects that were not changed, each with the reason.
    refused: Vec<(String, String)>,
    /// The form that undoes what was done.
    undo: Option<Undo>,
}

/// The choices of the form that the browser has sent. A page that was only opened has none.
struct Chosen(http::form::Form);

impl Chosen {
    fn of(request: &SignedIn) -> Self {
        Self(request.visit.form.clone())
    }

    /// Whether the object with this id is selected.
    fn has(&self, id: impl Display) -> bool {
        let id = id.to_string();
        self.0.values("id").any(|chosen| chosen == id)
    }

    /// Returns the text of a field of the form.
    fn text<'f>(&'f self, field: &'f str) -> &'f str {
        self.0.value(field)
    }
}

/// What pages say where people may look for the results of insights.
const NO_RESULTS: &str = "Steward stores the definitions of insights. It does not run them, so there are no results here.";

/// Returns the day of a time of the API.
fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

/// A time of the API, as HTML. A script shows how long ago it was.
#[derive(Template)]
#[template(path = "console/pages/ago.html")]
struct Ago<'t> {
    time: &'t str,
}

impl HtmlSafe for Ago<'_> {}

/// Shows a time of the API.
const fn ago(time: &str) -> Ago<'_> {
    Ago { time }
}

/// Returns a time of the API for people: its day and minute in UTC. A script shows it in the reader's zone.
fn moment(time: &str) -> String {
    match (time.get(..10), time.get(11..16)) {
        (Some(day), Some(minute)) => format!("{day} {minute} UTC"),
        _ => time.to_owned(),
    }
}

/// Returns the beginning of a long text.
fn excerpt(text: &str) -> String {
    const MAX_EXCERPT: usize = 200;
    let mut start: String = text.chars().take(MAX_EXCERPT).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

/// Returns the style sheet, the script or the icons.
pub(super) async fn file(visit: Visit) -> PageResult {
    let name = visit.parameter("asset");
    let mut response = assets::response(&name, visit.query.last(VERSION))?;
    response.extensions_mut().insert(EmbeddedFile);
    Ok(response)
}
