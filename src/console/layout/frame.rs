//! The frame of a page: the navigation, the switchers of organization and project, and what a form has done.

use crate::console::api::Operation;
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::account::Account;
use super::navigation::{self, Group, Section};
use super::notice;
use super::tenant::{In, Tenant};

/// The frame of a page.
pub(in crate::console) struct Frame {
    /// The title of the page.
    pub(in crate::console) title: String,
    pub(super) account: Account,
    pub(super) tenant: Tenant,
    pub(super) groups: Vec<Group>,
    pub(super) may_create_organization: bool,
    /// The result of the form that led to the page.
    pub(super) notice: Option<String>,
    pub(super) undo: Option<Undo>,
    /// Why an action was refused.
    pub(super) refusal: Option<Error>,
    /// When the session ends if no other page is opened.
    pub(super) ends_at: String,
}

/// A form beside the notice that undoes what was done.
pub(in crate::console) struct Undo {
    pub(in crate::console) action: String,
    pub(in crate::console) fields: Vec<(&'static str, String)>,
}

impl Frame {
    /// Loads the frame of a page.
    ///
    /// # Errors
    /// The errors of the API, except those for what the session may not see: the frame leaves that out.
    pub(in crate::console) async fn load(
        request: &SignedIn,
        section: Section,
        tenant: In<'_>,
    ) -> Result<Self> {
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
            notice: notice::of(&request.visit),
            undo: None,
            refusal: None,
            ends_at: request.session.ends_at().to_string(),
        })
    }

    /// Sets the title of the page.
    pub(in crate::console) fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Shows why an action of the page was refused. The page then has the status of the error.
    pub(in crate::console) fn with_refusal(mut self, refusal: Option<Error>) -> Self {
        self.refusal = refusal;
        self
    }

    /// Returns the id of the project.
    pub(in crate::console) fn project(&self) -> Option<&str> {
        self.tenant.project.as_ref().map(|project| project.id.as_str())
    }

    /// Returns the ids and names of the projects in the switcher.
    pub(in crate::console) fn projects(&self) -> Vec<(String, String)> {
        let projects = self.tenant.projects.iter();
        projects.map(|project| (project.id.clone(), project.name.clone())).collect()
    }

    /// Returns the id of the organization.
    pub(in crate::console) fn organization(&self) -> Option<&str> {
        self.tenant.organization.as_ref().map(|organization| organization.id.as_str())
    }

    /// Returns the pages of the organization and of the project that the session may read: for each heading, their names and
    /// paths.
    pub(in crate::console) fn places(&self) -> Vec<(String, Vec<(&'static str, String)>)> {
        let groups = self.groups.iter().filter(|group| group.is_of_tenant);
        let links =
            |group: &Group| group.links.iter().map(|link| (link.text, link.href.clone())).collect();
        groups.map(|group| (group.heading.clone(), links(group))).collect()
    }

    /// Offers to undo what the notice says.
    pub(in crate::console) fn with_undo(mut self, undo: Option<Undo>) -> Self {
        self.undo = undo;
        self
    }

    /// Returns the path of the current project's dashboards.
    pub(super) fn dashboards(&self) -> Option<String> {
        self.tenant.project.as_ref().map(|project| project.href.clone())
    }
}
