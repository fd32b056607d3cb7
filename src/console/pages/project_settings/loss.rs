//! The actions that cannot be undone: a new token, and the deletion of the project.

use axum::http::Method;

use crate::console::form::{Confirm, ConfirmState, answered_before};
use crate::console::layout::{Frame, In, Section, with_notice};
use crate::console::model::Project;
use crate::console::operation::Write;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

const TOKEN: &str = "/console/projects/{project_id}/settings/token/";
const DELETE: &str = "/console/projects/{project_id}/settings/delete/";

/// Adds the pages to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, TOKEN, reset_token);
    pages.signed_in(Method::POST, TOKEN, reset_token);
    pages.signed_in(Method::GET, DELETE, delete);
    pages.signed_in(Method::POST, DELETE, delete);
}

async fn reset_token(request: SignedIn) -> PageResult {
    let project = crate::console::pages::project_id(&request.visit)?;
    let back = super::path(&project);
    let frame = Frame::load(&request, Section::ProjectSettings, In::Project(&project)).await?;
    let confirm = Confirm {
        question: "Replace the project token?".to_owned(),
        text: "The project gets a new token at once. Clients that send the old one have to be configured again.".to_owned(),
        name: None,
        submit: "Replace the token".to_owned(),
        action: format!("{back}token/"),
        back: back.clone(),
        write: Write::new("projects_reset_token_partial_update", [&project]),
        state: ConfirmState::default(),
    };
    confirm.respond(&request, frame, &with_notice(&back, "token-replaced")).await
}

async fn delete(request: SignedIn) -> PageResult {
    let id = crate::console::pages::project_id(&request.visit)?;
    let project: Project = match request.api.get(&format!("/api/projects/{id}/")).await {
        Ok(found) => found,
        // The organization of a deleted project is unknown.
        Err(error) => {
            let done = with_notice("/console/", "project-deleted");
            return answered_before(&request, error, &done);
        }
    };
    let frame = Frame::load(&request, Section::ProjectSettings, In::Project(&id)).await?;
    let base = super::path(&id);
    let confirm = Confirm {
        question: format!("Delete the project {}?", project.name),
        text: "The project and everything in it disappear at once: dashboards, insights, batch exports and public links. This cannot be undone.".to_owned(),
        name: Some(project.name),
        submit: "Delete the project".to_owned(),
        action: format!("{base}delete/"),
        back: base,
        write: Write::new("projects_destroy", [&id]),
        state: ConfirmState::default(),
    };
    let done = format!("/console/organizations/{}/projects/", project.organization);
    confirm.respond(&request, frame, &with_notice(&done, "project-deleted")).await
}
