//! The paths of a dashboard, in the console and in the API.

use serde_json::Value;

use crate::console::operation::{Operation, Write};
use crate::console::pages::dashboard_name;
use crate::console::visit::{SignedIn, Visit};
use crate::error::{Error, Result};

/// The ids in the path of a page about a dashboard.
#[derive(Debug, Clone)]
pub(in crate::console::pages) struct Address {
    pub(in crate::console::pages) project: String,
    pub(in crate::console::pages) id: String,
}

impl Address {
    /// Reads the path of a page.
    ///
    /// # Errors
    /// 404 if an id is no number.
    pub(super) fn of(visit: &Visit) -> Result<Self> {
        let project = crate::console::pages::project_id(visit)?;
        Ok(Self { project, id: number(visit, "id")? })
    }

    /// Returns the path of the list.
    pub(super) fn list(&self) -> String {
        format!("/console/projects/{}/dashboards/", self.project)
    }

    /// Returns the path of the dashboard's page, or of a page below it.
    pub(super) fn page(&self, rest: &str) -> String {
        format!("/console/projects/{}/dashboards/{}/{rest}", self.project, self.id)
    }

    /// Returns the path of the dashboard in the API, or of a path below it.
    pub(super) fn api(&self, rest: &str) -> String {
        format!("/api/projects/{}/dashboards/{}/{rest}", self.project, self.id)
    }

    /// Returns an operation on the dashboard.
    pub(super) fn operation(&self, id: &'static str) -> Operation {
        Operation::new(id, [&self.project, &self.id])
    }

    /// Reads the name of the dashboard. A dashboard that was deleted meanwhile has only its id.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn name(&self, request: &SignedIn) -> Result<String> {
        let found: Option<Value> = request.api.get_if_allowed(&self.api("")).await?;
        Ok(found.map_or_else(|| format!("Dashboard {}", self.id), |found| name_in(&found)))
    }

    /// Returns a request that changes the dashboard.
    pub(super) fn write(&self, id: &'static str) -> Write {
        Write::new(id, [&self.project, &self.id])
    }
}

/// Returns the name in the JSON of a dashboard.
pub(super) fn name_in(dashboard: &Value) -> String {
    dashboard_name(dashboard.get("name").and_then(Value::as_str)).to_owned()
}

/// Returns an id in the page's path.
///
/// # Errors
/// 404 if it is no number.
pub(super) fn number(visit: &Visit, name: &str) -> Result<String> {
    let id = visit.parameter(name).parse::<u64>().map_err(|_| Error::not_found())?;
    Ok(id.to_string())
}
