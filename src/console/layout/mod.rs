//! The layouts of pages: the frame with the navigation, and cards without it.

mod command;
mod navigation;

use askama::{FastWritable, NO_VALUES, Template};
use axum::http::StatusCode;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::{Html, IntoResponse, Response};

use crate::base::error::{Error, Result};

use super::api::Operation;
use super::assets::icon;
use super::headers::{policy_with_style, status_of};
use super::visit::{SignedIn, Visit};
use super::words::capitalized;
use navigation::{Account, Group, Tenant};

pub(crate) use command::{Command, curl, quote};

#[derive(Template)]
#[template(path = "console/layout/frame.html")]
struct FramePage<'p> {
    frame: &'p Frame,
    /// A style sheet, without user input.
    style: &'p str,
    /// The HTML of the content.
    main: String,
}

/// Returns a page with its frame.
pub(super) fn page(frame: &Frame, content: &dyn FastWritable) -> Result<Response> {
    page_with_style(frame, content, "")
}

/// Returns a page with its frame and a style sheet of its own, which must not contain user input.
pub(super) fn page_with_style(
    frame: &Frame,
    content: &dyn FastWritable,
    style: &str,
) -> Result<Response> {
    let page = FramePage { frame, style, main: html(content)? };
    let mut response = Html(page.render().map_err(Error::internal)?).into_response();
    *response.status_mut() = frame.refusal.as_ref().map_or(frame.status, status_of);
    if !style.is_empty() {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy_with_style(style)?);
    }
    Ok(response)
}

/// Renders a content.
pub(crate) fn html(content: &dyn FastWritable) -> Result<String> {
    let mut html = String::new();
    content.write_into(&mut html, NO_VALUES).map_err(Error::internal)?;
    Ok(html)
}

/// A page without a frame: a card with one thing to do.
#[derive(Template)]
#[template(path = "console/layout/card.html")]
struct Card<'p> {
    title: &'p str,
    /// The HTML of the content.
    main: String,
}

/// Returns a page without a frame.
pub(super) fn card(title: &str, content: &dyn FastWritable) -> Result<Html<String>> {
    let card = Card { title, main: html(content)? };
    card.render().map(Html).map_err(Error::internal)
}

/// The frame of a page.
pub(super) struct Frame {
    /// The title of the page.
    pub(super) title: String,
    account: Account,
    tenant: Tenant,
    /// The links to pages that the session may read.
    pub(super) groups: Vec<Group>,
    may_create_organization: bool,
    /// The result of the form that led to the page.
    notice: Option<String>,
    undo: Option<Undo>,
    /// Why an action was refused.
    refusal: Option<Error>,
    /// The status of the page without a refusal.
    status: StatusCode,
    /// When the session ends if no other page is opened.
    ends_at: String,
}

/// A form beside the notice that undoes what was done.
pub(super) struct Undo {
    pub(super) action: String,
    pub(super) fields: Vec<(&'static str, String)>,
}

impl Frame {
    /// Loads the frame of a page.
    ///
    /// # Errors
    /// The errors of the API, except those for what the session may not see: the frame leaves that out.
    pub(super) async fn load(request: &SignedIn) -> Result<Self> {
        let account = Account::load(&request.api).await?;
        let tenant = Tenant::load(&request.api, &account, &request.visit).await?;
        let groups = navigation::groups(request, &tenant).await?;
        let create = Operation::new("organizations_create", []);
        Ok(Self {
            title: String::new(),
            account,
            tenant,
            groups,
            may_create_organization: request.api.may(&create).await?,
            notice: notice_of(&request.visit),
            undo: None,
            refusal: None,
            status: StatusCode::OK,
            ends_at: request.session.ends_at.to_string(),
        })
    }

    /// Sets the title of the page.
    pub(super) fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Shows why an action of the page was refused. The page then has the status of the error.
    pub(super) fn with_refusal(mut self, refusal: Option<Error>) -> Self {
        self.refusal = refusal;
        self
    }

