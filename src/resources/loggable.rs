//! How the activity log describes a type of record: its names, its place, its fields, and who may read its entries.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::access_objects::Object;
use crate::store::{Change, Record, Reference, Row, Table, Tx};

/// The organization and the project of a record.
pub type Location = (Option<OrganizationId>, Option<ProjectId>);

/// A type of record that the log covers. Several types may share a scope: their constants then add up.
pub trait Loggable: Record {
    /// The type of the object in the entry, as the API names it.
    const SCOPE: &'static str;
    /// The actions besides `created`, `updated`, `deleted` and `restored`.
    const ACTIONS: &'static [FieldAction] = &[];
    /// Whether only admins may read entries of the scope.
    const ADMINS_ONLY: bool = false;
    /// Fields with secret values.
    const HIDDEN: &'static [&'static str] = &[];
    /// Whether `created` and `deleted` entries list the fields.
    const LOG_ALL_FIELDS: bool = false;
    /// Whether the record is part of the object in the entry, so that its creation or deletion updates that object. The
    /// names of its fields then include its own id, because an object may have several parts.
    const IS_PART: bool = false;
    /// The scope of the objects that show this one. If such an object leads the entry of a write, that entry includes
    /// the changes of this record as of a part. If this record leads, the changed objects get entries of their own.
    const HOST: Option<&'static str> = None;
    /// Whether its deletion is recorded together with a new record of the same type. If the new record has the same
    /// name, its entry describes the replacement; otherwise the deletion gets its own entry.
    const LOG_REMOVAL: bool = false;
    /// The changes (`created`, `updated`, `deleted`) that get an entry even if an object of another type leads the entry
    /// of the write.
    const ALWAYS_LOGGED: &'static [&'static str] = &[];

    /// Returns the type of the object in the entry. A type of records whose objects have several types overrides this;
    /// the types of the objects declare the actions.
    fn scope(_meta: &Self::Meta) -> &'static str {
        Self::SCOPE
    }

    /// Returns the `item_id` of the entry, or an empty text if the record is part of the object that the entry describes.
    fn item_id(meta: &Self::Meta) -> String;

    /// Returns the object in an `item_id` of the scope. Only members that may see the object may read the entry.
    fn object_of(_item_id: &str) -> Option<Object> {
        None
    }

    /// Returns the organization and the project of the record.
    fn location(meta: &Self::Meta, tx: &impl Tx) -> Result<Location>;

    /// Returns the name of the object that the entry shows.
    fn name(row: &Row<'_, Self>) -> Result<Option<String>> {
        public_name(row)
    }

    /// Returns the short id of the object that the entry shows, if it has one.
    fn short_id(_row: &Row<'_, Self>) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns the record whose name the entry shows, if it is another record.
    fn named_after(_meta: &Self::Meta) -> Option<Reference> {
        None
    }

    /// Returns the default fields, for a type whose record is stored only if it differs from the defaults.
    fn blank() -> Result<Option<Map<String, Value>>> {
        Ok(None)
    }

    /// Returns the fields whose changes the log records.
    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        public_fields(row)
    }

    /// Returns the fields whose changes the entry of a [`HOST`](Self::HOST) records. Their names include the id of this
    /// record.
    fn part_fields(_row: &Row<'_, Self>) -> Result<Map<String, Value>> {
        Ok(Map::new())
    }
}

/// An action that an entry names instead of `updated`, if a field of the object changed.
#[derive(Debug, Clone, Copy)]
pub enum FieldAction {
    /// A boolean field became true or false.
    Switched {
        /// The name of the field.
        field: &'static str,
        /// The action if it became true.
        on: &'static str,
        /// The action if it became false.
        off: &'static str,
    },
    /// A field has another value.
    Changed {
        /// The name of the field.
        field: &'static str,
        /// The action.
        action: &'static str,
    },
}

/// The actions of objects that can have a public page.
pub const SHARING_ACTIONS: &[FieldAction] = &[
    FieldAction::Switched { field: "is_shared", on: "sharing enabled", off: "sharing disabled" },
    FieldAction::Changed { field: "access_token", action: "access token refreshed" },
];

impl FieldAction {
    /// Returns the action of a change between these fields, if the field changed.
    pub fn between(
        self,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Option<&'static str> {
        match self {
            Self::Switched { field, on, off } => {
                let is_set = |fields: &Map<_, _>| fields.get(field) == Some(&Value::Bool(true));
                match (is_set(before), is_set(after)) {
                    (false, true) => Some(on),
                    (true, false) => Some(off),
                    _ => None,
                }
            }
            Self::Changed { field, action } => {
                (before.get(field) != after.get(field)).then_some(action)
            }
        }
    }

    /// Returns the names of the actions.
    pub fn names(&self) -> Vec<&'static str> {
        match *self {
            Self::Switched { on, off, .. } => vec![on, off],
            Self::Changed { action, .. } => vec![action],
        }
    }
}

