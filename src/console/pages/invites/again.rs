//! The actions on one invite: create it again, which sends a new mail or returns a new link, and delete it.

use axum::http::Method;

use crate::console::api::Write;
use crate::console::form::{Confirm, ConfirmState, ONCE, answered_before};
use crate::console::layout::{Frame, In, Section, with_notice};
use crate::console::model::{Invite, List};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::{Feedback, base, create};

const AGAIN: &str = "/console/organizations/{organization_id}/invites/again/";
const DELETE: &str = "/console/organizations/{organization_id}/invites/{id}/delete/";

/// The number of invites that one request reads to find the one to delete.
const SEARCHED_AT_ONCE: usize = 1000;

/// The field with the request body.
const INVITE: &str = "invite";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, AGAIN, again);
    pages.signed_in(Method::GET, DELETE, delete);
    pages.signed_in(Method::POST, DELETE, delete);
}

/// Replaces an invite by an equal one.
async fn again(request: SignedIn) -> PageResult {
    let organization = super::super::organization_id(&request.visit)?;
    let form = &request.visit.form;
    let body = serde_json::from_str(form.value(INVITE))
        .map_err(|_| Error::field(INVITE, "invalid_input", "This is not valid JSON."))?;
    let write = Write::new("invites_create", [&organization]).body(body).once(form.value(ONCE));
    match request.api.attempt(&write).await? {
        Ok(invite) => create::created(&request, &organization, &[invite], 1).await,
        Err(refusal) => refused(&request, refusal).await,
    }
}

/// Asks before an invite is deleted.
async fn delete(request: SignedIn) -> PageResult {
    let organization = super::super::organization_id(&request.visit)?;
    let id = super::super::uuid(&request.visit, "id")?;
    let list = base(&organization);
    let done = with_notice(&list, "invite-deleted");
    let Some(invite) = find(&request, &organization, &id).await? else {
        return answered_before(&request, Error::not_found(), &done);
    };
    let frame = Frame::load(&request, Section::Invites, In::Organization(&organization)).await?;
    let confirm = Confirm {
        question: format!("Delete the invite of {}?", invite.target_email),
        text: "Its link stops working at once. To let the address join, invite it again."
            .to_owned(),
        name: None,
        submit: "Delete the invite".to_owned(),
        action: format!("{list}{id}/delete/"),
        back: list,
        write: Write::new("invites_destroy", [&organization, &id]),
        state: ConfirmState::default(),
    };
    confirm.respond(&request, frame, &done).await
}

/// Finds an invite in the list, because the API returns no single one.
async fn find(request: &SignedIn, organization: &str, id: &str) -> Result<Option<Invite>> {
    let path = format!("/api/organizations/{organization}/invites/?limit={SEARCHED_AT_ONCE}");
    let mut offset = 0;
    loop {
        let page: List<Invite> = request.api.get(&format!("{path}&offset={offset}")).await?;
        let is_last = page.results.len() < SEARCHED_AT_ONCE;
        let found = page.results.into_iter().find(|invite| invite.id == id);
        if found.is_some() || is_last {
            return Ok(found);
        }
        offset += SEARCHED_AT_ONCE;
    }
}

async fn refused(request: &SignedIn, refusal: Error) -> PageResult {
    let feedback = Feedback { refusal: Some(refusal), ..Feedback::default() };
    super::show(request, feedback).await
}
