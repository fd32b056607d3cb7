//! `/api/projects/:project_id/access_controls/`, `/api/projects/:project_id/resource_access_controls/` and
//! `access_controls/` and `access/` below dashboards and insights.

use crate::http::prelude::*;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::shared::{Shared, level_on};
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::{Insight, InsightRef};
use crate::resources::dashboards::member_access::{self, Filter, MemberAccessBody};
use crate::resources::members;
use crate::resources::shared::prelude::*;
use crate::resources::users::UserFilter;

use super::api::{
    KindField, Kinds, LevelField, ObjectAccessControl, ObjectAccessControls, OnObjects,
    ProjectAccessControl, ProjectAccessControls,
};
use super::{NewAccessControl, NewObjectAccessControl, NewResourceAccessControl, require_read};

const OF_PROJECT: &str = "/api/projects/{project_id}/access_controls/";
const OF_KINDS: &str = "/api/projects/{project_id}/resource_access_controls/";
const OF_DASHBOARD: &str = "/api/projects/{project_id}/dashboards/{id}/access_controls/";
const NOT_OF_DASHBOARD: &str =
    "/api/projects/{project_id}/dashboards/{id}/resource_access_controls/";

const OF_INSIGHT: &str = "/api/projects/{project_id}/insights/{id}/access_controls/";
const NOT_OF_INSIGHT: &str = "/api/projects/{project_id}/insights/{id}/resource_access_controls/";
const MEMBERS_OF_DASHBOARD: &str = "/api/projects/{project_id}/dashboards/{id}/access/";
const MEMBERS_OF_INSIGHT: &str = "/api/projects/{project_id}/insights/{id}/access/";

/// Example of a rule on a project.
const ON_PROJECT: &str =
    r#"{"organization_member": "0197a2f4-5c1e-7b3a-9d2e-3f4a5b6c7d8e", "access_level": "member"}"#;

