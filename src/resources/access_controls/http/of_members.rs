//! `/api/projects/:project_id/dashboards/:id/access/`.

use crate::auth::{InProject, ReadAccess, Requirements};
use crate::error::Result;
use crate::http::paging::PageParams;
use crate::http::path::PathId;
use crate::http::routes::Routes;
use crate::ids::{DashboardId, UserUuid};
use crate::input::{Field, FieldType, UuidField};
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::{LevelField, OnObjects};
use crate::resources::dashboards::member_access::{
    self, Filter, MemberAccessBody, NameVisibility, UserFilter,
};
use crate::resources::members;
use crate::response::ApiResult;
use crate::store::Order;

const OF_DASHBOARD: &str = "/api/projects/{project_id}/dashboards/{id}/access/";

/// Registers the route.
pub(super) fn routes(routes: &mut Routes, read: Requirements) {
    routes
        .get(OF_DASHBOARD, "dashboards_access_list", read, list)
        .summary("List what each member may do with a dashboard, and why, the newest member first.")
        .id::<DashboardId>()
        .query::<String>("user", "Only this user: a UUID, or `@me`.")
        .query::<String>("search", "Only members whose name or address contains this text.")
        .query::<AccessLevel>("access_level", "Only members with this level on the dashboard.")
        .returns_page::<MemberAccessBody>()
        .may_return(400);
}

async fn list(
    access: ReadAccess<InProject>,
    PathId(id): PathId<DashboardId>,
    page: PageParams,
) -> ApiResult {
    let (id, filter) = (id?, filter(&page)?);
    page.with_scan(filter.scans())
        .respond(access, move |tx, at, page| {
            let visibility = NameVisibility::of(&at.caller.key);
            let window = page.window(Order::Descending);
            member_access::list(tx, &at.tenant, id, visibility, &filter, window)
        })
        .await
}

/// Parses the filter from the query. An empty value is ignored.
fn filter(page: &PageParams) -> Result<Filter> {
    let value = |name| page.parameter(name).map(str::trim).filter(|text| !text.is_empty());
    let level = value("access_level")
        .map(|text| LevelField::<OnObjects>::parse("access_level", Some(&text.into())));
    Ok(Filter {
        user: value("user").map(parse_user).transpose()?,
        members: members::Filter {
            search: value("search").map(str::to_lowercase),
            ..members::Filter::default()
        },
        access_level: level.transpose()?.flatten(),
    })
}

fn parse_user(text: &str) -> Result<UserFilter> {
    if text == "@me" {
        return Ok(UserFilter::Caller);
    }
    let uuid = UuidField::read(&text.into());
    uuid.map(|uuid| UserFilter::Uuid(UserUuid(uuid)))
        .map_err(|error| error.with_attr_prefix("user"))
}
