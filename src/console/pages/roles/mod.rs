//! The roles of an organization: their list, and a form that creates one.

mod one;

use super::prelude::*;

const FORM: FormSpec = FormSpec::create("Create", &[Input::new("name").label("Name")]);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/organizations/{organization_id}/roles/", show, create);
    one::routes(pages);
}

#[derive(Template)]
#[template(path = "console/pages/roles/list.html")]
struct RolesPage {
    base: String,
    list: ListPage<Role>,
    /// The form of a new role, if the session may create one.
    form: Option<Form>,
}

fn operation(organization: &str) -> Operation {
    Operation::new("roles_create", [organization])
}

async fn create(request: SignedIn) -> PageResult {
    let organization = organization_id(&request.visit)?;
    let base = ROLES.list(&organization);
    match FORM.sent(&request, operation(&organization), &base)?.send(&request).await? {
        Outcome::Done(role) => finish(&page_of(&base, &role), "role-created"),
        Outcome::Again(form) => show(request, form.into()).await,
    }
}

async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let organization = organization_id(&request.visit)?;
    let base = ROLES.list(&organization);
    let (operation, empty) = (operation(&organization), Versioned::default());
    let form = FORM.offered(&request, &operation, &base, &empty, &mut feedback).await?;
    let api_query = Query::of([("basic", "true"), LIMIT]);
    let list = ListSpec { api_query, ..ListSpec::new(ROLES.api(&organization), &base) };
    let list = list_page(&request, list).await?;
    let frame = ROLES.frame(&request, &organization).await?.titled("Roles");
    Ok(layout::page(&feedback.on(frame), &RolesPage { base, list, form })?)
}
