//! The two logs: that of an organization and that of a project.

use url::form_urlencoded::byte_serialize;

use crate::console::layout::{Frame, In, Section};
use crate::console::visit::{SignedIn, Visit};
use crate::error::{Error, Result};
use crate::ids::OrganizationId;

/// A log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Log {
    /// The log of the organization with this id. It includes the projects.
    Organization(String),
    /// The log of the project with this id.
    Project(String),
}

impl Log {
    /// Returns the log in the page's path.
    ///
    /// # Errors
    /// 404 if the id is malformed.
    pub(super) fn of(visit: &Visit) -> Result<Self> {
        match visit.parameter("organization_id").as_ref() {
            "" => super::super::project_id(visit).map(Self::Project),
            id => {
                let id = id.parse::<OrganizationId>().map_err(|_| Error::not_found())?;
                Ok(Self::Organization(id.to_string()))
            }
        }
    }

    /// Returns the path of the API.
    pub(super) fn api(&self) -> String {
        match self {
            Self::Organization(id) => format!("/api/organizations/{id}/activity_log/"),
            Self::Project(id) => format!("/api/projects/{id}/activity_log/"),
        }
    }

    /// Returns the path of the page.
    pub(super) fn page(&self) -> String {
        match self {
            Self::Organization(id) => format!("/console/organizations/{id}/activity/"),
            Self::Project(id) => format!("/console/projects/{id}/activity/"),
        }
    }

    /// Loads the frame of a page about the log.
    ///
    /// # Errors
    /// As [`Frame::load`].
    pub(super) async fn frame(&self, request: &SignedIn) -> Result<Frame> {
        let (section, tenant) = match self {
            Self::Organization(id) => (Section::OrganizationActivity, In::Organization(id)),
            Self::Project(id) => (Section::ProjectActivity, In::Project(id)),
        };
        Frame::load(request, section, tenant).await
    }

    /// Returns the page of an object, if the console has one.
    pub(super) fn page_of(&self, scope: &str, item: &str) -> Option<String> {
        let item: String = byte_serialize(item.as_bytes()).collect();
        match (self, scope) {
            (Self::Project(id), "Dashboard") => {
                Some(format!("/console/projects/{id}/dashboards/{item}/"))
            }
            (Self::Organization(id), "OrganizationDomain") => {
                Some(format!("/console/organizations/{id}/domains/{item}/"))
            }
            (Self::Organization(id), "Role") => {
                Some(format!("/console/organizations/{id}/roles/{item}/"))
            }
            (_, "Project") => Some(format!("/console/projects/{item}/dashboards/")),
            _ => None,
        }
    }
}
