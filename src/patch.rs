//! Absent, null or a value: what a PATCH can say of a nullable field.

/// One nullable field of a PATCH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// The field was not sent: leave it as it is.
    #[default]
    Absent,
    /// The field was sent as null: clear it.
    Null,
    /// The field was sent with a value.
    Value(T),
}

impl<T> Patch<T> {
    /// Writes what was sent into `slot`; an absent field leaves it alone.
    pub fn apply(self, slot: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Null => *slot = None,
            Self::Value(value) => *slot = Some(value),
        }
    }

    /// What was sent, its value changed by `change`.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Absent => Patch::Absent,
            Self::Null => Patch::Null,
            Self::Value(value) => Patch::Value(change(value)),
        }
    }

    /// The value, or none where the field was absent or null.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }
}

/// Writes what was sent into `slot`, for a field that cannot be null.
pub fn set<T>(slot: &mut T, sent: Option<T>) {
    if let Some(value) = sent {
        *slot = value;
    }
}
