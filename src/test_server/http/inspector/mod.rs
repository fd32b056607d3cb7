//! The inspector: what the control plane returns, as pages for a browser. It changes nothing: what would is shown as the command
//! that does it.

mod lists;
mod requests;
mod state;

use askama::{FastWritable, Template};
use axum::http::Method;
use axum::response::{Html, IntoResponse, Response};

use crate::base::error::{Error, Result};
use crate::console::assets::{Icon, icon};
use crate::console::layout::{html, quote};
use crate::console::registry::public_page;
use crate::console::urls::Query;
use crate::console::visit::Visit;
use crate::http::routes::Routes;
use crate::test_server::clock;

use super::Control;

/// The first page, and the path below which the others are.
pub(super) const ROOT: &str = "/_test/inspector/";
const FAULTS: &str = "/_test/inspector/faults/";
const MAILS: &str = "/_test/inspector/mails/";
const STATE: &str = "/_test/inspector/state/";
const PEOPLE: &str = "/_test/inspector/people/";

/// The number of objects on a page.
const PAGE_SIZE: usize = 50;

/// The pages that each page leads to.
const LINKS: [(&str, &str, Icon); 5] = [
    (ROOT, "Requests", icon("history")),
    (FAULTS, "Faults", icon("triangle-alert")),
    (MAILS, "Mails", icon("mail")),
    (STATE, "State", icon("server")),
    (PEOPLE, "People", icon("users")),
];

/// Adds the pages.
pub(super) fn routes(routes: &mut Routes) {
    public_page(routes, Method::GET, ROOT, &requests::list);
    public_page(routes, Method::GET, "/_test/inspector/requests/{number}/", &requests::one);
    public_page(routes, Method::GET, FAULTS, &lists::faults);
    public_page(routes, Method::GET, MAILS, &lists::mails);
    public_page(routes, Method::GET, STATE, &state::state);
    public_page(routes, Method::GET, PEOPLE, &lists::people);
}

/// Returns what a page shows.
fn control(visit: &Visit) -> Result<&Control> {
    let control = visit.head.extensions.get();
    control.ok_or_else(|| Error::internal("a page of the inspector lacks the control plane"))
}

/// The frame of all pages.
#[derive(Template)]
#[template(path = "test_server/http/inspector/frame.html")]
struct Frame<'p> {
    title: &'p str,
    /// The path of the link that is current.
    current: &'static str,
    /// The time of the service, and whether its clock stands.
    now: String,
    stands: bool,
    /// The HTML of the content.
    main: String,
}

/// Returns a page. `current` is the path of its link.
fn page(
    control: &Control,
    title: &str,
    current: &'static str,
    content: &dyn FastWritable,
) -> Result<Response> {
    let clock = clock::show(&control.stage.environment().clock);
    let (now, stands, main) = (clock.now.to_string(), clock.frozen, html(content)?);
    let frame = Frame { title, current, now, stands, main };
    Ok(Html(frame.render().map_err(Error::internal)?).into_response())
}

/// Commands, each with what it does.
#[derive(Template)]
#[template(path = "test_server/http/inspector/commands.html")]
struct Commands {
    /// With what their ids begin.
    of: &'static str,
    list: Vec<(&'static str, String)>,
}

impl Commands {
    fn new(of: &'static str, list: Vec<(&'static str, String)>) -> Self {
        Self { of, list }
    }
}

/// A call of the control plane as a command.
struct Call<'c> {
    control: &'c Control,
    method: &'static str,
    /// The path below that of the control plane.
    path: String,
    body: Option<String>,
}

impl Control {
    fn call(&self, method: &'static str, path: impl Into<String>) -> Call<'_> {
        Call { control: self, method, path: path.into(), body: None }
    }
}

impl Call<'_> {
    fn with(mut self, body: impl Into<String>) -> Self {
        self.body = Some(body.into());
        self
    }

    fn filtered(mut self, query: &Query) -> Self {
        self.path = query.url(&self.path);
        self
    }

    /// Returns the command for a POSIX shell.
    fn command(self) -> String {
        let Self { control, method, path, body } = self;
        let implied = if body.is_some() { "POST" } else { "GET" };
        let method = if method == implied { String::new() } else { format!(" -X {method}") };
        let body = body.map_or_else(String::new, |body| format!(" --json {}", quote(&body)));
        format!("curl{method}{body} {}", quote(&format!("{}{path}", control.ready.test_url)))
    }
}