/// Adds the routes of access controls.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope("access_control:read");
    let write = Requirements::scope("access_control:write");
    routes.resource("access_controls", "Access of members to a project and to its objects.");
    routes
        .get(OF_PROJECT, "projects_access_controls_retrieve", read, retrieve)
        .summary("Retrieve the access rules on a project.")
        .returns_unversioned::<ProjectAccessControls>();
    routes
        .put(OF_PROJECT, "projects_access_controls_update", write, update)
        .summary("Set an access rule on a project: for a member, a role, or everyone. A null level deletes the rule: 204.")
        .body::<NewAccessControl>()
        .example(ON_PROJECT)
        .returns_unversioned::<ProjectAccessControl>()
        .may_return(204);
    routes
        .get(OF_KINDS, "projects_resource_access_controls_retrieve", read, retrieve_all)
        .summary("Retrieve the access rules on all objects of each kind in a project.")
        .query::<Kinds>(
            "resource",
            "The kind that `user_access_level` is about. The default is `dashboard`.",
        )
        .returns_unversioned::<ObjectAccessControls>()
        .may_return(400);
    routes
        .put(OF_KINDS, "projects_resource_access_controls_update", write, update_all)
        .summary("Set an access rule on all objects of a kind. A null level deletes the rule: 204.")
        .body::<NewResourceAccessControl>()
        .example(r#"{"resource": "dashboard", "access_level": "viewer"}"#)
        .returns_unversioned::<ObjectAccessControl>()
        .may_return(204);
    routes
        .get(OF_DASHBOARD, "dashboards_access_controls_retrieve", read, retrieve_one::<Dashboard>)
        .summary("Retrieve the access rules on a dashboard.")
        .id::<DashboardId>()
        .returns_unversioned::<ObjectAccessControls>();
    routes
        .put(OF_DASHBOARD, "dashboards_access_controls_update", write, update_one::<Dashboard>)
        .summary("Set an access rule on a dashboard. A null level deletes the rule: 204.")
        .id::<DashboardId>()
        .body::<NewObjectAccessControl>()
        .example(r#"{"access_level": "none"}"#)
        .returns_unversioned::<ObjectAccessControl>()
        .may_return(204);
    let operation = "dashboards_resource_access_controls_retrieve";
    routes
        .get(NOT_OF_DASHBOARD, operation, read, refuse::<Dashboard>)
        .summary("Not allowed: rules on all objects of a kind belong to a project.")
        .id::<DashboardId>()
        .always_fails(400);
    routes
        .get(OF_INSIGHT, "insights_access_controls_retrieve", read, retrieve_one::<Insight>)
        .summary("Retrieve the access rules on an insight.")
        .id::<InsightRef>()
        .returns_unversioned::<ObjectAccessControls>();
    routes
        .put(OF_INSIGHT, "insights_access_controls_update", write, update_one::<Insight>)
        .summary("Set an access rule on an insight. A null level deletes the rule: 204.")
        .id::<InsightRef>()
        .body::<NewObjectAccessControl>()
        .example(r#"{"access_level": "none"}"#)
        .returns_unversioned::<ObjectAccessControl>()
        .may_return(204);
    let operation = "insights_resource_access_controls_retrieve";
    routes
        .get(NOT_OF_INSIGHT, operation, read, refuse::<Insight>)
        .summary("Not allowed: rules on all objects of a kind belong to a project.")
        .id::<InsightRef>()
        .always_fails(400);
    let of_dashboard =
        routes.get(MEMBERS_OF_DASHBOARD, "dashboards_access_list", read, list_members::<Dashboard>);
    with_filters(of_dashboard)
        .summary("List what each member may do with a dashboard, and why, the newest member first.")
        .id::<DashboardId>();
    let of_insight =
        routes.get(MEMBERS_OF_INSIGHT, "insights_access_list", read, list_members::<Insight>);
    with_filters(of_insight)
        .summary("List what each member may do with an insight, and why, the newest member first.")
        .id::<InsightRef>();
}

async fn retrieve(at: ReadAccess<InProject>) -> ApiResult {
    at.read(|tx, at| super::body(tx, &at.tenant)).await.map(ApiResponse::Json)
}

async fn update(at: WriteAccess<InProject>, JsonBody(sent): JsonBody) -> ApiResult {
    let sent = Parsed::<NewAccessControl>::new(&sent);
    let rule = at
        .change(move |tx, _, tenant: &InProject, now| super::update(tx, tenant, &sent, now))
        .await?;
    Ok(rule.map_or(ApiResponse::NoContent, ApiResponse::Json))
}

async fn retrieve_all(at: ReadAccess<InProject>, query: QueryParams) -> ApiResult {
    let kind = query.read::<KindField>("resource")?.unwrap_or(Kind::Dashboard);
    at.read(move |tx, at| super::body_of_all(tx, &at.tenant, kind)).await.map(ApiResponse::Json)
}

async fn update_all(at: WriteAccess<InProject>, JsonBody(sent): JsonBody) -> ApiResult {
    let sent = Parsed::<NewResourceAccessControl>::new(&sent);
    let rule = at
        .change(move |tx, _, tenant: &InProject, now| super::update_all(tx, tenant, &sent, now))
        .await?;
    Ok(rule.map_or(ApiResponse::NoContent, ApiResponse::Json))
}

async fn retrieve_one<R: Shared>(
    at: ReadAccess<InProject>,
    PathId(named): PathId<R::Ref>,
) -> ApiResult {
    let named = named?;
    let fields = at.read(move |tx, at| {
        let (object, level) = get_object::<R>(tx, &at.tenant, &named)?;
        super::body_of_one(tx, &at.tenant, object, level)
    });
    fields.await.map(ApiResponse::Json)
}

async fn update_one<R: Shared>(
    at: WriteAccess<InProject>,
    PathId(named): PathId<R::Ref>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let (named, sent) = (named?, Parsed::<NewObjectAccessControl>::new(&sent));
    let rule = at
        .change(move |tx, _, tenant: &InProject, now| {
            let (object, level) = get_object::<R>(tx, tenant, &named)?;
            super::update_one(tx, tenant, object, level, &sent, now)
        })
        .await?;
    Ok(rule.map_or(ApiResponse::NoContent, ApiResponse::Json))
}

/// Answers 400, as PostHog does: rules on all objects of a kind belong to the project.
async fn refuse<R: Shared>(at: ReadAccess<InProject>, PathId(named): PathId<R::Ref>) -> ApiResult {
    let (_, level) = get_object::<R>(at.tx(), &at.tenant, &named?)?;
    level.require(AccessLevel::Viewer)?;
    Err(invalid("Resource-level access controls can only be configured for projects."))
}

/// Returns the live object that a path names, and the caller's level on it.
fn get_object<R: Shared>(
    tx: &dyn Raw,
    tenant: &InProject,
    named: &R::Ref,
) -> Result<(Object, AccessLevel)> {
    let meta = R::get_live(tx, tenant.project.id, named)?;
    Ok((R::shared(&meta).object, level_on::<R>(tx, tenant, &meta)?))
}

/// Adds the filters that both lists take.
fn with_filters(row: &mut RouteSpec) -> &mut RouteSpec {
    row.query_as::<UserFilter>("user", "Only this user: a UUID, or `@me`.")
        .query::<String>("search", "Only members whose name or address contains this text.")
        .query::<AccessLevel>("access_level", "Only members with this level on the object.")
        .returns_page::<MemberAccessBody>()
        .may_return(400)
}

async fn list_members<R: Shared>(
    at: ReadAccess<InProject>,
    PathId(named): PathId<R::Ref>,
    page: PageParams,
) -> ApiResult {
    let (named, filter) = (named?, filter(&page)?);
    page.with_scan(filter.scans())
        .respond(at, move |tx, at, page| {
            let (object, level) = get_object::<R>(tx, &at.tenant, &named)?;
            require_read(tx, &at.tenant, level)?;
            let visibility = at.caller.key.name_visibility();
            let window = page.window(Order::Descending);
            member_access::list(tx, &at.tenant, object, visibility, &filter, window)
        })
        .await
}

/// Reads the filter from the query.
fn filter(page: &PageParams) -> Result<Filter> {
    let query = page.query();
    let level = query
        .text("access_level")
        .map(|text| LevelField::<OnObjects>::parse("access_level", Some(&text.into())));
    Ok(Filter {
        user: query.read::<UserFilter>("user")?,
        members: members::Filter {
            search: query.text("search").map(str::to_lowercase),
            ..members::Filter::default()
        },
        access_level: level.transpose()?.flatten(),
    })
}
