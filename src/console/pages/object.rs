//! The collections of objects that have pages of their own, and the paths of one object.

use serde_json::Value;

use crate::base::error::Result;
use crate::console::api::{Operation, Write};
use crate::console::form::{Confirm, answered_before};
use crate::console::layout::with_notice;
use crate::console::registry::PageResult;
use crate::console::visit::{SignedIn, Visit};

/// The objects of a type in a project or in an organization.
#[derive(Debug)]
pub(super) struct Collection {
    /// What the objects belong to, in the paths of the console and of the API: `projects` or `organizations`.
    tenants: &'static str,
    /// The name in these paths.
    name: &'static str,
    /// The word for one object.
    pub(super) noun: &'static str,
    /// Reads the id of an object in the path of its page. That of a member is the UUID of the user.
    id: fn(&Visit, &str) -> Result<String>,
}

pub(super) const DASHBOARDS: &Collection =
    &Collection { tenants: "projects", name: "dashboards", noun: "dashboard", id: Visit::number };
pub(super) const INSIGHTS: &Collection =
    &Collection { tenants: "projects", name: "insights", noun: "insight", id: Visit::number };
pub(super) const BATCH_EXPORTS: &Collection = &Collection {
    tenants: "projects",
    name: "batch_exports",
    noun: "batch export",
    id: Visit::uuid,
};
pub(super) const DOMAINS: &Collection =
    &Collection { tenants: "organizations", name: "domains", noun: "domain", id: Visit::uuid };
pub(super) const INVITES: &Collection =
    &Collection { tenants: "organizations", name: "invites", noun: "invite", id: Visit::uuid };
pub(super) const MEMBERS: &Collection =
    &Collection { tenants: "organizations", name: "members", noun: "member", id: Visit::uuid };
pub(super) const ROLES: &Collection =
    &Collection { tenants: "organizations", name: "roles", noun: "role", id: Visit::uuid };

impl Collection {
    /// Reads the id of the project or the organization in the page's path.
    ///
    /// # Errors
    /// 404 if it is malformed.
    fn tenant(&self, visit: &Visit) -> Result<String> {
        if self.tenants == "projects" { visit.project_id() } else { visit.organization_id() }
    }

    /// Returns the path of the list in a project or an organization.
    pub(super) fn list(&self, tenant: &str) -> String {
        self.below("console", tenant)
    }

    /// Returns the path of the list in the API.
    pub(super) fn api(&self, tenant: &str) -> String {
        self.below("api", tenant)
    }

    fn below(&self, root: &str, tenant: &str) -> String {
        format!("/{root}/{}/{tenant}/{}/", self.tenants, self.name)
    }
}

/// The ids in the path of a page about an object.
#[derive(Debug, Clone)]
pub(super) struct ObjectPath {
    collection: &'static Collection,
    /// The id of the project or the organization.
    pub(super) tenant: String,
    pub(super) id: String,
}

impl ObjectPath {
    /// Reads the path of a page.
    ///
    /// # Errors
    /// 404 if an id is malformed.
    pub(super) fn of(visit: &Visit, collection: &'static Collection) -> Result<Self> {
        let tenant = collection.tenant(visit)?;
        Ok(Self { collection, tenant, id: (collection.id)(visit, "id")? })
    }

    /// Returns the path of the list.
    pub(super) fn list(&self) -> String {
        self.collection.list(&self.tenant)
    }

    /// Returns the path of the object's page, or of a page below it.
    pub(super) fn page(&self, rest: &str) -> String {
        format!("{}{}/{rest}", self.list(), self.id)
    }

    /// Returns the path of the object in the API, or of a path below it.
    pub(super) fn api(&self, rest: &str) -> String {
        format!("{}{}/{rest}", self.collection.api(&self.tenant), self.id)
    }

    /// Returns an operation on the object.
    pub(super) fn operation(&self, id: &'static str) -> Operation {
        Operation::new(id, [&self.tenant, &self.id])
    }

    /// Returns a request that changes the object.
    pub(super) fn write(&self, id: &'static str) -> Write {
        Write::new(id, [&self.tenant, &self.id])
    }

    /// Returns the question before `write` deletes the object. `text` names the consequences.
    pub(super) fn deletion(&self, name: &str, text: &str, write: Write) -> Confirm {
        let submit = format!("Delete the {}", self.collection.noun);
        Confirm::new(&format!("{submit} {name}?"), text, &submit, write)
    }
}

/// Returns the path of the page of an object that was created. `list` is the path of the pages of its type.
pub(super) fn page_of(list: &str, created: &Value) -> String {
    let id = match created.get("id") {
        Some(Value::String(id)) => id.clone(),
        Some(id) => id.to_string(),
        None => String::new(),
    };
    format!("{list}{id}/")
}

/// Asks before the object of a page is deleted by the operation `destroy`. `rest` ends its path in the API, `name` is the member
/// with its name, `notice` says that it was deleted, and `text` names the consequences.
pub(super) async fn confirm_delete(
    request: SignedIn,
    objects: &'static Collection,
    [rest, name]: [&str; 2],
    destroy: &'static str,
    notice: &'static str,
    text: &str,
) -> PageResult {
    let object = ObjectPath::of(&request.visit, objects)?;
    let done = with_notice(&object.list(), notice);
    let found: Result<Value> = request.api.get(&object.api(rest)).await.read();
    let found = found.map_err(|error| answered_before(&request, error, &done))?;
    let name = found.get(name).and_then(Value::as_str).unwrap_or_default();
    let question = object.deletion(name, text, object.write(destroy));
    question.respond(&request, &object.page(""), &done).await
}
