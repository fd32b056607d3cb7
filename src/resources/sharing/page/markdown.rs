//! Text tiles: Markdown to HTML that nobody needs to trust.
//!
//! Two fences, one behind the other: HTML in the Markdown is text, pictures are links and nesting is bounded
//! before HTML is made; what was made then passes a list of the tags and attributes that may stand in it.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::html::push_html;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The tags that may stand in a text tile, each with its attributes. Links have a `rel` besides.
const ALLOWED: [(&str, &[&str]); 24] = [
    ("a", &["href"]),
    ("blockquote", &[]),
    ("br", &[]),
    ("code", &[]),
    ("del", &[]),
    ("em", &[]),
    ("h2", &[]),
    ("h3", &[]),
    ("h4", &[]),
    ("h5", &[]),
    ("h6", &[]),
    ("hr", &[]),
    ("li", &[]),
    ("ol", &["start"]),
    ("p", &[]),
    ("pre", &[]),
    ("strong", &[]),
    ("table", &[]),
    ("tbody", &[]),
    ("td", &[]),
    ("th", &[]),
    ("thead", &[]),
    ("tr", &[]),
    ("ul", &[]),
];
/// Where links may lead: to other sites and to mail, not into this service.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];
/// What is said of links.
const REL: &str = "nofollow noopener noreferrer";
/// How deep lists, quotes and emphasis are followed; what is deeper stands on the last level. The work of the
/// second fence grows with the square of the depth.
const DEEPEST: usize = 16;

static FENCE: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut fence = Builder::empty();
    let attributes = |(tag, names): &(&'static str, &'static [&'static str])| {
        (*tag, names.iter().copied().collect::<HashSet<_>>())
    };
    fence
        .tags(ALLOWED.iter().map(|(tag, _)| *tag).collect())
        .tag_attributes(ALLOWED.iter().map(attributes).collect::<HashMap<_, _>>())
        .generic_attributes(HashSet::new())
        .url_schemes(SCHEMES.into_iter().collect())
        .url_relative(UrlRelative::Deny)
        .link_rel(Some(REL));
    fence
});

/// Safe HTML of this Markdown, to stand under a heading of the first level.
pub(super) fn html(markdown: &str) -> String {
    let mut plain = Plain::default();
    let parsed = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut out = String::with_capacity(markdown.len() * 2);
    push_html(&mut out, parsed.flat_map(|event| plain.pass(event).into_iter().flatten()));
    FENCE.clean(&out).to_string()
}

/// What of the Markdown becomes HTML.
#[derive(Default)]
struct Plain<'m> {
    /// For each open tag, whether it becomes one.
    open: Vec<bool>,
    /// How many of those that can stand in themselves do.
    depth: usize,
    /// How many links are open: a link in a link is none.
    links: usize,
    /// The address of a picture that has shown no text yet.
    mute: Option<CowStr<'m>>,
}

impl<'m> Plain<'m> {
    fn pass(&mut self, event: Event<'m>) -> [Option<Event<'m>>; 2] {
        let event = match event {
            Event::Start(tag) => self.start(tag).map(Event::Start),
            Event::End(end) => {
                let address = self.mute.take_if(|_| end == TagEnd::Image).map(Event::Text);
                return [address, self.end(end).map(Event::End)];
            }
            Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
            kept => Some(kept),
        };
        if matches!(event, Some(Event::Text(_) | Event::Code(_))) {
            self.mute = None;
        }
        [event, None]
    }

    fn start(&mut self, tag: Tag<'m>) -> Option<Tag<'m>> {
        let tag = match tag {
            Tag::Image { link_type, dest_url, id, .. } => {
                self.mute = Some(dest_url.clone());
                let title = CowStr::Borrowed("");
                (self.links == 0).then_some(Tag::Link { link_type, dest_url, title, id })
            }
            Tag::Heading { level, .. } => Some(Tag::Heading {
                level: below(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            Tag::HtmlBlock => Some(Tag::Paragraph),
            tag => Some(tag).filter(|tag| !nests(tag.to_end()) || self.depth < DEEPEST),
        };
        self.open.push(tag.is_some());
        if let Some(tag) = &tag {
            self.depth += usize::from(nests(tag.to_end()));
            self.links += usize::from(matches!(tag, Tag::Link { .. }));
        }
        tag
    }

    fn end(&mut self, end: TagEnd) -> Option<TagEnd> {
        if self.open.pop() != Some(true) {
            return None;
        }
        let end = match end {
            TagEnd::Image => TagEnd::Link,
            TagEnd::Heading(level) => TagEnd::Heading(below(level)),
            TagEnd::HtmlBlock => TagEnd::Paragraph,
            end => end,
        };
        self.depth -= usize::from(nests(end));
        self.links -= usize::from(end == TagEnd::Link);
        Some(end)
    }
}

/// Whether such a tag can stand in another of its kind.
fn nests(end: TagEnd) -> bool {
    use TagEnd::{BlockQuote, Emphasis, Item, List, Strikethrough, Strong};
    matches!(end, BlockQuote(_) | List(_) | Item | Emphasis | Strong | Strikethrough)
}

/// The page's own heading is the only one of the first level.
fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H2,
        HeadingLevel::H2 => HeadingLevel::H3,
        HeadingLevel::H3 => HeadingLevel::H4,
        HeadingLevel::H4 => HeadingLevel::H5,
        HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}
