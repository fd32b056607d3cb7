//! What an entry can be about: each loggable kind of record, where it belongs, and what it hides.

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::api_keys::ApiKey;
use crate::resources::dashboards::{Dashboard, Details};
use crate::resources::members::Membership;
use crate::resources::organizations::Organization;
use crate::resources::projects::{self, Project, Settings};
use crate::resources::users::{self, Profile, User};
use crate::store::{Change, Record, Row, Table, Tx};

/// A changed record, as the log sees it.
pub(super) struct Subject {
    pub(super) scope: &'static str,
    pub(super) item_id: String,
    pub(super) name: Option<String>,
    /// `created`, `updated` or `deleted`.
    pub(super) change: &'static str,
    pub(super) organization: Option<OrganizationId>,
    pub(super) project: Option<ProjectId>,
    /// Its fields before, and after; empty where there was, or is, none.
    pub(super) before: Map<String, Value>,
    pub(super) after: Map<String, Value>,
    /// Fields whose values are secrets.
    pub(super) hidden: Vec<&'static str>,
}

/// A kind of record that entries can be about.
trait Loggable: Record {
    const SCOPE: &'static str;
    /// Fields whose values are secrets.
    const HIDDEN: &'static [&'static str] = &[];

    /// What the entry calls it.
    fn item_id(&self) -> String;

    /// The organization and the project it is in.
    fn place(&self, tx: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)>;

    /// What people call it.
    fn name(&self) -> Option<String> {
        None
    }

    /// The fields whose changes are told.
    fn fields(&self) -> Result<Map<String, Value>> {
        match serde_json::to_value(self.parts().1).map_err(crate::error::Error::internal)? {
            Value::Object(fields) => Ok(fields),
            _ => Ok(Map::new()),
        }
    }
}

/// What a change means to the log; none where it is of no loggable kind.
pub(super) fn subject(tx: &impl Tx, change: &Change) -> Result<Option<Subject>> {
    match change.table {
        Table::Users => of::<User>(tx, change).map(Some),
        Table::UserProfiles => of::<Profile>(tx, change).map(Some),
        Table::Organizations => of::<Organization>(tx, change).map(Some),
        Table::Memberships => of::<Membership>(tx, change).map(Some),
        Table::Projects => of::<Project>(tx, change).map(Some),
        Table::ProjectSettings => of::<Settings>(tx, change).map(Some),
        Table::ApiKeys => of::<ApiKey>(tx, change).map(Some),
        Table::Dashboards => of::<Dashboard>(tx, change).map(Some),
        Table::DashboardDetails => of::<Details>(tx, change).map(Some),
        _ => Ok(None),
    }
}

fn of<R: Loggable>(tx: &impl Tx, change: &Change) -> Result<Subject> {
    let read = |payload: &Option<Vec<u8>>| -> Result<Option<R>> {
        payload.as_deref().map(|payload| Row::<R>::read(payload)?.into_record()).transpose()
    };
    let (before, after) = (read(&change.before)?, read(&change.after)?);
    let verb = match (&before, &after) {
        (None, _) => "created",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "updated",
    };
    let (mut item_id, mut place) = (String::new(), (None, None));
    if let Some(record) = after.as_ref().or(before.as_ref()) {
        item_id = record.item_id();
        place = record.place(tx)?;
    }
    let name = after.as_ref().or(before.as_ref()).and_then(R::name);
    let fields = |record: Option<R>| match (verb, record) {
        ("updated", Some(record)) => record.fields(),
        _ => Ok(Map::new()),
    };
    Ok(Subject {
        scope: R::SCOPE,
        item_id,
        name,
        change: verb,
        organization: place.0,
        project: place.1,
        before: fields(before)?,
        after: fields(after)?,
        hidden: R::HIDDEN.to_vec(),
    })
}

impl Loggable for User {
    const SCOPE: &'static str = "User";

    fn item_id(&self) -> String {
        self.head.id.to_string()
    }

    fn place(&self, _: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        Ok((None, None))
    }

    fn fields(&self) -> Result<Map<String, Value>> {
        let mut fields = match serde_json::to_value(&self.shown) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let users::Head { is_active, current_organization, current_project, .. } = &self.head;
        for (name, value) in [
            ("is_active", json!(is_active)),
            ("current_organization", json!(current_organization)),
            ("current_project", json!(current_project)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        Ok(fields)
    }
}

impl Loggable for Profile {
    const SCOPE: &'static str = "User";

    fn item_id(&self) -> String {
        self.user.to_string()
    }

    fn place(&self, _: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        Ok((None, None))
    }
}

impl Loggable for Organization {
    const SCOPE: &'static str = "Organization";

    fn name(&self) -> Option<String> {
        Some(self.shown.name.clone())
    }

    fn item_id(&self) -> String {
        self.head.id.to_string()
    }

    fn place(&self, _: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        Ok((Some(self.head.id), None))
    }
}

impl Loggable for Membership {
    const SCOPE: &'static str = "OrganizationMembership";

    fn item_id(&self) -> String {
        self.id.to_string()
    }

    fn place(&self, _: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        Ok((Some(self.organization), None))
    }

    fn fields(&self) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("level".to_owned(), self.level.into())]))
    }
}

impl Loggable for Project {
    const SCOPE: &'static str = "Project";
    const HIDDEN: &'static [&'static str] = &["api_token"];

    fn name(&self) -> Option<String> {
        Some(self.shown.name.clone())
    }

    fn item_id(&self) -> String {
        self.head.id.to_string()
    }

    fn place(&self, _: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        Ok((Some(self.head.organization), Some(self.head.id)))
    }
}

impl Loggable for Settings {
    const SCOPE: &'static str = "Project";
    const HIDDEN: &'static [&'static str] = &["slack_incoming_webhook"];

    fn item_id(&self) -> String {
        self.key.1.to_string()
    }

    fn place(&self, _: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        Ok((Some(self.key.0), Some(self.key.1)))
    }
}

impl Loggable for ApiKey {
    const SCOPE: &'static str = "PersonalAPIKey";

    fn item_id(&self) -> String {
        self.head.id.to_string()
    }

    fn place(&self, _: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        Ok((self.head.organizations.first().copied(), None))
    }

    fn name(&self) -> Option<String> {
        Some(self.shown.label.clone())
    }

    fn fields(&self) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("label".to_owned(), self.shown.label.clone().into())]))
    }
}

impl Loggable for Dashboard {
    const SCOPE: &'static str = "Dashboard";

    fn name(&self) -> Option<String> {
        self.shown.name.clone()
    }

    fn item_id(&self) -> String {
        self.head.id.to_string()
    }

    fn place(&self, _: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        Ok((Some(self.head.organization), Some(self.head.project)))
    }
}

impl Loggable for Details {
    const SCOPE: &'static str = "Dashboard";

    fn item_id(&self) -> String {
        self.key.1.to_string()
    }

    fn place(&self, tx: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        let project = projects::find_by_id(tx, self.key.0)?;
        Ok((project.map(|project| project.organization), Some(self.key.0)))
    }
}
