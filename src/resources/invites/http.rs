//! `/api/organizations/:organization_id/invites/`.

use axum::extract::State;

use crate::access::{Admitted, Changing, InOrganization, Needs};
use crate::http::answer::{Answer, Answered};
use crate::http::body::{AnyBody, Body};
use crate::http::page::Page;
use crate::http::path::Id;
use crate::http::routes::Routes;
use crate::ids::InviteId;
use crate::secret::Seed;
use crate::state::App;
use crate::store::Order;

use super::body::{CreatedInvite, InviteBody};
use super::input::MAX_AT_ONCE;
use super::{Invite, InviteFields, NewInvite, NewInvites, Terms};

const LIST: &str = "/api/organizations/{organization_id}/invites/";
const BULK: &str = "/api/organizations/{organization_id}/invites/bulk/";
const ONE: &str = "/api/organizations/{organization_id}/invites/{id}/";

/// The routes of invites.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("organization_member:read");
    let write = Needs::scope("organization_member:write");
    routes.noun("invites", "What lets somebody join an organization.");
    routes
        .get(LIST, "invites_list", read, list)
        .summary("List the invites of an organization, newest first.")
        .lists::<InviteBody>();
    routes
        .post(LIST, "invites_create", write.inviting(), create)
        .summary("Invite somebody, in the place of any other invite for the same address.")
        .takes::<InviteFields>()
        .example(r#"{"target_email": "ben@corp.example", "first_name": "Ben", "level": 8}"#)
        .answers::<CreatedInvite>(201);
    routes
        .post(BULK, "invites_bulk_create", write.inviting(), create_all)
        .summary("Invite several at once: all of them, or none.")
        .takes_several::<InviteFields>(MAX_AT_ONCE)
        .example(r#"[{"target_email": "ben@corp.example"}, {"target_email": "eva@corp.example"}]"#)
        .empty(200);
    routes
        .delete(ONE, "invites_destroy", write, destroy)
        .summary("Remove an invite.")
        .id::<InviteId>();
}

async fn list(State(app): State<App>, at: Admitted<InOrganization>, page: Page) -> Answered {
    let now = app.now();
    page.answer(at, move |tx, at, page| {
        super::list(tx, &at.place.member, page.window(Order::Descending), now)
    })
    .await
}

async fn create(
    State(app): State<App>,
    at: Changing<InOrganization>,
    Body(sent): Body,
) -> Answered {
    let (new, seed) = (NewInvite::of(&sent), Seed::take());
    let (terms, links) = (terms(&app), app.links().clone());
    app.post(&at, move |tx, _, InOrganization { member }: &InOrganization, now| {
        let id = super::create(tx, member, terms, &new, &mut seed.draw(), now)?;
        let links = terms.shows_link_to(member).then_some(&links);
        super::body(tx, member.organization, id, links, now).map(Answer::Created)
    })
    .await
}

async fn create_all(
    State(app): State<App>,
    at: Changing<InOrganization>,
    AnyBody(sent): AnyBody,
) -> Answered {
    let (new, seed, terms) = (NewInvites::of(sent), Seed::take(), terms(&app));
    app.post(&at, move |tx, _, place: &InOrganization, now| {
        super::create_all(tx, &place.member, terms, &new, &mut seed.draw(), now)?;
        Ok(Answer::Empty)
    })
    .await
}

async fn destroy(
    State(app): State<App>,
    at: Changing<InOrganization>,
    Id(id): Id<InviteId>,
) -> Answered {
    let (id, expected) = (id?, at.expected.clone());
    app.change(&at, move |tx, _, place: &InOrganization, _| {
        super::remove(tx, place.member.organization, id)?;
        expected.require::<Invite>(tx, &(place.member.organization, id))
    })
    .await?;
    Ok(Answer::NoContent)
}

fn terms(app: &App) -> Terms {
    let config = app.config();
    Terms { ttl: config.invite_ttl, sends_mail: app.sends_mail(), most: config.caps.invites }
}
