//! `/api/organizations/:organization_id/activity_log/` and `/api/projects/:project_id/activity_log/`.

use crate::http::prelude::*;
use crate::input::DateTime;
use crate::resources::users::UserFilter;

use super::api::{ActivityNames, CommaList, EntryBody, ScopeNames};
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
    row.query::<CommaList<ScopeNames>>("scope", "Only entries for these types of object.")
        .query::<CommaList<ScopeNames>>("scopes", "Same as `scope`.")
        .query::<CommaList<ActivityNames>>("activity", "Only entries with these actions.")
        .query::<String>("item_id", "Only entries for the object with this id.")
        .query_as::<UserFilter>("user", "Only changes made by this user: a UUID, or `@me`.")
        .query::<Timestamp>("after", "Only entries at or after this time.")
        .query::<Timestamp>(
            "before",
            "Only entries before this time. A filtered list searches the newest 100,000 entries; use this parameter \
             to search older ones.",
        )
        .returns_page::<EntryBody>()
        .may_return(400)
}

async fn list_of_organization(at: ReadAccess<InOrganization>, page: PageParams) -> ApiResult {
    let filter = filter(page.query())?;
    page.with_scan(filter.narrows())
        .respond(at, move |tx, at, page| {
            let visibility = Visibility::of_organization(tx, &at.tenant.member)?;
            let window = page.window(Order::Descending);
            super::list(tx, &visibility, at.caller.user.id, &filter, window)
        })
        .await
}

async fn list_of_project(at: ReadAccess<InProject>, page: PageParams) -> ApiResult {
    let filter = filter(page.query())?;
    page.with_scan(filter.narrows())
        .respond(at, move |tx, at, page| {
            let visibility = Visibility::of_project(tx, &at.tenant)?;
            let window = page.window(Order::Descending);
            super::list(tx, &visibility, at.caller.user.id, &filter, window)
        })
        .await
}

/// Reads the filter from the query.
fn filter(query: &QueryParams) -> Result<Filter> {
    let mut scopes = query.words("scope", ScopeNames::contains)?;
    scopes.extend(query.words("scopes", ScopeNames::contains)?);
    Ok(Filter {
        scopes,
        activities: query.words("activity", ActivityNames::contains)?,
        item: query.text("item_id").map(str::to_owned),
        user: query.read::<UserFilter>("user")?,
        after: query.read::<DateTime>("after")?,
        before: query.read::<DateTime>("before")?,
    })
}
