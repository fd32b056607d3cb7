//! The public page: HTML without a script, made of what the public is shown and of nothing else.

mod definition;
mod markdown;

use askama::Template;

use crate::error::{Error, Result};

use super::body::{Shared, SharedInsight, SharedTile};
use definition::Definition;

/// A page's title, which is any text, and its body, which is HTML.
pub(super) struct Page {
    /// The title.
    pub(super) title: String,
    /// What stands in the body.
    pub(super) body: String,
}

/// The colours that tiles are given; any other shows none.
const COLORS: [&str; 5] = ["white", "blue", "green", "purple", "black"];

#[derive(Template)]
#[template(path = "sharing/page/dashboard.html")]
struct DashboardPage<'p> {
    title: &'p str,
    description: &'p str,
    tags: &'p [String],
    tiles: Vec<TileCard<'p>>,
    created: String,
}

/// A tile on the page.
struct TileCard<'p> {
    /// One of [`COLORS`].
    color: Option<&'static str>,
    content: Content<'p>,
}

enum Content<'p> {
    Insight(Card<'p>),
    /// Safe HTML, made of Markdown.
    Text(String),
}

/// An insight on the page.
struct Card<'p> {
    name: &'p str,
    description: &'p str,
    tags: &'p [String],
    definition: Definition,
}

/// The page of a dashboard.
///
/// # Errors
/// None in practice: the template always renders.
pub(super) fn render(shared: &Shared) -> Result<Page> {
    let title = named(shared.name.as_deref(), "Untitled dashboard");
    let page = DashboardPage {
        title,
        description: shared.description.trim(),
        tags: &shared.tags,
        tiles: shared.tiles.iter().filter_map(card).collect(),
        created: shared.created_at.day(),
    };
    let body = page.render().map_err(Error::internal)?;
    Ok(Page { title: title.to_owned(), body })
}

#[derive(Template)]
#[template(path = "sharing/page/missing.html")]
struct MissingPage;

/// The page for a token that opens nothing.
///
/// # Errors
/// None in practice: the template always renders.
pub(super) fn missing() -> Result<Page> {
    let body = MissingPage.render().map_err(Error::internal)?;
    Ok(Page { title: "Nothing is shared here".to_owned(), body })
}

fn card(tile: &SharedTile) -> Option<TileCard<'_>> {
    let SharedTile { color, insight, text, .. } = tile;
    let content = match (insight, text) {
        (Some(insight), _) => Content::Insight(Card::of(insight)),
        (None, Some(text)) => Content::Text(markdown::html(text.body.as_deref().unwrap_or(""))),
        (None, None) => return None,
    };
    let color = COLORS.into_iter().find(|known| color.as_deref() == Some(*known));
    Some(TileCard { color, content })
}

impl<'p> Card<'p> {
    fn of(insight: &'p SharedInsight) -> Self {
        Self {
            name: named(insight.name.as_deref(), "Untitled insight"),
            description: insight.description.as_deref().unwrap_or("").trim(),
            tags: &insight.tags,
            definition: Definition::of(insight),
        }
    }
}

fn named<'n>(name: Option<&'n str>, otherwise: &'n str) -> &'n str {
    name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(otherwise)
}
