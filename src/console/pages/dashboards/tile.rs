//! The tiles of a dashboard: their cards, and their positions on the grid of 12 columns.

use std::fmt::Write;

use crate::console::pages::prelude::*;
use crate::resources::sharing::page::{Definition, text_html};

/// The colors that a tile can have on the page, each with its label. The page ignores other colors.
pub(super) const COLORS: &[(&str, &str)] = &[
    ("", "None"),
    ("white", "White"),
    ("blue", "Blue"),
    ("green", "Green"),
    ("purple", "Purple"),
    ("black", "Black"),
];

/// The maximum size of the Markdown of all texts that a page renders, in bytes. Later texts show the Markdown itself.
const MAX_MARKDOWN: usize = 256 * 1024;

/// A tile on the page.
pub(super) struct Card {
    pub(super) id: u64,
    /// A color of [`COLORS`].
    pub(super) color: &'static str,
    /// A short name: that of the insight, or the beginning of the text.
    pub(super) name: String,
    pub(super) content: Content,
}

impl Card {
    pub(super) const fn is_hidden(&self) -> bool {
        matches!(self.content, Content::Hidden)
    }
}

/// Returns whether one of these cards is an insight.
pub(super) fn has_insights(cards: &[Card]) -> bool {
    cards.iter().any(|card| matches!(card.content, Content::Insight(_) | Content::Hidden))
}

/// The content of a tile.
pub(super) enum Content {
    Insight(Box<InsightCard>),
    /// An insight that the caller may not view.
    Hidden,
    /// HTML from Markdown, already sanitized.
    Text(String),
    /// Markdown as its author wrote it.
    Plain(String),
}

/// An insight on the page.
#[derive(Template)]
#[template(path = "console/pages/dashboards/insight.html")]
pub(super) struct InsightCard {
    pub(super) insight: TileInsight,
    definition: Definition,
}

/// Returns the cards of the tiles.
pub(super) fn cards(tiles: Vec<Tile>) -> Vec<Card> {
    let mut markdown_left = MAX_MARKDOWN;
    tiles.into_iter().map(|tile| tile.into_card(&mut markdown_left)).collect()
}

impl Tile {
    /// Returns a short name: that of the insight, or the first words of the text.
    pub(super) fn name(&self) -> String {
        const MAX_NAME: usize = 60;
        let text = match &self.insight {
            Some(insight) if insight.is_hidden() => "a hidden insight",
            Some(insight) => insight.name(),
            None => {
                let body = self.text.as_ref().and_then(|text| text.body.as_deref());
                let lines = body.unwrap_or_default().lines();
                let mut lines = lines.map(|line| line.trim_matches(['#', '*', '>', ' ', '-']));
                lines.find(|line| !line.is_empty()).unwrap_or("an empty text")
            }
        };
        let start: String = text.chars().take(MAX_NAME).collect();
        if start.len() < text.len() { start + "…" } else { start }
    }

    fn into_card(self, markdown_left: &mut usize) -> Card {
        let name = self.name();
        let color = self.color.as_deref().unwrap_or_default();
        let color = COLORS.iter().find(|(known, _)| *known == color).map(|(known, _)| *known);
        let content = match self.insight {
            Some(insight) if insight.is_hidden() => Content::Hidden,
            Some(insight) => {
                let definition = insight.query.as_ref().unwrap_or(&insight.filters);
                Content::Insight(Box::new(InsightCard {
                    definition: Definition::of(definition),
                    insight,
                }))
            }
            None => text(self.text.and_then(|text| text.body).unwrap_or_default(), markdown_left),
        };
        Card { id: self.id, color: color.unwrap_or_default(), name, content }
    }
}

fn text(markdown: String, left: &mut usize) -> Content {
    let rest = left.checked_sub(markdown.len());
    *left = rest.unwrap_or_default();
    match rest.and_then(|_| text_html(&markdown)) {
        Some(html) => Content::Text(html),
        None => Content::Plain(markdown),
    }
}

pub(super) const COLUMNS: usize = 12;
/// The size of a tile without a layout.
const DEFAULT_SIZE: (usize, usize) = (6, 5);
/// The maximum height of a tile, in rows.
pub(super) const MAX_HEIGHT: usize = 50;
/// The coordinate of a tile without a layout: at the end.
pub(super) const LAST: usize = 10_000;

/// The area of a tile on the grid, in columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GridArea {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The layout of a tile for wide screens, as a client has stored it.
#[derive(Debug)]
struct Layout {
    /// `None` if the tile may stand in any column.
    x: Option<usize>,
    y: usize,
    width: usize,
    height: usize,
}

impl Layout {
    /// Reads a layout. Clients may store any JSON there.
    fn of(layouts: &Value) -> Self {
        let wide = layouts.get("sm");
        let read = |name| wide.and_then(|wide| coordinate(wide.get(name)?));
        let width = read("w").unwrap_or(DEFAULT_SIZE.0).clamp(1, COLUMNS);
        Self {
            x: read("x").map(|x| x.min(COLUMNS - width)),
            y: read("y").unwrap_or(LAST).min(LAST),
            width,
            height: read("h").unwrap_or(DEFAULT_SIZE.1).clamp(1, MAX_HEIGHT),
        }
    }
}

/// Reads a number, or a text with a number. Fractions and negative numbers are rounded to a whole cell.
fn coordinate(value: &Value) -> Option<usize> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse::<f64>().ok()?,
        _ => return None,
    };
    let whole = number.is_finite().then(|| number.clamp(0.0, 10_000.0).round())?;
    format!("{whole}").parse().ok()
}

