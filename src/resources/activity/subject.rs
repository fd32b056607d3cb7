//! What an entry can be about: each loggable kind of record, where it belongs, and what it hides.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::api_keys::ApiKey;
use crate::resources::dashboards::{Dashboard, Details, DetailsShown};
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
    fn name(&self, _: &impl Tx) -> Result<Option<String>> {
        Ok(None)
    }

    /// Its fields where there is no record, for a kind that is kept only where it says something.
    fn blank() -> Option<Self::Shown> {
        None
    }

    /// The fields whose changes are told.
    fn fields(row: &Row<'_, Self>) -> Result<Map<String, Value>> {
        shown_fields(row)
    }
}

/// What is shown of a record, read from its JSON as it stands: nothing where it is never shown.
fn shown_fields<R: Record>(row: &Row<'_, R>) -> Result<Map<String, Value>> {
    let shown: Option<Map<_, _>> = serde_json::from_slice(row.shown).map_err(Error::internal)?;
    Ok(shown.unwrap_or_default())
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
    let blank = R::blank().map(|shown| fields_of(&shown)).transpose()?;
    let verb = match (&change.before, &change.after) {
        _ if blank.is_some() => "updated",
        (None, _) => "created",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "updated",
    };
    let (mut item_id, mut place, mut name) = (String::new(), (None, None), None);
    if let Some(payload) = change.after.as_ref().or(change.before.as_ref()) {
        let record = Row::<R>::read(payload)?.into_record()?;
        item_id = record.item_id();
        place = record.place(tx)?;
        name = record.name(tx)?;
    }
    let fields = |payload: &Option<Vec<u8>>| match (verb, payload) {
        ("updated", Some(payload)) => R::fields(&Row::read(payload)?),
        ("updated", None) => Ok(blank.clone().unwrap_or_default()),
        _ => Ok(Map::new()),
    };
    Ok(Subject {
        scope: R::SCOPE,
        item_id,
        name,
        change: verb,
        organization: place.0,
        project: place.1,
        before: fields(&change.before)?,
        after: fields(&change.after)?,
        hidden: R::HIDDEN.to_vec(),
    })
}

fn fields_of(shown: &impl Serialize) -> Result<Map<String, Value>> {
    match serde_json::to_value(shown).map_err(Error::internal)? {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

impl Loggable for User {
    const SCOPE: &'static str = "User";

    fn item_id(&self) -> String {
        self.head.id.to_string()
    }

    fn place(&self, _: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        Ok((None, None))
    }

    fn fields(row: &Row<'_, Self>) -> Result<Map<String, Value>> {
        let mut fields = shown_fields(row)?;
        let users::Head { is_active, current_organization, current_project, .. } = &row.head;
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

    fn name(&self, _: &impl Tx) -> Result<Option<String>> {
        Ok(Some(self.shown.name.clone()))
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

    fn fields(row: &Row<'_, Self>) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("level".to_owned(), row.head.level.into())]))
    }
}

impl Loggable for Project {
    const SCOPE: &'static str = "Project";
    const HIDDEN: &'static [&'static str] = &["api_token"];

    fn name(&self, _: &impl Tx) -> Result<Option<String>> {
        Ok(Some(self.shown.name.clone()))
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

    fn name(&self, tx: &impl Tx) -> Result<Option<String>> {
        Ok(tx.find::<Project>(&self.key)?.map(|project| project.shown.name))
    }

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

    fn name(&self, _: &impl Tx) -> Result<Option<String>> {
        Ok(Some(self.shown.label.clone()))
    }

    fn fields(row: &Row<'_, Self>) -> Result<Map<String, Value>> {
        let mut fields = shown_fields(row)?;
        fields.retain(|name, _| name == "label");
        Ok(fields)
    }
}

impl Loggable for Dashboard {
    const SCOPE: &'static str = "Dashboard";

    fn name(&self, _: &impl Tx) -> Result<Option<String>> {
        Ok(self.shown.name.clone())
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

    fn name(&self, tx: &impl Tx) -> Result<Option<String>> {
        Ok(tx.find::<Dashboard>(&self.key)?.and_then(|dashboard| dashboard.shown.name))
    }

    fn blank() -> Option<DetailsShown> {
        Some(DetailsShown::default())
    }

    fn item_id(&self) -> String {
        self.key.1.to_string()
    }

    fn place(&self, tx: &impl Tx) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
        let project = projects::find_by_id(tx, self.key.0)?;
        Ok((project.map(|project| project.organization), Some(self.key.0)))
    }
}
