//! Renders the Markdown of text tiles as HTML that is safe on a public page.
//!
//! There are two independent defenses. First, HTML in the Markdown becomes text, images become links, and
//! nesting and length are limited. Then a sanitizer removes every tag and attribute that is not on a list.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::html::write_html_io;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::definition::BoundedText;
use super::{count_cells, with_scrolling_tables};

/// The allowed tags.
const ALLOWED_TAGS: &str = "a blockquote br code del em h2 h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul";
/// The allowed attributes, each with its tag. The sanitizer also sets `rel` on links.
const ALLOWED_ATTRIBUTES: [(&str, &str); 2] = [("a", "href"), ("ol", "start")];
/// The allowed schemes of links. Relative links, which would point into this service, are removed.
const LINK_SCHEMES: [&str; 3] = ["http", "https", "mailto"];
/// The `rel` attribute of every link.
const LINK_REL: &str = "nofollow noopener noreferrer";
/// Maximum nesting of lists, quotes and emphasis. Deeper content stays on the last level. The sanitizer's
/// work grows with the square of the depth.
const MAX_DEPTH: usize = 16;
/// Maximum size of the HTML that reaches the sanitizer, in bytes.
const MAX_HTML: usize = 64 * 1024;
/// Maximum number of table cells, as [`count_cells`] estimates it. The parser pads rows to the width of their
/// table, so a short text can produce a hundred thousand cells.
const MAX_CELLS: usize = 8_000;

static SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut fence = Builder::empty();
    let attributes = ALLOWED_ATTRIBUTES.map(|(tag, name)| (tag, HashSet::from([name])));
    fence
        .tags(ALLOWED_TAGS.split(' ').collect())
        .tag_attributes(HashMap::from(attributes))
        .generic_attributes(HashSet::new())
        .url_schemes(LINK_SCHEMES.into_iter().collect())
        .url_relative(UrlRelative::Deny)
        .link_rel(Some(LINK_REL));
    fence
});

/// Renders Markdown as safe HTML; `None` if the HTML would be too long. Headings start at the second level.
pub fn html(markdown: &str) -> Option<String> {
    if count_cells(markdown) > MAX_CELLS {
        return None;
    }
    let mut plain = MarkdownFilter::default();
    let parsed = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut out = BoundedText::new(MAX_HTML);
    let events = parsed.flat_map(|event| plain.filter(event).into_iter().flatten());
    write_html_io(&mut out, events).ok()?;
    Some(with_scrolling_tables(&SANITIZER.clean(&out.text()?).to_string()))
}

/// Filters the parser's events before they become HTML.
#[derive(Default)]
struct MarkdownFilter<'m> {
    /// For each open tag, whether it was kept.
    open: Vec<bool>,
    /// Number of open tags that can be nested in themselves.
    depth: usize,
    /// Number of open links. Links must not be nested.
    links: usize,
    /// The address of an open image that has shown no text yet. It becomes the text if there is none.
    mute: Option<CowStr<'m>>,
}

impl<'m> MarkdownFilter<'m> {
    fn filter(&mut self, event: Event<'m>) -> [Option<Event<'m>>; 2] {
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
                level: lower_heading(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            Tag::HtmlBlock => Some(Tag::Paragraph),
            tag => Some(tag).filter(|tag| !nests(tag.to_end()) || self.depth < MAX_DEPTH),
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
            TagEnd::Heading(level) => TagEnd::Heading(lower_heading(level)),
            TagEnd::HtmlBlock => TagEnd::Paragraph,
            end => end,
        };
        self.depth -= usize::from(nests(end));
        self.links -= usize::from(end == TagEnd::Link);
        Some(end)
    }
}

/// Returns whether a tag can be nested in a tag of the same kind.
fn nests(end: TagEnd) -> bool {
    use TagEnd::{BlockQuote, Emphasis, Item, List, Strikethrough, Strong};
    matches!(end, BlockQuote(_) | List(_) | Item | Emphasis | Strong | Strikethrough)
}

