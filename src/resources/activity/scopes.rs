//! The scopes of the log, which are the types of objects in its entries.

use std::sync::LazyLock;

use crate::resources::shared::access_objects::Object;
use crate::resources::shared::list::logged_records;
use crate::resources::shared::loggable::FieldAction;

/// What all types of records with one scope declare together.
pub(super) struct Scope {
    /// The type of the object, as the API names it.
    pub(super) name: &'static str,
    /// The actions that all scopes have, and those of this scope.
    pub(super) actions: Vec<FieldAction>,
    /// Whether only admins may read the entries.
    pub(super) admins_only: bool,
    object_of: Vec<fn(&str) -> Option<Object>>,
}

/// The actions of objects that stay restorable when they are deleted.
const DELETED: FieldAction =
    FieldAction::Switched { field: "deleted", on: "deleted", off: "restored" };

/// All scopes, in the order of their resources.
pub(super) static SCOPES: LazyLock<Vec<Scope>> = LazyLock::new(|| {
    let mut scopes: Vec<Scope> = Vec::new();
    for rules in logged_records().filter_map(|record| record.log_rules()) {
        let at = scopes.iter().position(|scope| scope.name == rules.scope);
        let at = at.unwrap_or_else(|| {
            let (actions, object_of) = (vec![DELETED], Vec::new());
            scopes.push(Scope { name: rules.scope, actions, admins_only: false, object_of });
            scopes.len() - 1
        });
        if let Some(scope) = scopes.get_mut(at) {
            scope.actions.extend(rules.actions);
            scope.admins_only |= rules.admins_only;
            scope.object_of.push(rules.object_of);
        }
    }
    scopes
});

impl Scope {
    /// Returns the scope with this name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        SCOPES.iter().find(|scope| scope.name == name)
    }

    /// Returns the object that the `item_id` of an entry names.
    pub(super) fn object_of(&self, item_id: &str) -> Option<Object> {
        self.object_of.iter().find_map(|object_of| object_of(item_id))
    }
}
