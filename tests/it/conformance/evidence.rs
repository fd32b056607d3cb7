//! `evidence.txt`: which tests show which operations, fields and rules.
//!
//! `# Heading` begins a section. Each other line is `SUBJECT: TEST TEST`. The subject is an operation
//! (`GET /api/users/@me/`), a field (`Domain.domain`) or a rule in words, which may name both in backticks. Operations
//! and fields stand in the section of their tag on the page, rules in the section of their heading.

use crate::support::contract::Operation;
use crate::support::prelude::*;

use super::fields::member;
use super::test_names::is_test;

/// A line of the evidence.
pub struct Line<'t> {
    number: usize,
    pub heading: &'t str,
    pub subject: &'t str,
    /// The tests that show it, such as `domains::domain_name_is_immutable`.
    pub tests: Vec<&'t str>,
}

/// Returns the lines of the evidence.
pub fn lines(evidence: &str) -> Vec<Line<'_>> {
    let mut heading = "";
    let mut lines = Vec::new();
    for (at, text) in evidence.lines().enumerate().filter(|(_, text)| !text.is_empty()) {
        if let Some(title) = text.strip_prefix("# ") {
            heading = title;
            continue;
        }
        let (subject, tests) = text.rsplit_once(": ").unwrap_or((text, ""));
        let tests = tests.split_whitespace().collect();
        lines.push(Line { number: at + 1, heading, subject, tests });
    }
    lines
}

impl Line<'_> {
    pub fn is_rule(&self) -> bool {
        !is_operation(self.subject) && !is_field(self.subject)
    }

    /// Returns the operations and fields that this line names.
    fn names(&self) -> Vec<&str> {
        if self.is_rule() { quoted(self.subject) } else { vec![self.subject] }
    }

    /// Returns the errors in this line.
    fn gaps(&self) -> Vec<String> {
        let at = self.number;
        let unknown = self.names().into_iter().filter(|name| {
            is_operation(name) && !has_operation(name) || is_field(name) && member(name).is_none()
        });
        let mut gaps: Vec<_> =
            unknown.map(|it| format!("line {at}: the OpenAPI document lacks {it}")).collect();
        let missing = self.tests.iter().filter(|test| !is_test(test));
        gaps.extend(missing.map(|test| format!("line {at}: there is no test {test}")));
        if self.tests.is_empty() {
            gaps.push(format!("line {at}: no test shows it"));
        }
        gaps
    }
}

/// Returns the texts in backticks.
pub fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Whether a text has the form of an operation: `GET /api/users/@me/`.
fn is_operation(text: &str) -> bool {
    let is_method = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase());
    text.split_once(" /").is_some_and(|(method, path)| is_method(method) && !path.contains(' '))
}

/// Whether a text has the form of a field: `Domain.domain`.
fn is_field(text: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_schema = |part: &str| part.starts_with(|first: char| first.is_ascii_uppercase());
    let parts = text.split_once('.');
    parts.is_some_and(|(schema, member)| is_schema(schema) && is_word(schema) && is_word(member))
}

fn has_operation(name: &str) -> bool {
    contract().operations().iter().any(|operation| operation.name() == name)
}

/// Returns the errors in the evidence.
pub fn gaps(evidence: &str) -> Vec<String> {
    let lines = lines(evidence);
    let mut gaps: Vec<String> = lines.iter().flat_map(Line::gaps).collect();
    let mut subjects = BTreeSet::new();
    for line @ Line { number, heading, subject, .. } in &lines {
        // Sections may have the same rule.
        let section = if line.is_rule() { heading } else { "" };
        if !subjects.insert((section, *subject)) {
            gaps.push(format!("line {number}: {subject} is repeated"));
        }
    }
    let named: BTreeSet<&str> = lines.iter().map(|line| line.subject).collect();
    let served = contract().operations().iter().map(Operation::name);
    let absent = served.filter(|name| !named.contains(name.as_str()));
    gaps.extend(absent.map(|name| format!("no line names {name}")));
    gaps
}
