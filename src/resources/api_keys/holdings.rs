//! What a key holds, and the one rule that says whether a key lies within another (decisions §2, Issuing).

use serde::{Deserialize, Serialize};

use crate::ids::{OrganizationId, ProjectId, UserId};
use crate::time::Timestamp;

use super::{Head, Scopes};

/// All that a key holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holdings {
    /// For whom it acts.
    pub user: UserId,
    /// What it may do.
    pub scopes: Scopes,
    /// The organizations it is limited to; empty for no limit.
    pub organizations: Vec<OrganizationId>,
    /// The projects it is limited to, which opens no organization besides; empty for no limit.
    pub projects: Vec<ProjectId>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

/// What a key has beyond another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// It acts for somebody else.
    User,
    /// A scope.
    Scopes,
    /// An organization or a project.
    Places,
    /// Time.
    Expiry,
}

impl Excess {
    /// The fields that say so.
    pub const fn fields(self) -> &'static str {
        match self {
            Self::User => "user_id",
            Self::Scopes => "scopes",
            Self::Places => "scoped_organizations, scoped_teams",
            Self::Expiry => "expires_at",
        }
    }
}

impl Holdings {
    /// What a key holds.
    pub fn of(key: Head) -> Self {
        let Head { user, scopes, organizations, projects, expires_at, .. } = key;
        Self { user, scopes, organizations, projects, expires_at }
    }

    /// Whether it is limited to no organization and to no project.
    pub const fn is_unlimited(&self) -> bool {
        self.organizations.is_empty() && self.projects.is_empty()
    }

    /// What this key has beyond `other`; none where it lies within it. `organization_of` tells where a project
    /// is; none for one that was removed, which opens nothing and whose number is never given again.
    ///
    /// This is a relation between what the keys open: so it is reflexive and transitive, and a key limited to
    /// projects lies within one limited to their organizations. A key that opens nothing lies within many, which
    /// is safe because no value of it comes to open more than its maker ([`Makers`](super::Makers)).
    pub fn beyond(
        &self,
        other: &Self,
        organization_of: impl Fn(ProjectId) -> Option<OrganizationId>,
    ) -> Option<Excess> {
        if self.user != other.user {
            return Some(Excess::User);
        }
        if !self.scopes.are_within(&other.scopes) {
            return Some(Excess::Scopes);
        }
        if !self.places_within(other, organization_of) {
            return Some(Excess::Places);
        }
        let outlasts =
            other.expires_at.is_some_and(|end| self.expires_at.is_none_or(|mine| mine > end));
        outlasts.then_some(Excess::Expiry)
    }

    fn places_within(
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
        other.is_unlimited()
            || other.projects.is_empty()
                && !self.organizations.is_empty()
                && mine.all(|id| other.organizations.contains(id))
    }

    /// Whether it opens a project of an organization. One limited to both opens the projects that both name.
    fn opens(&self, project: ProjectId, organization: OrganizationId) -> bool {
        (self.projects.is_empty() || self.projects.contains(&project))
            && (self.organizations.is_empty() || self.organizations.contains(&organization))
    }
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

    /// Two projects in each of three organizations; the last project was removed.
    fn organization_of(project: ProjectId) -> Option<OrganizationId> {
        (project.0 < 5).then(|| organization(u8::try_from(project.0 / 2).unwrap_or(0)))
    }

    fn holdings() -> impl Strategy<Value = Holdings> {
        (
            proptest::sample::subsequence(SCOPES.to_vec(), 1..=3),
            proptest::sample::subsequence(vec![0u8, 1, 2], 0..=2),
            proptest::sample::subsequence(vec![0u64, 1, 2, 3, 4, 5], 0..=3),
            proptest::option::of(0i64..3),
        )
            .prop_map(|(scopes, organizations, projects, end)| Holdings {
                user: UserId(1),
                scopes: Scopes::new(scopes.into_iter().map(str::to_owned).collect())
                    .expect("scopes"),
                organizations: organizations.into_iter().map(organization).collect(),
                projects: projects.into_iter().map(ProjectId).collect(),
                expires_at: end.map(Timestamp::from_micros),
            })
    }

