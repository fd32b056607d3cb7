//! The permissions of a key, and the rule that decides whether they are within those of another key.

use std::collections::BTreeMap;

use crate::resources::projects;
use crate::resources::shared::prelude::*;

use super::{Meta, Scopes};

/// The permissions of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPermissions {
    /// The user that the key acts for.
    pub user: UserId,
    /// The scopes of the key.
    pub scopes: Scopes,
    /// The organizations that the key is limited to; empty for no limit.
    pub organizations: Vec<OrganizationId>,
    /// The projects that the key is limited to; empty for no limit. A key limited to projects cannot access
    /// organizations.
    pub projects: Vec<ProjectId>,
    /// When the key expires; `None` for never.
    pub expires_at: Option<Timestamp>,
}

/// The fields that limit which organizations and projects a key can access.
pub(super) const TENANT_FIELDS: &str = "scoped_organizations, scoped_teams";

impl KeyPermissions {
    /// Returns the permissions of a key.
    pub fn of(key: Meta) -> Self {
        let Meta { user, scopes, organizations, projects, expires_at, .. } = key;
        Self { user, scopes, organizations, projects, expires_at }
    }

    /// Returns the permissions of a key without limits.
    ///
    /// # Errors
    /// Does not fail in practice: `*` is a scope.
    pub fn all_of(user: UserId) -> Result<Self> {
        let scopes = Scopes::new(vec!["*".to_owned()])?;
        Ok(Self { user, scopes, organizations: Vec::new(), projects: Vec::new(), expires_at: None })
    }

    /// Returns whether the key has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Returns whether the key is limited neither to organizations nor to projects.
    pub const fn is_unscoped(&self) -> bool {
        self.organizations.is_empty() && self.projects.is_empty()
    }

    /// Returns the names of the first fields by which this key has more access than `other`, or `None` if it is within
    /// `other`. `organization_of` returns the organization of a project, or `None` if the project was deleted. A deleted project
    /// gives no access, and its id is never reused.
    ///
    /// The rule compares what the keys can access, so it is reflexive and transitive. A key limited to projects is
    /// within a key limited to their organizations. A key without any access is within many keys; this is safe because
    /// an update cannot give a key more access than the keys had that created its values
    /// ([`Grantors`](super::Grantors)).
    pub fn exceeds(
        &self,
        other: &Self,
        organization_of: impl Fn(ProjectId) -> Option<OrganizationId>,
    ) -> Option<&'static str> {
        if self.user != other.user {
            return Some("user_id");
        }
        if !self.scopes.are_within(&other.scopes) {
            return Some("scopes");
        }
        if !self.tenants_within(other, organization_of) {
            return Some(TENANT_FIELDS);
        }
        let outlasts =
            other.expires_at.is_some_and(|end| self.expires_at.is_none_or(|mine| mine > end));
        outlasts.then_some("expires_at")
    }

    fn tenants_within(
        &self,
        other: &Self,
        organization_of: impl Fn(ProjectId) -> Option<OrganizationId>,
    ) -> bool {
        if !self.projects.is_empty() {
            let opened = self.projects.iter().filter_map(|id| Some((*id, organization_of(*id)?)));
            return opened
                .filter(|(project, organization)| self.opens(*project, *organization))
                .all(|(project, organization)| other.opens(project, organization));
        }
        let mut mine = self.organizations.iter();
        other.is_unscoped()
            || other.projects.is_empty()
                && !self.organizations.is_empty()
                && mine.all(|id| other.organizations.contains(id))
    }

    /// Returns whether the key's limits include an organization: they name it, or they name only projects and one of
    /// these belongs to it.
    pub fn includes_organization(
        &self,
        id: OrganizationId,
        organization_of: impl Fn(ProjectId) -> Option<OrganizationId>,
    ) -> bool {
        if !self.organizations.is_empty() {
            return self.organizations.contains(&id);
        }
        let mut named = self.projects.iter();
        self.projects.is_empty() || named.any(|project| organization_of(*project) == Some(id))
    }

    /// Returns whether the key's limits include a project: they name it, or they name only organizations and it belongs
    /// to one of these.
    pub fn includes_project(&self, id: ProjectId, organization: Option<OrganizationId>) -> bool {
        if !self.projects.is_empty() {
            return self.projects.contains(&id);
        }
        let mut named = self.organizations.iter();
        self.organizations.is_empty() || named.any(|known| organization == Some(*known))
    }

    /// Returns whether the key can access a project. A key limited to organizations and projects must name both.
    fn opens(&self, project: ProjectId, organization: OrganizationId) -> bool {
        (self.projects.is_empty() || self.projects.contains(&project))
            && (self.organizations.is_empty() || self.organizations.contains(&organization))
    }
}

/// Returns the names of the first fields by which `one` has more access than `other`, or `None` if it is within `other`.
pub(super) fn exceeds(
    tx: &dyn Raw,
    one: &KeyPermissions,
    other: &KeyPermissions,
) -> Result<Option<&'static str>> {
    let organizations = organizations_of(tx, &one.projects)?;
    Ok(one.exceeds(other, |id| organizations.get(&id).copied()))
}

