//! A nullable field of a PATCH: absent, null or a value.

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
    /// Applies the field to `slot`.
    pub fn apply(self, slot: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Null => *slot = None,
            Self::Value(value) => *slot = Some(value),
        }
    }

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

/// Sets `slot` if the field was sent, for a field that cannot be null.
pub fn set<T>(slot: &mut T, sent: Option<T>) {
    if let Some(value) = sent {
        *slot = value;
    }
}
