//! An entry as a page shows it: a sentence with names in it, and what changed.

use crate::console::pages::people::People;
use crate::console::pages::prelude::*;

use super::diff::{Diff, DiffBudget, DiffPart};
use super::log::{Change, Entry, Log, item_query};
use super::reversal::Offer;
use super::words;

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
    pub(super) offer: Option<Offer>,
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

impl Entry {
    /// Returns the entry as the page shows it.
    pub(super) fn row(
        &self,
        log: &Log,
        people: &People,
        offer: Option<Offer>,
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
            offer,
        }
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
        self.pieces(&words::object(&self.scope), log, people)
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
