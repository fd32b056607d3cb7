//! The actions on a role: remove a member, and delete the role.

use axum::http::Method;

use crate::console::layout::with_notice;
use crate::console::operation::Write;
use crate::console::pages::object::{ObjectPath, ROLES, confirm_delete};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::{Feedback, Role};

const REMOVE: &str =
    "/console/organizations/{organization_id}/roles/{id}/members/{membership_id}/remove/";
const DELETE: &str = "/console/organizations/{organization_id}/roles/{id}/delete/";

/// Adds the actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, REMOVE, remove);
    pages.signed_in(Method::GET, DELETE, delete);
    pages.signed_in(Method::POST, DELETE, delete);
}

async fn remove(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, ROLES)?;
    let membership = crate::console::pages::uuid(&request.visit, "membership_id")?;
    let ids = [object.tenant.as_str(), &object.id, &membership];
    match request.api.attempt(&Write::new("roles_role_memberships_destroy", ids)).await? {
        Ok(_) => Ok(see_other(&with_notice(&object.page(""), "member-removed"))?),
        Err(refusal) => {
            let feedback = Feedback { refusal: Some(refusal), ..Feedback::default() };
            super::show(&request, feedback).await
        }
    }
}

/// Asks before a role is deleted.
async fn delete(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, ROLES)?;
    confirm_delete(&request, &object, "?basic=true", "role-deleted", |role: Role| {
        let text = "The access rules that name the role are deleted too. Members who see a private project only through the \
                    role do not see it any more.";
        object.deletion(&role.name, text, object.write("roles_destroy"))
    })
    .await
}
