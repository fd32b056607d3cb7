//! The filters of the list, which stand in the query of the page.

use uuid::Uuid;

use crate::console::paging::LIMIT;
use crate::console::query::Query;
use crate::console::visit::Visit;

/// The filters. An empty text filters nothing.
pub(super) struct Filters {
    pub(super) search: String,
    pub(super) tag: String,
    /// `@me`, or the UUID of a user.
    pub(super) created_by: String,
    /// `true` or `false`.
    pub(super) pinned: String,
    pub(super) creation_mode: String,
}

/// The values of a choice, each with its label.
type Choices = &'static [(&'static str, &'static str)];

impl Filters {
    pub(super) const PINNED: Choices =
        &[("", "Pinned or not"), ("true", "Pinned"), ("false", "Not pinned")];
    pub(super) const MODES: Choices = &[
        ("", "Created in any way"),
        ("default", "Created empty"),
        ("template", "From a template"),
        ("duplicate", "As a copy"),
    ];

    pub(super) fn of(visit: &Visit) -> Self {
        let text = |name| visit.query(name).trim().to_owned();
        let choice = |name, choices: Choices| {
            let sent = visit.query(name);
            let known = choices.iter().find(|(value, _)| *value == sent);
            known.map_or(String::new(), |(value, _)| (*value).to_owned())
        };
        Self {
            search: text("search"),
            tag: text("tags"),
            created_by: creator(visit.query("created_by")),
            pinned: choice("pinned", Self::PINNED),
            creation_mode: choice("creation_mode", Self::MODES),
        }
    }

    pub(super) fn are_set(&self) -> bool {
        self.fields().iter().any(|(_, value)| !value.is_empty())
    }

    fn fields(&self) -> [(&'static str, &str); 5] {
        [
            ("search", &self.search),
            ("tags", &self.tag),
            ("created_by", &self.created_by),
            ("pinned", &self.pinned),
            ("creation_mode", &self.creation_mode),
        ]
    }

    /// Returns the query of the API's list.
    pub(super) fn to_api_query(&self) -> Query {
        Query::of([LIMIT]).and(self.fields())
    }

    /// Returns the query of the page.
    pub(super) fn to_query(&self) -> Query {
        Query::of(self.fields())
    }
}

/// Returns the user that a filter names, or an empty text.
fn creator(sent: &str) -> String {
    let uuid = sent.parse::<Uuid>().map(|uuid| uuid.to_string());
    if sent == "@me" { sent.to_owned() } else { uuid.unwrap_or_default() }
}
