//! The frame of every page: the navigation, the switchers of organization and project, and the palette.

mod account;
mod command;
mod navigation;
mod notice;
mod paging;

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::{Html, IntoResponse, Response};

use crate::error::{Error, Result};

use super::assets::{Icon, icon};
use super::headers::policy_with_style;
use super::operation::Operation;
use super::visit::SignedIn;

pub(super) use account::Place;
pub(super) use command::{Command, quote};

pub(super) use navigation::Section;
pub(super) use notice::with_notice;
pub(super) use paging::Paging;

use account::{Account, Tenant};
use navigation::Group;

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
    may_create_organization: bool,
    /// Places that the palette leads to besides pages, projects and organizations.
    targets: Vec<Target>,
    /// What a form has just done.
    notice: Option<&'static str>,
    undo: Option<Undo>,
    /// Why an action was refused.
    refusal: Option<Error>,
    /// When the session ends if no other page is opened.
    ends_at: String,
}

/// A form beside the notice that undoes what was done.
pub(super) struct Undo {
    pub(super) action: String,
    pub(super) fields: Vec<(&'static str, String)>,
}

/// The tenant in the path of a page.
#[derive(Debug, Clone, Copy)]
pub(super) enum In<'p> {
    /// A project, by its id.
    Project(&'p str),
    /// An organization, by its id.
    Organization(&'p str),
    /// None: the frame shows the current project.
    Nothing,
}

impl Frame {
    /// Loads the frame of a page.
    ///
    /// # Errors
    /// The errors of the API, except those for what the session may not see: the frame leaves that out.
    pub(super) async fn load(request: &SignedIn, section: Section, tenant: In<'_>) -> Result<Self> {
        let account = Account::load(&request.api).await?;
        let tenant = Tenant::load(&request.api, &account, tenant).await?;
        let groups = navigation::groups(request, &tenant, section).await?;
        let create = Operation::new("organizations_create", []);
        Ok(Self {
            title: String::new(),
            account,
            tenant,
            groups,
            may_create_organization: request.api.may(&create).await?,
            targets: Vec::new(),
            notice: notice::of(&request.visit),
            undo: None,
            refusal: None,
            ends_at: request.session.ends_at().to_string(),
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

    /// Adds places to the palette.
    pub(super) fn with_targets(mut self, targets: impl IntoIterator<Item = Target>) -> Self {
        self.targets.extend(targets);
        self
    }

    /// Returns the id of the project.
    pub(super) fn project(&self) -> Option<&str> {
        self.tenant.project.as_ref().map(|project| project.id.as_str())
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

/// Returns a page with its frame and a status, for a form that failed.
///
/// # Errors
/// 500 if a template fails.
pub(super) fn page_with_status(
    frame: &Frame,
    content: &impl Template,
    status: StatusCode,
) -> Result<Response> {
    let mut page = framed(frame, content, "")?;
    if frame.refusal.is_none() {
        *page.status_mut() = status;
    }
    Ok(page)
}

fn framed(frame: &Frame, content: &impl Template, style: &str) -> Result<Response> {
    let main = content.render().map_err(Error::internal)?;
    let page = FramePage { frame, style, main };
    let mut response = Html(page.render().map_err(Error::internal)?).into_response();
    if let Some(refusal) = &frame.refusal {
        *response.status_mut() = StatusCode::from_u16(refusal.status()).map_err(Error::internal)?;
    }
    Ok(response)
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