/// A changed record, as the log describes it.
pub struct LogTarget {
    /// The table of the record.
    pub table: Table,
    /// The type of the object in the entry.
    pub scope: &'static str,
    /// The id of the object; empty if the record is part of the object that the entry describes.
    pub item_id: String,
    /// The name of the object, if it has one.
    pub name: Option<String>,
    /// The short id of the object, if it has one.
    pub short_id: Option<String>,
    /// The record whose name the entry shows instead.
    pub named_after: Option<Reference>,
    /// `created`, `updated` or `deleted`.
    pub change: &'static str,
    /// The organization whose log contains the entry.
    pub organization: Option<OrganizationId>,
    /// The project whose log contains the entry.
    pub project: Option<ProjectId>,
    /// The fields before the change; empty if the record did not exist.
    pub before: Map<String, Value>,
    /// The fields after the change; empty if the record was deleted.
    pub after: Map<String, Value>,
    /// Fields with secret values.
    pub hidden: Vec<&'static str>,
    /// Whether `created` and `deleted` entries list the fields.
    pub log_all_fields: bool,
    /// Whether the record is part of another object and has no entry of its own.
    pub is_part: bool,
    /// Whether its deletion is recorded together with a new record of the same type.
    pub log_removal: bool,
    /// The changes that get an entry even if an object of another type leads.
    pub always_logged: &'static [&'static str],
    /// The change as the entry of an object that shows this one describes it.
    pub within_host: Option<WithinHost>,
}

/// The change of a record as the entry of an object that shows the record describes it.
pub struct WithinHost {
    /// The scope of that object.
    scope: &'static str,
    before: Map<String, Value>,
    after: Map<String, Value>,
}

impl LogTarget {
    /// Describes the change of a record of type `R`.
    pub fn of<R: Loggable>(tx: &impl Tx, change: &Change) -> Result<Self> {
        let blank = R::blank()?;
        let verb = match (&change.before, &change.after) {
            _ if R::IS_PART || blank.is_some() => "updated",
            (None, _) => "created",
            (Some(_), None) => "deleted",
            (Some(_), Some(_)) => "updated",
        };
        let is_version_only = change.is_version_only()?;
        let fields = |payload: &Option<Vec<u8>>| match (verb, payload) {
            _ if is_version_only => Ok(Map::new()),
            (_, Some(payload)) if R::LOG_ALL_FIELDS || verb == "updated" => {
                Row::visit(payload, |row| R::fields(&row, tx))
            }
            ("updated", None) => Ok(blank.clone().unwrap_or_default()),
            _ => Ok(Map::new()),
        };
        let mut target = Self {
            table: change.table,
            scope: R::SCOPE,
            item_id: String::new(),
            name: None,
            short_id: None,
            named_after: None,
            change: verb,
            organization: None,
            project: None,
            before: fields(&change.before)?,
            after: fields(&change.after)?,
            hidden: R::HIDDEN.to_vec(),
            log_all_fields: R::LOG_ALL_FIELDS,
            is_part: R::IS_PART,
            log_removal: R::LOG_REMOVAL,
            always_logged: R::ALWAYS_LOGGED,
            within_host: None,
        };
        if let Some(scope) = R::HOST {
            let part = |payload: &Option<Vec<u8>>| match payload {
                Some(payload) => Row::visit(payload, |row| R::part_fields(&row)),
                None => Ok(Map::new()),
            };
            let (before, after) = (part(&change.before)?, part(&change.after)?);
            target.within_host = Some(WithinHost { scope, before, after });
        }
        if let Some(payload) = change.after.as_ref().or(change.before.as_ref()) {
            Row::<R>::visit(payload, |row| target.describe(&row, tx))?;
        }
        Ok(target)
    }

    /// Sets what the record itself says: the object, its location and its name.
    fn describe<R: Loggable>(&mut self, row: &Row<'_, R>, tx: &impl Tx) -> Result<()> {
        self.scope = R::scope(&row.meta);
        self.item_id = R::item_id(&row.meta);
        (self.organization, self.project) = R::location(&row.meta, tx)?;
        self.named_after = R::named_after(&row.meta);
        if !R::IS_PART && self.named_after.is_none() {
            self.name = R::name(row)?;
            self.short_id = R::short_id(row)?;
        }
        Ok(())
    }

    /// Returns this target as a part of an object with the scope `lead`, if such objects show it.
    #[must_use]
    pub fn within(self, lead: &str) -> Self {
        match self.within_host {
            Some(WithinHost { scope, before, after }) if scope == lead => Self {
                scope,
                item_id: String::new(),
                name: None,
                short_id: None,
                change: "updated",
                before,
                after,
                hidden: Vec::new(),
                is_part: true,
                within_host: None,
                ..self
            },
            _ => self,
        }
    }

    /// Returns whether objects of the scope show this one.
    pub fn is_shown_by(&self, scope: &str) -> bool {
        self.within_host.as_ref().is_some_and(|host| host.scope == scope)
    }
}

/// Returns the visible fields of a record; empty if the record has none.
///
/// # Errors
/// 500 when the stored JSON is damaged.
pub fn public_fields<R: Record>(row: &Row<'_, R>) -> Result<Map<String, Value>> {
    let fields: Option<Map<_, _>> = serde_json::from_slice(row.fields).map_err(Error::internal)?;
    Ok(fields.unwrap_or_default())
}

/// Returns a visible field of a record, if it is a text.
///
/// # Errors
/// 500 when the stored JSON is damaged.
pub fn public_text<R: Record>(row: &Row<'_, R>, field: &str) -> Result<Option<String>> {
    Ok(match public_fields(row)?.remove(field) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    })
}

/// Returns the visible name of a record, if it has one. Skips the rest of its JSON.
///
/// # Errors
/// 500 when the stored JSON is damaged.
pub fn public_name<R: Record>(row: &Row<'_, R>) -> Result<Option<String>> {
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
    }
    let named: Option<Named> = serde_json::from_slice(row.fields).map_err(Error::internal)?;
    Ok(named.and_then(|named| named.name))
}
