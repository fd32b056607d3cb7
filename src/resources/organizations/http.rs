//! `/api/organizations/`.

use axum::extract::State;

use crate::access::gate::Limits;
use crate::access::{Admitted, Anywhere, Caller, InOrganization, Needs};
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::page::Page;
use crate::http::routes::Routes;
use crate::input::Parsed;
use crate::json::{Array, Object};
use crate::resources::members::{self, Level, Membership};
use crate::resources::projects::{self, NewProject};
use crate::resources::sweeps;
use crate::secret::Seed;
use crate::state::App;
use crate::store::{Order, Tx, Window};

use super::{NewOrganization, Organization, OrganizationPatch, splice_own};

const LIST: &str = "/api/organizations/";
const ONE: &str = "/api/organizations/{organization_id}/";

/// The routes of organizations.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("organization:read");
    let write = Needs::scope("organization:write");
    routes.get(LIST, "organizations_list", read, list).answers(200, "OrganizationList");
    routes
        .post(LIST, "organizations_create", write, create)
        .takes::<NewOrganization>()
        .answers(201, "Organization");
    routes.get(ONE, "organizations_retrieve", read, retrieve).answers(200, "Organization");
    routes
        .patch(ONE, "organizations_partial_update", write.level(Level::Admin), update)
        .takes::<OrganizationPatch>()
        .answers(200, "Organization");
    routes.delete(ONE, "organizations_destroy", write.level(Level::Owner), destroy);
}

async fn list(at: Admitted<Anywhere>, page: Page) -> Answered {
    page.answer(move |page| {
        let Window { offset, limit, .. } = page.window(Order::Ascending);
        let mine = at.caller.open_memberships(&*at.tx)?;
        let mut out = Vec::new();
        for member in mine.iter().skip(offset).take(limit) {
            if !out.is_empty() {
                out.push(b',');
            }
            write_full(&*at.tx, member, &at.caller.key, &mut out)?;
        }
        Ok((mine.len() as u64, out))
    })
    .await
}

async fn create(State(app): State<App>, at: Admitted<Anywhere>, Body(sent): Body) -> Answered {
    let new = Parsed::<NewOrganization>::of(&sent);
    let seed = Seed::take()?;
    app.change(&at, move |tx, caller, _: &Anywhere, now| {
        if caller.key.any() {
            return Err(Error::denied(
                "API keys limited to organizations or projects cannot create an organization.",
            ));
        }
        let mut draw = seed.draw();
        let id = super::create(tx, new.get()?, &mut draw, now)?;
        members::create(tx, id, caller.user.id, Level::Owner, &mut draw, now)?;
        let member = members::find(tx, id, caller.user.id)?.ok_or_else(Error::not_found)?;
        let first = NewProject::of(&crate::input::JsonObject::new());
        projects::create(tx, &member, &first, &mut draw, now)?;
        body(tx, &member, &caller.key)
    })
    .await
    .map(Answer::Created)
}

async fn retrieve(at: Admitted<InOrganization>) -> Answered {
    body(&*at.tx, &at.place.member, &at.caller.key).map(Answer::Shown)
}

async fn update(
    State(app): State<App>,
    at: Admitted<InOrganization>,
    Body(sent): Body,
) -> Answered {
    let patch = Parsed::<OrganizationPatch>::of(&sent);
    app.change(&at, move |tx, caller, place: &InOrganization, now| {
        super::update(tx, place.member.organization, patch.get()?, now)?;
        body(tx, &place.member, &caller.key)
    })
    .await
    .map(Answer::Shown)
}

async fn destroy(State(app): State<App>, at: Admitted<InOrganization>) -> Answered {
    app.change(&at, |tx, _, place: &InOrganization, _| {
        sweeps::remove_organization(tx, place.member.organization)
    })
    .await?;
    app.sweep();
    Ok(Answer::Gone)
}

fn body(tx: &impl Tx, member: &Membership, key: &Limits) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(2048);
    write_full(tx, member, key, &mut out)?;
    Ok(out)
}

/// Appends the full form: the organization's own fields, and what differs by member.
///
/// # Errors
/// 404 when the organization is gone.
pub fn write_full(
    tx: &impl Tx,
    member: &Membership,
    key: &Limits,
    out: &mut Vec<u8>,
) -> Result<()> {
    let id = member.organization;
    splice_own(tx, id, Object::begin(out))?
        .field("membership_level", &member.level)?
        .with("teams", |out| {
            write_projects(tx, member, key, out, |project, summary, out| {
                Object::begin(out)
                    .splice(summary)
                    .raw("ingested_event", b"false")
                    .field("project_id", &project)?
                    .end();
                Ok(())
            })
        })?
        .with("projects", |out| {
            write_projects(tx, member, key, out, |project, summary, out| {
                let name: projects::Shown =
                    serde_json::from_slice(summary).map_err(Error::internal)?;
                Object::begin(out)
                    .field("id", &project)?
                    .field("organization_id", &id)?
                    .field("name", &name.name)?
                    .end();
                Ok(())
            })
        })?
        .field("metadata", &serde_json::json!({ "instance_tag": "none" }))?
        .field("member_count", &tx.count::<Membership>(&id)?)?
        .end();
    Ok(())
}

fn write_projects(
    tx: &impl Tx,
    member: &Membership,
    key: &Limits,
    out: &mut Vec<u8>,
    mut write: impl FnMut(crate::ids::ProjectId, &[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let all = Window { offset: 0, limit: usize::MAX, order: Order::Ascending };
    let mut array = Array::begin(out);
    projects::list(tx, member, key.only_projects(), all, |id, summary| {
        array.item(|out| write(id, summary, out))
    })?;
    array.end();
    Ok(())
}

/// Appends the basic form of each organization that the caller belongs to and the key shows.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn write_basic_of(tx: &impl Tx, caller: &Caller, out: &mut Vec<u8>) -> Result<()> {
    let mut array = Array::begin(out);
    for member in caller.memberships(tx)? {
        let shown = tx.get::<Organization>(&member.organization)?.shown;
        array.item(|out| {
            Object::begin(out)
                .field("id", &shown.id)?
                .field("name", &shown.name)?
                .field("slug", &shown.slug)?
                .field("logo_media_id", &shown.logo_media_id)?
                .field("membership_level", &member.level)?
                .field(
                    "members_can_use_personal_api_keys",
                    &shown.members_can_use_personal_api_keys,
                )?
                .end();
            Ok(())
        })?;
    }
    array.end();
    Ok(())
}
