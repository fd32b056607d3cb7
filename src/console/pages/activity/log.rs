//! The two logs: that of an organization and that of a project. Their entries as the API describes them, their filters, which
//! stand in the query of the page, and an entry as a page shows it: a sentence with names in it, and what changed.

use std::collections::HashMap;
use std::time::Duration;

use url::form_urlencoded::byte_serialize;

use crate::console::pages::people::People;
use crate::console::pages::prelude::*;

use super::diff::{Diff, DiffBudget, DiffPart};
use super::words::{self, KINDS, VERBS};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Log {
    /// The log of the organization with this id. It includes the projects.
    Organization(String),
    /// The log of the project with this id.
    Project(String),
}

impl Log {
    /// Returns the log in the page's path.
    ///
    /// # Errors
    /// 404 if the id is malformed.
    pub(super) fn of(visit: &Visit) -> Result<Self> {
        let organization = visit.organization_id().map(Self::Organization);
        organization.or_else(|_| visit.project_id().map(Self::Project))
    }

    /// Returns the path of the API.
    pub(super) fn api(&self) -> String {
        match self {
            Self::Organization(id) => format!("/api/organizations/{id}/activity_log/"),
            Self::Project(id) => format!("/api/projects/{id}/activity_log/"),
        }
    }

    /// Returns the path of the page.
    pub(super) fn page(&self) -> String {
        match self {
            Self::Organization(id) => format!("/console/organizations/{id}/activity/"),
            Self::Project(id) => format!("/console/projects/{id}/activity/"),
        }
    }

    /// Returns the page of the object of an entry, if the console has one.
    pub(super) fn page_of(&self, entry: &Entry) -> Option<String> {
        let item: String = byte_serialize(entry.item_id.as_bytes()).collect();
        let (objects, tenant) = match (entry.scope.as_str(), entry.project_id, self) {
            ("Project", Some(id), _) => return Some(DASHBOARDS.list(&id.to_string())),
            ("Dashboard", Some(id), _) => (DASHBOARDS, id.to_string()),
            ("Insight", Some(id), _) => (INSIGHTS, id.to_string()),
            ("BatchExport", Some(id), _) => (BATCH_EXPORTS, id.to_string()),
            ("OrganizationDomain", _, Self::Organization(id)) => (DOMAINS, id.clone()),
            ("Role", _, Self::Organization(id)) => (ROLES, id.clone()),
            _ => return None,
        };
        Some(format!("{}{item}/", objects.list(&tenant)))
    }

    /// Returns the page of the log of the entry's project, for a log with several projects.
    pub(super) fn of_project(&self, entry: &Entry) -> Option<String> {
        let id = entry.project_id.filter(|_| matches!(self, Self::Organization(_)))?;
        Some(Self::Project(id.to_string()).page())
    }
}

/// An entry of the log, as the API describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    /// The user; `None` for the operator.
    pub(super) user: Option<Person>,
    pub(super) scope: String,
    pub(super) item_id: String,
    pub(super) activity: String,
    pub(super) detail: Detail,
    /// The project of the object. [`keep_open_projects`] removes it if the session cannot open the project.
    pub(super) project_id: Option<u64>,
    pub(super) created_at: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Detail {
    pub(super) name: Option<String>,
    /// The short ID of an insight.
    pub(super) short_id: Option<String>,
    pub(super) changes: Vec<Change>,
}

/// A field that changed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Change {
    pub(super) field: String,
    pub(super) before: Value,
    pub(super) after: Value,
}

/// Removes the projects that the session cannot open from entries: those that were deleted since.
///
/// # Errors
/// The errors of the API, except refusals.
pub(super) async fn keep_open_projects(request: &SignedIn, entries: &mut [Entry]) -> Result<()> {
    let mut known: HashMap<u64, bool> = HashMap::new();
    for entry in entries {
        let Some(project) = entry.project_id else { continue };
        let is_open = if let Some(is_open) = known.get(&project) {
            *is_open
        } else {
            let log = Operation::new("activity_log_list", [project.to_string().as_str()]);
            request.api.may(&log).await?
        };
        known.insert(project, is_open);
        entry.project_id = entry.project_id.filter(|_| is_open);
    }
    Ok(())
}

/// The names of the filters, which are those of the API.
const FILTERS: [&str; 6] = ["scope", "activity", "item_id", "user", "after", "before"];

