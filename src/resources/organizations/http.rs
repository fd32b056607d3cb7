//! `/api/organizations/`.

pub mod body;

use crate::auth::CallerKey;
use crate::http::prelude::*;
use crate::resources::members::{Level, Membership};
use crate::resources::projects::{self, NewProject};
use crate::resources::shared::prelude::*;
use crate::resources::{cascade_delete, roles};

use self::body::{MAX_PROJECTS, OrganizationBody, is_expensive, write_full};
use super::{NewOrganization, Organization, OrganizationPatch};

const LIST: &str = "/api/organizations/";
const ONE: &str = "/api/organizations/{organization_id}/";

/// Adds the routes of organizations.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("organization:read");
    let write = Requirements::scope("organization:write");
    routes.resource(
        "organizations",
        "The tenants: each contains members, projects and everything in them.",
    );
    routes
        .get(LIST, "organizations_list", read, list)
        .summary("List your organizations. A page contains at most 1,000 of their projects.")
        .returns_page::<OrganizationBody>();
    routes
        .post(LIST, "organizations_create", write.unscoped_key("create an organization"), create)
        .summary("Create an organization and its first project. You become its owner.")
        .body::<NewOrganization>()
        .example(r#"{"name": "Corp"}"#)
        .returns::<OrganizationBody>(201);
    routes
        .get(ONE, "organizations_retrieve", read, retrieve)
        .summary("Retrieve an organization.")
        .returns::<OrganizationBody>(200);
    routes
        .patch(ONE, "organizations_partial_update", write.level(Level::Admin), update)
        .summary("Update an organization.")
        .body::<OrganizationPatch>()
        .example(r#"{"members_can_invite": false}"#)
        .returns::<OrganizationBody>(200);
    routes
        .delete(ONE, "organizations_destroy", write.level(Level::Owner), destroy)
        .summary("Delete an organization and everything in it.");
}

async fn list(at: ReadAccess<Global>, page: PageParams) -> ApiResult {
    page.respond(at, |tx, at, page| {
        let Window { offset, limit, .. } = page.window(Order::Ascending);
        let mine = at.caller.open_memberships(tx, usize::MAX)?;
        let mut items = JsonItems::default();
        let mut left = MAX_PROJECTS;
        for member in mine.iter().skip(offset).take(limit) {
            items.push(WrittenBy(&mut |out| {
                left -= write_full(tx, member, &at.caller.key, left, out)?;
                Ok(())
            }))?;
        }
        Ok((mine.len() as u64, items.into_bytes()))
    })
    .await
}

async fn create(at: WriteAccess<Global>, JsonBody(sent): JsonBody) -> ApiResult {
    let (new, seed) = (Parsed::<NewOrganization>::new(&sent), at.app.seed());
    at.post(move |tx, caller, _: &Global, now| {
        let mut rng = seed.rng();
        let id = super::create(tx, new.get()?, &mut rng, now)?;
        let first = NewProject::of(&crate::input::JsonObject::new());
        let (member, _) = projects::create_first(tx, id, caller.user.id, &first, &mut rng, now)?;
        body(tx, &member, &caller.key).map(ApiResponse::Created)
    })
    .await
}

async fn retrieve(at: ReadAccess<InOrganization>) -> ApiResult {
    at.read(|tx, at| body(tx, &at.tenant.member, &at.caller.key)).await.map(ApiResponse::Object)
}

async fn update(at: WriteAccess<InOrganization>, JsonBody(sent): JsonBody) -> ApiResult {
    let patch = Parsed::<OrganizationPatch>::new(&sent);
    at.update_and_render::<Organization>(
        move |tx, _, tenant: &InOrganization, now, large| {
            let id = tenant.member.organization;
            let is_large = is_expensive(tx, id)?;
            large.require_reserved(is_large.then_some(0))?;
            let patch = patch.get()?;
            super::update(tx, id, patch, now)?;
            roles::set_default(tx, id, &patch.default_role_id, now)?;
            Ok((id, is_large))
        },
        |tx, caller, tenant| body(tx, &tenant.member, &caller.key),
    )
    .await
}

async fn destroy(at: WriteAccess<InOrganization>) -> ApiResult {
    at.delete::<Organization>(|tx, _, tenant: &InOrganization, _| {
        cascade_delete::delete_organization(tx, tenant.member.organization)?;
        Ok(tenant.member.organization)
    })
    .await
}

fn body(tx: &dyn Raw, member: &Membership, key: &CallerKey) -> Result<Versioned> {
    let mut json = Vec::with_capacity(2048);
    write_full(tx, member, key, MAX_PROJECTS, &mut json)?;
    Ok(Versioned::new(tx.version::<Organization>(&member.organization)?, json))
}
