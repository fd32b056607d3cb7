//! `/api/organizations/:organization_id/domains/`.

use axum::extract::State;

use crate::access::{Admitted, Changing, InOrganization, Needs};
use crate::http::answer::{Answer, Answered};
use crate::http::body::{Body, IgnoredBody};
use crate::http::page::Page;
use crate::http::path::Id;
use crate::http::routes::Routes;
use crate::ids::DomainId;
use crate::input::Parsed;
use crate::resources::members::Level;
use crate::secret::Seed;
use crate::state::App;
use crate::store::Order;

use super::{Domain, DomainFields, DomainPatch, DomainVerification, NewDomain, Shown};

const LIST: &str = "/api/organizations/{organization_id}/domains/";
const ONE: &str = "/api/organizations/{organization_id}/domains/{id}/";
const VERIFY: &str = "/api/organizations/{organization_id}/domains/{id}/verify/";

/// The routes of domains.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("organization:read");
    let write = Needs::scope("organization:write").level(Level::Admin);
    routes.noun("domains", "Domains of an organization, and the proof that they are its own.");
    routes
        .get(LIST, "domains_list", read, list)
        .summary("List the domains of an organization, by name.")
        .lists::<Shown>();
    routes
        .post(LIST, "domains_create", write, create)
        .summary("Add a domain to an organization.")
        .takes::<DomainFields>()
        .example(r#"{"domain": "corp.example"}"#)
        .answers::<Shown>(201);
    routes
        .get(ONE, "domains_retrieve", read, retrieve)
        .summary("Retrieve a domain.")
        .id::<DomainId>()
        .answers::<Shown>(200);
    routes
        .patch(ONE, "domains_partial_update", write, update)
        .summary("Change a domain.")
        .id::<DomainId>()
        .takes::<DomainPatch>()
        .example(r#"{"sso_enforcement": "google-oauth2", "jit_provisioning_enabled": true}"#)
        .answers::<Shown>(200);
    routes
        .delete(ONE, "domains_destroy", write, destroy)
        .summary("Remove a domain. Its name is free at once.")
        .id::<DomainId>();
    routes
        .post(VERIFY, "domains_verify_create", write, verify)
        .summary(
            "Look the domain's challenge up in the DNS; the domain is verified where it is there.",
        )
        .id::<DomainId>()
        .takes::<DomainVerification>()
        .example("{}")
        .empty(200);
}

async fn list(at: Admitted<InOrganization>, page: Page) -> Answered {
    page.answer(at, |tx, at, page| {
        super::list(tx, at.place.member.organization, page.window(Order::Ascending))
    })
    .await
}

async fn create(
    State(app): State<App>,
    at: Changing<InOrganization>,
    Body(sent): Body,
) -> Answered {
    let new = NewDomain::of(&sent);
    let seed = Seed::take();
    app.post(&at, move |tx, _, place: &InOrganization, now| {
        let organization = place.member.organization;
        let id = super::create(tx, organization, &new, &mut seed.draw(), now)?;
        super::body(tx, organization, id).map(Answer::Created)
    })
    .await
}

async fn retrieve(at: Admitted<InOrganization>, Id(id): Id<DomainId>) -> Answered {
    super::body(&*at.tx, at.place.member.organization, id?).map(Answer::Shown)
}

async fn update(
    State(app): State<App>,
    at: Changing<InOrganization>,
    Id(id): Id<DomainId>,
    Body(sent): Body,
) -> Answered {
    let (id, patch) = (id?, Parsed::<DomainPatch>::of(&sent));
    let expected = at.expected.clone();
    app.change(&at, move |tx, _, place: &InOrganization, _| {
        let organization = place.member.organization;
        super::update(tx, organization, id, &patch)?;
        expected.require::<Domain>(tx, &(organization, id))?;
        super::body(tx, organization, id)
    })
    .await
    .map(Answer::Shown)
}

async fn destroy(
    State(app): State<App>,
    at: Changing<InOrganization>,
    Id(id): Id<DomainId>,
) -> Answered {
    let (id, expected) = (id?, at.expected.clone());
    app.change(&at, move |tx, _, place: &InOrganization, _| {
        super::remove(tx, place.member.organization, id)?;
        expected.require::<Domain>(tx, &(place.member.organization, id))
    })
    .await?;
    Ok(Answer::NoContent)
}

/// Neither a snapshot nor a transaction is held while the DNS is asked. The body's fields have no effect
/// (decisions §4, Dashboard).
async fn verify(
    State(app): State<App>,
    at: Changing<InOrganization>,
    Id(id): Id<DomainId>,
    _: IgnoredBody,
) -> Answered {
    let id = id?;
    if let Some(reply) = app.find_reply(&at)? {
        return Ok(reply);
    }
    let challenge = app.look(&at, |tx, place: &InOrganization| {
        super::challenge(tx, place.member.organization, id)
    })?;
    let name = challenge.name(&app.config().dns_challenge_prefix);
    let records = app.dns().txt(&name, at.consumer).await?;
    let met = challenge.is_met_by(&records);
    app.post(&at, move |tx, _, place: &InOrganization, now| {
        if met {
            super::verify(tx, place.member.organization, id, now)?;
        }
        Ok(Answer::Empty)
    })
    .await
}
