//! What a route asks of its caller: declared beside the path, enforced by the gate, walked by the
//! authorization test.

use crate::resources::members::Level;

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy)]
pub struct Needs {
    /// The scope the key must carry.
    pub scope: Option<&'static str>,
    /// The least level in the organization.
    pub level: Level,
    /// Whether plain members come in only where the organization lets them invite.
    pub inviting: bool,
    /// What keys that are limited to organizations or projects cannot do here, where there is something.
    pub unlimited: Option<&'static str>,
    /// Why the route is open to everybody, where it is.
    pub public: Option<&'static str>,
    /// Whether an open route looks at a key where one is sent.
    pub optional: bool,
}

impl Needs {
    /// A key with this scope.
    pub const fn scope(scope: &'static str) -> Self {
        Self { scope: Some(scope), ..Self::any_key() }
    }

    /// A key, whatever its scopes.
    pub const fn any_key() -> Self {
        Self {
            scope: None,
            level: Level::Member,
            inviting: false,
            unlimited: None,
            public: None,
            optional: false,
        }
    }

    /// Nothing, for this reason.
    pub const fn nothing(why: &'static str) -> Self {
        Self { public: Some(why), ..Self::any_key() }
    }

    /// What it asks, of those who send a key; nothing of the others, for this reason.
    #[must_use]
    pub const fn or_nobody(mut self, why: &'static str) -> Self {
        self.public = Some(why);
        self.optional = true;
        self
    }

    /// A key that is not limited to organizations or projects, for those cannot do this: "create an
    /// organization" (decisions §2).
    #[must_use]
    pub const fn unlimited(mut self, what: &'static str) -> Self {
        self.unlimited = Some(what);
        self
    }

    /// The right to invite besides: admins have it, plain members by the organization's leave.
    #[must_use]
    pub const fn inviting(mut self) -> Self {
        self.inviting = true;
        self
    }

    /// At least this level besides.
    #[must_use]
    pub const fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

/// What a path is about, which decides how a key's restrictions apply. Told from the path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The caller themselves, or the projects they may see.
    Caller,
    /// The caller's organizations.
    Organizations,
    /// One organization.
    Organization,
    /// One project of one organization, both named.
    OrganizationProject,
    /// One project.
    Project,
    /// Something in a project.
    InProject,
}

impl Target {
    /// What the path is about.
    pub fn of(path: &str) -> Self {
        let organization = path.contains("{organization_id}");
        let project = path.contains("{project_id}");
        let itself = path.ends_with("{project_id}/");
        match (organization, project) {
            (true, true) => Self::OrganizationProject,
            (true, false) => Self::Organization,
            (false, true) if itself => Self::Project,
            (false, true) => Self::InProject,
            (false, false) if path.starts_with("/api/organizations/") => Self::Organizations,
            (false, false) => Self::Caller,
        }
    }
}
