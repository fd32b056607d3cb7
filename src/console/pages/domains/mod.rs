//! The domains of an organization: their list with a form that adds one, the proof of ownership, and how people with addresses
//! in a domain sign in.

use super::prelude::*;

const FORM: FormSpec = FormSpec::create(
    "Add",
    &[Input::new("domain").label("Domain").hint("In lower case, for example corp.example.")],
);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.form("/console/organizations/{organization_id}/domains/", &list_domains);
    pages.page("/console/organizations/{organization_id}/domains/{id}/", &show, &save);
    pages.post("/console/organizations/{organization_id}/domains/{id}/verify/", &verify);
    pages.form("/console/organizations/{organization_id}/domains/{id}/delete/", &|request| {
        let (destroy, notice) = ("domains_destroy", "domain-deleted");
        confirm_delete(request, DOMAINS, ["", "domain"], destroy, notice, DELETION)
    });
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
        let known = PROVIDERS.iter().find(|(known, _)| *known == self.sso_enforcement);
        known.map_or("Another way", |(_, name)| name)
    }
}

async fn list_domains(request: SignedIn) -> PageResult {
    let organization = request.visit.organization_id()?;
    let base = DOMAINS.list(&organization);
    let create = Operation::new("domains_create", [&organization]);
    let mut feedback = Feedback::default();
    if request.visit.sends_form() {
        match FORM.sent(&request, create.clone(), &base)?.send(&request).await? {
            Ok(domain) => return finish(&page_of(&base, &domain), "domain-added"),
            Err(form) => feedback = form.into(),
        }
    }
    let empty = Versioned::default();
    let form = FORM.offered(&request, &create, &base, &empty, &mut feedback).await?;
    let list =
        list_page(&request, ListSpec::new(DOMAINS.api(&organization), &base)).await.read()?;
    feedback.show(&request, "Domains", &DomainsPage { base, list, form }).await
}

/// The operation that changes a domain.
const UPDATE: &str = "domains_partial_update";
/// The operation that verifies a domain.
const VERIFY_OPERATION: &str = "domains_verify_create";

/// The values of `sso_enforcement`.
const PROVIDERS: &[(&str, &str)] = &[
    ("", "Any way"),
    ("google-oauth2", "Google"),
    ("github", "GitHub"),
    ("gitlab", "GitLab"),
    ("saml", "SAML"),
];

const SAML: [Input; 3] = [
    Input::new("saml_entity_id")
        .heading("SAML")
        .label("Entity id")
        .hint("That of the identity provider.")
        .shape(Shape::Line),
    Input::new("saml_acs_url")
        .label("URL")
        .hint("That of the identity provider.")
        .shape(Shape::Line),
    Input::new("saml_x509_cert")
        .label("Certificate")
        .hint("The signing certificate of the identity provider, as PEM or as its base64.")
        .shape(Shape::Area),
];

const UNVERIFIED: FormSpec = FormSpec::change("Save", &SAML);

const VERIFIED: FormSpec = FormSpec::change(
    "Save",
    &[
        Input::new("sso_enforcement")
            .label("Required way to sign in")
            .hint("For users with an address in the domain.")
            .choices(PROVIDERS),
        Input::new("jit_provisioning_enabled")
            .label("New users with an address in the domain join"),
        SAML[0],
        SAML[1],
        SAML[2],
    ],
);

#[derive(Template)]
#[template(path = "console/pages/domains/one.html")]
struct DomainPage {
    object: ObjectPath,
    domain: Domain,
    /// What the DNS answers, until the domain is verified: `None` if the session may not ask, an error if nobody can ask now.
    lookup: Option<Result<Option<Lookup>>>,
    once: String,
    may_verify: bool,
    /// The command that verifies the domain.
    command: Command,
    may_delete: bool,
    certificate: Option<Certificate>,
    /// The form of the settings, if the session may change them.
    form: Option<Form>,
}

async fn save(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DOMAINS)?;
    let domain: Domain = request.api.get(&object.api("")).await.read()?;
    let (spec, action) = (spec(&domain), object.page(""));
    let sent = spec.sent(&request, object.operation(UPDATE), &action)?;
    submit(request, sent, &action, "domain-saved", &show).await
}

/// Returns the settings that the API accepts for a domain.
const fn spec(domain: &Domain) -> &'static FormSpec {
    if domain.is_verified { &VERIFIED } else { &UNVERIFIED }
}

async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, DOMAINS)?;
    let found = request.api.get_versioned(&object.api("")).await?;
    let domain: Domain = serde_json::from_value(found.body.clone()).map_err(Error::internal)?;
    let operation = object.operation(UPDATE);
    let spec = spec(&domain);
    let form = spec.offered(&request, &operation, &object.page(""), &found, &mut feedback).await?;
    let lookup = if domain.is_verified {
        None
    } else {
        // The look-up has a deadline and a queue for each organization.
        match request.api.get(&object.api("lookup/")).await.read_if_allowed() {
            Err(error) if error.status() != 503 => return Err(error.into()),
            answer => Some(answer),
        }
    };
    let certificate = match domain.saml_x509_cert.as_deref() {
        None | Some("") => None,
        Some(_) => Some(request.api.get(&object.api("certificate/")).await.read()?),
    };
    let verify = object.write(VERIFY_OPERATION).body(json!({}));
    let page = DomainPage {
        may_verify: request.api.may(&verify.operation).await?,
        command: Command::write(&request, &verify)?,
        may_delete: request.api.may(&object.operation("domains_destroy")).await?,
        once: once_key(),
        certificate,
        object,
        domain,
        lookup,
        form,
    };
    feedback.show(&request, &page.domain.name, &page).await
}

/// Verifies the domain. The API succeeds too if the record is not there, so the domain is read again.
async fn verify(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DOMAINS)?;
    let write = object.write(VERIFY_OPERATION).body(json!({})).once(request.visit.form.value(ONCE));
    let refusal = match request.api.attempt(&write).await? {
        Ok(_) => {
            if request.api.get(&object.api("")).await.read::<Domain>()?.is_verified {
                return finish(&object.page(""), "domain-verified");
            }
            Error::invalid(
                "invalid_input",
                "The record was not found, so the domain is not verified.",
            )
        }
        Err(refusal) => refusal,
    };
    show(request, refusal.into()).await
}

/// The consequences of a deletion.
const DELETION: &str = "Its settings are lost, and any organization can add the domain. To add it again, you have to prove \
                        again that it is yours.";

/// What the certificate says. Every member is absent if the stored text is no certificate.
#[derive(Deserialize)]
struct Certificate {
    subject: Option<String>,
    issuer: Option<String>,
    not_before: Option<String>,
    not_after: Option<String>,
    is_expired: Option<bool>,
}

/// The TXT record that verifies a domain, and what the DNS answers now.
#[derive(Deserialize)]
struct Lookup {
    name: String,
    expected: String,
    found: Vec<String>,
    matches: bool,
    error: Option<String>,
}
