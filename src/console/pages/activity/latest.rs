//! The latest entries, for the start page.

use askama::Template;

use crate::console::model::List;
use crate::console::pages::people::People;
use crate::console::visit::SignedIn;
use crate::error::Result;

use super::comparison::DiffBudget;
use super::entry::Entry;
use super::log::Log;
use super::row::Row;

/// The number of entries.
const COUNT: usize = 8;

/// The latest entries of a project.
#[derive(Template)]
#[template(path = "console/pages/activity/latest.html")]
pub(in crate::console::pages) struct Latest {
    base: String,
    rows: Vec<Row>,
}

impl Latest {
    /// Loads the entries. Returns `None` for a session that may not read the log.
    pub(in crate::console::pages) async fn load(
        request: &SignedIn,
        project: &str,
        organization: Option<&str>,
    ) -> Result<Option<Self>> {
        let log = Log::Project(project.to_owned());
        let path = format!("{}?limit={COUNT}", log.api());
        let Some(found) = request.api.get_if_allowed::<List<Entry>>(&path).await? else {
            return Ok(None);
        };
        let people = People::load(&request.api, organization).await?;
        let mut budget = DiffBudget::of_page();
        let rows = found.results.iter().map(|entry| entry.row(&log, &people, None, &mut budget));
        Ok(Some(Self { base: log.page(), rows: rows.collect() }))
    }
}
