//! The question before a dashboard is moved to the trash.

use axum::http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::console::form::{Confirm, ConfirmOption, ConfirmState, answered_before};
use crate::console::layout::with_notice;
use crate::console::pages::dashboard_name;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

use super::rights::{Rights, refusal};

const DELETE: &str = "/console/projects/{project_id}/dashboards/{id}/delete/";

/// The box that deletes the insights too, and the property of the request.
const WITH_INSIGHTS: &str = "delete_insights";

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, DELETE, delete);
    pages.signed_in(Method::POST, DELETE, delete);
}

#[derive(Deserialize)]
struct Dashboard {
    name: Option<String>,
    is_shared: bool,
    #[serde(flatten)]
    rights: Rights,
}

async fn delete(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    let done = with_notice(&object.list(), "dashboard-deleted");
    let done = format!("{done}&undo={}", object.id);
    let found: Dashboard = match request.api.get(&object.api("")).await {
        Ok(found) => found,
        Err(error) => return answered_before(&request, error, &done),
    };
    let frame = object.frame(&request).await?;
    let refusal = refusal(&request, &object.tenant, &found.rights).await?;
    let is_checked = request.visit.form.value(WITH_INSIGHTS) == "true";
    let body = if is_checked {
        json!({ "deleted": true, WITH_INSIGHTS: true })
    } else {
        json!({ "deleted": true })
    };
    let closed = if found.is_shared { " Its public page is closed." } else { "" };
    let confirm = Confirm {
        question: format!("Delete the dashboard {}?", dashboard_name(found.name.as_deref())),
        text: format!(
            "The dashboard moves to the trash with its tiles. It can be restored there.{closed}"
        ),
        name: None,
        submit: "Delete the dashboard".to_owned(),
        action: object.page("delete/"),
        back: object.page(""),
        write: object.write("dashboards_partial_update").body(body),
        state: ConfirmState::default(),
    };
    let option = ConfirmOption {
        name: WITH_INSIGHTS,
        label: "Delete its insights too",
        hint: "Those that no other dashboard shows and that you may edit.",
        is_checked,
    };
    confirm.with_option(option).refused_for(refusal).respond(&request, frame, &done).await
}