/// The organization of each project that exists.
pub(super) fn organizations_of(
    tx: &dyn Raw,
    projects: &[ProjectId],
) -> Result<BTreeMap<ProjectId, OrganizationId>> {
    let mut organizations = BTreeMap::new();
    for id in projects {
        if let Some(project) = projects::find_by_id(tx, *id)? {
            organizations.insert(*id, project.organization);
        }
    }
    Ok(organizations)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const SCOPES: [&str; 5] =
        ["*", "dashboard:read", "dashboard:write", "user:read", "personal_api_key:write"];

    fn organization(number: u8) -> OrganizationId {
        OrganizationId(Uuid::from_u128(number.into()))
    }

    /// Three organizations with two projects each; the last project was deleted.
    fn organization_of(project: ProjectId) -> Option<OrganizationId> {
        (project.0 < 5).then(|| organization(u8::try_from(project.0 / 2).unwrap_or(0)))
    }

    fn permissions() -> impl Strategy<Value = KeyPermissions> {
        (
            proptest::sample::subsequence(SCOPES.to_vec(), 1..=3),
            proptest::sample::subsequence(vec![0u8, 1, 2], 0..=2),
            proptest::sample::subsequence(vec![0u64, 1, 2, 3, 4, 5], 0..=3),
            proptest::option::of(0i64..3),
        )
            .prop_map(|(scopes, organizations, projects, end)| KeyPermissions {
                user: UserId(1),
                scopes: Scopes::new(scopes.into_iter().map(str::to_owned).collect())
                    .expect("scopes"),
                organizations: organizations.into_iter().map(organization).collect(),
                projects: projects.into_iter().map(ProjectId).collect(),
                expires_at: end.map(Timestamp::from_micros),
            })
    }

    /// A target of a request.
    #[derive(Debug, Clone, Copy)]
    enum Resource {
        /// Creating or joining an organization, which only keys without limits may do.
        Anywhere,
        Organization(OrganizationId),
        Project(ProjectId),
    }

    /// The authorization of a request, written independently of the code under test.
    fn may(key: &KeyPermissions, scope: &str, tenant: Resource, now: Timestamp) -> bool {
        let live = key.expires_at.is_none_or(|end| now < end);
        let among =
            |id: &OrganizationId| key.organizations.is_empty() || key.organizations.contains(id);
        let open = match tenant {
            Resource::Anywhere => key.organizations.is_empty() && key.projects.is_empty(),
            Resource::Organization(id) => key.projects.is_empty() && among(&id),
            Resource::Project(id) => {
                (key.projects.is_empty() || key.projects.contains(&id))
                    && organization_of(id).is_some_and(|organization| among(&organization))
            }
        };
        live && key.scopes.allows(scope) && open
    }

    fn everything() -> impl Iterator<Item = (&'static str, Resource, Timestamp)> {
        let places = (0..3)
            .map(|number| Resource::Organization(organization(number)))
            .chain((0..6).map(|number| Resource::Project(ProjectId(number))))
            .chain([Resource::Anywhere]);
        places.flat_map(|tenant| {
            SCOPES.iter().flat_map(move |scope| {
                (0..3).map(move |moment| (*scope, tenant, Timestamp::from_micros(moment)))
            })
        })
    }

    fn within(one: &KeyPermissions, other: &KeyPermissions) -> bool {
        one.exceeds(other, organization_of).is_none()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn key_within_another_has_no_more_permissions(
            one in permissions(), other in permissions(),
        ) {
            if within(&one, &other) {
                for (scope, tenant, now) in everything() {
                    let case = (scope, tenant, now);
                    prop_assert!(
                        !may(&one, scope, tenant, now) || may(&other, scope, tenant, now), "{case:?}"
                    );
                }
            }
        }

        #[test]
        fn key_is_within_itself(one in permissions()) {
            prop_assert!(within(&one, &one));
        }

        #[test]
        fn key_containment_is_transitive(
            one in permissions(), two in permissions(), three in permissions(),
        ) {
            prop_assert!(!within(&one, &two) || !within(&two, &three) || within(&one, &three));
        }

        #[test]
        fn restricted_key_is_within_the_original(
            one in permissions(), cut in permissions(), narrower in any::<[bool; 3]>(),
        ) {
            let mut less = one.clone();
            if narrower[0] && one.projects.is_empty() {
                less.projects.clone_from(&cut.projects);
            }
            if narrower[1] && one.organizations.is_empty() {
                less.organizations.clone_from(&cut.organizations);
            }
            if narrower[2] && one.expires_at.is_none() {
                less.expires_at = cut.expires_at;
            }
            prop_assert!(within(&less, &one), "{:?}", less.exceeds(&one, organization_of));
        }
    }

    #[test]
    fn project_key_is_within_the_key_of_its_organization() {
        let all = KeyPermissions {
            user: UserId(1),
            scopes: Scopes::new(vec!["*".to_owned()]).expect("a scope"),
            organizations: Vec::new(),
            projects: Vec::new(),
            expires_at: None,
        };
        let limited = |organizations: &[u8], projects: &[u64]| KeyPermissions {
            organizations: organizations.iter().copied().map(organization).collect(),
            projects: projects.iter().copied().map(ProjectId).collect(),
            ..all.clone()
        };
        for (one, other, expected) in [
            (limited(&[], &[0]), limited(&[0], &[]), true),
            (limited(&[0], &[]), limited(&[], &[0, 1]), false),
            (limited(&[], &[0, 2]), limited(&[0], &[]), false),
            // Keys limited to organizations and projects can access the projects that match both.
            (limited(&[0], &[0, 2]), limited(&[0], &[]), true),
            (limited(&[0], &[0, 2]), limited(&[], &[0]), true),
            (limited(&[], &[0, 2]), limited(&[0], &[0, 2]), false),
            (limited(&[1], &[0]), limited(&[2], &[]), true),
            // A deleted project gives no access, but the list is still a limit.
            (limited(&[], &[0, 5]), limited(&[0], &[]), true),
            (all.clone(), limited(&[], &[5]), false),
            (limited(&[0], &[]), limited(&[], &[5]), false),
        ] {
            assert_eq!(within(&one, &other), expected, "{one:?} within {other:?}");
        }
        let theirs = KeyPermissions { user: UserId(2), ..all.clone() };
        assert_eq!(theirs.exceeds(&all, organization_of), Some("user_id"));
    }
}
