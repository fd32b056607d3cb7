//! The domains of an organization, and a form that adds one.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, Command, Frame, In, Section, with_notice};
use crate::console::list::List;
use crate::console::operation::Operation;
use crate::console::paging::Paging;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;

const LIST: &str = "/console/organizations/{organization_id}/domains/";

/// The number of domains on a page.
const PAGE_SIZE: u64 = 50;

const FORM: FormSpec = FormSpec::create(
    "Add",
    &[Input::new("domain").label("Domain").hint("In lower case, for example corp.example.")],
);

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
    pages.signed_in(Method::POST, LIST, create);
}

#[derive(Deserialize)]
struct Domain {
    id: String,
    #[serde(rename = "domain")]
    name: String,
    is_verified: bool,
    jit_provisioning_enabled: bool,
    sso_enforcement: String,
    has_saml: bool,
}

#[derive(Template)]
#[template(path = "console/pages/domains/page.html")]
struct DomainsPage {
    base: String,
    domains: Vec<Domain>,
    paging: Paging,
    /// The form of a new domain, if the session may add one.
    form: Option<Form>,
    command: Command,
}

impl Domain {
    fn sign_in(&self) -> &'static str {
        super::domain::provider_name(&self.sso_enforcement)
    }
}

fn operation(organization: &str) -> Operation {
    Operation::new("domains_create", [organization])
}

fn base(organization: &str) -> String {
    format!("/console/organizations/{organization}/domains/")
}

async fn list(request: SignedIn) -> PageResult {
    let organization = super::organization_id(&request.visit)?;
    let operation = operation(&organization);
    let form = if request.api.may(&operation).await? {
        Some(FORM.empty(&request, &operation, &base(&organization))?)
    } else {
        None
    };
    show(&request, &organization, form).await
}

async fn create(request: SignedIn) -> PageResult {
    let organization = super::organization_id(&request.visit)?;
    let base = base(&organization);
    match FORM.sent(&request, operation(&organization), &base)?.send(&request).await? {
        Outcome::Done(domain) => {
            let id = domain.get("id").and_then(Value::as_str).unwrap_or_default();
            Ok(see_other(&with_notice(&format!("{base}{id}/"), "domain-added"))?)
        }
        Outcome::Again(form) => show(&request, &organization, Some(*form)).await,
    }
}

async fn show(request: &SignedIn, organization: &str, form: Option<Form>) -> PageResult {
    let offset = Paging::offset(&request.visit);
    let path =
        format!("/api/organizations/{organization}/domains/?limit={PAGE_SIZE}&offset={offset}");
    let found: List<Domain> = request.api.get(&path).await?;
    let base = base(organization);
    let url = |offset| format!("{base}?offset={offset}");
    let paging = Paging::new(&request.visit, found.results.len(), found.count, PAGE_SIZE, url)?;
    let frame = Frame::load(request, Section::Domains, In::Organization(organization)).await?;
    let status = form.as_ref().map_or(axum::http::StatusCode::OK, Form::status);
    let command = Command::get(&request.visit, &path);
    let page = DomainsPage { base, domains: found.results, paging, form, command };
    Ok(layout::page_with_status(&frame.titled("Domains"), &page, status)?)
}
