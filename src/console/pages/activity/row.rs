//! An entry as a page shows it: a sentence, and what changed.

use askama::Template;
use serde_json::Value;

use crate::console::model::Person;
use crate::console::pages::people::People;
use crate::console::urls::Query;

use super::comparison::{DiffBudget, DiffPart};
use super::diff::Diff;
use super::entry::{Change, Entry};
use super::filters::item_query;
use super::labels;
use super::log::Log;
use super::offers::Offer;
use super::sentence::Sentence;

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

    fn lines(&self) -> usize {
        self.diff.lines()
    }

    fn is_folded(&self) -> bool {
        !self.is_open && self.lines() > MAX_LINES
    }
}

impl Row {
    /// Returns whether the changes are folded together.
    pub(super) fn is_folded(&self) -> bool {
        let lines = self.changes.iter();
        let lines = lines.map(|change| if change.is_folded() { 1 } else { change.lines() });
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
        let label = labels::label(&self.field).into_owned();
        let word = |value: &Value| labels::word(scope, &self.field, value);
        let diff = Diff::between(&self.before, &self.after, word, budget);
        ChangeRow { label, diff, is_open: false }
    }
}
