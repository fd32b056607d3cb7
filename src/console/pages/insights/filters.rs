//! The filters of the list, which stand in the query of the page.

use crate::console::paging::LIMIT;
use crate::console::query::Query;
use crate::console::visit::Visit;

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
pub(super) struct Filters(Vec<(&'static str, String)>);

impl Filters {
    pub(super) const FAVORITES: Choices = &[("", "Favorites or not"), ("true", "Favorites")];
    pub(super) const SAVED: Choices =
        &[("", "Saved or not"), ("true", "Saved, or on a dashboard"), ("false", "Not saved")];
    pub(super) const KINDS: Choices = &[
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
    pub(super) const ORDERS: Choices = &[
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

    pub(super) fn of(visit: &Visit) -> Self {
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

    pub(super) fn value(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    pub(super) fn are_set(&self) -> bool {
        self.0.iter().any(|(_, value)| !value.is_empty())
    }

    /// Whether one of the filters is set that are folded away.
    pub(super) fn more_are_set(&self) -> bool {
        let names = NAMES.iter().skip(7);
        names.clone().any(|name| !self.value(name).is_empty())
    }

    /// Returns the query of the API's list.
    pub(super) fn to_api_query(&self) -> Query {
        let fields = self.fields().map(|(name, value)| match (name, value) {
            ("created_by", "@me") => ("user", value),
            field => field,
        });
        Query::of([("basic", "true"), LIMIT]).and(fields)
    }

    /// Returns the query of the page.
    pub(super) fn to_query(&self) -> Query {
        Query::of(self.fields())
    }

    fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}
