//! The JSON of access rules.

use crate::ids::{MembershipId, RoleId};
use crate::json::{WrittenBy, output};
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::projects::grants::GrantLevel;
use crate::resources::users;
use crate::time::Timestamp;

output! {
    /// The access rules on a project, and the caller's own access.
    pub struct ProjectAccessControls<'a> {
        /// The rules, in the order of their creation.
        access_controls: WrittenBy<'a> as Vec<ProjectAccessControl>,
        /// The levels of a rule, lowest first.
        available_access_levels: &'a [GrantLevel] as Vec<GrantLevel>,
        /// The level of everyone: of the rule without a member and a role, otherwise `member`.
        default_access_level: GrantLevel,
        /// The caller's level.
        user_access_level: GrantLevel,
        /// Whether the caller may edit the rules.
        user_can_edit_access_levels: bool,
    }
}

output! {
    /// An access rule on a project.
    pub struct ProjectAccessControl {
        /// The level in the project.
        access_level: GrantLevel,
        /// The fields that all rules have.
        ..rule: Rule,
    }
}

output! {
    /// The access rules on an object, or on all objects of each kind in a project, and the caller's own access.
    pub struct ObjectAccessControls<'a> {
        /// The rules, in the order of their creation.
        access_controls: WrittenBy<'a> as Vec<ObjectAccessControl>,
        /// The levels of a rule, lowest first.
        available_access_levels: &'a [AccessLevel] as Vec<AccessLevel>,
        /// The level of everyone to whom no rule applies.
        default_access_level: AccessLevel,
        /// The caller's level.
        user_access_level: AccessLevel,
        /// Whether the caller may edit the rules.
        user_can_edit_access_levels: bool,
    }
}

output! {
    /// An access rule on an object, or on all objects of a kind in a project.
    pub struct ObjectAccessControl {
        /// The level on the object or objects.
        access_level: AccessLevel,
        /// The fields that all rules have.
        ..rule: Rule,
    }
}

output! {
    /// The fields that all access rules have.
    pub struct Rule {
        /// The kind of the object: `project`, `dashboard`, `insight` or another.
        resource: &'static str as String,
        /// ID of the object. Null for a rule on all objects of a kind.
        resource_id: Option<String>,
        /// ID of the membership, not of the user. Null for a role, and for everyone by default.
        organization_member: Option<MembershipId>,
        /// ID of the role. Null for a member, and for everyone by default.
        role: Option<RoleId>,
        /// Always null: the creator of a rule is only in the activity log.
        created_by: Option<users::Fields> = null,
        /// When the rule was created.
        created_at: Timestamp,
        /// When the level last changed.
        updated_at: Timestamp,
    }
}
