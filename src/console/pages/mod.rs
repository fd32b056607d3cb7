//! The pages behind the sign-in, and the files that all pages load.

mod activity;
mod batch_exports;
mod bulk;
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
mod rules;
mod shareable;

use axum::http::Method;

use crate::http::assets::VERSION;

use super::assets;
use super::headers::EmbeddedFile;
use prelude::*;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.public(Method::GET, "/console/assets/{asset}/", file);
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

/// A page with one form and nothing else.
#[derive(Template)]
#[template(path = "console/pages/form_page.html")]
struct FormPage {
    title: &'static str,
    /// The path of the list above the page, and its name.
    list: Option<(String, &'static str)>,
    /// The path of the object above the page, and its name.
    object: Option<(String, String)>,
    lede: &'static str,
    form: Form,
}

impl FormPage {
    fn new(title: &'static str, form: Form) -> Self {
        Self { title, list: None, object: None, lede: "", form }
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

    /// Adds a text below the title.
    fn with_lede(mut self, lede: &'static str) -> Self {
        self.lede = lede;
        self
    }

    /// Shows the page with the status of its form.
    async fn show(self, request: &SignedIn) -> PageResult {
        let frame = Frame::load(request).await?.titled(self.title).with_status(self.form.status);
        Ok(layout::page(&frame, &self)?)
    }
}

/// What pages say where people may look for the results of insights.
const NO_RESULTS: &str = "Steward stores the definitions of insights. It does not run them, so there are no results here.";

/// Returns the day of a time of the API.
fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
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
async fn file(visit: Visit) -> PageResult {
    let name = visit.parameter("asset");
    let mut response = assets::response(&name, visit.query.last(VERSION))?;
    response.extensions_mut().insert(EmbeddedFile);
    Ok(response)
}
