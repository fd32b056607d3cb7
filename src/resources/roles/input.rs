//! The request bodies that create and update a role, and add a member to it.

use crate::input;
use crate::input::{Name, Required, UuidField};

input! {
    /// The role to create, or to replace.
    pub struct NewRole {
        /// The name of the role. No other role of the organization may have it, without regard to case.
        name: Required<Name<200>>,
    }
}

input! {
    /// The fields of a role to update.
    pub struct RolePatch {
        /// The name of the role. No other role of the organization may have it, without regard to case.
        name: Name<200>,
    }
}

input! {
    /// The member to add to a role.
    pub struct NewRoleMembership {
        /// The UUID of the user, who must be a member of the organization.
        user_uuid: Required<UuidField>,
    }
}
