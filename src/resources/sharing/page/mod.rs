//! The public page: HTML without a script, made of what the public is shown and of nothing else.

mod bounded;
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
/// What rendering a card costs, as bytes that are read: a card takes up to a millisecond or two.
const CARD: usize = 64 * 1024;
/// The longest that the cards of a page are together, in bytes of HTML. From the first that does not fit in,
/// tiles are only named.
const LONGEST: usize = 2 * 1024 * 1024;

#[derive(Template)]
#[template(path = "sharing/page/dashboard.html")]
struct DashboardPage<'p> {
    title: &'p str,
    description: &'p str,
    tags: &'p [String],
    /// Safe HTML, one for each tile.
    cards: Vec<String>,
    created: String,
}

/// A tile on the page.
#[derive(Template)]
#[template(path = "sharing/page/card.html")]
struct TileCard<'p> {
    /// One of [`COLORS`].
    color: Option<&'static str>,
    content: Content<'p>,
}

enum Content<'p> {
    Insight(Card<'p>),
    /// Safe HTML, made of Markdown.
    Text(String),
    /// Markdown, shown as it was written.
    Plain(&'p str),
    /// Only what it is called, and where the public JSON is.
    Named {
        name: &'p str,
        token: &'p str,
    },
}

/// An insight on the page.
struct Card<'p> {
    name: &'p str,
    description: &'p str,
    tags: &'p [String],
    definition: Definition,
}

/// The page of a dashboard that this token opens. `spend` is told what each card costs, in bytes.
///
/// # Errors
/// What `spend` answers; otherwise none in practice: the template always renders.
pub(super) fn render(
    shared: &Shared,
    token: &str,
    spend: impl Fn(usize) -> Result<()>,
) -> Result<Page> {
    let title = named(shared.name.as_deref(), "Untitled dashboard");
    let page = DashboardPage {
        title,
        description: shared.description.trim(),
        tags: &shared.tags,
        cards: cards(&shared.tiles, token, spend)?,
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

/// A card for each tile, as many of them whole as fit on the page.
fn cards(
    tiles: &[SharedTile],
    token: &str,
    spend: impl Fn(usize) -> Result<()>,
) -> Result<Vec<String>> {
    let (mut cards, mut left) = (Vec::with_capacity(tiles.len()), LONGEST);
    for tile in tiles {
        spend(CARD)?;
        let card = card(tile, Content::whole(tile))?;
        let Some(rest) = left.checked_sub(card.len()) else { break };
        left = rest;
        cards.push(card);
    }
    for tile in tiles.iter().skip(cards.len()) {
        cards.push(card(tile, Content::named(tile, token))?);
    }
    Ok(cards)
}

fn card(tile: &SharedTile, content: Content<'_>) -> Result<String> {
    let color = COLORS.into_iter().find(|known| tile.color.as_deref() == Some(*known));
    TileCard { color, content }.render().map_err(Error::internal)
}

impl<'p> Content<'p> {
    fn whole(tile: &'p SharedTile) -> Self {
        if let Some(insight) = &tile.insight {
            return Self::Insight(Card::of(insight));
        }
        let text = tile.text.as_ref().and_then(|text| text.body.as_deref()).unwrap_or("");
        markdown::html(text).map_or(Self::Plain(text), Self::Text)
    }

    fn named(tile: &'p SharedTile, token: &'p str) -> Self {
        let name = tile.insight.as_ref().map_or("Text", Card::name);
        Self::Named { name, token }
    }
}

impl<'p> Card<'p> {
    fn of(insight: &'p SharedInsight) -> Self {
        Self {
            name: Self::name(insight),
            description: insight.description.as_deref().unwrap_or("").trim(),
            tags: &insight.tags,
            definition: Definition::of(insight),
        }
    }

    fn name(insight: &SharedInsight) -> &str {
        named(insight.name.as_deref(), "Untitled insight")
    }
}

fn named<'n>(name: Option<&'n str>, otherwise: &'n str) -> &'n str {
    name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(otherwise)
}
