//! What an entry can be about: each loggable kind of record, where it belongs, and what it hides.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::access_controls::rules::Rule;
use crate::resources::api_keys::ApiKey;
use crate::resources::batch_exports::{self, BatchExport};
use crate::resources::collaborators::Collaborator;
use crate::resources::dashboards::insights::Insight;
use crate::resources::dashboards::texts::Text;
use crate::resources::dashboards::tiles::Tile;
use crate::resources::dashboards::{Dashboard, Details, DetailsShown};
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
    /// Whether its fields are told where it was made or removed, too.
    pub(super) told_whole: bool,
    /// Whether it is only told with what it is a part of.
    pub(super) is_part: bool,
    /// Whether its removal is told where another of its kind was made, too.
    pub(super) tells_removal: bool,
}

/// The organization and the project that something is in.
pub(super) type Place = (Option<OrganizationId>, Option<ProjectId>);

/// A kind of record that entries can be about.
pub(super) trait Loggable: Record {
    const SCOPE: &'static str;
    /// Fields whose values are secrets.
    const HIDDEN: &'static [&'static str] = &[];
    /// Whether its fields are told where it was made or removed, too.
    const TOLD_WHOLE: bool = false;
    /// Whether it is a part of what the entry is about, so that making or removing it changes that. Its fields
    /// carry its own name then, for there may be several.
    const IS_PART: bool = false;
    /// Whether its removal is told where another of its kind was made, too: what the other took the place of is
    /// told with that one, and the rest has entries of its own.
    const TELLS_REMOVAL: bool = false;

    /// What the entry calls it; nothing for a part of whatever the entry is about.
    fn item_id(head: &Self::Head) -> String;

    /// The organization and the project it is in.
    fn place(head: &Self::Head, tx: &impl Tx) -> Result<Place>;

    /// What people call it.
    fn name(row: &Row<'_, Self>, _: &impl Tx) -> Result<Option<String>> {
        shown_name(row)
    }

    /// Its fields where there is no record, for a kind that is kept only where it says something.
    fn blank() -> Result<Option<Map<String, Value>>> {
        Ok(None)
    }

    /// The fields whose changes are told.
    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        shown_fields(row)
    }
}

/// What is shown of a record, read from its JSON as it stands: nothing where it is never shown.
pub(super) fn shown_fields<R: Record>(row: &Row<'_, R>) -> Result<Map<String, Value>> {
    let shown: Option<Map<_, _>> = serde_json::from_slice(row.shown).map_err(Error::internal)?;
    Ok(shown.unwrap_or_default())
}

/// The name that is shown of a record, if one is: the rest of its JSON is passed over.
pub(super) fn shown_name<R: Record>(row: &Row<'_, R>) -> Result<Option<String>> {
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
    }
    let named: Option<Named> = serde_json::from_slice(row.shown).map_err(Error::internal)?;
    Ok(named.and_then(|named| named.name))
}

/// What a change means to the log; none where it is of no loggable kind.
pub(super) fn subject(tx: &impl Tx, change: &Change) -> Result<Option<Subject>> {
    // What was made and removed by the same write is as if it had never been.
    if change.before.is_none() && change.after.is_none() {
        return Ok(None);
    }
    match change.table {
        Table::Users => of::<User>(tx, change).map(Some),
        Table::UserProfiles => of::<Profile>(tx, change).map(Some),
        Table::Organizations => of::<Organization>(tx, change).map(Some),
        Table::Memberships => of::<Membership>(tx, change).map(Some),
        Table::MembershipOrigins => of::<MembershipOrigin>(tx, change).map(Some),
        Table::Projects => of::<Project>(tx, change).map(Some),
        Table::ProjectSettings => of::<Settings>(tx, change).map(Some),
        Table::Grants => of::<Grant>(tx, change).map(Some),
        Table::Invites => of::<Invite>(tx, change).map(Some),
        Table::ApiKeys => of::<ApiKey>(tx, change).map(Some),
        Table::Dashboards => of::<Dashboard>(tx, change).map(Some),
        Table::DashboardDetails => of::<Details>(tx, change).map(Some),
        Table::Sharing => of::<Sharing>(tx, change).map(Some),
        Table::Tiles => of::<Tile>(tx, change).map(Some),
        Table::Insights => of::<Insight>(tx, change).map(Some),
        Table::Texts => of::<Text>(tx, change).map(Some),
        Table::AccessRules => of::<Rule>(tx, change).map(Some),
        Table::Collaborators => of::<Collaborator>(tx, change).map(Some),
        Table::Domains => of::<Domain>(tx, change).map(Some),
        Table::BatchExports => of::<BatchExport>(tx, change).map(Some),
        Table::BatchExportSecrets => of::<batch_exports::Secrets>(tx, change).map(Some),
        _ => Ok(None),
    }
}

