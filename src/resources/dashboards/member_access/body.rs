//! The JSON of a member's access to a dashboard or an insight.

use serde::Serialize;
use utoipa::ToSchema;

use crate::ids::{MembershipId, RoleId};
use crate::json::{WrittenBy, output};
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::projects::grants::GrantLevel;
use crate::resources::users::{self, EmbeddedUser};

output! {
    /// What a member may do with a dashboard or an insight, and why.
    pub struct MemberAccessBody<'a> as MemberAccess {
        /// The user.
        user: EmbeddedUser as users::Fields,
        /// The id of the membership, to name the member in an access rule.
        organization_member: MembershipId,
        /// What the member may do with the object, with regard to access rules, restriction and collaborators.
        access_level: AccessLevel,
        /// Whether the member may edit the access rules on the object.
        can_edit_access_levels: bool,
        /// Each rule that can decide the access, in the order of precedence. Exactly one decides.
        because: WrittenBy<'a> as Vec<Reason>,
    }
}

output! {
    /// A rule that can decide a member's access to a dashboard or an insight.
    pub struct Reason as AccessReason {
        /// The rule.
        rule: ReasonRule,
        /// Whom the rule names, for `project_default`, `project_rule`, `object_rule` and `kind_rule`.
        subject: Option<ReasonSubject>,
        /// ID of the role that the rule names. Of several roles of the member, the one with the highest level.
        role: Option<RoleId>,
        /// Name of the role. Null for a key that may not list roles.
        role_name: Option<String>,
        /// The level on the object that the rule gives, that of the member if the rule decides. Null if the rule does not
        /// exist or does not apply to the member.
        access_level: Option<AccessLevel>,
        /// The level on the project that the rule gives, for `project_default` and `project_rule`.
        project_level: Option<GrantLevel>,
        /// Whether the rule was considered. It was not if a rule of higher precedence decided.
        reached: bool,
        /// Whether the rule decides `access_level` of the member.
        decided: bool,
        /// The rule, in words.
        text: String,
    }
}

/// A kind of rule that can decide a member's access to a dashboard or an insight, in the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = AccessReasonRule)]
#[serde(rename_all = "snake_case")]
pub enum ReasonRule {
    /// The user is a member of the organization.
    OrganizationMember,
    /// Admins and owners of the organization manage every object.
    OrganizationAdmin,
    /// Whether the project is open to all members or private. It decides if no rule opens a private project.
    ProjectDefault,
    /// A rule on the project.
    ProjectRule,
    /// The creator manages the object.
    Creator,
    /// A rule on the object.
    ObjectRule,
    /// A rule on all objects of the kind.
    KindRule,
    /// Without a rule, everyone is an editor.
    NoRule,
    /// Only collaborators may edit a dashboard, or an insight because a restricted dashboard shows it. It decides for an
    /// editor who is not exempt.
    Restriction,
    /// Collaborators of a restricted dashboard keep the level that access rules give. Only for dashboards.
    Collaborator,
    /// Members whom the restriction of one of the dashboards with the insight lets edit keep the level that access rules
    /// give. Only for insights.
    DashboardEditor,
}

/// Whom a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = AccessReasonSubject)]
#[serde(rename_all = "snake_case")]
pub enum ReasonSubject {
    /// The member.
    Member,
    /// A role of the member.
    Role,
    /// Everyone.
    Everyone,
}
