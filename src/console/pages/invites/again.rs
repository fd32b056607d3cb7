//! The actions on one invite: create it again, which sends a new mail or returns a new link, and delete it.

use axum::http::Method;

use crate::console::form::ONCE;
use crate::console::layout::with_notice;
use crate::console::operation::Write;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use super::{Feedback, base, create};

const AGAIN: &str = "/console/organizations/{organization_id}/invites/again/";
const DELETE: &str = "/console/organizations/{organization_id}/invites/{id}/delete/";

/// The field with the request body.
const INVITE: &str = "invite";

/// Adds the actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, AGAIN, again);
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
        Ok(invite) => create::created(&request, &organization, &invite).await,
        Err(refusal) => refused(&request, refusal).await,
    }
}

async fn delete(request: SignedIn) -> PageResult {
    let organization = super::super::organization_id(&request.visit)?;
    let id = super::super::uuid(&request.visit, "id")?;
    match request.api.attempt(&Write::new("invites_destroy", [&organization, &id])).await? {
        Ok(_) => Ok(see_other(&with_notice(&base(&organization), "invite-deleted"))?),
        Err(refusal) => refused(&request, refusal).await,
    }
}

async fn refused(request: &SignedIn, refusal: Error) -> PageResult {
    let feedback = Feedback { refusal: Some(refusal), ..Feedback::default() };
    super::show(request, feedback).await
}
