//! A nullable field of a PATCH: absent, null or a value. And how sent fields change stored ones.

use serde_json::{Map, Value};

/// The value of a nullable field in a PATCH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// The field was not sent and stays unchanged.
    #[default]
    Absent,
    /// The field was sent as null and is cleared.
    Null,
    /// The field was sent with a value.
    Value(T),
}

impl<T> Patch<T> {
    /// Converts the value, if there is one.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Absent => Patch::Absent,
            Self::Null => Patch::Null,
            Self::Value(value) => Patch::Value(change(value)),
        }
    }

    /// Returns the value, or `None` if the field is absent or null.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }
}

/// A field of a request that may change a stored field of type `T`. An absent field changes nothing.
pub trait Apply<T> {
    /// Writes what was sent into `stored`.
    fn apply(self, stored: &mut T);
}

/// A field that cannot be null.
impl<T, V: Into<T>> Apply<T> for Option<V> {
    fn apply(self, stored: &mut T) {
        if let Some(value) = self {
            *stored = value.into();
        }
    }
}

impl<T, V: Into<T>> Apply<Option<T>> for Patch<V> {
    fn apply(self, stored: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Null => *stored = None,
            Self::Value(value) => *stored = Some(value.into()),
        }
    }
}

/// Null clears a list.
impl<T> Apply<Vec<T>> for Patch<Vec<T>> {
    fn apply(self, stored: &mut Vec<T>) {
        match self {
            Self::Absent => {}
            Self::Null => stored.clear(),
            Self::Value(values) => *stored = values,
        }
    }
}

/// Null clears an object.
impl Apply<Map<String, Value>> for Patch<Map<String, Value>> {
    fn apply(self, stored: &mut Map<String, Value>) {
        match self {
            Self::Absent => {}
            Self::Null => stored.clear(),
            Self::Value(members) => *stored = members,
        }
    }
}
