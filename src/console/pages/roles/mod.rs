//! The roles of an organization: their list, and a form that creates one.

mod one;

use crate::console::model::Role;

use super::prelude::*;

const FORM: FormSpec = FormSpec::create("Create", &[Input::new("name").label("Name")]);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.form("/console/organizations/{organization_id}/roles/", list, create);
    one::routes(pages);
}

#[derive(Template)]
#[template(path = "console/pages/roles/list.html")]
struct RolesPage {
    base: String,
    roles: Vec<Role>,
    paging: Paging,
    /// The form of a new role, if the session may create one.
    form: Option<Form>,
    command: Command,
}

fn operation(organization: &str) -> Operation {
    Operation::new("roles_create", [organization])
}

async fn list(request: SignedIn) -> PageResult {
    show(&request, None).await
}

async fn create(request: SignedIn) -> PageResult {
    let organization = organization_id(&request.visit)?;
    let base = ROLES.list(&organization);
    match FORM.sent(&request, operation(&organization), &base)?.send(&request).await? {
        Outcome::Done(role) => finish(&page_of(&base, &role), "role-created"),
        Outcome::Again(form) => show(&request, Some(*form)).await,
    }
}

/// Shows the list with a form that was sent, or with a new one.
async fn show(request: &SignedIn, sent: Option<Form>) -> PageResult {
    let organization = organization_id(&request.visit)?;
    let base = ROLES.list(&organization);
    let (operation, empty) = (operation(&organization), Versioned::default());
    let form = FORM.offered(request, &operation, &base, &empty, sent).await?;
    let api_query = Query::of([("basic", "true"), LIMIT]);
    let list = ListSpec { api_query, ..ListSpec::new(ROLES.api(&organization), &base) };
    let ListPage { rows: roles, paging, command } = list_page(request, list).await?;
    let frame = ROLES.frame(request, &organization).await?;
    let status = form.as_ref().map_or(StatusCode::OK, Form::status);
    let page = RolesPage { base, roles, paging, form, command };
    Ok(layout::page_with_status(&frame.titled("Roles"), &page, status)?)
}