/// Reads the filters. Unknown kinds and activities filter nothing.
pub(super) fn filters(visit: &Visit) -> ListFilters {
    ListFilters::of(visit, &FILTERS, |name, text| {
        let is_known = match name {
            "scope" => KINDS.iter().any(|kind| kind.scope == text),
            "activity" => VERBS.iter().any(|verb| verb.activity == text),
            _ => true,
        };
        if is_known { text.to_owned() } else { String::new() }
    })
}

/// Returns whether filters name an object.
pub(super) fn name_object(filters: &ListFilters) -> bool {
    ["scope", "item_id"].iter().all(|name| !filters.value(name).is_empty())
}

/// Returns the filters that list the entries of the moment and the object in the query of an entry.
pub(super) fn filters_of_entry(visit: &Visit) -> Option<ListFilters> {
    let at = Timestamp::parse(visit.query("at"))?;
    let filters = filters(visit).with("activity", "").with("user", "");
    let filters = filters.with("after", &at.to_string()).with("before", &next(at).to_string());
    name_object(&filters).then_some(filters)
}

/// Returns the query of the API's list.
pub(super) fn api_query(filters: &ListFilters, limit: u64, offset: u64) -> Query {
    Query::of([("limit", limit.to_string().as_str())]).and(filters.fields()).at(offset)
}

/// Returns these filters for entries after a moment, or these if they begin later.
pub(super) fn since(filters: ListFilters, moment: Timestamp) -> ListFilters {
    let moment = next(moment);
    let after = Timestamp::parse(filters.value("after"));
    let begin_later = after.is_some_and(|after| after > moment);
    if begin_later { filters } else { filters.with("after", &moment.to_string()) }
}

/// Returns the next moment. Times of the log have microseconds.
fn next(moment: Timestamp) -> Timestamp {
    moment.plus(Duration::from_micros(1))
}

/// Returns the query of the entries about one object.
pub(super) fn item_query(scope: &str, item: &str) -> Query {
    Query::of([("scope", scope), ("item_id", item)])
}

/// Returns the query of one entry, as [`filters_of_entry`] reads it.
pub(super) fn entry_query(entry: &Entry) -> Query {
    let (at, id) = (entry.created_at.as_str(), entry.id.as_str());
    item_query(&entry.scope, &entry.item_id).and([("at", at), ("entry", id)])
}

/// An entry on the page.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) actor: String,
    pub(super) initials: String,
    /// A sentence that says what was done.
    pub(super) sentence: Sentence,
    pub(super) object: Sentence,
    pub(super) created_at: String,
    pub(super) changes: Vec<ChangeRow>,
    /// The number of the project and the page of its log, in a log with several projects.
    pub(super) project: Option<(u64, String)>,
    /// The query of the entries about the same object.
    pub(super) history: Query,
    /// The query of the page that asks before the entry is reverted, if the session may revert it.
    pub(super) revert: Option<Query>,
    pub(super) is_deletion: bool,
}

/// A changed field on the page.
#[derive(Template)]
#[template(path = "console/pages/activity/change.html")]
pub(super) struct ChangeRow {
    pub(super) label: String,
    pub(super) diff: Diff,
    /// Whether a long difference is shown without a click.
    is_open: bool,
}

/// A difference with more lines is folded.
const MAX_LINES: usize = 12;
/// The changes of an entry with more lines are folded together.
const MAX_LINES_OF_ENTRY: usize = 24;
/// The changes of an entry with more fields are folded together.
const MAX_FIELDS: usize = 8;

impl ChangeRow {
    /// Shows the difference without a click, on a page that asks about it.
    pub(super) const fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    fn is_folded(&self) -> bool {
        !self.is_open && self.diff.lines() > MAX_LINES
    }
}

impl Row {
    /// Returns whether the changes are folded together.
    pub(super) fn is_folded(&self) -> bool {
        let lines = self.changes.iter();
        let lines = lines.map(|change| if change.is_folded() { 1 } else { change.diff.lines() });
        self.changes.len() > MAX_FIELDS || lines.sum::<usize>() > MAX_LINES_OF_ENTRY
    }
}

impl Change {
    /// Returns the change as the page shows it.
    pub(super) fn row(&self, scope: &str, budget: &mut DiffBudget) -> ChangeRow {
        let label = words::label(&self.field).into_owned();
        let word = |value: &Value| words::word(scope, &self.field, value);
        let diff = Diff::between(&self.before, &self.after, word, budget);
        ChangeRow { label, diff, is_open: false }
    }
}

/// Words with names in them.
#[derive(Template)]
#[template(path = "console/pages/activity/sentence.html")]
pub(super) struct Sentence {
    pieces: Vec<Piece>,
}

