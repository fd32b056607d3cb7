//! How the activity log describes a type of record: its names, its place, its fields, and who may read its entries.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::base::error::{Error, Result};
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::shared::access_objects::Object;
use crate::store::{Change, Key, Record, Reference, Row, Tx, WriteTx};

/// The object of an entry, and where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogEntity {
    /// The id of the object; empty if the record is part of the object that the rule named.
    pub item_id: String,
    /// The organization whose log contains the entry.
    pub organization: Option<OrganizationId>,
    /// The project whose log contains the entry.
    pub project: Option<ProjectId>,
}

impl LogEntity {
    /// Creates the object with this id.
    pub fn new(
        id: impl Display,
        organization: Option<OrganizationId>,
        project: Option<ProjectId>,
    ) -> Self {
        Self { item_id: id.to_string(), organization, project }
    }
}

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
    /// The scope of the objects that the record is part of. Creating or deleting the record is then an update of its
    /// object. If this is the record's own scope, the record never has an entry of its own, unless the rule names it.
    /// Otherwise it is part of the object that the rule names, and has an entry of its own if the rule names the record
    /// or nothing.
    const PARENT: Option<&'static str> = None;

    /// Returns the type of the object in the entry. A type of records whose objects have several types overrides this;
    /// the types of the objects declare the actions.
    fn scope(_meta: &Self::Meta) -> &'static str {
        Self::SCOPE
    }

    /// Returns the object of the entry.
    fn entity(meta: &Self::Meta, tx: &impl Tx) -> Result<LogEntity>;

    /// Returns the object in an `item_id` of the scope. Only members that may see the object may read the entry.
    fn object_of(_item_id: &str) -> Option<Object> {
        None
    }

    /// Returns the name of the object that the entry shows.
    fn name(row: &Row<'_, Self>) -> Result<Option<String>> {
        parse_name(row.fields)
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

    /// Returns the fields whose changes the entry of a [`PARENT`](Self::PARENT) records. If it may have several parts of
    /// this type, the names of the fields include the id of the record.
    fn part_fields(row: &Row<'_, Self>, tx: &impl Tx) -> Result<Map<String, Value>> {
        Self::fields(row, tx)
    }
}

/// The fields of a record by name.
type Fields = Map<String, Value>;
/// The name and the short id of an object, if it has them.
type Names = (Option<String>, Option<String>);

