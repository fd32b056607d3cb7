//! The records that the activity log covers: their names, organizations, fields and hidden fields.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::access_controls::rules::AccessRule;
use crate::resources::api_keys::ApiKey;
use crate::resources::batch_exports::{self, BatchExport};
use crate::resources::collaborators::Collaborator;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::resources::dashboards::tiles::Tile;
use crate::resources::dashboards::{Dashboard, Details, DetailsFields};
use crate::resources::domains::Domain;
use crate::resources::invites::Invite;
use crate::resources::members::{Membership, MembershipOrigin};
use crate::resources::organizations::Organization;
use crate::resources::projects::grants::Grant;
use crate::resources::projects::{self, Project, Settings};
use crate::resources::sharing::Sharing;
use crate::resources::users::{self, Profile, User};
use crate::store::{Change, Record, Row, Table, Tx};

use super::changes::keep_changed;

/// A changed record, as the log describes it.
pub(super) struct LogTarget {
    pub(super) scope: &'static str,
    pub(super) item_id: String,
    pub(super) name: Option<String>,
    /// `created`, `updated` or `deleted`.
    pub(super) change: &'static str,
    pub(super) organization: Option<OrganizationId>,
    pub(super) project: Option<ProjectId>,
    /// The fields before and after; empty if the record did not exist.
    pub(super) before: Map<String, Value>,
    pub(super) after: Map<String, Value>,
    /// Fields with secret values.
    pub(super) hidden: Vec<&'static str>,
    /// Whether `created` and `deleted` entries list the fields.
    pub(super) log_all_fields: bool,
    /// Whether the record is part of another object and has no entry of its own.
    pub(super) is_part: bool,
    /// Whether its deletion is recorded together with a new record of the same type.
    pub(super) log_removal: bool,
}

/// The organization and the project of a record.
pub(super) type Location = (Option<OrganizationId>, Option<ProjectId>);

/// A type of record that the log covers.
pub(super) trait Loggable: Record {
    const SCOPE: &'static str;
    /// Fields with secret values.
    const HIDDEN: &'static [&'static str] = &[];
    /// Whether `created` and `deleted` entries list the fields.
    const LOG_ALL_FIELDS: bool = false;
    /// Whether the record is part of the object in the entry, so that its creation or deletion updates that object. The
    /// names of its fields then include its own id, because an object may have several parts.
    const IS_PART: bool = false;
    /// Whether its deletion is recorded together with a new record of the same type. If the new record has the same
    /// name, its entry describes the replacement; otherwise the deletion gets its own entry.
    const LOG_REMOVAL: bool = false;

    /// Returns `item_id` of the entry. An empty text means: part of whatever object the entry has.
    fn item_id(head: &Self::Meta) -> String;

    /// Returns the organization and the project of the record.
    fn location(head: &Self::Meta, tx: &impl Tx) -> Result<Location>;

    /// Returns the name of the object that the entry shows.
    fn name(row: &Row<'_, Self>, _: &impl Tx) -> Result<Option<String>> {
        public_name(row)
    }

    /// Returns the default fields, for a type whose record is stored only if it differs from the defaults.
    fn blank() -> Result<Option<Map<String, Value>>> {
        Ok(None)
    }

    /// Returns the fields whose changes the log records.
    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        public_fields(row)
    }
}

/// Returns the visible fields of a record; empty if the record has none.
pub(super) fn public_fields<R: Record>(row: &Row<'_, R>) -> Result<Map<String, Value>> {
    let fields: Option<Map<_, _>> = serde_json::from_slice(row.fields).map_err(Error::internal)?;
    Ok(fields.unwrap_or_default())
}

/// Returns the visible name of a record, if it has one. Skips the rest of its JSON.
pub(super) fn public_name<R: Record>(row: &Row<'_, R>) -> Result<Option<String>> {
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
    }
    let named: Option<Named> = serde_json::from_slice(row.fields).map_err(Error::internal)?;
    Ok(named.and_then(|named| named.name))
}

/// Describes a change for the log. Returns `None` if the log does not cover the type of record.
pub(super) fn target_of(tx: &impl Tx, change: &Change) -> Result<Option<LogTarget>> {
    // The same transaction created and deleted the record.
    if change.before.is_none() && change.after.is_none() {
        return Ok(None);
    }
    match change.table {
        Table::Users => target::<User>(tx, change).map(Some),
        Table::UserProfiles => target::<Profile>(tx, change).map(Some),
        Table::Organizations => target::<Organization>(tx, change).map(Some),
        Table::Memberships => target::<Membership>(tx, change).map(Some),
        Table::MembershipOrigins => target::<MembershipOrigin>(tx, change).map(Some),
        Table::Projects => target::<Project>(tx, change).map(Some),
        Table::ProjectSettings => target::<Settings>(tx, change).map(Some),
        Table::Grants => target::<Grant>(tx, change).map(Some),
        Table::Invites => target::<Invite>(tx, change).map(Some),
        Table::ApiKeys => target::<ApiKey>(tx, change).map(Some),
        Table::Dashboards => target::<Dashboard>(tx, change).map(Some),
        Table::DashboardDetails => target::<Details>(tx, change).map(Some),
        Table::Sharing => target::<Sharing>(tx, change).map(Some),
        Table::Tiles => target::<Tile>(tx, change).map(Some),
        Table::Insights => target::<Insight>(tx, change).map(Some),
        Table::Texts => target::<Text>(tx, change).map(Some),
        Table::AccessRules => target::<AccessRule>(tx, change).map(Some),
        Table::Collaborators => target::<Collaborator>(tx, change).map(Some),
        Table::Domains => target::<Domain>(tx, change).map(Some),
        Table::BatchExports => target::<BatchExport>(tx, change).map(Some),
        Table::BatchExportSecrets => target::<batch_exports::Secrets>(tx, change).map(Some),
        _ => Ok(None),
    }
}

