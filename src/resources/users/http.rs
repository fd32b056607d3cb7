//! `/api/users/@me/`.

use std::sync::Arc;

use axum::extract::State;

use crate::access::{Admitted, Anywhere, Caller, Changing, Needs};
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::routes::Routes;
use crate::ids::{OrganizationId, ProjectId};
use crate::input::Parsed;
use crate::json::Object;
use crate::patch::Patch;
use crate::resources::members::{self, Membership};
use crate::resources::organizations::body::{MOST_PROJECTS, write_basic_of, write_full};
use crate::resources::{organizations, projects};
use crate::state::{App, LargeAnswer};
use crate::store::{Snapshot, Tx, WriteTx};

use super::body::CurrentUser;
use super::{User, UserPatch, splice_own};

const ME: &str = "/api/users/@me/";
/// With more organizations than this, the user is shown outside the write that changes them.
const MANY_ORGANIZATIONS: u64 = 32;

/// The routes of users.
pub fn routes(routes: &mut Routes) {
    routes.noun("users", "You.");
    routes
        .get(ME, "users_retrieve", Needs::scope("user:read"), retrieve)
        .summary("Retrieve who you are, and where.")
        .answers::<CurrentUser>(200);
    routes
        .patch(ME, "users_partial_update", Needs::scope("user:write"), update)
        .summary("Change your profile, and what `@current` stands for.")
        .takes::<UserPatch>()
        .example(r#"{"first_name": "Ann", "set_current_team": 2}"#)
        .answers::<CurrentUser>(200);
}

async fn retrieve(State(app): State<App>, at: Admitted<Anywhere>) -> Answered {
    app.long_reads().read(at, |tx, at| body(tx, &at.caller)).await.map(Answer::Shown)
}

async fn update(State(app): State<App>, at: Changing<Anywhere>, Body(sent): Body) -> Answered {
    let (patch, expected) = (Parsed::<UserPatch>::of(&sent), at.expected.clone());
    let rule =
        move |tx: &mut WriteTx<'_>, caller: &Caller, _: &Anywhere, _, large: &LargeAnswer| {
            let patch = patch.get()?;
            let current = current_after(tx, caller, patch)?;
            super::update(tx, caller.user.id, patch, current)?;
            expected.require::<User>(tx, &caller.user.id)?;
            let caller = as_changed(tx, caller)?;
            if is_long(tx, &caller)? {
                large.require_slot()?;
                tx.end_batch();
                return Ok(None);
            }
            body(tx, &caller).map(Some)
        };
    let render = |tx: &Snapshot, caller: &Caller, _: &Anywhere| body(tx, &as_changed(tx, caller)?);
    app.change_and_render(&at, rule, render).await.map(Answer::Shown)
}

/// The caller, as the user is after the change.
fn as_changed(tx: &impl Tx, caller: &Caller) -> Result<Caller> {
    let user = tx.head::<User>(&caller.user.id)?.ok_or_else(Error::not_found)?;
    Ok(Caller { user, key: Arc::clone(&caller.key) })
}

/// Whether it takes long to show the caller: then that is done outside the write.
fn is_long(tx: &impl Tx, caller: &Caller) -> Result<bool> {
    if tx.count::<Membership>(&caller.user.id)? > MANY_ORGANIZATIONS {
        return Ok(true);
    }
    let current = members::current_organization(tx, &caller.user)?;
    current.map_or(Ok(false), |id| organizations::body::is_long(tx, id))
}

/// What `@current` will stand for: what was sent, where the user may go there, and else what it stood for.
fn current_after(
    tx: &WriteTx<'_>,
    caller: &Caller,
    patch: &UserPatch,
) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
    let mut current = (caller.user.current_organization, caller.user.current_project);
    if let Patch::Value(id) = patch.set_current_organization {
        let id = OrganizationId(id);
        let member = caller.open_membership(tx, id)?;
        member.ok_or_else(|| does_not_exist("set_current_organization", &id))?;
        current.0 = Some(id);
    }
    if let Patch::Value(id) = patch.set_current_team {
        let id = ProjectId(id);
        let refused = || does_not_exist("set_current_team", &id);
        let project = projects::find_by_id(tx, id)?.ok_or_else(refused)?;
        let member = caller.open_membership(tx, project.organization)?.ok_or_else(refused)?;
        if !caller.key.reach_project(id) || !projects::is_visible(tx, &member, &project)? {
            return Err(refused());
        }
        current = (Some(project.organization), Some(id));
    }
    Ok(current)
}

fn does_not_exist(attr: &str, id: &impl std::fmt::Display) -> Error {
    let detail = format!("Invalid pk \"{id}\" - object does not exist.");
    Error::field(attr, "does_not_exist", detail)
}

/// The caller, with the organizations and the project that the key shows.
fn body(tx: &impl Tx, caller: &Caller) -> Result<Versioned> {
    let mut json = Vec::with_capacity(4096);
    let member = match members::current_organization(tx, &caller.user)? {
        Some(id) => caller.open_membership(tx, id)?,
        None => None,
    };
    splice_own(tx, caller.user.id, Object::begin(&mut json))?
        .with("team", |out| write_team(tx, caller, member.as_ref(), out))?
        .with("organization", |out| {
            let Some(member) = &member else {
                out.extend_from_slice(b"null");
                return Ok(());
            };
            write_full(tx, member, &caller.key, MOST_PROJECTS, out).map(drop)
        })?
        .with("organizations", |out| write_basic_of(tx, caller, out))?
        .end();
    Ok(Versioned { version: tx.version::<User>(&caller.user.id)?, json })
}

fn write_team(
    tx: &impl Tx,
    caller: &Caller,
    member: Option<&Membership>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let only = caller.key.only_projects();
    let project = projects::current_project(tx, &caller.user, member, only)?;
    let written = match project {
        Some(project) if caller.open_membership(tx, project.organization)?.is_some() => {
            tx.view::<projects::Project, _>(&(project.organization, project.id), |row| {
                projects::write_summary(row.shown, out);
                Ok(())
            })?
        }
        _ => None,
    };
    if written.is_none() {
        out.extend_from_slice(b"null");
    }
    Ok(())
}
