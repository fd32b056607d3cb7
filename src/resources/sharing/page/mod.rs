//! The public pages: HTML without scripts, rendered only from the public fields of a dashboard or an insight.

mod definition;
mod markdown;

use askama::Template;

use crate::base::error::{Error, Result};
use crate::store::BoundedRead;

use super::api::{DashboardKey, SharedInsight, SharedTile, for_each_tile, get_dashboard};

pub use definition::Definition;
pub use markdown::html as text_html;

/// A page to put into the HTML document.
pub(super) struct PublicPage {
    /// The title, in plain text.
    pub(super) title: String,
    /// The content of the body element, in HTML.
    pub(super) body: String,
}

/// The tile colors that the page can show. It ignores other colors.
const COLORS: [&str; 5] = ["white", "blue", "green", "purple", "black"];
/// What a card counts in the time limit of a read, in bytes. Rendering a card takes up to two milliseconds.
const CARD_COST: usize = 64 * 1024;
/// Maximum total size of the cards of a page, in bytes of HTML. The first card that exceeds it, and all
/// later ones, show only a name.
const MAX_CARDS: usize = 2 * 1024 * 1024;

#[derive(Template)]
#[template(path = "sharing/page/dashboard.html")]
struct DashboardPage<'p> {
    title: &'p str,
    description: &'p str,
    tags: &'p [String],
    /// The HTML of each tile, already escaped.
    cards: Vec<String>,
    created: String,
}

#[derive(Template)]
#[template(path = "sharing/page/insight.html")]
struct InsightPage<'p> {
    card: Card<'p>,
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
    /// HTML from Markdown, already sanitized.
    Text(String),
    /// Markdown as its author wrote it, because its HTML would be too long.
    Plain(&'p str),
    /// The name of the tile, and a link to the public JSON.
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

/// Renders the public page of a dashboard.
///
/// # Errors
/// 404 if it does not exist or is deleted; 503 when rendering exceeds the time limit.
pub(super) fn of_dashboard(
    tx: &BoundedRead<'_>,
    dashboard: DashboardKey,
    token: &str,
) -> Result<PublicPage> {
    let shared = get_dashboard(tx, dashboard)?;
    let title = dashboard_name(shared.name.as_deref());
    let page = DashboardPage {
        title,
        description: shared.description.trim(),
        tags: &shared.tags,
        cards: cards(tx, dashboard, token)?,
        created: shared.created_at.day(),
    };
    let body = page.render().map_err(Error::internal)?;
    Ok(PublicPage { title: title.to_owned(), body })
}

/// Renders the public page of an insight.
///
/// # Errors
/// 500 if the template fails.
pub(super) fn of_insight(shared: &SharedInsight) -> Result<PublicPage> {
    let page = InsightPage { card: Card::of(shared), created: shared.created_at.day() };
    let body = page.render().map_err(Error::internal)?;
    Ok(PublicPage { title: page.card.name.to_owned(), body })
}

/// Renders a card for each tile, and shortens the cards that do not fit on the page.
fn cards(tx: &BoundedRead<'_>, dashboard: DashboardKey, token: &str) -> Result<Vec<String>> {
    let (mut cards, mut cards_left) = (Vec::new(), Some(MAX_CARDS));
    for_each_tile(tx, dashboard, |tile| {
        if let Some(left) = cards_left {
            tx.spend(CARD_COST)?;
            let whole = card(&tile, Content::whole(&tile))?;
            cards_left = left.checked_sub(whole.len());
            if cards_left.is_some() {
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
            definition: Definition::of(insight.query.as_ref().unwrap_or(&insight.filters)),
        }
    }

    fn name(insight: &SharedInsight) -> &str {
        insight_name(insight.name.as_deref(), insight.derived_name.as_deref())
    }
}

/// Returns a name, or `otherwise` if the name is absent or blank.
pub fn name_or<'n>(name: Option<&'n str>, otherwise: &'n str) -> &'n str {
    name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(otherwise)
}

/// Returns the name of a dashboard for people.
pub fn dashboard_name(name: Option<&str>) -> &str {
    name_or(name, "Untitled dashboard")
}

/// Returns the name of an insight for people: its own, or the derived one.
pub fn insight_name<'n>(name: Option<&'n str>, derived: Option<&'n str>) -> &'n str {
    name_or(name, name_or(derived, "Untitled insight"))
}

/// Puts each table into a box that scrolls, also by keyboard. Texts escape `<` and addresses encode it.
fn with_scrolling_tables(html: &str) -> String {
    const BOX: &str = "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">";
    html.replace("<table>", &format!("{BOX}<table>")).replace("</table>", "</table></div>")
}

/// Returns an upper bound of the number of table cells: the number of lines times the width of the widest
/// line.
fn count_cells(markdown: &str) -> usize {
    let lines = || markdown.split(['\n', '\r']).filter(|line| !line.is_empty());
    let widest = lines().map(|line| line.matches('|').count() + 1).max();
    lines().count() * widest.unwrap_or(0)
}
