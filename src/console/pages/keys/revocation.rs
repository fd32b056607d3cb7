//! Asks before a key is revoked.

use axum::http::Method;

use crate::console::form::{Confirm, ConfirmState, answered_before};
use crate::console::layout::{Frame, In, Section, with_notice};
use crate::console::model::Key;
use crate::console::operation::Write;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::LIST;
use super::key::{id, path};

const REVOKE: &str = "/console/keys/{id}/revoke/";

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, REVOKE, revoke);
    pages.signed_in(Method::POST, REVOKE, revoke);
}

async fn revoke(request: SignedIn) -> PageResult {
    let id = id(&request.visit)?;
    let done = with_notice(LIST, "key-revoked");
    let key: Key = match request.api.get(&format!("/api/personal_api_keys/{id}/")).await {
        Ok(key) => key,
        Err(error) => return answered_before(&request, error, &done),
    };
    let own = Key::of_session(&request).await?;
    let text = if own.is_some_and(|own| own.id == key.id) {
        "This session uses the key and ends with it. Programs that send the key stop working at once."
    } else {
        "Programs that send the key stop working at once. This cannot be undone."
    };
    let confirm = Confirm {
        question: format!("Revoke the key {}?", key.label),
        text: text.to_owned(),
        name: None,
        submit: "Revoke the key".to_owned(),
        action: format!("{}revoke/", path(&id)),
        back: path(&id),
        write: Write::new("personal_api_keys_destroy", [&id]),
        state: ConfirmState::default(),
    };
    let frame = Frame::load(&request, Section::Keys, In::Nothing).await?;
    confirm.respond(&request, frame, &done).await
}