impl Sentence {
    /// Returns the sentence without links.
    pub(super) fn text(&self) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Words(text) | Piece::Name(text) | Piece::Link(text, _) => text.as_str(),
        });
        texts.collect()
    }
}

/// A piece of a sentence.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// Words of the console.
    Words(String),
    /// A name that people chose.
    Name(String),
    /// The name of the object, with its page.
    Link(String, String),
}

impl Entry {
    /// Returns the name of the user, or the operator.
    pub(super) fn actor(&self) -> String {
        self.user.as_ref().map_or("The operator".to_owned(), Person::name)
    }

    /// Returns the entry as the page shows it.
    pub(super) fn row(
        &self,
        log: &Log,
        people: &People,
        may_revert: bool,
        budget: &mut DiffBudget,
    ) -> Row {
        let changes = self.detail.changes.iter().map(|change| change.row(&self.scope, budget));
        Row {
            id: self.id.clone(),
            actor: self.actor(),
            initials: self.user.as_ref().map_or("·".to_owned(), Person::initials),
            sentence: self.sentence(log, people),
            object: self.object(log, people),
            created_at: self.created_at.clone(),
            changes: changes.collect(),
            project: self.project_id.zip(log.of_project(self)),
            history: item_query(&self.scope, &self.item_id),
            revert: may_revert.then(|| entry_query(self)),
            is_deletion: self.activity == "deleted",
        }
    }

    /// Says what was done.
    fn sentence(&self, log: &Log, people: &People) -> Sentence {
        let field = match self.detail.changes.as_slice() {
            [only] => Some(words::label(&only.field)),
            _ => None,
        };
        self.pieces(&words::sentence(&self.scope, &self.activity, field.as_deref()), log, people)
    }

    /// Names the object of the entry.
    pub(super) fn object(&self, log: &Log, people: &People) -> Sentence {
        self.pieces(words::object(&self.scope), log, people)
    }

    /// Fills the placeholders of a template.
    fn pieces(&self, template: &str, log: &Log, people: &People) -> Sentence {
        let template = template.replace("{target}", &self.target());
        let mut pieces = Vec::new();
        let mut rest = template.as_str();
        while let Some((words, (placeholder, after))) =
            rest.split_once('{').and_then(|(words, inner)| Some((words, inner.split_once('}')?)))
        {
            pieces.push(Piece::Words(words.to_owned()));
            pieces.push(if placeholder == "who" { self.who(people) } else { self.name(log) });
            rest = after;
        }
        pieces.push(Piece::Words(rest.to_owned()));
        pieces.retain(|piece| *piece != Piece::Words(String::new()));
        Sentence { pieces }
    }

    fn name(&self, log: &Log) -> Piece {
        let name = self.detail.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let text = match name {
            Some(name) => excerpt(name),
            None => return Piece::Words("without a name".to_owned()),
        };
        match log.page_of(self).filter(|_| self.activity != "deleted") {
            Some(href) => Piece::Link(text, href),
            None => Piece::Name(text),
        }
    }

    /// Returns the member that the entry is about.
    fn who(&self, people: &People) -> Piece {
        let last = self.item_id.rsplit(':').next().unwrap_or_default();
        let known = match self.scope.as_str() {
            "OrganizationMembership" => people.by_membership(last).map(|user| user.person.name()),
            "RoleMembership" => {
                let user = self.detail.changes.iter().find(|change| change.field == "user");
                let text = user.and_then(|user| user.after.as_str().or(user.before.as_str()));
                text.map(str::to_owned)
            }
            _ if last == "*" => return Piece::Words("everyone".to_owned()),
            _ => people.by_number(last).map(|user| user.person.name()),
        };
        let is_role = self.scope == "AccessControl" && last.contains('-');
        let unknown = if is_role { "a role" } else { "a member" };
        known.map_or_else(|| Piece::Words(unknown.to_owned()), Piece::Name)
    }

    /// Returns the object of an access rule, whose `item_id` is `<project>:<subject>` or
    /// `<project>:<kind>:<object or *>:<subject>`.
    fn target(&self) -> String {
        let mut parts = self.item_id.split(':').skip(1);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(kind), Some("*"), Some(_)) => {
                format!("all {}s of the project {{}}", kind.replace('_', " "))
            }
            (Some(kind), Some(_), Some(_)) => format!("the {} {{}}", kind.replace('_', " ")),
            _ => "the project {}".to_owned(),
        }
    }
}
