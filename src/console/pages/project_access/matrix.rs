//! The rules on all objects of a kind, as a table: a row for each subject, a column for each kind with a rule.

use std::collections::BTreeMap;

use crate::console::pages::rules::{Rule, Subjects};

/// The maximum number of rows on a page.
pub(super) const PAGE_SIZE: u64 = 50;

/// The table.
pub(super) struct Matrix {
    pub(super) kinds: Vec<String>,
    pub(super) rows: Vec<Row>,
    pub(super) count: u64,
}

/// The rules of a subject.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) subject: String,
    /// The level of each kind, if there is a rule.
    pub(super) levels: Vec<Option<String>>,
}

impl Matrix {
    /// Arranges the rules. The rules for everyone come first. The page begins at `offset`.
    pub(super) fn of(rules: &[Rule], subjects: &Subjects, offset: u64) -> Self {
        // Everyone has the lowest key, roles come after members.
        let mut by_subject: BTreeMap<String, Vec<&Rule>> = BTreeMap::new();
        let mut kinds: Vec<String> = Vec::new();
        for rule in rules {
            by_subject.entry(rule.subject()).or_default().push(rule);
            if !kinds.contains(&rule.resource) {
                kinds.push(rule.resource.clone());
            }
        }
        kinds.sort();
        let count = by_subject.len() as u64;
        let page = (0_u64..).zip(by_subject).skip_while(|(at, _)| *at < offset);
        let page = page.take_while(|(at, _)| *at < offset.saturating_add(PAGE_SIZE));
        let rows = page.map(|(_, row)| row).map(|(subject, rules)| {
            let level = |kind: &String| {
                let of_kind = rules.iter().find(|rule| rule.resource == *kind);
                of_kind.map(|rule| rule.access_level.clone())
            };
            let name = rules.first().map_or(String::new(), |rule| subjects.name(rule));
            Row { name, subject, levels: kinds.iter().map(level).collect() }
        });
        let rows = rows.collect();
        Self { kinds, rows, count }
    }
}

impl Row {
    /// Returns the cells: each kind with the level of the rule, if there is one.
    pub(super) fn cells<'r>(
        &'r self,
        kinds: &'r [String],
    ) -> impl Iterator<Item = (&'r String, &'r Option<String>)> {
        kinds.iter().zip(&self.levels)
    }
}
