//! The actions on a domain: verify and delete it.

use axum::http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::console::form::ONCE;
use crate::console::layout::with_notice;
use crate::console::pages::object::{DOMAINS, ObjectPath, confirm_delete};
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
    confirm_delete(&request, &object, "", "domain-deleted", |domain: Domain| {
        let text = "Its settings are lost, and any organization can add the domain. To add it again, you have to prove \
                    again that it is yours.";
        object.deletion(&domain.name, text, object.write("domains_destroy"))
    })
    .await
}