/// Returns the next lower level. The title of the page is the only heading of the first level.
fn lower_heading(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H2,
        HeadingLevel::H2 => HeadingLevel::H3,
        HeadingLevel::H3 => HeadingLevel::H4,
        HeadingLevel::H4 => HeadingLevel::H5,
        HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn html(markdown: &str) -> String {
        super::html(markdown).expect("the HTML is short enough")
    }

    /// Returns a table with rows of one cell, which the parser pads.
    fn table(columns: usize, rows: usize) -> String {
        format!("|{}\n|{}\n{}", "a|".repeat(columns), "-|".repeat(columns), "|a\n".repeat(rows))
    }

    #[test]
    fn markdown_with_too_long_html_is_not_rendered() {
        let links = |count| {
            format!("{}\n\n[a]: http://x.example/{}", "[a] ".repeat(count), "x".repeat(1_000))
        };
        for (short, long) in [
            (table(5, 600), table(498, 669)),
            (table(498, 5), table(498, 300)),
            (table(498, 5).replace('\n', "\r"), table(498, 669).replace('\n', "\r")),
            (links(10), links(500)),
            ("&".repeat(4_000), "&".repeat(14_000)),
        ] {
            assert!(super::html(&short).is_some_and(|html| html.len() < 2 * MAX_HTML), "{short}");
            assert_eq!(super::html(&long), None, "{long}");
        }
    }

    #[test]
    fn cell_count_is_an_upper_bound_of_the_table_cells() {
        for markdown in [table(1, 0), table(3, 7), table(3, 7).replace('\n', "\r\n")] {
            let rendered = html(&markdown);
            let found = rendered.matches("<td>").count() + rendered.matches("<th>").count();
            assert!(found > 0 && found <= count_cells(&markdown), "{markdown}");
        }
    }

    #[test]
    fn markdown_is_rendered_to_html() {
        for (markdown, expected) in [
            ("# One\n## Two", "<h2>One</h2>\n<h3>Two</h3>\n"),
            ("###### Six", "<h6>Six</h6>\n"),
            (
                "*a* **b** ~~c~~ `d`",
                "<p><em>a</em> <strong>b</strong> <del>c</del> <code>d</code></p>\n",
            ),
            ("3. a\n4. b", "<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>\n"),
            ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
            ("> a", "<blockquote>\n<p>a</p>\n</blockquote>\n"),
            ("```js\na<b\n```", "<pre><code>a&lt;b\n</code></pre>\n"),
            ("a  \nb\n\n---", "<p>a<br>\nb</p>\n<hr>\n"),
            (
                "|a|b|\n|-|-:|\n|1|2|",
                "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">\
                 <table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td>2</td></tr>\n</tbody></table></div>\n",
            ),
            ("", ""),
        ] {
            assert_eq!(html(markdown), expected, "{markdown}");
        }
    }

    #[test]
    fn links_have_only_web_and_mail_targets() {
        let link = |to: &str| {
            format!("<p><a href=\"{to}\" rel=\"nofollow noopener noreferrer\">a</a></p>\n")
        };
        for to in ["http://x.example/?a=1", "https://x.example/#b", "mailto:a@x.example"] {
            assert_eq!(html(&format!("[a]({to})")), link(to));
        }
        assert_eq!(html("[a](http://x.example \"title\")"), link("http://x.example"));
        let bare = "<p><a rel=\"nofollow noopener noreferrer\">a</a></p>\n";
        for to in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java&Tab;script:alert(1)",
            "&#106;avascript:alert(1)",
            "&#x01;javascript:alert(1)",
            "vbscript:x",
            "data:text/html;base64,PHNjcmlwdD4=",
            "file:///etc/passwd",
            "/api/users/@me/",
            "//x.example",
            "#top",
            "x",
            "",
        ] {
            assert_eq!(html(&format!("[a](<{to}>)")), bare, "{to}");
        }
    }

    #[test]
    fn images_become_links_named_by_their_alt_text() {
        for (markdown, text) in [
            ("![a *b*](http://x.example/p.png \"t\")", "a <em>b</em>"),
            ("![](http://x.example/p.png)", "http://x.example/p.png"),
            ("![![b](http://y.example)](http://x.example/p.png)", "b"),
            ("[![b](http://y.example)](http://x.example/p.png)", "b"),
            ("[![](http://y.example)](http://x.example/p.png)", "http://y.example"),
        ] {
            let expected = format!(
                "<p><a href=\"http://x.example/p.png\" rel=\"nofollow noopener noreferrer\">{text}</a></p>\n"
            );
            assert_eq!(html(markdown), expected, "{markdown}");
        }
        assert_eq!(html("![a](javascript:alert(1))").matches("javascript").count(), 0);
    }

    #[test]
    fn html_in_markdown_is_escaped() {
        for (markdown, expected) in [
            ("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"),
            ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
            ("<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>\n"),
            ("<svg onload=alert(1)>", "<p>&lt;svg onload=alert(1)&gt;</p>\n"),
            ("a <!-- b --> c", "<p>a &lt;!-- b --&gt; c</p>\n"),
            ("&lt;script&gt;", "<p>&lt;script&gt;</p>\n"),
            ("&#60;script&#62;", "<p>&lt;script&gt;</p>\n"),
            ("{{ title }} {% if x %} ${x}", "<p>{{ title }} {% if x %} ${x}</p>\n"),
        ] {
            assert_eq!(html(markdown).replace("\n</p>", "</p>"), expected, "{markdown}");
        }
    }

    /// Without a limit, the work would grow with the square of the depth.
    #[test]
    fn nesting_depth_in_html_is_limited() {
        for (one, tag) in [(">", "<blockquote>"), ("- ", "<ul>"), ("1. ", "<ol>"), ("*a ", "<em>")]
        {
            let text = format!("{}end{}", one.repeat(1_500), " b*".repeat(300));
            let rendered = html(&text);
            assert!(rendered.contains("end"), "{tag}");
            assert!(rendered.matches(tag).count() <= MAX_DEPTH, "{tag}");
        }
    }

    /// Fragments of Markdown and HTML that are dangerous in combination.
    fn pieces() -> impl Strategy<Value = String> {
        const PIECES: [&str; 44] = [
            "<script>",
            "</script>",
            "<img src=x onerror=alert(1)>",
            "<svg/onload=alert(1)>",
            "<a href='",
            "<!--",
            "-->",
            "<![CDATA[",
            "]]>",
            "<style>",
            "</p>",
            "<p",
            "\"",
            "'",
            ">",
            "> ",
            "- ",
            "1. ",
            "# ",
            "*",
            "**",
            "~~",
            "`",
            "```\n",
            "\n",
            "\n\n",
            "    ",
            "|a|b|\n|-|-|\n",
            "[x](",
            "![",
            "](http://x.example",
            "](javascript:alert(1)",
            ")",
            "<http://x.example>",
            "<javascript:alert(1)>",
            "[r]: data:text/html,x\n",
            "[r]",
            "&lt;",
            "&#60;",
            "&#x3c;script&#x3e;",
            "\u{202e}",
            "\u{0}",
            "\\",
            "onclick=alert(1)",
        ];
        let piece = prop_oneof![
            4 => proptest::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
            1 => ".{0,8}",
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    /// Removes the allowed tags from rendered HTML.
    fn without_allowed_tags(rendered: &str) -> String {
        let names = ALLOWED_TAGS.replace(' ', "|");
        let address = r#"href="(https?:|mailto:)[^"]*""#;
        let pattern = format!(r#"</?({names})( {address}| start="[0-9]+"| rel="{LINK_REL}")*>"#);
        let scroll = r#"<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>"#;
        let rendered = &rendered.replace(scroll, "").replace("</table></div>", "");
        Regex::new(&format!("(?i){pattern}")).unwrap().replace_all(rendered, "").into_owned()
    }

    #[test]
    fn without_allowed_tags_keeps_forbidden_tags() {
        for bad in ["<script>", "<a href=\"javascript:x\">", "<p onclick=\"x\">", "<img>", "<h1>"] {
            assert!(without_allowed_tags(bad).contains('<'), "{bad}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn any_markdown_renders_only_allowed_tags(markdown in pieces()) {
            let left = without_allowed_tags(&html(&markdown));
            prop_assert!(!left.contains('<'), "{left}");
        }
    }
}
