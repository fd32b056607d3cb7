//! The two logs: that of an organization and that of a project.

use url::form_urlencoded::byte_serialize;

use crate::console::layout::{Frame, In, Section};
use crate::console::visit::{SignedIn, Visit};
use crate::error::{Error, Result};
use crate::ids::OrganizationId;

use super::entry::Entry;

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

    /// Returns the page of the object of an entry, if the console has one.
    pub(super) fn page_of(&self, entry: &Entry) -> Option<String> {
        let item: String = byte_serialize(entry.item_id.as_bytes()).collect();
        match (entry.scope.as_str(), entry.project_id, self) {
            ("Dashboard", Some(id), _) => {
                Some(format!("/console/projects/{id}/dashboards/{item}/"))
            }
            ("Insight", Some(id), _) => Some(format!("/console/projects/{id}/insights/{item}/")),
            ("BatchExport", Some(id), _) => {
                Some(format!("/console/projects/{id}/batch_exports/{item}/"))
            }
            ("Project", Some(id), _) => Some(format!("/console/projects/{id}/dashboards/")),
            ("OrganizationDomain", _, Self::Organization(id)) => {
                Some(format!("/console/organizations/{id}/domains/{item}/"))
            }
            ("Role", _, Self::Organization(id)) => {
                Some(format!("/console/organizations/{id}/roles/{item}/"))
            }
            _ => None,
        }
    }

    /// Returns the page of the log of the entry's project, for a log with several projects.
    pub(super) fn of_project(&self, entry: &Entry) -> Option<String> {
        let id = entry.project_id.filter(|_| matches!(self, Self::Organization(_)))?;
        Some(Self::Project(id.to_string()).page())
    }
}
