//! Templates: what a dashboard may be made from, built in or sent along (facts-dashboards §5, §6).

mod input;
mod shape;

use serde_json::Value;

use crate::access::{Caller, InProject};
use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::input::Parsed;
use crate::store::WriteTx;
use crate::time::Timestamp;

use super::{Dashboard, DetailsShown};

pub use input::{FromTemplate, InsightTile, Template, TextTile, Tile};

/// The built-in templates, each under the names that `use_template` knows it by.
const BUILT_IN: [(&[&str], &str); 2] = [
    (&["DEFAULT_APP", "Product analytics"], include_str!("product_analytics.json")),
    (&["WEBSITE_TRAFFIC"], include_str!("website_traffic.json")),
];

impl Template {
    /// The built-in template of this name.
    ///
    /// # Errors
    /// 400 for none.
    pub(super) fn built_in(name: &str) -> Result<Self> {
        let Some((_, text)) = BUILT_IN.iter().find(|(names, _)| names.contains(&name)) else {
            let detail = format!("Invalid template provided: {name}");
            return Err(Error::field("use_template", "invalid_input", detail));
        };
        let template: Value = serde_json::from_str(text).map_err(Error::internal)?;
        Self::read(&template).map_err(Error::internal)
    }

    /// Writes what the template says of the dashboard itself: its name only where it has none, its tags
    /// besides those it has.
    pub(super) fn fill(&self, dashboard: &mut Dashboard, details: &mut DetailsShown) {
        let shown = &mut dashboard.shown;
        if shown.name.as_deref().unwrap_or_default().is_empty() {
            shown.name = Some(self.template_name.clone());
        }
        shown.description.clone_from(&self.dashboard_description);
        shown.tags.extend(self.tags.iter().flatten().cloned());
        shown.tags.sort();
        shown.tags.dedup();
        details.filters.clone_from(&self.dashboard_filters);
    }
}

/// Makes a dashboard from a template that was sent along.
///
/// # Errors
/// 403 for one who may not make dashboards; 400 for what is wrong with the template.
pub fn create(
    tx: &mut WriteTx<'_>,
    caller: &Caller,
    place: &InProject,
    sent: &Parsed<FromTemplate>,
    now: Timestamp,
) -> Result<DashboardId> {
    super::require_create(tx, place)?;
    let template = &sent.get()?.template;
    let mut dashboard = super::blank(tx, caller, place, now)?;
    let mut details = DetailsShown::default();
    template.fill(&mut dashboard, &mut details);
    let id = dashboard.head.id;
    super::put(tx, dashboard, details)?;
    Ok(id)
}
