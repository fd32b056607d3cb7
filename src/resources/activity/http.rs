//! `/api/organizations/:organization_id/activity_log/` and `/api/projects/:project_id/activity_log/`.

use crate::access::{Admitted, InOrganization, InProject, Needs};
use crate::error::{Error, Result};
use crate::http::answer::Answered;
use crate::http::page::Page;
use crate::http::routes::{Routes, Row};
use crate::ids::UserUuid;
use crate::input::{Kind, UuidField};
use crate::store::Order;
use crate::time::Timestamp;

use super::body::{self, Activities, EntryBody, Scopes, Several};
use super::{Filter, Maker, Sight};

const OF_ORGANIZATION: &str = "/api/organizations/{organization_id}/activity_log/";
const OF_PROJECT: &str = "/api/projects/{project_id}/activity_log/";

/// The routes of the activity log.
pub fn routes(routes: &mut Routes) {
    let read = Needs::scope("activity_log:read");
    routes.noun("activity_log", "What was done, by whom, and what it changed.");
    let of_organization =
        routes.get(OF_ORGANIZATION, "organizations_activity_log_list", read, list_of_organization);
    narrowed(of_organization)
        .summary("List what was done with an organization and in its projects, newest first.");
    let of_project = routes.get(OF_PROJECT, "activity_log_list", read, list_of_project);
    narrowed(of_project).summary("List what was done in a project, newest first.");
}

/// A log, and what narrows it.
fn narrowed(row: &mut Row) -> &mut Row {
    row.query::<Several<Scopes>>("scope", "Only those about things of these kinds. Of others there are none.")
        .query::<Several<Scopes>>("scopes", "The same.")
        .query::<Several<Activities>>("activity", "Only those that tell of one of these. Of others there are none.")
        .query::<String>("item_id", "Only those about the thing with this id.")
        .query::<body::Maker>("user", "Only those of this user: a UUID, or `@me`.")
        .query::<Timestamp>("after", "Only those from this moment on.")
        .query::<Timestamp>(
            "before",
            "Only those before this moment. Where a log is narrowed, the newest 100,000 that come into question are \
             looked at: this reaches the ones behind.",
        )
        .lists::<EntryBody>()
        .may(400)
}

async fn list_of_organization(at: Admitted<InOrganization>, page: Page) -> Answered {
    let filter = filter(&page)?;
    page.walking(filter.narrows())
        .answer(at, move |tx, at, page| {
            let sight = Sight::of_organization(tx, &at.place.member)?;
            let window = page.window(Order::Descending);
            super::list(tx, &sight, at.caller.user.id, &filter, window)
        })
        .await
}

async fn list_of_project(at: Admitted<InProject>, page: Page) -> Answered {
    let filter = filter(&page)?;
    page.walking(filter.narrows())
        .answer(at, move |tx, at, page| {
            let sight = Sight::of_project(tx, &at.place)?;
            let window = page.window(Order::Descending);
            super::list(tx, &sight, at.caller.user.id, &filter, window)
        })
        .await
}

/// What the query asks for. An empty value asks for nothing.
fn filter(page: &Page) -> Result<Filter> {
    let value = |name| page.parameter(name).map(str::trim).filter(|text| !text.is_empty());
    let moment = |name| value(name).map(|text| moment(name, text)).transpose();
    Ok(Filter {
        scopes: page.words("scope", Some("scopes"))?,
        activities: page.words("activity", None)?,
        item: value("item_id").map(str::to_owned),
        user: value("user").map(maker).transpose()?,
        after: moment("after")?,
        before: moment("before")?,
    })
}

fn maker(text: &str) -> Result<Maker> {
    if text == "@me" {
        return Ok(Maker::Caller);
    }
    let uuid = UuidField::read(&text.into());
    uuid.map(|uuid| Maker::Uuid(UserUuid(uuid))).map_err(|error| error.within("user"))
}

/// A moment, or the refusal of a field that is none (facts-crosscutting §b).
fn moment(name: &str, text: &str) -> Result<Timestamp> {
    let detail = "Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
    Timestamp::parse(text).ok_or_else(|| Error::field(name, "invalid_input", detail))
}
