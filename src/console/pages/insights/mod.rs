//! The insights of a project: their list, with its filters.

mod forms;
mod one;

use askama::Template;
use axum::http::Method;
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::layout::{self, Command, Undo};
use crate::console::model::{Person, insight_name};
use crate::console::paging::{LIMIT, ListPage, ListSpec, Paging, list_page};
use crate::console::registry::{PageResult, Pages};
use crate::console::urls::Query;
use crate::console::visit::{SignedIn, Visit};

use super::object::INSIGHTS;
use super::people::People;
use super::shareable::INSIGHT;
use super::{excerpt, project_id};

const LIST: &str = "/console/projects/{project_id}/insights/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
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
    filters: Filters,
    people: People,
    insights: Vec<Insight>,
    may_create: bool,
    paging: Paging,
    command: Command,
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
    let filters = Filters::of(&request.visit);
    let list = ListSpec {
        api: INSIGHTS.api(&project),
        api_query: filters.to_api_query(),
        page: base.clone(),
        page_query: filters.to_query(),
    };
    let ListPage { rows: insights, paging, command } = list_page(&request, list).await?;
    let frame = INSIGHTS.frame(&request, &project).await?;
    let frame = frame.titled("Insights").with_undo(undo(&request, &base));
    let page = InsightsPage {
        people: People::load(&request.api, frame.organization()).await?,
        may_create: INSIGHT.may_create(&request, &project).await?,
        paging,
        command,
        insights,
        base,
        filters,
    };
    Ok(layout::page(&frame, &page)?)
}

/// The values of a choice, each with its label.
type Choices = &'static [(&'static str, &'static str)];

/// The maximum length of a filter, in characters.
const MAX_LENGTH: usize = 200;

/// The names of the filters, which are those of the API. Only `created_by=@me` is `user` there.
const NAMES: [&str; 13] = [
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

/// The filters. An empty text filters nothing.
struct Filters(Vec<(&'static str, String)>);

impl Filters {
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

    fn of(visit: &Visit) -> Self {
        let read = |name| {
            let text: String = visit.query(name).trim().chars().take(MAX_LENGTH).collect();
            let is_number = || text.parse::<u64>().is_ok();
            let is_one_of = |choices: Choices| choices.iter().any(|(value, _)| *value == text);
            let is_known = match name {
                "created_by" => text == "@me" || is_number(),
                "dashboards" => is_number(),
                "favorited" => is_one_of(Self::FAVORITES),
                "saved" => is_one_of(Self::SAVED),
                "insight" => is_one_of(Self::KINDS),
                "order" => is_one_of(Self::ORDERS),
                _ => true,
            };
            (name, if is_known { text } else { String::new() })
        };
        Self(NAMES.map(read).to_vec())
    }

    fn value(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    fn are_set(&self) -> bool {
        self.0.iter().any(|(_, value)| !value.is_empty())
    }

    /// Whether one of the filters is set that are folded away.
    fn more_are_set(&self) -> bool {
        let names = NAMES.iter().skip(7);
        names.clone().any(|name| !self.value(name).is_empty())
    }

    /// Returns the query of the API's list.
    fn to_api_query(&self) -> Query {
        let fields = self.fields().map(|(name, value)| match (name, value) {
            ("created_by", "@me") => ("user", value),
            field => field,
        });
        Query::of([("basic", "true"), LIMIT]).and(fields)
    }

    /// Returns the query of the page.
    fn to_query(&self) -> Query {
        Query::of(self.fields())
    }

    fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}
