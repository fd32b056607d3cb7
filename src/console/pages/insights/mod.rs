//! The insights of a project: their list, with its filters.

mod forms;
mod one;

use crate::console::model::insight_name;
use crate::console::paging::{Choices, ListFilters, is_one_of};

use super::people::People;
use super::prelude::*;
use super::shareable::INSIGHT;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get("/console/projects/{project_id}/insights/", list);
    forms::routes(pages);
    one::routes(pages);
}

/// An insight in the list.
#[derive(Deserialize)]
struct Insight {
    id: u64,
    name: Option<String>,
    derived_name: Option<String>,
    description: Option<String>,
    tags: Vec<String>,
    favorited: bool,
    saved: bool,
    dashboards: Vec<u64>,
    created_by: Option<Person>,
    last_modified_at: String,
}

impl Insight {
    fn name(&self) -> &str {
        insight_name(self.name.as_deref(), self.derived_name.as_deref())
    }

    fn description(&self) -> String {
        excerpt(self.description.as_deref().unwrap_or_default())
    }

    fn creator(&self) -> String {
        self.created_by.as_ref().map_or(String::new(), Person::name)
    }
}

#[derive(Template)]
#[template(path = "console/pages/insights/list.html")]
struct InsightsPage {
    base: String,
    filters: ListFilters,
    people: People,
    list: ListPage<Insight>,
    may_create: bool,
}

impl InsightsPage {
    /// Whether one of the filters is set that are folded away.
    fn more_are_set(&self) -> bool {
        FILTERS.iter().skip(7).any(|name| !self.filters.value(name).is_empty())
    }
}

/// Returns the form that restores the insight that was just deleted, and leaves it unsaved if it was.
fn undo(request: &SignedIn, base: &str) -> Option<Undo> {
    let id = request.visit.query("undo").parse::<u64>().ok()?;
    let is_unsaved = !request.visit.query("unsaved").is_empty();
    let fields = is_unsaved.then(|| ("unsaved", id.to_string())).into_iter().collect();
    Some(Undo { action: format!("{base}{id}/restore/"), fields })
}

async fn list(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    let base = INSIGHTS.list(&project);
    let filters = filters(&request.visit);
    let list = ListSpec {
        api: INSIGHTS.api(&project),
        api_query: api_query(&filters),
        page: base.clone(),
        page_query: filters.to_query(),
    };
    let list = list_page(&request, list).await?;
    let frame = INSIGHTS.frame(&request, &project).await?;
    let frame = frame.titled("Insights").with_undo(undo(&request, &base));
    let page = InsightsPage {
        people: People::load(&request.api, frame.organization()).await?,
        may_create: INSIGHT.may_create(&request, &project).await?,
        list,
        base,
        filters,
    };
    Ok(layout::page(&frame, &page)?)
}

/// The maximum length of a filter, in characters.
const MAX_LENGTH: usize = 200;

/// The names of the filters, which are those of the API. Only `created_by=@me` is `user` there.
const FILTERS: [&str; 13] = [
    "search",
    "tags",
    "created_by",
    "favorited",
    "saved",
    "insight",
    "order",
    "date_from",
    "date_to",
    "created_date_from",
    "created_date_to",
    "dashboards",
    "short_id",
];

const FAVORITES: Choices = &[("", "Favorites or not"), ("true", "Favorites")];
const SAVED: Choices =
    &[("", "Saved or not"), ("true", "Saved, or on a dashboard"), ("false", "Not saved")];
const KINDS: Choices = &[
    ("", "Any kind"),
    ("TRENDS", "Trends"),
    ("FUNNELS", "Funnels"),
    ("RETENTION", "Retention"),
    ("PATHS", "Paths"),
    ("STICKINESS", "Stickiness"),
    ("LIFECYCLE", "Lifecycle"),
    ("SQL", "SQL"),
    ("JSON", "Other"),
];
const ORDERS: Choices = &[
    ("", "In order of creation"),
    ("-last_modified_at", "Last modified first"),
    ("last_modified_at", "Last modified last"),
    ("-created_at", "Newest first"),
    ("name", "By name"),
    ("-name", "By name, descending"),
    ("-updated_at", "Updated first"),
    ("updated_at", "Updated last"),
    ("created_by", "By creator"),
    ("-created_by", "By creator, descending"),
];

/// Reads the filters of the list.
fn filters(visit: &Visit) -> ListFilters {
    ListFilters::of(visit, &FILTERS, |name, text| {
        let text: String = text.chars().take(MAX_LENGTH).collect();
        let is_known = match name {
            "created_by" => text == "@me" || text.parse::<u64>().is_ok(),
            "dashboards" => text.parse::<u64>().is_ok(),
            "favorited" => is_one_of(FAVORITES, &text),
            "saved" => is_one_of(SAVED, &text),
            "insight" => is_one_of(KINDS, &text),
            "order" => is_one_of(ORDERS, &text),
            _ => true,
        };
        if is_known { text } else { String::new() }
    })
}

/// Returns the query of the API's list.
fn api_query(filters: &ListFilters) -> Query {
    let fields = filters.fields().map(|(name, value)| match (name, value) {
        ("created_by", "@me") => ("user", value),
        field => field,
    });
    Query::of([("basic", "true"), LIMIT]).and(fields)
}
