//! The tiles of a dashboard.

use askama::Template;
use serde::Deserialize;

use crate::console::assets::icon;
use crate::console::model::{Tile, TileInsight, TileText};
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

/// A deleted tile, as the API describes it. The names of an insight that the session may not view are null.
#[derive(Deserialize)]
pub(super) struct DeletedTile {
    pub(super) id: u64,
    insight: Option<TileInsight>,
    text: Option<TileText>,
}

impl DeletedTile {
    pub(super) fn name(&self) -> String {
        short_name(self.insight.as_ref(), self.text.as_ref())
    }

    /// Returns what the tile shows, in a word.
    pub(super) const fn kind(&self) -> &'static str {
        if self.insight.is_some() { "Insight" } else { "Text" }
    }
}

/// A tile on the page.
pub(super) struct Card {
    pub(super) id: u64,
    /// A color of [`COLORS`].
    pub(super) color: &'static str,
    /// A short name: that of the insight, or the beginning of the text.
    name: String,
    pub(super) content: Content,
}

impl Card {
    /// Returns a name for controls.
    pub(super) fn label(&self) -> &str {
        &self.name
    }

    pub(super) const fn is_hidden(&self) -> bool {
        matches!(self.content, Content::Hidden)
    }

    const fn is_insight(&self) -> bool {
        matches!(self.content, Content::Insight(_) | Content::Hidden)
    }
}

/// Returns whether one of these cards is an insight.
pub(super) fn has_insights(cards: &[Card]) -> bool {
    cards.iter().any(Card::is_insight)
}

/// The content of a tile.
pub(super) enum Content {
    Insight(InsightCard),
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
    pub(super) id: u64,
    pub(super) name: String,
    description: String,
    tags: Vec<String>,
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
        short_name(self.insight.as_ref(), self.text.as_ref())
    }

    fn into_card(self, markdown_left: &mut usize) -> Card {
        let name = self.name();
        let color = self.color.as_deref().unwrap_or_default();
        let color = COLORS.iter().find(|(known, _)| *known == color).map(|(known, _)| *known);
        let content = match self.insight {
            Some(insight) if insight.is_hidden() => Content::Hidden,
            Some(insight) => Content::Insight(insight.into_card()),
            None => text(self.text.and_then(|text| text.body).unwrap_or_default(), markdown_left),
        };
        Card { id: self.id, color: color.unwrap_or_default(), name, content }
    }
}

fn short_name(insight: Option<&TileInsight>, text: Option<&TileText>) -> String {
    const MAX_NAME: usize = 60;
    let text = match (insight, text) {
        (Some(insight), _) if insight.is_hidden() => "a hidden insight",
        (Some(insight), _) => insight.name(),
        (None, text) => {
            let body = text.and_then(|text| text.body.as_deref()).unwrap_or_default();
            let mut lines = body.lines().map(|line| line.trim_matches(['#', '*', '>', ' ', '-']));
            lines.find(|line| !line.is_empty()).unwrap_or("an empty text")
        }
    };
    let start: String = text.chars().take(MAX_NAME).collect();
    if start.len() < text.len() { start + "…" } else { start }
}

impl TileInsight {
    fn into_card(self) -> InsightCard {
        InsightCard {
            id: self.id,
            name: self.name().to_owned(),
            description: self.description.unwrap_or_default().trim().to_owned(),
            tags: self.tags,
            definition: Definition::of(self.query.as_ref().unwrap_or(&self.filters)),
        }
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
