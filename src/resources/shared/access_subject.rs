//! To whom an access rule applies. See `docs/spec/access-controls.md`.

use std::fmt;

use crate::resources::members::Membership;
use crate::resources::roles::Role;
use crate::resources::shared::prelude::*;

/// To whom an access rule applies. In keys, the rule for everyone sorts first and members sort last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// Every member of the project, by default.
    Everyone,
    /// The members of a role.
    Role(RoleId),
    /// One member.
    User(UserId),
}

impl Subject {
    /// Returns the role, if the rule names one.
    pub const fn role(self) -> Option<RoleId> {
        match self {
            Self::Role(role) => Some(role),
            Self::Everyone | Self::User(_) => None,
        }
    }

    /// Returns the user, if the rule names a member.
    pub const fn user(self) -> Option<UserId> {
        match self {
            Self::User(user) => Some(user),
            Self::Everyone | Self::Role(_) => None,
        }
    }

    /// Calls `visit` with the user, if the rule names a member.
    pub fn visit_user(&mut self, visit: &mut dyn FnMut(&mut UserId)) {
        if let Self::User(user) = self {
            visit(user);
        }
    }

    /// Returns what a rule in this organization refers to by its subject.
    pub fn reference(self, organization: OrganizationId) -> Option<Reference> {
        match self {
            Self::Everyone => None,
            Self::Role(role) => Some(Reference::to::<Role>(&(organization, role))),
            Self::User(user) => Some(Reference::to::<Membership>(&(organization, user))),
        }
    }
}

/// Returns the highest level that rules give these subjects, and the first subject that gets it. `level_of` returns the
/// level of the rule for a subject.
pub fn highest<L: Ord>(
    subjects: impl IntoIterator<Item = Subject>,
    mut level_of: impl FnMut(Subject) -> Result<Option<L>>,
) -> Result<Option<(L, Subject)>> {
    let mut highest = None;
    for subject in subjects {
        if let Some(level) = level_of(subject)?
            && highest.as_ref().is_none_or(|(known, _)| level > *known)
        {
            highest = Some((level, subject));
        }
    }
    Ok(highest)
}

/// As the activity log names the subject: `*`, the id of the role, or the number of the user.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("*"),
            Self::Role(role) => role.fmt(f),
            Self::User(user) => user.fmt(f),
        }
    }
}

impl Key for Subject {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Everyone => 0_u8.write(out),
            Self::Role(role) => (1_u8, *role).write(out),
            Self::User(user) => (2_u8, *user).write(out),
        }
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        match u8::read(input)? {
            0 => Some(Self::Everyone),
            1 => RoleId::read(input).map(Self::Role),
            2 => UserId::read(input).map(Self::User),
            _ => None,
        }
    }
}
