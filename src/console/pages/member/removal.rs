//! Asks before a member is removed, or leaves.

use axum::http::Method;

use crate::console::form::{Confirm, ConfirmState, answered_before};
use crate::console::layout::with_notice;
use crate::console::pages::members::{Member, own_uuid};
use crate::console::pages::object::{MEMBERS, ObjectPath};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

const REMOVE: &str = "/console/organizations/{organization_id}/members/{user_uuid}/remove/";

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, REMOVE, remove);
    pages.signed_in(Method::POST, REMOVE, remove);
}

async fn remove(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, MEMBERS)?;
    let frame = object.frame(&request).await?;
    let done = with_notice(&object.list(), "member-removed");
    let member: Member = match request.api.get(&object.api("")).await {
        Ok(member) => member,
        Err(error) => return answered_before(&request, error, &done),
    };
    let is_own = own_uuid(&request, &object.tenant).await?.as_ref() == Some(&member.user.uuid);
    let (question, submit, done) = if is_own {
        ("Leave the organization?".to_owned(), "Leave", with_notice("/console/", "left"))
    } else {
        (format!("Remove {}?", member.name()), "Remove", done)
    };
    let confirm = Confirm {
        question,
        text: "The membership, its roles and access rules, and pending invites by this member end at once. Dashboards and \
               other content stay. The member's API keys open nothing in this organization any more."
            .to_owned(),
        name: None,
        submit: submit.to_owned(),
        action: object.page("remove/"),
        back: object.page(""),
        write: object.write("members_destroy"),
        state: ConfirmState::default(),
    };
    confirm.respond(&request, frame, &done).await
}
