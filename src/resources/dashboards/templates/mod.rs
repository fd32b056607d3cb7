//! Templates: what a dashboard may be made from, built in or sent along (facts-dashboards §5, §6).

mod input;
mod shape;

use serde_json::Value;

use crate::access::{Caller, InProject};
use crate::error::{Error, Result};
use crate::ids::DashboardId;
use crate::input::{JsonObject, Parsed};
use crate::patch::Patch;
use crate::secret::Draw;
use crate::store::WriteTx;
use crate::time::Timestamp;

use super::insights::NewInsight;
use super::tiles::{self, Look};
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

    /// Puts the template's tiles on a new dashboard, in their order.
    ///
    /// # Errors
    /// 500 or 503 when the file cannot be read or written.
    pub(super) fn add_tiles(
        &self,
        tx: &mut WriteTx<'_>,
        place: &InProject,
        dashboard: DashboardId,
        draw: &mut Draw,
        now: Timestamp,
    ) -> Result<()> {
        for tile in &self.tiles {
            match tile.clone() {
                Tile::Insight(tile) => {
                    let (insight, look) = insight(tile);
                    tiles::add_insight(tx, place, dashboard, insight, look, draw, now)?;
                }
                Tile::Text(TextTile { body, layouts, color }) => {
                    let look = look(layouts, color);
                    tiles::add_text(tx, place, dashboard, body.value(), look, now)?;
                }
                Tile::Other => {}
            }
        }
        Ok(())
    }
}

/// The insight of a tile, and how the tile looks. Filters in the old form leave test accounts out unless they
/// say otherwise, and beside a query there are none (facts-dashboards §5, §6).
fn insight(tile: InsightTile) -> (NewInsight, Look) {
    let InsightTile { name, description, query, filters, layouts, color } = tile;
    let query = query.value().filter(|query| !query.is_empty());
    let mut filters = filters.value().unwrap_or_default();
    if query.is_some() {
        filters.clear();
    } else {
        filters.entry("filter_test_accounts").or_insert(Value::Bool(true));
    }
    let insight = NewInsight {
        name: name.value(),
        description: description.value(),
        filters,
        query,
        is_sample: true,
        tags: Vec::new(),
    };
    (insight, look(layouts, color))
}

fn look(layouts: Patch<JsonObject>, color: Patch<String>) -> Look {
    Look { layouts: layouts.value().unwrap_or_default(), color: color.value() }
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
    draw: &mut Draw,
    now: Timestamp,
) -> Result<DashboardId> {
    super::create::require(tx, place)?;
    let template = &sent.get()?.template;
    let mut dashboard = super::create::blank(tx, caller, place, now)?;
    let mut details = DetailsShown::default();
    template.fill(&mut dashboard, &mut details);
    let id = dashboard.head.id;
    super::put(tx, dashboard, details)?;
    template.add_tiles(tx, place, id, draw, now)?;
    Ok(id)
}