    /// Sets the status of the page, for a form that failed. That of a refusal precedes it.
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Returns the id of the project.
    pub(super) fn project(&self) -> Option<&str> {
        self.tenant.project.as_ref().map(|project| project.id.as_str())
    }

    /// Returns the ids and names of the projects in the switcher.
    pub(super) fn projects(&self) -> Vec<(String, String)> {
        let projects = self.tenant.projects.iter();
        projects.map(|project| (project.id.clone(), project.name.clone())).collect()
    }

    /// Returns the id of the organization.
    pub(super) fn organization(&self) -> Option<&str> {
        self.tenant.organization.as_ref().map(|organization| organization.id.as_str())
    }

    /// Offers to undo what the notice says.
    pub(super) fn with_undo(mut self, undo: Option<Undo>) -> Self {
        self.undo = undo;
        self
    }
}

/// The parameter of the query that names the notice: an object and a verb, such as `dashboard-created`.
const DONE: &str = "done";
/// The parameter with the number of objects, if there are several.
const COUNT: &str = "count";

/// The objects of notices, as the query names them. A link can only choose among these words.
const OBJECTS: &str = "access arrangement change collaborator dashboard domain export insight invite key level link member \
                       organization page profile project role rule settings text tile token";

/// The objects whose name says more than their name in the query.
const LONGER: [(&str, &str); 4] = [
    ("export", "batch export"),
    ("key", "API key"),
    ("link", "public link"),
    ("page", "public page"),
];

/// The verbs of notices.
const VERBS: &str = "added created deleted disabled duplicated enabled moved paused removed replaced restored reverted \
                     revoked saved unpaused verified";

/// Another notice, with its name in the query.
const LEFT: (&str, &str) = ("left", "You have left the organization.");

/// The largest number of objects that a notice names. A form changes fewer.
const MAX_COUNT: usize = 1000;

/// Returns the notice that the page's query names.
fn notice_of(visit: &Visit) -> Option<String> {
    let count = visit.query(COUNT).parse().ok().filter(|count| (1..=MAX_COUNT).contains(count));
    notice(visit.query(DONE), count.unwrap_or(1))
}

fn notice(name: &str, count: usize) -> Option<String> {
    if name == LEFT.0 {
        return Some(LEFT.1.to_owned());
    }
    let (object, verb) = name.split_once('-')?;
    let object = OBJECTS.split(' ').find(|known| *known == object)?;
    let verb = VERBS.split(' ').find(|known| *known == verb)?;
    let object =
        LONGER.iter().find(|(known, _)| *known == object).map_or(object, |(_, name)| *name);
    Some(if count == 1 || object.ends_with('s') {
        format!("{} {verb}.", capitalized(object))
    } else {
        format!("{count} {object}s {verb}.")
    })
}

/// Returns the path of a page that shows a notice.
pub(super) fn with_notice(path: &str, name: &'static str) -> String {
    with_notice_of(path, name, 1)
}

/// Returns the path of a page that shows a notice about this number of objects.
pub(super) fn with_notice_of(path: &str, name: &'static str, count: usize) -> String {
    debug_assert!(notice(name, count).is_some(), "an unknown notice: {name}");
    let separator = if path.contains('?') { '&' } else { '?' };
    let count = if count == 1 { String::new() } else { format!("&{COUNT}={count}") };
    format!("{path}{separator}{DONE}={name}{count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notice_names_the_object_and_the_number() {
        assert_eq!(notice("dashboard-created", 1).as_deref(), Some("Dashboard created."));
        assert_eq!(notice("export-paused", 3).as_deref(), Some("3 batch exports paused."));
        assert_eq!(notice("left", 1).as_deref(), Some("You have left the organization."));
        for unknown in ["", "created", "dashboard", "dashboard-evil", "evil-created", "a-b-c"] {
            assert_eq!(notice(unknown, 1), None, "{unknown}");
        }
        assert_eq!(with_notice("/a", "key-saved"), "/a?done=key-saved");
        assert_eq!(with_notice_of("/a?b", "key-saved", 2), "/a?b&done=key-saved&count=2");
    }
}
