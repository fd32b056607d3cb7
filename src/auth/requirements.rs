//! The requirements of a route. The route table declares them, [`authorize`](super::authorize) enforces them, and the
//! authorization test checks those of every route.

use crate::resources::members::Level;

/// The requirements of a route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Requirements {
    /// The scope that the key must have.
    pub scope: Option<&'static str>,
    /// The minimum level in the organization.
    pub level: Level,
    /// Whether the caller needs the permission to invite, which an organization can deny to plain members.
    pub can_invite: bool,
    /// What restricted keys cannot do here, as the end of "... cannot"; `None` if the route accepts them.
    pub unscoped_key: Option<&'static str>,
    /// Why the route needs no key, if it is public.
    pub public: Option<&'static str>,
    /// Whether a public route checks a key if the request has one.
    pub optional: bool,
}

impl Requirements {
    /// Requires a key with this scope.
    pub fn scope(scope: &'static str) -> Self {
        Self { scope: Some(scope), ..Self::default() }
    }

    /// Requires a key, with any scopes.
    pub fn any_key() -> Self {
        Self::default()
    }

    /// Requires nothing, for the reason `why`.
    pub fn public(why: &'static str) -> Self {
        Self { public: Some(why), ..Self::default() }
    }

    /// Requires nothing of requests without a key, for the reason `why`. Requests with a key must meet the
    /// requirements.
    #[must_use]
    pub const fn optional(mut self, why: &'static str) -> Self {
        self.public = Some(why);
        self.optional = true;
        self
    }

    /// Rejects keys that are restricted to organizations or projects. `what` completes the sentence "... cannot", for
    /// example `create an organization`.
    #[must_use]
    pub const fn unscoped_key(mut self, what: &'static str) -> Self {
        self.unscoped_key = Some(what);
        self
    }

    /// Requires the permission to invite: admins have it, plain members only if the organization's settings grant it.
    #[must_use]
    pub const fn can_invite(mut self) -> Self {
        self.can_invite = true;
        self
    }

    /// Requires at least this level.
    #[must_use]
    pub const fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

/// The kind of object that a path names. It decides how a key's restrictions apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathTarget {
    /// The caller, or the projects that the caller may see.
    Caller,
    /// The caller's organizations.
    Organizations,
    /// One organization.
    Organization,
    /// One project, named together with its organization.
    OrganizationProject,
    /// One project.
    Project,
    /// An object inside a project.
    InProject,
}

impl PathTarget {
    /// Returns the target of a route's path template.
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
