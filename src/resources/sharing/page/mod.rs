//! The public page: HTML without a script, made of what the public is shown and of nothing else.

mod bounded;
mod definition;
mod markdown;

use askama::Template;

use crate::error::{Error, Result};
use crate::store::BoundedRead;

use super::Of;
use super::body::{Shared, SharedInsight, SharedTile, for_each_tile};
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

/// The page of a dashboard that this token opens.
///
/// # Errors
/// 500 or 503 when the file cannot be read; 503 when it takes too long.
pub(super) fn render(
    tx: &BoundedRead<'_>,
    dashboard: Of,
    shared: &Shared,
    token: &str,
) -> Result<Page> {
    let title = named(shared.name.as_deref(), "Untitled dashboard");
    let page = DashboardPage {
        title,
        description: shared.description.trim(),
        tags: &shared.tags,
        cards: cards(tx, dashboard, token)?,
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
fn cards(tx: &BoundedRead<'_>, dashboard: Of, token: &str) -> Result<Vec<String>> {
    let (mut cards, mut room) = (Vec::new(), Some(LONGEST));
    for_each_tile(tx, dashboard, |tile| {
        if let Some(left) = room {
            tx.spend(CARD)?;
            let whole = card(&tile, Content::whole(&tile))?;
            room = left.checked_sub(whole.len());
            if room.is_some() {
                cards.push(whole);
                return Ok(());
            }
        }
        cards.push(card(&tile, Content::named(&tile, token))?);
        Ok(())
    })?;
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
