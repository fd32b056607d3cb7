//! The actions on a domain: verify and delete it.

use axum::http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::console::form::{Confirm, ConfirmState, ONCE, answered_before};
use crate::console::layout::{Frame, In, Section, with_notice};
use crate::console::operation::Write;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use super::{Domain, ids, list};

const VERIFY: &str = "/console/organizations/{organization_id}/domains/{id}/verify/";
const DELETE: &str = "/console/organizations/{organization_id}/domains/{id}/delete/";

/// Adds the actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, VERIFY, verify);
    pages.signed_in(Method::GET, DELETE, delete);
    pages.signed_in(Method::POST, DELETE, delete);
}

/// Verifies the domain. The API succeeds too if the record is not there, so the domain is read again.
async fn verify(request: SignedIn) -> PageResult {
    #[derive(Deserialize)]
    struct Verified {
        is_verified: bool,
    }
    let (organization, id) = ids(&request)?;
    let write = Write::new("domains_verify_create", [&organization, &id]).body(json!({}));
    let write = write.once(request.visit.form.value(ONCE));
    let refusal = match request.api.attempt(&write).await? {
        Ok(_) => {
            let path = format!("/api/organizations/{organization}/domains/{id}/");
            if request.api.get::<Verified>(&path).await?.is_verified {
                let page = format!("{}{id}/", list(&organization));
                return Ok(see_other(&with_notice(&page, "domain-verified"))?);
            }
            Error::invalid(
                "invalid_input",
                "The record was not found, so the domain is not verified.",
            )
        }
        Err(refusal) => refusal,
    };
    super::show(&request, None, Some(refusal)).await
}

/// Asks before a domain is deleted.
async fn delete(request: SignedIn) -> PageResult {
    let (organization, id) = ids(&request)?;
    let path = format!("/api/organizations/{organization}/domains/{id}/");
    let list = list(&organization);
    let done = with_notice(&list, "domain-deleted");
    let domain: Domain = match request.api.get(&path).await {
        Ok(domain) => domain,
        Err(error) => return answered_before(&request, error, &done),
    };
    let frame = Frame::load(&request, Section::Domains, In::Organization(&organization)).await?;
    let confirm = Confirm {
        question: format!("Delete the domain {}?", domain.name),
        text: "Its settings are lost, and any organization can add the domain. To add it again, you have to prove again \
               that it is yours."
            .to_owned(),
        name: None,
        submit: "Delete the domain",
        action: format!("{list}{id}/delete/"),
        back: format!("{list}{id}/"),
        write: Write::new("domains_destroy", [&organization, &id]),
        state: ConfirmState::default(),
    };
    confirm.respond(&request, frame, &done).await
}
