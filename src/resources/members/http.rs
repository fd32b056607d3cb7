//! `/api/organizations/:organization_id/members/`.

use axum::extract::State;

use crate::access::{Admitted, Changing, InOrganization, Needs};
use crate::error::Result;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::page::Page;
use crate::http::path::UserRef;
use crate::http::routes::Routes;
use crate::ids::UserId;
use crate::input::Parsed;
use crate::resources::{sweeps, users};
use crate::state::App;
use crate::store::{Order, Tx};
use crate::time::Timestamp;

use super::body::MemberBody;
use super::{Filter, MemberPatch, Membership, Orders};

const LIST: &str = "/api/organizations/{organization_id}/members/";
const ONE: &str = "/api/organizations/{organization_id}/members/{user__uuid}/";

/// The routes of members.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("organization_member:read");
    let write = Needs::scope("organization_member:write");
    routes.noun("members", "Users in an organization, each at a level.");
    routes
        .get(LIST, "members_list", read, list)
        .summary("List the members of an organization, newest first.")
        .query::<String>("email", "Only the one with exactly this address.")
        .query::<String>("search", "Only those whose name or address contains this.")
        .query::<Timestamp>("updated_after", "Only those whose membership changed then or later.")
        .query::<Orders>("order", "`joined_at` for the oldest first.")
        .lists::<MemberBody>();
    routes
        .patch(ONE, "members_partial_update", write, update)
        .summary("Change the level of a member.")
        .takes::<MemberPatch>()
        .example(r#"{"level": 8}"#)
        .answers::<MemberBody>(200);
    routes
        .delete(ONE, "members_destroy", write, destroy)
        .summary("Remove a member, or leave.")
        .may(400);
}

async fn list(at: Admitted<InOrganization>, page: Page) -> Answered {
    let text = |name| page.parameter(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let filter = Filter {
        email: text("email"),
        search: text("search").map(|text| text.to_lowercase()),
        updated_after: page.parameter("updated_after").and_then(Timestamp::parse),
    };
    let order = match page.parameter("order") {
        Some("joined_at") => Order::Ascending,
        _ => Order::Descending,
    };
    page.walking(filter.walks())
        .answer(at, move |tx, at, page| {
            super::list(tx, at.place.member.organization, &filter, page.window(order))
        })
        .await
}

async fn update(
    State(app): State<App>,
    at: Changing<InOrganization>,
    UserRef(named): UserRef,
    Body(sent): Body,
) -> Answered {
    let (named, patch) = (named?, Parsed::<MemberPatch>::of(&sent));
    let expected = at.expected.clone();
    app.change(&at, move |tx, _, place: &InOrganization, now| {
        let user = resolve(tx, &place.member, named)?;
        super::update(tx, &place.member, user, &patch, now)?;
        expected.require::<Membership>(tx, &(place.member.organization, user))?;
        super::body(tx, place.member.organization, user)
    })
    .await
    .map(Answer::Shown)
}

async fn destroy(
    State(app): State<App>,
    at: Changing<InOrganization>,
    UserRef(named): UserRef,
) -> Answered {
    let (named, expected) = (named?, at.expected.clone());
    app.change(&at, move |tx, _, place: &InOrganization, _| {
        let user = resolve(tx, &place.member, named)?;
        sweeps::remove_member(tx, &place.member, user)?;
        expected.require::<Membership>(tx, &(place.member.organization, user))
    })
    .await?;
    app.sweep();
    Ok(Answer::NoContent)
}

fn resolve(
    tx: &impl Tx,
    caller: &Membership,
    named: Option<crate::ids::UserUuid>,
) -> Result<UserId> {
    match named {
        Some(uuid) => users::get_by_uuid(tx, uuid),
        None => Ok(caller.user),
    }
}
