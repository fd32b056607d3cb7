//! The frame of every page: the navigation, the switchers of organization and project, and the palette.

mod account;
mod command;

use askama::Template;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::{Html, IntoResponse, Response};

use crate::error::{Error, Result};

use super::assets::{Icon, icon};
use super::headers::policy_with_style;
use super::visit::SignedIn;

pub(super) use account::Place;
pub(super) use command::Command;

use account::{Account, Tenant};

/// The part of the console that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Dashboards,
    Sessions,
    Health,
    Other,
}

/// A link of the navigation.
pub(super) struct Link {
    pub(super) icon: Icon,
    pub(super) text: &'static str,
    pub(super) href: String,
    pub(super) is_current: bool,
}

/// A group of links under a heading.
pub(super) struct Group {
    pub(super) heading: String,
    pub(super) links: Vec<Link>,
}

/// A place that the palette leads to.
pub(super) struct Target {
    pub(super) icon: Icon,
    pub(super) text: String,
    /// What kind of place it is.
    pub(super) kind: &'static str,
    pub(super) href: String,
}

/// The frame of a page.
pub(super) struct Frame {
    /// The title of the page.
    pub(super) title: String,
    account: Account,
    tenant: Tenant,
    groups: Vec<Group>,
    /// Places that the palette leads to besides pages, projects and organizations.
    targets: Vec<Target>,
}

impl Frame {
    /// Loads the frame of a page. `project` is the project in the page's path.
    ///
    /// # Errors
    /// The errors of the API, except those for what the session may not see: the frame leaves that out.
    pub(super) async fn load(
        request: &SignedIn,
        section: Section,
        project: Option<&str>,
    ) -> Result<Self> {
        let account = Account::load(&request.api).await?;
        let tenant = Tenant::load(&request.api, &account, project).await?;
        let groups = groups(&tenant, section, request.session.is_operator());
        Ok(Self { title: String::new(), account, tenant, groups, targets: Vec::new() })
    }

    /// Sets the title of the page.
    pub(super) fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Adds places to the palette.
    pub(super) fn with_targets(mut self, targets: impl IntoIterator<Item = Target>) -> Self {
        self.targets.extend(targets);
        self
    }

    /// Returns the path of the current project's dashboards.
    pub(super) fn dashboards(&self) -> Option<String> {
        self.tenant.project.as_ref().map(|project| project.href.clone())
    }

    /// Returns what the palette lists: pages, projects, organizations, then what the page has added.
    fn palette(&self) -> Vec<Target> {
        let pages = self.groups.iter().flat_map(|group| &group.links).map(|link| Target {
            icon: link.icon,
            text: link.text.to_owned(),
            kind: "page",
            href: link.href.clone(),
        });
        let place = |symbol: Icon, kind: &'static str| {
            move |place: &Place| Target {
                icon: symbol,
                text: place.name.clone(),
                kind,
                href: place.href.clone(),
            }
        };
        let projects = self.tenant.projects.iter().map(place(icon("folder"), "project"));
        let organizations = &self.account.organizations;
        let organizations = organizations.iter().map(place(icon("building-2"), "organization"));
        let targets = self.targets.iter().map(|target| Target {
            text: target.text.clone(),
            href: target.href.clone(),
            ..*target
        });
        pages.chain(projects).chain(organizations).chain(targets).collect()
    }
}

fn groups(tenant: &Tenant, section: Section, is_operator: bool) -> Vec<Group> {
    let link = |icon, text, href: &str, of: Section| Link {
        icon,
        text,
        href: href.to_owned(),
        is_current: section == of,
    };
    let project = tenant.project.as_ref().map(|project| Group {
        heading: project.name.clone(),
        links: vec![link(
            icon("layout-dashboard"),
            "Dashboards",
            &project.href,
            Section::Dashboards,
        )],
    });
    let sessions = link(icon("monitor"), "Sessions", "/console/sessions/", Section::Sessions);
    let you = Group { heading: "You".to_owned(), links: vec![sessions] };
    let service = is_operator.then(|| Group {
        heading: "Service".to_owned(),
        links: vec![link(icon("server"), "Health", "/console/health/", Section::Health)],
    });
    project.into_iter().chain([you]).chain(service).collect()
}

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
///
/// # Errors
/// 500 if a template fails.
pub(super) fn page(frame: &Frame, content: &impl Template) -> Result<Response> {
    framed(frame, content, "")
}

/// Returns a page with its frame and a style sheet of its own, which must not contain user input.
///
/// # Errors
/// 500 if a template fails.
pub(super) fn page_with_style(
    frame: &Frame,
    content: &impl Template,
    style: &str,
) -> Result<Response> {
    let mut page = framed(frame, content, style)?;
    page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy_with_style(style)?);
    Ok(page)
}

fn framed(frame: &Frame, content: &impl Template, style: &str) -> Result<Response> {
    let main = content.render().map_err(Error::internal)?;
    let page = FramePage { frame, style, main };
    Ok(Html(page.render().map_err(Error::internal)?).into_response())
}

/// A page without a frame: a card with one thing to do.
#[derive(Template)]
#[template(path = "console/layout/card.html")]
struct Card<'p> {
    title: &'p str,
    /// Whether the browser opens the page again at once.
    is_refreshed: bool,
    /// The HTML of the content.
    main: String,
}

/// Returns a page without a frame.
///
/// # Errors
/// 500 if a template fails.
pub(super) fn card(title: &str, content: &impl Template) -> Result<Html<String>> {
    let main = content.render().map_err(Error::internal)?;
    Card { title, is_refreshed: false, main }.render().map(Html).map_err(Error::internal)
}

/// Returns a page without a frame that opens its own URL again.
///
/// # Errors
/// 500 if a template fails.
pub(super) fn refreshed_card(title: &str, content: &impl Template) -> Result<Html<String>> {
    let main = content.render().map_err(Error::internal)?;
    Card { title, is_refreshed: true, main }.render().map(Html).map_err(Error::internal)
}