fn of<R: Loggable>(tx: &impl Tx, change: &Change) -> Result<Subject> {
    let blank = R::blank()?;
    let verb = match (&change.before, &change.after) {
        _ if R::IS_PART || blank.is_some() => "updated",
        (None, _) => "created",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "updated",
    };
    let (mut item_id, mut place, mut name) = (String::new(), (None, None), None);
    if let Some(payload) = change.after.as_ref().or(change.before.as_ref()) {
        let row = Row::<R>::read(payload)?;
        item_id = R::item_id(&row.head);
        place = R::place(&row.head, tx)?;
        name = if R::IS_PART { None } else { R::name(&row, tx)? };
    }
    let fields = |payload: &Option<Vec<u8>>| match (verb, payload) {
        (_, Some(payload)) if R::TOLD_WHOLE || verb == "updated" => {
            R::fields(&Row::read(payload)?, tx)
        }
        ("updated", None) => Ok(blank.clone().unwrap_or_default()),
        _ => Ok(Map::new()),
    };
    let (mut before, mut after) = (fields(&change.before)?, fields(&change.after)?);
    if R::IS_PART {
        keep_changed(&mut before, &mut after);
    }
    Ok(Subject {
        scope: R::SCOPE,
        item_id,
        name,
        change: verb,
        organization: place.0,
        project: place.1,
        before,
        after,
        hidden: R::HIDDEN.to_vec(),
        told_whole: R::TOLD_WHOLE,
        is_part: R::IS_PART,
        tells_removal: R::TELLS_REMOVAL,
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

    fn item_id(head: &Self::Head) -> String {
        head.id.to_string()
    }

    fn place(_: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((None, None))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
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

    fn item_id(head: &Self::Head) -> String {
        head.to_string()
    }

    fn place(_: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((None, None))
    }
}

impl Loggable for Organization {
    const SCOPE: &'static str = "Organization";

    fn item_id(head: &Self::Head) -> String {
        head.id.to_string()
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.id), None))
    }
}

impl Loggable for Project {
    const SCOPE: &'static str = "Project";
    const HIDDEN: &'static [&'static str] = &["api_token"];

    fn item_id(head: &Self::Head) -> String {
        head.id.to_string()
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.organization), Some(head.id)))
    }
}

impl Loggable for Settings {
    const SCOPE: &'static str = "Project";
    const HIDDEN: &'static [&'static str] = &["slack_incoming_webhook"];

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        Ok(tx.view::<Project, _>(&row.head, |row| shown_name(&row))?.flatten())
    }

    fn item_id(head: &Self::Head) -> String {
        head.1.to_string()
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.0), Some(head.1)))
    }
}

impl Loggable for Dashboard {
    const SCOPE: &'static str = "Dashboard";

    fn item_id(head: &Self::Head) -> String {
        head.id.to_string()
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.organization), Some(head.project)))
    }
}

impl Loggable for Details {
    const SCOPE: &'static str = "Dashboard";

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        Ok(tx.view::<Dashboard, _>(&row.head, |row| shown_name(&row))?.flatten())
    }

    fn blank() -> Result<Option<Map<String, Value>>> {
        fields_of(&DetailsShown::default()).map(Some)
    }

    fn item_id(head: &Self::Head) -> String {
        head.1.to_string()
    }

    fn place(head: &Self::Head, tx: &impl Tx) -> Result<Place> {
        let project = projects::find_by_id(tx, head.0)?;
        Ok((project.map(|project| project.organization), Some(head.0)))
    }
}

/// A dashboard's public page. Whether there is one is told by the dashboard itself; here only that its token
/// was replaced.
impl Loggable for Sharing {
    const SCOPE: &'static str = "Dashboard";
    const HIDDEN: &'static [&'static str] = &["access_token"];

    fn item_id(head: &Self::Head) -> String {
        head.dashboard.to_string()
    }

    fn place(head: &Self::Head, tx: &impl Tx) -> Result<Place> {
        let project = projects::find_by_id(tx, head.project)?;
        Ok((project.map(|project| project.organization), Some(head.project)))
    }

    fn name(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Option<String>> {
        let dashboard = (row.head.project, row.head.dashboard);
        Ok(tx.view::<Dashboard, _>(&dashboard, |row| shown_name(&row))?.flatten())
    }

    fn blank() -> Result<Option<Map<String, Value>>> {
        Ok(Some(Map::from_iter([("access_token".to_owned(), 0.into())])))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("access_token".to_owned(), row.head.serial.into())]))
    }
}

impl Loggable for Domain {
    const SCOPE: &'static str = "OrganizationDomain";

    fn item_id(head: &Self::Head) -> String {
        head.1.to_string()
    }

    fn place(head: &Self::Head, _: &impl Tx) -> Result<Place> {
        Ok((Some(head.0), None))
    }

    fn name(row: &Row<'_, Self>, _: &impl Tx) -> Result<Option<String>> {
        let name = shown_fields(row)?.remove("domain");
        Ok(name.and_then(|name| name.as_str().map(str::to_owned)))
    }
}
