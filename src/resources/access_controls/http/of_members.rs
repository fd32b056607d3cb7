//! `access/` below dashboards and insights.

use crate::auth::{InProject, ReadAccess, Requirements};
use crate::error::Result;
use crate::http::paging::PageParams;
use crate::http::path::PathId;
use crate::http::routes::{RouteSpec, Routes};
use crate::ids::DashboardId;
use crate::input::Field;
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::shared::Shared;
use crate::resources::access_controls::{LevelField, OnObjects, require_read};
use crate::resources::dashboards::Dashboard;
use crate::resources::dashboards::insights::{Insight, InsightRef};
use crate::resources::dashboards::member_access::{self, Filter, MemberAccessBody, NameVisibility};
use crate::resources::members;
use crate::resources::users::UserFilter;
use crate::response::ApiResult;
use crate::store::Order;

use super::get_object;

const OF_DASHBOARD: &str = "/api/projects/{project_id}/dashboards/{id}/access/";
const OF_INSIGHT: &str = "/api/projects/{project_id}/insights/{id}/access/";

pub(super) fn routes(routes: &mut Routes, read: Requirements) {
    let of_dashboard = routes.get(OF_DASHBOARD, "dashboards_access_list", read, list::<Dashboard>);
    with_filters(of_dashboard)
        .summary("List what each member may do with a dashboard, and why, the newest member first.")
        .id::<DashboardId>();
    let of_insight = routes.get(OF_INSIGHT, "insights_access_list", read, list::<Insight>);
    with_filters(of_insight)
        .summary("List what each member may do with an insight, and why, the newest member first.")
        .id::<InsightRef>();
}

/// Adds the filters that both lists take.
fn with_filters(row: &mut RouteSpec) -> &mut RouteSpec {
    row.query::<UserFilter>("user", "Only this user: a UUID, or `@me`.")
        .query::<String>("search", "Only members whose name or address contains this text.")
        .query::<AccessLevel>("access_level", "Only members with this level on the object.")
        .returns_page::<MemberAccessBody>()
        .may_return(400)
}

async fn list<R: Shared>(
    access: ReadAccess<InProject>,
    PathId(named): PathId<R::Ref>,
    page: PageParams,
) -> ApiResult {
    let (named, filter) = (named?, filter(&page)?);
    page.with_scan(filter.scans())
        .respond(access, move |tx, at, page| {
            let (object, level) = get_object::<R>(tx, &at.tenant, &named)?;
            require_read(tx, &at.tenant, level)?;
            let visibility = NameVisibility::of(&at.caller.key);
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
