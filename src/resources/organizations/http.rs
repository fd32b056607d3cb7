//! `/api/organizations/`.

use axum::extract::State;

use crate::access::gate::Limits;
use crate::access::{Admitted, Anywhere, Caller, Changing, InOrganization, Needs};
use crate::error::Result;
use crate::etag::Versioned;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::page::Page;
use crate::http::routes::Routes;
use crate::input::Parsed;
use crate::json::Items;
use crate::resources::members::{Level, Membership};
use crate::resources::projects::{self, NewProject};
use crate::resources::sweeps;
use crate::secret::Seed;
use crate::state::{App, LargeAnswer};
use crate::store::{Order, Snapshot, Tx, Window, WriteTx};

use super::body::{MOST_PROJECTS, OrganizationBody, is_long, write_full};
use super::{NewOrganization, Organization, OrganizationPatch};

const LIST: &str = "/api/organizations/";
const ONE: &str = "/api/organizations/{organization_id}/";

/// The routes of organizations.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("organization:read");
    let write = Needs::scope("organization:write");
    routes.noun("organizations", "The tenants that everything else lies in.");
    routes
        .get(LIST, "organizations_list", read, list)
        .summary("List the organizations that you belong to. A page shows at most 1,000 of their projects.")
        .lists::<OrganizationBody>();
    routes
        .post(LIST, "organizations_create", write.unlimited("create an organization"), create)
        .summary("Make an organization and its first project. You own it.")
        .takes::<NewOrganization>()
        .example(r#"{"name": "Corp"}"#)
        .answers::<OrganizationBody>(201);
    routes
        .get(ONE, "organizations_retrieve", read, retrieve)
        .summary("Retrieve an organization.")
        .answers::<OrganizationBody>(200);
    routes
        .patch(ONE, "organizations_partial_update", write.level(Level::Admin), update)
        .summary("Change an organization.")
        .takes::<OrganizationPatch>()
        .example(r#"{"members_can_invite": false}"#)
        .answers::<OrganizationBody>(200);
    routes
        .delete(ONE, "organizations_destroy", write.level(Level::Owner), destroy)
        .summary("Remove an organization and all that lies in it.");
}

async fn list(at: Admitted<Anywhere>, page: Page) -> Answered {
    page.answer(at, |tx, at, page| {
        let Window { offset, limit, .. } = page.window(Order::Ascending);
        let mine = at.caller.open_memberships(tx, usize::MAX)?;
        let mut items = Items::default();
        let mut left = MOST_PROJECTS;
        for member in mine.iter().skip(offset).take(limit) {
            items.push(|out| {
                left -= write_full(tx, member, &at.caller.key, left, out)?;
                Ok(())
            })?;
        }
        Ok((mine.len() as u64, items.into_bytes()))
    })
    .await
}

async fn create(State(app): State<App>, at: Changing<Anywhere>, Body(sent): Body) -> Answered {
    let new = Parsed::<NewOrganization>::of(&sent);
    let seed = Seed::take();
    app.post(&at, move |tx, caller, _: &Anywhere, now| {
        let mut draw = seed.draw();
        let id = super::create(tx, new.get()?, &mut draw, now)?;
        let first = NewProject::of(&crate::input::JsonObject::new());
        let (member, _) = projects::create_first(tx, id, caller.user.id, &first, &mut draw, now)?;
        body(tx, &member, &caller.key).map(Answer::Created)
    })
    .await
}

async fn retrieve(State(app): State<App>, at: Admitted<InOrganization>) -> Answered {
    let shown = app.long_reads().read(at, |tx, at| body(tx, &at.place.member, &at.caller.key));
    shown.await.map(Answer::Shown)
}

async fn update(
    State(app): State<App>,
    at: Changing<InOrganization>,
    Body(sent): Body,
) -> Answered {
    let (patch, expected) = (Parsed::<OrganizationPatch>::of(&sent), at.expected.clone());
    let rule = move |tx: &mut WriteTx<'_>,
                     caller: &Caller,
                     place: &InOrganization,
                     now,
                     large: &LargeAnswer| {
        let id = place.member.organization;
        let is_long = is_long(tx, id)?;
        if is_long {
            large.require_slot()?;
        }
        super::update(tx, id, patch.get()?, now)?;
        expected.require::<Organization>(tx, &id)?;
        if is_long {
            tx.end_batch();
            return Ok(None);
        }
        body(tx, &place.member, &caller.key).map(Some)
    };
    let render = |tx: &Snapshot, caller: &Caller, place: &InOrganization| {
        body(tx, &place.member, &caller.key)
    };
    app.change_and_render(&at, rule, render).await.map(Answer::Shown)
}

async fn destroy(State(app): State<App>, at: Changing<InOrganization>) -> Answered {
    let expected = at.expected.clone();
    app.change(&at, move |tx, _, place: &InOrganization, _| {
        sweeps::remove_organization(tx, place.member.organization)?;
        expected.require::<Organization>(tx, &place.member.organization)
    })
    .await?;
    app.sweep();
    Ok(Answer::NoContent)
}

fn body(tx: &impl Tx, member: &Membership, key: &Limits) -> Result<Versioned> {
    let mut json = Vec::with_capacity(2048);
    write_full(tx, member, key, MOST_PROJECTS, &mut json)?;
    Ok(Versioned { version: tx.version::<Organization>(&member.organization)?, json })
}
