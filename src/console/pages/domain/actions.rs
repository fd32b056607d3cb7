//! The actions on a domain: verify and delete it.

use axum::http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::console::form::{Confirm, ConfirmState, ONCE, answered_before};
use crate::console::layout::with_notice;
use crate::console::pages::object::{DOMAINS, ObjectPath};
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use super::{Domain, VERIFY};

const VERIFYING: &str = "/console/organizations/{organization_id}/domains/{id}/verify/";
const DELETE: &str = "/console/organizations/{organization_id}/domains/{id}/delete/";

/// Adds the actions to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::POST, VERIFYING, verify);
    pages.signed_in(Method::GET, DELETE, delete);
    pages.signed_in(Method::POST, DELETE, delete);
}

/// Verifies the domain. The API succeeds too if the record is not there, so the domain is read again.
async fn verify(request: SignedIn) -> PageResult {
    #[derive(Deserialize)]
    struct Verified {
        is_verified: bool,
    }
    let object = ObjectPath::of(&request.visit, DOMAINS)?;
    let write = object.write(VERIFY).body(json!({})).once(request.visit.form.value(ONCE));
    let refusal = match request.api.attempt(&write).await? {
        Ok(_) => {
            if request.api.get::<Verified>(&object.api("")).await?.is_verified {
                return Ok(see_other(&with_notice(&object.page(""), "domain-verified"))?);
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
    let object = ObjectPath::of(&request.visit, DOMAINS)?;
    let done = with_notice(&object.list(), "domain-deleted");
    let domain: Domain = match request.api.get(&object.api("")).await {
        Ok(domain) => domain,
        Err(error) => return answered_before(&request, error, &done),
    };
    let frame = object.frame(&request).await?;
    let confirm = Confirm {
        question: format!("Delete the domain {}?", domain.name),
        text: "Its settings are lost, and any organization can add the domain. To add it again, you have to prove again \
               that it is yours."
            .to_owned(),
        name: None,
        submit: "Delete the domain",
        action: object.page("delete/"),
        back: object.page(""),
        write: object.write("domains_destroy"),
        state: ConfirmState::default(),
    };
    confirm.respond(&request, frame, &done).await
}
