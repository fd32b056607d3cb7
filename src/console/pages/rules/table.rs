//! Rules as a table.

use askama::Template;

use crate::console::failure::Failure;
use crate::console::paging::Paging;
use crate::console::visit::Visit;

use super::{Rule, Subjects};

/// The parameter of the query with the number of rules before the page of the table.
pub(super) const OFFSET: &str = "rules";

/// The number of rules on a page.
const PAGE_SIZE: usize = 50;

/// A page of rules, with a button for each that removes it.
#[derive(Template)]
#[template(path = "console/pages/rules/table.html")]
pub(in crate::console::pages) struct RuleTable {
    rows: Vec<RuleRow>,
    paging: Paging,
    /// The URL that the buttons send the form to, if the session may remove rules.
    action: Option<String>,
}

/// A rule in the table.
struct RuleRow {
    name: String,
    level: String,
    subject: String,
}

impl RuleTable {
    /// Shows the page of the rules that the query names. `url` returns the URL of a page with this parameter of the query.
    ///
    /// # Errors
    /// Those of [`Paging::of_all`].
    pub(in crate::console::pages) fn new(
        rules: &[Rule],
        subjects: &Subjects,
        visit: &Visit,
        url: impl Fn(&'static str, u64) -> String,
        action: Option<String>,
    ) -> Result<Self, Failure> {
        let url = |at| url(OFFSET, at);
        let (shown, paging) = Paging::of_all(rules, visit, OFFSET, PAGE_SIZE, url)?;
        let rows = shown.iter().map(|rule| RuleRow {
            name: subjects.name(rule),
            level: rule.access_level.clone(),
            subject: rule.subject(),
        });
        Ok(Self { rows: rows.collect(), paging, action })
    }

    pub(in crate::console::pages) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
