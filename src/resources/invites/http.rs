//! `/api/organizations/:organization_id/invites/`.

use crate::http::body::AnyJsonBody;
use crate::http::prelude::*;
use crate::ids::InviteId;

use super::api::{CreatedInvite, InviteBody, MAX_PER_REQUEST, created, read_all};
use super::mail::{InviteMailBody, ListedInviteMail};
use super::{Invite, InviteConfig, InviteFields, MailService, NewInvite};

const LIST: &str = "/api/organizations/{organization_id}/invites/";
const BULK: &str = "/api/organizations/{organization_id}/invites/bulk/";
const ONE: &str = "/api/organizations/{organization_id}/invites/{id}/";
const MAILS: &str = "/api/organizations/{organization_id}/invites/mail/";
const MAIL: &str = "/api/organizations/{organization_id}/invites/{id}/mail/";

/// Adds the routes of invites.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("organization_member:read");
    let write = Requirements::scope("organization_member:write");
    routes.resource("invites", "Invites let a person join an organization.");
    routes
        .get(LIST, "invites_list", read, list)
        .summary("List the invites of an organization, newest first.")
        .returns_page::<InviteBody>();
    routes
        .post(LIST, "invites_create", write.can_invite(), create)
        .summary("Create an invite. It replaces any other invite for the same address.")
        .body::<InviteFields>()
        .example(r#"{"target_email": "ben@corp.example", "first_name": "Ben", "level": 8}"#)
        .returns::<CreatedInvite>(201);
    routes
        .post(BULK, "invites_bulk_create", write.can_invite(), create_all)
        .summary("Create several invites: either all of them or none.")
        .body_or_array::<InviteFields>(MAX_PER_REQUEST)
        .example(r#"[{"target_email": "ben@corp.example"}, {"target_email": "eva@corp.example"}]"#)
        .returns_empty(200);
    routes
        .delete(ONE, "invites_destroy", write, destroy)
        .summary("Delete an invite.")
        .id::<InviteId>();
    routes
        .get(MAILS, "invites_mail_list", read, mails)
        .summary("List the states of the mails of an organization's invites, in the order of the invites.")
        .returns_page::<ListedInviteMail>();
    routes
        .get(MAIL, "invites_mail_retrieve", read, mail)
        .summary("Retrieve the state of an invite's mail.")
        .id::<InviteId>()
        .returns_unversioned::<InviteMailBody>();
}

async fn list(at: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    let now = at.app.now();
    page.respond(at, move |tx, at, page| {
        super::list(tx, &at.tenant.member, page.window(Order::Descending), now)
    })
    .await
}

async fn create(at: WriteAccess<InOrganization>, JsonBody(sent): JsonBody) -> ApiResult {
    let (new, seed) = (NewInvite::of(&sent), at.app.seed());
    let (terms, links) = (invite_config(&at.app), at.app.links().clone());
    at.post(move |tx, _, InOrganization { member }: &InOrganization, now| {
        let id = super::create(tx, member, terms, &new, &mut seed.rng(), now)?;
        let links = terms.can_see_link(member).then_some(&links);
        created(tx, (member.organization, id), links, now).map(ApiResponse::Created)
    })
    .await
}

async fn create_all(at: WriteAccess<InOrganization>, AnyJsonBody(sent): AnyJsonBody) -> ApiResult {
    let (new, seed, terms) = (read_all(sent), at.app.seed(), invite_config(&at.app));
    at.post(move |tx, _, tenant: &InOrganization, now| {
        super::create_all(tx, &tenant.member, terms, &new, &mut seed.rng(), now)?;
        Ok(ApiResponse::Empty)
    })
    .await
}

async fn destroy(at: WriteAccess<InOrganization>, PathId(id): PathId<InviteId>) -> ApiResult {
    let id = id?;
    at.delete::<Invite>(move |tx, _, tenant: &InOrganization, _| {
        let key = (tenant.member.organization, id);
        super::delete(tx, key).map(|()| key)
    })
    .await
}

async fn mails(at: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    let service = mail_service(&at.app);
    page.respond(at, move |tx, at, page| {
        let organization = at.tenant.member.organization;
        super::list_mails(tx, organization, page.window(Order::Descending), &service)
    })
    .await
}

async fn mail(at: ReadAccess<InOrganization>, PathId(id): PathId<InviteId>) -> ApiResult {
    let key = (at.tenant.member.organization, id?);
    super::mail_body(at.tx(), key, &mail_service(&at.app)).map(ApiResponse::Json)
}

fn mail_service(app: &App) -> MailService {
    MailService { sends_mail: app.sends_mail(), current: app.current_mails() }
}

fn invite_config(app: &App) -> InviteConfig {
    let config = app.config();
    InviteConfig {
        ttl: config.invite_ttl,
        sends_mail: app.sends_mail(),
        max_pending: config.caps.max_invites,
    }
}
