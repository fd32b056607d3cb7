//! The filters of the log, which stand in the query of the page. They are those of the API.

use std::time::Duration;

use crate::console::urls::Query;
use crate::console::visit::Visit;
use crate::time::Timestamp;

use super::entry::Entry;
use super::words::{KINDS, VERBS};

/// The filters. An empty text filters nothing.
#[derive(Clone, Default)]
pub(super) struct Filters {
    pub(super) scope: String,
    pub(super) activity: String,
    pub(super) item_id: String,
    /// `@me`, or the UUID of a user.
    pub(super) user: String,
    pub(super) after: String,
    pub(super) before: String,
}

impl Filters {
    /// Reads the filters. Unknown kinds and activities filter nothing.
    pub(super) fn of(visit: &Visit) -> Self {
        let text = |name| visit.query(name).trim().to_owned();
        let known = |name, mut values: Box<dyn Iterator<Item = &'static str>>| {
            let sent = visit.query(name);
            values.find(|value| *value == sent).unwrap_or_default().to_owned()
        };
        Self {
            scope: known("scope", Box::new(KINDS.iter().map(|kind| kind.scope))),
            activity: known("activity", Box::new(VERBS.iter().map(|verb| verb.activity))),
            item_id: text("item_id"),
            user: text("user"),
            after: text("after"),
            before: text("before"),
        }
    }

    /// Returns the filters that list the entries of the moment and the object in the query of an entry.
    pub(super) fn of_entry(visit: &Visit) -> Option<Self> {
        let at = Timestamp::parse(visit.query("at"))?;
        let Self { scope, item_id, .. } = Self::of(visit);
        let (after, before) = (at.to_string(), next(at).to_string());
        let is_complete = !scope.is_empty() && !item_id.is_empty();
        is_complete.then(|| Self { scope, item_id, after, before, ..Self::default() })
    }

    pub(super) fn are_set(&self) -> bool {
        self.fields().iter().any(|(_, value)| !value.is_empty())
    }

    pub(super) fn fields(&self) -> [(&'static str, &str); 6] {
        [
            ("scope", &self.scope),
            ("activity", &self.activity),
            ("item_id", &self.item_id),
            ("user", &self.user),
            ("after", &self.after),
            ("before", &self.before),
        ]
    }

    /// Returns the query of the API's list.
    pub(super) fn to_api_query(&self, limit: u64, offset: u64) -> Query {
        Query::of([("limit", limit.to_string().as_str())]).and(self.fields()).at(offset)
    }

    /// Returns these filters for entries after a moment, or these if they begin later.
    pub(super) fn since(&self, moment: Timestamp) -> Self {
        let moment = next(moment);
        let begins_later = Timestamp::parse(&self.after).is_some_and(|after| after > moment);
        let after = if begins_later { self.after.clone() } else { moment.to_string() };
        Self { after, ..self.clone() }
    }

    /// Returns the query of the page that begins at `offset`.
    pub(super) fn to_query(&self, offset: u64) -> Query {
        Query::of(self.fields()).at(offset)
    }
}

/// Returns the next moment. Times of the log have microseconds.
fn next(moment: Timestamp) -> Timestamp {
    moment.plus(Duration::from_micros(1))
}

/// Returns the query of the entries about one object.
pub(super) fn item_query(scope: &str, item: &str) -> Query {
    Query::of([("scope", scope), ("item_id", item)])
}

/// Returns the query of one entry, as [`Filters::of_entry`] reads it.
pub(super) fn entry_query(entry: &Entry) -> Query {
    let (at, id) = (entry.created_at.as_str(), entry.id.as_str());
    item_query(&entry.scope, &entry.item_id).and([("at", at), ("entry", id)])
}