/// Returns the areas of tiles with these layouts, in the same order. No two areas overlap. Tiles fall up: no tile has
/// free space for it above.
fn arrange<'l>(layouts: impl Iterator<Item = &'l Value>) -> Vec<GridArea> {
    let mut layouts: Vec<_> = layouts.map(Layout::of).enumerate().collect();
    layouts.sort_by_key(|(_, layout)| (layout.y, layout.x));
    let mut heights = [0; COLUMNS];
    let areas = layouts.into_iter().map(|(index, layout)| (index, fall(&mut heights, &layout)));
    let mut areas: Vec<_> = areas.collect();
    areas.sort_unstable_by_key(|(index, _)| *index);
    areas.into_iter().map(|(_, area)| area).collect()
}

/// Puts a tile below those above it. `heights` has the height of each column. A tile for any column gets the place that is
/// highest, then leftmost.
fn fall(heights: &mut [usize; COLUMNS], layout: &Layout) -> GridArea {
    let Layout { width, height, .. } = *layout;
    let top = |x: usize| heights.iter().skip(x).take(width).copied().max().unwrap_or_default();
    let x = layout.x.or_else(|| (0..=COLUMNS - width).min_by_key(|x| top(*x))).unwrap_or_default();
    let y = top(x);
    for column in heights.iter_mut().skip(x).take(width) {
        *column = y + height;
    }
    GridArea { x, y, width, height }
}

/// Returns the areas of tiles, in the same order.
pub(super) fn grid_areas(tiles: &[Tile]) -> Vec<GridArea> {
    arrange(tiles.iter().map(|tile| &tile.layouts))
}

/// Returns a style sheet with the areas of the tiles. On narrow screens, tiles stand below each other.
pub(super) fn grid_style(tiles: &[Tile]) -> String {
    format!("@media (min-width:56.01rem){{{}}}", grid_style_everywhere(tiles))
}

/// Returns a style sheet with the areas of the tiles on every screen.
pub(super) fn grid_style_everywhere(tiles: &[Tile]) -> String {
    let areas = grid_areas(tiles);
    let mut style = String::new();
    for (tile, GridArea { x, y, width, height }) in tiles.iter().zip(areas) {
        // Writing to a string cannot fail.
        let _written = write!(
            style,
            "#tile-{}{{grid-area:{}/{}/span {height}/span {width}}}",
            tile.id,
            y + 1,
            x + 1
        );
    }
    style
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn arranged(layouts: &[Value]) -> Vec<(usize, usize, usize, usize)> {
        let areas = arrange(layouts.iter());
        areas.iter().map(|area| (area.x, area.y, area.width, area.height)).collect()
    }

    #[test]
    fn tiles_stand_where_their_layouts_say() {
        let at = |x: i32, y: i32, w: i32, h: i32| json!({"sm": {"x": x, "y": y, "w": w, "h": h}});
        let whole = arranged(&[at(0, 0, 6, 5), at(6, 0, 6, 3), at(6, 3, 6, 2), at(0, 5, 12, 4)]);
        assert_eq!(whole, [(0, 0, 6, 5), (6, 0, 6, 3), (6, 3, 6, 2), (0, 5, 12, 4)]);
        assert_eq!(arranged(&[at(0, 100, 4, 2), at(0, 7, 4, 2)]), [(0, 2, 4, 2), (0, 0, 4, 2)]);
    }

    #[test]
    fn odd_layouts_become_places_on_the_grid() {
        let unplaced = arranged(&[json!({}), json!(null), json!({"sm": []})]);
        assert_eq!(unplaced, [(0, 0, 6, 5), (6, 0, 6, 5), (0, 5, 6, 5)]);
        let odd = json!({"sm": {"x": "3", "y": -5, "w": 1e300, "h": " 2.6 "}});
        assert_eq!(arranged(&[odd]), [(0, 0, 12, 3)]);
        let odd = json!({"sm": {"x": 99, "y": "NaN", "w": 0, "h": 9e9}});
        assert_eq!(arranged(&[odd]), [(11, 0, 1, 50)]);
    }

    #[test]
    fn tiles_without_a_layout_fill_the_free_columns() {
        let at = |x: i32, y: i32, w: i32, h: i32| json!({"sm": {"x": x, "y": y, "w": w, "h": h}});
        let none = json!({});
        let mixed = arranged(&[at(0, 0, 6, 5), none.clone(), at(6, 0, 6, 3), none]);
        assert_eq!(mixed, [(0, 0, 6, 5), (6, 3, 6, 5), (6, 0, 6, 3), (0, 5, 6, 5)]);
    }

    proptest! {
        #[test]
        fn tiles_never_overlap_or_leave_the_grid(
            sent in proptest::collection::vec((-3..20_i32, -3..20_i32, -3..20_i32, -3..20_i32), 0..30),
            holes in proptest::collection::vec(proptest::bool::ANY, 30),
        ) {
            let layouts: Vec<_> = sent
                .iter()
                .zip(holes)
                .map(|((x, y, w, h), has_column)| {
                    if has_column {
                        json!({"sm": {"x": x, "y": y, "w": w, "h": h}})
                    } else {
                        json!({"sm": {"w": w, "h": h}})
                    }
                })
                .collect();
            let areas = arrange(layouts.iter());
            for (index, one) in areas.iter().enumerate() {
                prop_assert!(one.width > 0 && one.height > 0 && one.x + one.width <= COLUMNS);
                for other in &areas[..index] {
                    let apart = one.x >= other.x + other.width
                        || other.x >= one.x + one.width
                        || one.y >= other.y + other.height
                        || other.y >= one.y + one.height;
                    prop_assert!(apart, "{one:?} {other:?}");
                }
            }
        }
    }
}