/// A [`Loggable`] type.
#[derive(Clone, Copy)]
pub struct LogRules {
    /// [`Loggable::SCOPE`].
    pub scope: &'static str,
    /// [`Loggable::ACTIONS`].
    pub actions: &'static [FieldAction],
    /// [`Loggable::ADMINS_ONLY`].
    pub admins_only: bool,
    /// [`Loggable::object_of`].
    pub object_of: fn(&str) -> Option<Object>,
    /// Returns the name and the short id of the record with an encoded key.
    pub names_of: fn(&WriteTx<'_>, &[u8]) -> Result<Names>,
    hidden: &'static [&'static str],
    log_all_fields: bool,
    parent: Option<&'static str>,
    blank: fn() -> Result<Option<Fields>>,
    fields: fn(&[u8], &WriteTx<'_>) -> Result<Fields>,
    part_fields: fn(&[u8], &WriteTx<'_>) -> Result<Fields>,
    describe: fn(&mut LogTarget, &[u8], &WriteTx<'_>) -> Result<()>,
}

impl LogRules {
    /// Returns the rules of the type `R`.
    pub const fn of<R: Loggable>() -> Self {
        Self {
            scope: R::SCOPE,
            actions: R::ACTIONS,
            admins_only: R::ADMINS_ONLY,
            object_of: R::object_of,
            names_of: |tx, mut key| {
                let Some(key) = R::Key::read(&mut key) else { return Ok((None, None)) };
                let names = tx.view::<R, _>(&key, |row| Ok((R::name(&row)?, R::short_id(&row)?)));
                Ok(names?.unwrap_or_default())
            },
            hidden: R::HIDDEN,
            log_all_fields: R::LOG_ALL_FIELDS,
            parent: R::PARENT,
            blank: R::blank,
            fields: |payload, tx| R::fields(&Row::read(payload)?, tx),
            part_fields: |payload, tx| R::part_fields(&Row::read(payload)?, tx),
            describe: LogTarget::describe::<R>,
        }
    }

    /// Returns how an entry describes the changed record.
    fn logged_as(&self, tx: &WriteTx<'_>, change: &Change) -> LoggedAs {
        let subjects = tx.log_subjects();
        if subjects.iter().any(|(table, key)| *table == change.table && *key == change.key) {
            LoggedAs::Subject
        } else if self.is_only_part() || self.parent.is_some() && !subjects.is_empty() {
            LoggedAs::Part
        } else {
            LoggedAs::Object
        }
    }

    /// Returns whether a record of this type has no entry of its own unless the rule names it.
    fn is_only_part(&self) -> bool {
        self.parent == Some(self.scope)
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

/// How an entry describes a changed record. The entry of an object lists its records in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoggedAs {
    /// As the object that the rule named.
    Subject,
    /// As an object, which may have several records.
    Object,
    /// As a part of an object.
    Part,
}

/// A changed record, as the log describes it.
pub struct LogTarget {
    /// How an entry describes the record.
    pub logged_as: LoggedAs,
    /// The type of the object in the entry.
    pub scope: &'static str,
    /// The object, and where it is.
    pub entity: LogEntity,
    /// The name of the object, if it has one.
    pub name: Option<String>,
    /// The short id of the object, if it has one.
    pub short_id: Option<String>,
    /// The record whose name the entry shows instead.
    pub named_after: Option<Reference>,
    /// `created`, `updated` or `deleted`.
    pub change: &'static str,
    /// The fields before the change; empty if the record did not exist.
    pub before: Map<String, Value>,
    /// The fields after the change; empty if the record was deleted.
    pub after: Map<String, Value>,
    /// Fields with secret values.
    pub hidden: Vec<&'static str>,
    /// Whether `created` and `deleted` entries list the fields.
    pub log_all_fields: bool,
    /// Whether more changed than the version.
    pub is_changed: bool,
    /// The scope of the objects that the record can be part of.
    pub parent: Option<&'static str>,
}

impl LogTarget {
    /// Describes the change of a record.
    pub fn of(rules: &LogRules, tx: &WriteTx<'_>, change: &Change) -> Result<Self> {
        let logged_as = rules.logged_as(tx, change);
        let is_part = logged_as == LoggedAs::Part;
        let blank = (rules.blank)()?;
        let verb = match (&change.before, &change.after) {
            _ if is_part || blank.is_some() => "updated",
            (None, _) => "created",
            (Some(_), None) => "deleted",
            (Some(_), Some(_)) => "updated",
        };
        let is_version_only = change.is_version_only()?;
        let fields = |payload: &Option<Vec<u8>>| match (verb, payload) {
            _ if is_version_only => Ok(Map::new()),
            (_, Some(payload)) if is_part => (rules.part_fields)(payload, tx),
            (_, Some(payload)) if rules.log_all_fields || verb == "updated" => {
                (rules.fields)(payload, tx)
            }
            ("updated", None) => Ok(blank.clone().unwrap_or_default()),
            _ => Ok(Map::new()),
        };
        let mut target = Self {
            logged_as,
            scope: rules.parent.filter(|_| is_part).unwrap_or(rules.scope),
            entity: LogEntity::default(),
            name: None,
            short_id: None,
            named_after: None,
            change: verb,
            before: fields(&change.before)?,
            after: fields(&change.after)?,
            hidden: rules.hidden.to_vec(),
            log_all_fields: rules.log_all_fields,
            is_changed: !is_version_only,
            parent: rules.parent,
        };
        if let Some(payload) = change.after.as_ref().or(change.before.as_ref()) {
            (rules.describe)(&mut target, payload, tx)?;
        }
        if is_part && !rules.is_only_part() {
            target.entity.item_id.clear();
        }
        Ok(target)
    }

    /// Sets what the record itself says: the object, its location and its name.
    fn describe<R: Loggable>(&mut self, payload: &[u8], tx: &WriteTx<'_>) -> Result<()> {
        let row = Row::<R>::read(payload)?;
        self.entity = R::entity(&row.meta, tx)?;
        if self.logged_as == LoggedAs::Part {
            return Ok(());
        }
        self.scope = R::scope(&row.meta);
        self.named_after = R::named_after(&row.meta);
        if self.named_after.is_none() {
            self.name = R::name(&row)?;
            self.short_id = R::short_id(&row)?;
        }
        Ok(())
    }

    /// Returns whether the entry of `object` includes the change.
    pub fn belongs_to(&self, object: &Self) -> bool {
        let item_id = &self.entity.item_id;
        self.scope == object.scope && (*item_id == object.entity.item_id || item_id.is_empty())
    }

    /// Adds the change of another record to the entry.
    pub fn add(&mut self, other: Self) {
        self.name = self.name.take().or(other.name);
        self.before.extend(other.before);
        self.after.extend(other.after);
        self.hidden.extend(other.hidden);
        self.log_all_fields |= other.log_all_fields;
        self.is_changed |= other.is_changed;
    }
}

/// Returns the visible fields of a record; empty if the record has none.
pub fn public_fields<R: Record>(row: &Row<'_, R>) -> Result<Map<String, Value>> {
    parse_fields(row.fields)
}

fn parse_fields(json: &[u8]) -> Result<Fields> {
    let fields: Option<Fields> = serde_json::from_slice(json).map_err(Error::internal)?;
    Ok(fields.unwrap_or_default())
}

/// Returns a visible field of a record, if it is a text.
pub fn public_text<R: Record>(row: &Row<'_, R>, field: &str) -> Result<Option<String>> {
    Ok(match public_fields(row)?.remove(field) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    })
}

/// Returns the visible name of a record, if its JSON has one. Skips the rest of the JSON.
fn parse_name(json: &[u8]) -> Result<Option<String>> {
    #[derive(Deserialize)]
    struct Named {
        name: Option<String>,
    }
    let named: Option<Named> = serde_json::from_slice(json).map_err(Error::internal)?;
    Ok(named.and_then(|named| named.name))
}
