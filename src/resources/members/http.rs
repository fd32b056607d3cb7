//! `/api/organizations/:organization_id/members/`.

use crate::http::prelude::*;
use crate::input::{Choice, DateTime, Email};
use crate::resources::cascade_delete;
use crate::resources::users::UserFilter;

use super::api::{MemberBody, MemberRightsBody};
use super::{Filter, MemberPatch, Membership, Orders};

const LIST: &str = "/api/organizations/{organization_id}/members/";
const ONE: &str = "/api/organizations/{organization_id}/members/{user__uuid}/";
const RIGHTS: &str = "/api/organizations/{organization_id}/members/{user__uuid}/rights/";

/// Adds the routes of members.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("organization_member:read");
    let write = Requirements::scope("organization_member:write");
    routes.resource("members", "The users in an organization, each with a level.");
    routes
        .get(LIST, "members_list", read, list)
        .summary("List the members of an organization, newest first.")
        .query::<String>(
            "email",
            "Only the member with this address. Its domain may be in any spelling.",
        )
        .query::<String>("search", "Only members whose name or address contains this text.")
        .query::<Timestamp>(
            "updated_after",
            "Only members that were updated at or after this time.",
        )
        .query::<Orders>(
            "order",
            "The order of the list. `joined_at` lists the oldest members first.",
        )
        .returns_page::<MemberBody>();
    routes
        .get(ONE, "members_retrieve", read, retrieve)
        .summary("Retrieve a member of an organization.")
        .in_path::<UserFilter>()
        .returns::<MemberBody>(200);
    routes
        .get(RIGHTS, "members_rights_retrieve", read, rights)
        .summary("Retrieve what you may change about a member of an organization.")
        .in_path::<UserFilter>()
        .returns_unversioned::<MemberRightsBody>();
    routes
        .patch(ONE, "members_partial_update", write, update)
        .summary("Update the level of a member.")
        .in_path::<UserFilter>()
        .body::<MemberPatch>()
        .example(r#"{"level": 8}"#)
        .returns::<MemberBody>(200);
    routes
        .delete(ONE, "members_destroy", write, destroy)
        .summary("Remove a member, or leave the organization.")
        .in_path::<UserFilter>()
        .may_return(400);
}

async fn list(at: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    let query = page.query();
    let filter = Filter {
        email: query.read::<Email>("email")?,
        search: query.text("search").map(str::to_lowercase),
        updated_after: query.read::<DateTime>("updated_after")?,
    };
    let order = match query.read::<Choice<Orders>>("order")? {
        Some("joined_at") => Order::Ascending,
        _ => Order::Descending,
    };
    page.with_scan(filter.scans())
        .respond(at, move |tx, at, page| {
            super::list(tx, at.tenant.member.organization, &filter, page.window(order))
        })
        .await
}

async fn retrieve(
    at: ReadAccess<InOrganization>,
    PathParam(named): PathParam<UserFilter>,
) -> ApiResult {
    let named = named?;
    let read = at.read(move |tx, at| {
        let caller = &at.tenant.member;
        super::listed_body(tx, caller.organization, named.get(tx, caller.user)?)
    });
    read.await.map(ApiResponse::Object)
}

async fn rights(
    at: ReadAccess<InOrganization>,
    PathParam(named): PathParam<UserFilter>,
) -> ApiResult {
    let caller = &at.tenant.member;
    let user = named?.get(at.tx(), caller.user)?;
    super::api::body(at.tx(), caller, user).map(ApiResponse::Json)
}

async fn update(
    at: WriteAccess<InOrganization>,
    PathParam(named): PathParam<UserFilter>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (named, patch) = (named?, Parsed::<MemberPatch>::new(&sent));
    at.update::<Membership>(move |tx, _, tenant: &InOrganization, now| {
        let user = named.get(tx, tenant.member.user)?;
        super::update(tx, &tenant.member, user, &patch, now)?;
        let organization = tenant.member.organization;
        Ok(((organization, user), super::body(tx, organization, user)?))
    })
    .await
}

async fn destroy(
    at: WriteAccess<InOrganization>,
    PathParam(named): PathParam<UserFilter>,
) -> ApiResult {
    let named = named?;
    at.delete::<Membership>(move |tx, _, tenant: &InOrganization, _| {
        let user = named.get(tx, tenant.member.user)?;
        cascade_delete::delete_member(tx, &tenant.member, user)?;
        Ok((tenant.member.organization, user))
    })
    .await
}