    /// One thing that a request can be about.
    #[derive(Debug, Clone, Copy)]
    enum Place {
        /// What only keys without limits do: creating an organization, joining one.
        Anywhere,
        Organization(OrganizationId),
        Project(ProjectId),
    }

    /// What the gate lets a key do, told anew from decisions §2.
    fn may(key: &Holdings, scope: &str, place: Place, now: Timestamp) -> bool {
        let live = key.expires_at.is_none_or(|end| now < end);
        let among =
            |id: &OrganizationId| key.organizations.is_empty() || key.organizations.contains(id);
        let open = match place {
            Place::Anywhere => key.organizations.is_empty() && key.projects.is_empty(),
            Place::Organization(id) => key.projects.is_empty() && among(&id),
            Place::Project(id) => {
                (key.projects.is_empty() || key.projects.contains(&id))
                    && organization_of(id).is_some_and(|organization| among(&organization))
            }
        };
        live && key.scopes.allow(scope) && open
    }

    fn everything() -> impl Iterator<Item = (&'static str, Place, Timestamp)> {
        let places = (0..3)
            .map(|number| Place::Organization(organization(number)))
            .chain((0..6).map(|number| Place::Project(ProjectId(number))))
            .chain([Place::Anywhere]);
        places.flat_map(|place| {
            SCOPES.iter().flat_map(move |scope| {
                (0..3).map(move |moment| (*scope, place, Timestamp::from_micros(moment)))
            })
        })
    }

    fn within(one: &Holdings, other: &Holdings) -> bool {
        one.beyond(other, organization_of).is_none()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_key_within_another_may_do_nothing_that_the_other_may_not(
            one in holdings(), other in holdings(),
        ) {
            if within(&one, &other) {
                for (scope, place, now) in everything() {
                    let told = (scope, place, now);
                    prop_assert!(
                        !may(&one, scope, place, now) || may(&other, scope, place, now), "{told:?}"
                    );
                }
            }
        }

        #[test]
        fn every_key_lies_within_itself(one in holdings()) {
            prop_assert!(within(&one, &one));
        }

        #[test]
        fn what_lies_within_lies_within_all_around(
            one in holdings(), two in holdings(), three in holdings(),
        ) {
            prop_assert!(!within(&one, &two) || !within(&two, &three) || within(&one, &three));
        }

        #[test]
        fn a_key_cut_down_lies_within_what_it_was(
            one in holdings(), cut in holdings(), narrower in any::<[bool; 3]>(),
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
            prop_assert!(within(&less, &one), "{:?}", less.beyond(&one, organization_of));
        }
    }

    #[test]
    fn a_key_limited_to_projects_lies_within_one_limited_to_their_organization() {
        let all = Holdings {
            user: UserId(1),
            scopes: Scopes::new(vec!["*".to_owned()]).expect("a scope"),
            organizations: Vec::new(),
            projects: Vec::new(),
            expires_at: None,
        };
        let limited = |organizations: &[u8], projects: &[u64]| Holdings {
            organizations: organizations.iter().copied().map(organization).collect(),
            projects: projects.iter().copied().map(ProjectId).collect(),
            ..all.clone()
        };
        for (one, other, expected) in [
            (limited(&[], &[0]), limited(&[0], &[]), true),
            (limited(&[0], &[]), limited(&[], &[0, 1]), false),
            (limited(&[], &[0, 2]), limited(&[0], &[]), false),
            // Limited to both: what both name.
            (limited(&[0], &[0, 2]), limited(&[0], &[]), true),
            (limited(&[0], &[0, 2]), limited(&[], &[0]), true),
            (limited(&[], &[0, 2]), limited(&[0], &[0, 2]), false),
            (limited(&[1], &[0]), limited(&[2], &[]), true),
            // A removed project opens nothing, and is no want of a limit.
            (limited(&[], &[0, 5]), limited(&[0], &[]), true),
            (all.clone(), limited(&[], &[5]), false),
            (limited(&[0], &[]), limited(&[], &[5]), false),
        ] {
            assert_eq!(within(&one, &other), expected, "{one:?} within {other:?}");
        }
        let theirs = Holdings { user: UserId(2), ..all.clone() };
        assert_eq!(theirs.beyond(&all, organization_of), Some(Excess::User));
    }
}
