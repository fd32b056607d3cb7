//! `/api/organizations/:organization_id/projects/` and `/api/projects/`.

use axum::extract::State;

use crate::access::{Admitted, Anywhere, Changing, InOrganization, InProject, Needs};
use crate::error::Result;
use crate::etag::Versioned;
use crate::http::answer::{Answer, Answered};
use crate::http::body::Body;
use crate::http::page::Page;
use crate::http::routes::Routes;
use crate::ids::{DashboardId, ProjectId};
use crate::input::Parsed;
use crate::json::Items;
use crate::resources::members::{Level, Membership};
use crate::resources::{dashboards, sweeps};
use crate::secret::Seed;
use crate::state::App;
use crate::store::{Order, Tx, Window, WriteTx};

use super::body::{ProjectBody, ProjectSummary};
use super::{NewProject, Project, ProjectFields, Viewer, write_summary};

const IN_ORGANIZATION: &str = "/api/organizations/{organization_id}/projects/";
const ONE_IN_ORGANIZATION: &str = "/api/organizations/{organization_id}/projects/{project_id}/";
const MINE: &str = "/api/projects/";
const ONE: &str = "/api/projects/{project_id}/";

/// The routes of projects.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("project:read");
    let write = Needs::scope("project:write");
    routes.noun("projects", "Projects of an organization, and their settings.");
    routes
        .get(IN_ORGANIZATION, "organizations_projects_list", read, list_in_organization)
        .summary("List the projects of an organization, oldest first.")
        .lists::<ProjectSummary>();
    routes
        .post(IN_ORGANIZATION, "organizations_projects_create", write, create)
        .summary("Make a project. It becomes your current one.")
        .takes::<ProjectFields>()
        .example(r#"{"name": "Shop", "timezone": "Europe/Berlin"}"#)
        .answers::<ProjectBody>(201);
    routes
        .get(MINE, "projects_list", read, list_mine)
        .summary("List the projects that you may see, in all your organizations.")
        .lists::<ProjectSummary>();
    for (path, names) in [
        (
            ONE_IN_ORGANIZATION,
            [
                "organizations_projects_retrieve",
                "organizations_projects_partial_update",
                "organizations_projects_destroy",
            ],
        ),
        (ONE, ["projects_retrieve", "projects_partial_update", "projects_destroy"]),
    ] {
        let [retrieves, updates, destroys] = names;
        routes
            .get(path, retrieves, read, retrieve)
            .summary("Retrieve a project.")
            .answers::<ProjectBody>(200);
        routes
            .patch(path, updates, write, update)
            .summary("Change a project.")
            .takes::<ProjectFields>()
            .example(r#"{"name": "Shop", "week_start_day": 1}"#)
            .answers::<ProjectBody>(200);
        routes
            .delete(path, destroys, write.level(Level::Admin), destroy)
            .summary("Remove a project and all that lies in it.");
    }
}

async fn list_in_organization(at: Admitted<InOrganization>, page: Page) -> Answered {
    page.answer(at, |tx, at, page| {
        let mut items = Items::default();
        let window = page.window(Order::Ascending);
        let only = at.caller.key.only_projects();
        let count = super::list(tx, &at.place.member, only, window, |_, shown| {
            items.push(|out| {
                write_summary(shown, out);
                Ok(())
            })
        })?;
        Ok((count, items.into_bytes()))
    })
    .await
}

/// The projects that the caller may see in all their organizations, by number.
async fn list_mine(at: Admitted<Anywhere>, page: Page) -> Answered {
    page.answer(at, |tx, at, page| {
        let Window { offset, limit, .. } = page.window(Order::Ascending);
        let memberships = at.caller.open_memberships(tx, usize::MAX)?;
        let only = at.caller.key.only_projects();
        let mine = super::visible(tx, &memberships, only)?;
        let mut items = Items::default();
        for key in mine.iter().skip(offset).take(limit) {
            tx.view::<Project, _>(key, |row| {
                items.push(|out| {
                    write_summary(row.shown, out);
                    Ok(())
                })
            })?;
        }
        Ok((mine.len() as u64, items.into_bytes()))
    })
    .await
}

async fn create(
    State(app): State<App>,
    at: Changing<InOrganization>,
    Body(sent): Body,
) -> Answered {
    let new = NewProject::of(&sent);
    let seed = Seed::take();
    let signer = app.clone();
    app.post(&at, move |tx, _, place: &InOrganization, now| {
        let id = super::create(tx, &place.member, &new, &mut seed.draw(), now)?;
        body(tx, &signer, &place.member, id).map(Answer::Created)
    })
    .await
}

async fn retrieve(State(app): State<App>, at: Admitted<InProject>) -> Answered {
    body(&*at.tx, &app, &at.place.member, at.place.project.id).map(Answer::Shown)
}

async fn update(State(app): State<App>, at: Changing<InProject>, Body(sent): Body) -> Answered {
    let (fields, expected) = (Parsed::<ProjectFields>::of(&sent), at.expected.clone());
    let signer = app.clone();
    app.change(&at, move |tx, _, place: &InProject, now| {
        let id = place.project.id;
        super::update(tx, &place.member, id, &fields, is_live_dashboard, now)?;
        expected.require::<Project>(tx, &(place.member.organization, id))?;
        body(tx, &signer, &place.member, id)
    })
    .await
    .map(Answer::Shown)
}

fn is_live_dashboard(tx: &WriteTx<'_>, project: ProjectId, dashboard: u64) -> Result<bool> {
    dashboards::is_live(tx, project, DashboardId(dashboard))
}

async fn destroy(State(app): State<App>, at: Changing<InProject>) -> Answered {
    let expected = at.expected.clone();
    app.change(&at, move |tx, _, place: &InProject, _| {
        let (organization, id) = (place.project.organization, place.project.id);
        sweeps::remove_project(tx, organization, id)?;
        expected.require::<Project>(tx, &(organization, id))
    })
    .await?;
    app.sweep();
    Ok(Answer::NoContent)
}

fn body(tx: &impl Tx, app: &App, member: &Membership, id: ProjectId) -> Result<Versioned> {
    let project: Project = tx.get(&(member.organization, id))?;
    let live_events_token = app.live_events_token(id, &project.shown.api_token)?;
    super::body(tx, &Viewer { member, live_events_token }, id)
}