fn target<R: Loggable>(tx: &impl Tx, change: &Change) -> Result<LogTarget> {
    let blank = R::blank()?;
    let verb = match (&change.before, &change.after) {
        _ if R::IS_PART || blank.is_some() => "updated",
        (None, _) => "created",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "updated",
    };
    let (mut item_id, mut tenant, mut name) = (String::new(), (None, None), None);
    if let Some(payload) = change.after.as_ref().or(change.before.as_ref()) {
        let row = Row::<R>::read(payload)?;
        item_id = R::item_id(&row.meta);
        tenant = R::location(&row.meta, tx)?;
        name = if R::IS_PART { None } else { R::name(&row, tx)? };
    }
    let fields = |payload: &Option<Vec<u8>>| match (verb, payload) {
        (_, Some(payload)) if R::LOG_ALL_FIELDS || verb == "updated" => {
            R::fields(&Row::read(payload)?, tx)
        }
        ("updated", None) => Ok(blank.clone().unwrap_or_default()),
        _ => Ok(Map::new()),
    };
    let (mut before, mut after) = (fields(&change.before)?, fields(&change.after)?);
    if R::IS_PART {
        keep_changed(&mut before, &mut after);
    }
    Ok(LogTarget {
        scope: R::SCOPE,
        item_id,
        name,
        change: verb,
        organization: tenant.0,
        project: tenant.1,
        before,
        after,
        hidden: R::HIDDEN.to_vec(),
        log_all_fields: R::LOG_ALL_FIELDS,
        is_part: R::IS_PART,
        log_removal: R::LOG_REMOVAL,
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

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(_: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((None, None))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        let mut fields = public_fields(row)?;
        let users::Meta { is_active, current_organization, current_project, .. } = &row.meta;
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

    fn item_id(meta: &Self::Meta) -> String {
        meta.to_string()
    }

    fn location(_: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((None, None))
    }
}

impl Loggable for Organization {
    const SCOPE: &'static str = "Organization";

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.id), None))
    }
}

impl Loggable for Project {
    const SCOPE: &'static str = "Project";
    const HIDDEN: &'static [&'static str] = &["api_token"];

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.id)))
    }
}

impl Loggable for Settings {
    const SCOPE: &'static str = "Project";
    const HIDDEN: &'static [&'static str] = &["slack_incoming_webhook"];

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        Ok(tx.view::<Project, _>(&row.meta, |row| public_name(&row))?.flatten())
    }

    fn item_id(meta: &Self::Meta) -> String {
        meta.1.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.0), Some(meta.1)))
    }
}

impl Loggable for Dashboard {
    const SCOPE: &'static str = "Dashboard";

    fn item_id(meta: &Self::Meta) -> String {
        meta.id.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.organization), Some(meta.project)))
    }
}

impl Loggable for Details {
    const SCOPE: &'static str = "Dashboard";

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        Ok(tx.view::<Dashboard, _>(&row.meta, |row| public_name(&row))?.flatten())
    }

    fn blank() -> Result<Option<Map<String, Value>>> {
        fields_of(&DetailsFields::default()).map(Some)
    }

    fn item_id(meta: &Self::Meta) -> String {
        meta.1.to_string()
    }

    fn location(meta: &Self::Meta, tx: &impl Tx) -> Result<Location> {
        let project = projects::find_by_id(tx, meta.0)?;
        Ok((project.map(|project| project.organization), Some(meta.0)))
    }
}

/// Sharing of a dashboard. The dashboard's own fields record whether sharing is enabled, so the only field here changes
/// when the access token is replaced.
impl Loggable for Sharing {
    const SCOPE: &'static str = "Dashboard";
    const HIDDEN: &'static [&'static str] = &["access_token"];

    fn item_id(meta: &Self::Meta) -> String {
        meta.dashboard.to_string()
    }

    fn location(meta: &Self::Meta, tx: &impl Tx) -> Result<Location> {
        let project = projects::find_by_id(tx, meta.project)?;
        Ok((project.map(|project| project.organization), Some(meta.project)))
    }

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        let dashboard = (row.meta.project, row.meta.dashboard);
        Ok(tx.view::<Dashboard, _>(&dashboard, |row| public_name(&row))?.flatten())
    }

    fn blank() -> Result<Option<Map<String, Value>>> {
        Ok(Some(Map::from_iter([("access_token".to_owned(), 0.into())])))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_token".to_owned(), row.meta.serial.into())]))
    }
}

impl Loggable for Domain {
    const SCOPE: &'static str = "OrganizationDomain";

    fn item_id(meta: &Self::Meta) -> String {
        meta.1.to_string()
    }

    fn location(meta: &Self::Meta, _: &impl Tx) -> Result<Location> {
        Ok((Some(meta.0), None))
    }

    fn name(row: &Row<'_, Self>, _: &impl Tx) -> Result<Option<String>> {
        let name = public_fields(row)?.remove("domain");
        Ok(name.and_then(|name| name.as_str().map(str::to_owned)))
    }
}
