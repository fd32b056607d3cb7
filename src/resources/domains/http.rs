//! `/api/organizations/:organization_id/domains/`.

use crate::base::json::WriteJson;
use crate::http::prelude::*;
use crate::ids::DomainId;
use crate::resources::members::Level;

use super::certificate::{self, CertificateBody};
use super::challenge::DomainLookup;
use super::{Domain, DomainFields, DomainPatch, DomainVerification, Fields, NewDomain};

const LIST: &str = "/api/organizations/{organization_id}/domains/";
const ONE: &str = "/api/organizations/{organization_id}/domains/{id}/";
const VERIFY: &str = "/api/organizations/{organization_id}/domains/{id}/verify/";
const CERTIFICATE: &str = "/api/organizations/{organization_id}/domains/{id}/certificate/";
const LOOKUP: &str = "/api/organizations/{organization_id}/domains/{id}/lookup/";

/// Adds the routes of domains.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("organization:read");
    let write = Requirements::scope("organization:write").level(Level::Admin);
    routes.resource("domains", "The domains of an organization and their verification.");
    routes
        .get(LIST, "domains_list", read, list)
        .summary("List the domains of an organization, by name.")
        .returns_page::<Fields>();
    routes
        .post(LIST, "domains_create", write, create)
        .summary("Create a domain in an organization.")
        .body::<DomainFields>()
        .example(r#"{"domain": "corp.example"}"#)
        .returns::<Fields>(201);
    routes
        .get(ONE, "domains_retrieve", read, retrieve)
        .summary("Retrieve a domain.")
        .id::<DomainId>()
        .returns::<Fields>(200);
    routes
        .patch(ONE, "domains_partial_update", write, update)
        .summary("Update a domain.")
        .id::<DomainId>()
        .body::<DomainPatch>()
        .example(r#"{"sso_enforcement": "google-oauth2", "jit_provisioning_enabled": true}"#)
        .returns::<Fields>(200);
    routes
        .delete(ONE, "domains_destroy", write, destroy)
        .summary("Delete a domain. Its name is free at once.")
        .id::<DomainId>();
    routes
        .post(VERIFY, "domains_verify_create", write, verify)
        .summary("Look up the challenge of a domain in the DNS, and mark the domain as verified if it is found.")
        .id::<DomainId>()
        .body::<DomainVerification>()
        .example("{}")
        .returns_empty(200);
    routes
        .get(LOOKUP, "domains_lookup_retrieve", read.level(Level::Admin), lookup)
        .summary("Look up the challenge of a domain in the DNS. This changes nothing.")
        .id::<DomainId>()
        .returns_unversioned::<DomainLookup>();
    routes
        .get(CERTIFICATE, "domains_certificate_retrieve", read, certificate)
        .summary("Retrieve what the SAML certificate of a domain says: holder, issuer, and when it expires.")
        .id::<DomainId>()
        .returns_unversioned::<CertificateBody>();
}

async fn list(at: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    page.respond(at, |tx, at, page| {
        super::list(tx, at.tenant.member.organization, page.window(Order::Ascending))
    })
    .await
}

async fn create(at: WriteAccess<InOrganization>, JsonBody(sent): JsonBody) -> ApiResult {
    let (new, seed) = (NewDomain::of(&sent), at.app.seed());
    at.post(move |tx, _, tenant: &InOrganization, now| {
        let organization = tenant.member.organization;
        let id = super::create(tx, organization, &new, &mut seed.rng(), now)?;
        super::body(tx, (organization, id)).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve(at: ReadAccess<InOrganization>, PathId(id): PathId<DomainId>) -> ApiResult {
    let key = (at.tenant.member.organization, id?);
    super::body(at.tx(), key).map(ApiResponse::Object)
}

async fn update(
    at: WriteAccess<InOrganization>,
    PathId(id): PathId<DomainId>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (id, patch) = (id?, Parsed::<DomainPatch>::new(&sent));
    at.update::<Domain>(move |tx, _, tenant: &InOrganization, _| {
        let key = (tenant.member.organization, id);
        super::update(tx, key, &patch)?;
        Ok((key, super::body(tx, key)?))
    })
    .await
}

async fn destroy(at: WriteAccess<InOrganization>, PathId(id): PathId<DomainId>) -> ApiResult {
    let id = id?;
    at.delete::<Domain>(move |tx, _, tenant: &InOrganization, _| {
        let key = (tenant.member.organization, id);
        super::delete(tx, key).map(|()| key)
    })
    .await
}

/// Holds no snapshot or transaction during the DNS lookup. The fields of the body have no effect, as in PostHog.
async fn verify(
    at: WriteAccess<InOrganization>,
    PathId(id): PathId<DomainId>,
    _: IgnoredBody,
) -> ApiResult {
    let id = id?;
    if let Some(reply) = at.find_stored_response(|_, _, _| Ok(()))? {
        return at.app.repeat(reply).await;
    }
    let domain = {
        let read = at.read_access()?;
        read.snapshot.get::<Domain>(&(read.tenant.member.organization, id))?.fields
    };
    domain.require_unverified()?;
    let name = domain.challenge_name(&at.app.config().dns_challenge_prefix);
    let records = at.app.dns().lookup_txt(&format!("{name}."), at.consumer).await?;
    let met = domain.is_verified_by(&records);
    at.post(move |tx, _, tenant: &InOrganization, now| {
        if met {
            super::verify(tx, tenant.member.organization, id, now)?;
        }
        Ok(ApiResponse::Empty)
    })
    .await
}

/// Holds no snapshot during the DNS lookup.
async fn lookup(
    ReadAccess { app, tenant, consumer, snapshot, .. }: ReadAccess<InOrganization>,
    PathId(id): PathId<DomainId>,
) -> ApiResult {
    let domain = snapshot.get::<Domain>(&(tenant.member.organization, id?))?.fields;
    drop(snapshot);
    let name = domain.challenge_name(&app.config().dns_challenge_prefix);
    let answer = app.dns().lookup_txt(&format!("{name}."), consumer).await;
    domain.findings(name, answer)?.to_json(1024).map(ApiResponse::Json)
}

async fn certificate(at: ReadAccess<InOrganization>, PathId(id): PathId<DomainId>) -> ApiResult {
    let domain: Domain = at.tx().get(&(at.tenant.member.organization, id?))?;
    let text = domain.fields.saml_x509_cert.unwrap_or_default();
    certificate::describe(&text, at.app.now()).to_json(512).map(ApiResponse::Json)
}
