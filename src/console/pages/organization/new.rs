//! A new organization.

use askama::Template;
use axum::http::Method;
use serde_json::{Value, json};

use crate::console::api::{Operation, Write};
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::headers::see_other;
use crate::console::layout::{self, Frame, In, Section, with_notice};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

const NEW: &str = "/console/organizations/new/";

const CREATE: &str = "organizations_create";

const FORM: FormSpec = FormSpec::create(
    "Create the organization",
    &[Input::new("name")
        .label("Name")
        .hint("The organization starts with one project. You become its owner.")],
);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, NEW, page);
    pages.signed_in(Method::POST, NEW, create);
}

#[derive(Template)]
#[template(path = "console/pages/organization/new.html")]
struct NewOrganizationPage {
    form: Form,
}

async fn page(request: SignedIn) -> PageResult {
    let form = FORM.empty(&request, &Operation::new(CREATE, []), NEW)?;
    let example = Write::new(CREATE, []).body(json!({ "name": "New organization" }));
    let refusal = request.api.dry_run(&example).await?.map(|error| error.detail().to_owned());
    show(&request, form.refused_for(refusal)).await
}

async fn create(request: SignedIn) -> PageResult {
    match FORM.sent(&request, Operation::new(CREATE, []), NEW)?.send(&request).await? {
        Outcome::Done(organization) => {
            let id = organization.get("id").and_then(Value::as_str).unwrap_or_default();
            let path = format!("/console/organizations/{id}/settings/");
            Ok(see_other(&with_notice(&path, "organization-created"))?)
        }
        Outcome::Again(form) => show(&request, *form).await,
    }
}

async fn show(request: &SignedIn, form: Form) -> PageResult {
    let frame = Frame::load(request, Section::Other, In::Nothing).await?;
    let status = form.status();
    let page = NewOrganizationPage { form };
    Ok(layout::page_with_status(&frame.titled("New organization"), &page, status)?)
}
