//! `/api/organizations/:organization_id/activity_log/` and `/api/projects/:project_id/activity_log/`.

use crate::auth::{InOrganization, InProject, ReadAccess, Requirements};
use crate::error::{Error, Result};
use crate::http::paging::PageParams;
use crate::http::routes::{RouteSpec, Routes};
use crate::resources::users::UserFilter;
use crate::response::ApiResult;
use crate::store::Order;
use crate::time::Timestamp;

use super::body::{ActivityNames, CommaList, EntryBody, ScopeNames};
use super::{Filter, READ_SCOPE, Visibility};

const OF_ORGANIZATION: &str = "/api/organizations/{organization_id}/activity_log/";
const OF_PROJECT: &str = "/api/projects/{project_id}/activity_log/";

/// Adds the routes of the activity log.
pub fn routes(routes: &mut Routes) {
    let read = Requirements::scope(READ_SCOPE);
    routes.resource("activity_log", "The history of changes: who changed what, and when.");
    let of_organization =
        routes.get(OF_ORGANIZATION, "organizations_activity_log_list", read, list_of_organization);
    with_filters(of_organization)
        .summary("List changes to an organization and its projects, newest first.");
    let of_project = routes.get(OF_PROJECT, "activity_log_list", read, list_of_project);
    with_filters(of_project).summary("List changes in a project, newest first.");
}

/// Adds the filters that both lists take.
fn with_filters(row: &mut RouteSpec) -> &mut RouteSpec {
    row.query::<CommaList<ScopeNames>>("scope", "Only entries for these types of object. An unknown type matches no entry.")
        .query::<CommaList<ScopeNames>>("scopes", "Same as `scope`.")
        .query::<CommaList<ActivityNames>>("activity", "Only entries with these actions. An unknown action matches no entry.")
        .query::<String>("item_id", "Only entries for the object with this id.")
        .query::<UserFilter>("user", "Only changes made by this user: a UUID, or `@me`.")
        .query::<Timestamp>("after", "Only entries at or after this time.")
        .query::<Timestamp>(
            "before",
            "Only entries before this time. A filtered list searches the newest 100,000 entries; use this parameter \
             to search older ones.",
        )
        .returns_page::<EntryBody>()
        .may_return(400)
}

async fn list_of_organization(access: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    let filter = filter(&page)?;
    page.with_scan(filter.narrows())
        .respond(access, move |tx, at, page| {
            let visibility = Visibility::of_organization(tx, &at.tenant.member)?;
            let window = page.window(Order::Descending);
            super::list(tx, &visibility, at.caller.user.id, &filter, window)
        })
        .await
}

async fn list_of_project(access: ReadAccess<InProject>, page: PageParams) -> ApiResult {
    let filter = filter(&page)?;
    page.with_scan(filter.narrows())
        .respond(access, move |tx, at, page| {
            let visibility = Visibility::of_project(tx, &at.tenant)?;
            let window = page.window(Order::Descending);
            super::list(tx, &visibility, at.caller.user.id, &filter, window)
        })
        .await
}

/// Parses the filter from the query. An empty value is ignored.
fn filter(page: &PageParams) -> Result<Filter> {
    let value = |name| page.parameter(name).map(str::trim).filter(|text| !text.is_empty());
    let moment = |name| value(name).map(|text| parse_timestamp(name, text)).transpose();
    Ok(Filter {
        scopes: page.comma_list("scope", Some("scopes"))?,
        activities: page.comma_list("activity", None)?,
        item: value("item_id").map(str::to_owned),
        user: value("user").map(UserFilter::parse).transpose()?,
        after: moment("after")?,
        before: moment("before")?,
    })
}

/// Parses a time. Fails with 400 for the field `name` if the text is not a time.
fn parse_timestamp(name: &str, text: &str) -> Result<Timestamp> {
    let detail = "Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
    Timestamp::parse(text).ok_or_else(|| Error::field(name, "invalid_input", detail))
}
