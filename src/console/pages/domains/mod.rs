//! The domains of an organization: their list, and a form that adds one.

mod one;

use super::prelude::*;
use one::provider_name;

const FORM: FormSpec = FormSpec::create(
    "Add",
    &[Input::new("domain").label("Domain").hint("In lower case, for example corp.example.")],
);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.page("/console/organizations/{organization_id}/domains/", show, create);
    one::routes(pages);
}

#[derive(Template)]
#[template(path = "console/pages/domains/list.html")]
struct DomainsPage {
    base: String,
    list: ListPage<Domain>,
    /// The form of a new domain, if the session may add one.
    form: Option<Form>,
}

impl Domain {
    fn sign_in(&self) -> &'static str {
        provider_name(&self.sso_enforcement)
    }
}

fn operation(organization: &str) -> Operation {
    Operation::new("domains_create", [organization])
}

async fn create(request: SignedIn) -> PageResult {
    let organization = organization_id(&request.visit)?;
    let base = DOMAINS.list(&organization);
    match FORM.sent(&request, operation(&organization), &base)?.send(&request).await? {
        Outcome::Done(domain) => finish(&page_of(&base, &domain), "domain-added"),
        Outcome::Again(form) => show(request, form.into()).await,
    }
}

async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let organization = organization_id(&request.visit)?;
    let base = DOMAINS.list(&organization);
    let (operation, empty) = (operation(&organization), Versioned::default());
    let form = FORM.offered(&request, &operation, &base, &empty, &mut feedback).await?;
    let list = ListSpec::new(DOMAINS.api(&organization), &base);
    let list = list_page(&request, list).await?;
    let frame = DOMAINS.frame(&request, &organization).await?.titled("Domains");
    Ok(layout::page(&feedback.on(frame), &DomainsPage { base, list, form })?)
}
