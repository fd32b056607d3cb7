//! The question before a dashboard or an insight is moved to the trash.

use axum::http::Method;

use crate::console::form::{ConfirmOption, answered_before};
use crate::console::layout::with_notice;
use crate::console::pages::object::ObjectPath;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::{DASHBOARD, INSIGHT, Shareable, ShareableKind, deletion_body};

const DELETE: [(&str, &ShareableKind); 2] = [
    ("/console/projects/{project_id}/dashboards/{id}/delete/", DASHBOARD),
    ("/console/projects/{project_id}/insights/{id}/delete/", INSIGHT),
];

/// The box that deletes the insights too, and the property of the request.
const WITH_INSIGHTS: &str = "delete_insights";

pub(super) fn routes(pages: &mut Pages<'_>) {
    for (path, kind) in DELETE {
        pages.signed_in(Method::GET, path, move |request| delete(request, kind));
        pages.signed_in(Method::POST, path, move |request| delete(request, kind));
    }
}

async fn delete(request: SignedIn, kind: &'static ShareableKind) -> PageResult {
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let done = format!("{}&undo={}", with_notice(&object.list(), kind.deleted), object.id);
    let found: Shareable = match request.api.get(&object.api("")).await {
        Ok(found) => found,
        Err(error) => return answered_before(&request, error, &done),
    };
    let done = if found.is_unsaved() { format!("{done}&unsaved=true") } else { done };
    let frame = object.frame(&request).await?;
    let refusal = kind.refusal(&request, &object.tenant, &found.rights).await?;
    let is_checked = !kind.is_insight && request.visit.form.value(WITH_INSIGHTS) == "true";
    let mut body = deletion_body(true, found.saved);
    if is_checked {
        body[WITH_INSIGHTS] = true.into();
    }
    let closed = if found.is_shared { " Its public page is closed." } else { "" };
    let text = format!("{}{closed}", kind.consequences);
    let write = object.write(kind.update).body(body);
    let mut confirm = object.deletion(kind.name(&found), text, write).refused_for(refusal);
    if !kind.is_insight {
        confirm = confirm.with_option(ConfirmOption {
            name: WITH_INSIGHTS,
            label: "Delete its insights too",
            hint: "Those that no other dashboard shows and that you may edit.",
            is_checked,
        });
    }
    confirm.respond(&request, frame, &done).await
}
