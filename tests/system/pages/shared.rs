//! The public page of a dashboard in a real browser. User input neither runs nor loads anything, and the
//! page is readable on small screens and in both color schemes.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prelude::*;
use crate::support::sharing::{add_insight, add_text};

/// Returns the link to the public page of a dashboard.
async fn link(site: &Site, board: &Board) -> String {
    format!("{}/shared/{}", site.base, board.enable(&site.workspace.owner, true).await)
}

/// Another site, which the browser must not visit.
struct Elsewhere {
    url: String,
    visits: Arc<AtomicUsize>,
}

impl Elsewhere {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let visits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&visits);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { url, visits }
    }
}

/// Injections for every user input: markup that would change the title, open a dialog, or request another
/// site.
fn attempts(elsewhere: &str) -> Vec<String> {
    let run = "document.title='broken';alert(1)";
    vec![
        format!("<script>{run}</script>"),
        format!("</title><script>{run}</script>"),
        format!("</h1></p></pre></code></style><script>{run}</script>"),
        format!("<img src=x onerror=\"{run}\">"),
        format!("<img src={elsewhere}/a.png>"),
        format!("![]({elsewhere}/b.png)"),
        format!("![a picture]({elsewhere}/c.png \"title\")"),
        format!("<svg onload={run}>"),
        format!("<svg><style>@import '{elsewhere}/d.css'</style>"),
        format!("<iframe src=\"javascript:{run}\"></iframe>"),
        format!("<link rel=stylesheet href={elsewhere}/e.css>"),
        format!("<meta http-equiv=refresh content='0;url={elsewhere}/f'>"),
        format!("<base href={elsewhere}/>"),
        format!("<body onload={run}>"),
        format!("<input autofocus onfocus={run}>"),
        format!("<details open ontoggle={run}>"),
        format!("[click](javascript:{run})"),
        format!("[click](&#106;avascript:{run})"),
        format!("[click](data:text/html,<script>{run}</script>)"),
        format!("<a href=\"javascript:{run}\">"),
        format!("\" onmouseover=\"{run}\" x=\""),
        format!("' autofocus onfocus='{run}"),
        format!("&lt;script&gt;{run}&lt;/script&gt; &#60;img src=x onerror={run}&#62;"),
        format!("<<script>{run}//<</script>"),
        format!("<scr<script>ipt>{run}</scr</script>ipt>"),
        format!("<!--><script>{run}</script>-->"),
        format!("<math><mtext><table><mglyph><style><img src=x onerror={run}>"),
        format!("<noscript><p title=\"</noscript><img src=x onerror={run}>\">"),
        "<b><i><table><td unclosed".to_owned(),
        "\u{202e}txet desrever\u{202d} \u{2066}isolated".to_owned(),
        "{{ 7 * 7 }} {% raw %} ${7*7} <%= 7 %> #{7}".to_owned(),
        format!("> - 1. **<script>{run}</script>**\n\n```\n</code></pre><script>{run}</script>"),
        format!("|<script>{run}</script>|b|\n|-|-|\n|![x]({elsewhere}/g.png)|[y]({elsewhere})|"),
    ]
}

/// Creates a dashboard with an injection in every field, and returns its name too.
async fn attacked(site: &Site, elsewhere: &str) -> (Board, String) {
    let attempts = attempts(elsewhere);
    let name = attempts.concat().chars().take(380).collect::<String>().trim().to_owned();
    let tags: Vec<_> =
        attempts.iter().map(|attempt| attempt.chars().take(100).collect::<String>()).collect();
    let sent = json!({ "name": name, "description": attempts.join("\n"), "tags": tags });
    let board = Board::make(&site.workspace, sent).await;
    for (y, attempt) in (0..).zip(&attempts) {
        add_text(&site.workspace, &board, attempt, y).await;
        let insight = json!({
            "name": attempt, "description": attempt, "tags": [attempt], "color": attempt, "y": y,
            "query": { "kind": attempt, "series": [{ "event": attempt }], attempt: attempt,
                "dateRange": { "date_from": attempt, "date_to": attempt } },
        });
        add_insight(&site.workspace, &board, insight).await;
    }
    (board, name)
}

/// Counts the elements and resources that the page must not have.
const LOADED: &str = "return document.scripts.length + performance.getEntriesByType('resource').length + document\
    .querySelectorAll('img,svg,math,iframe,object,embed,form,input,video,audio,link,base,[style],[src],[srcset],\
    [http-equiv],[id],[title],[name]:not([name=viewport])').length";
/// Lists the attributes that the page must not have. The box around a table has more.
const ATTRIBUTES: &str = "const plain = ['class', 'dir', 'href', 'rel', 'start', 'datetime', 'aria-label', 'lang', \
    'charset', 'name', 'content']; return [...document.querySelectorAll('*:not(.text > .scroll:has(> table:only-child))')].flatMap((one) => one\
    .getAttributeNames()).filter((name) => !plain.includes(name))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_content_on_the_shared_page_runs_and_loads_nothing() {
    let (site, elsewhere) = (Site::at("127.0.0.1").await, Elsewhere::new().await);
    let (board, name) = attacked(&site, &elsewhere.url).await;
    let browser = Browser::open().await;
    browser.visit(&link(&site, &board).await).await;
    assert!(!browser.is_asking().await, "a script opened a dialog");
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&browser.title().await), squeezed(&name));
    assert_eq!(browser.run("return document.querySelector('h1').textContent").await, json!(name));
    assert_eq!(browser.run(LOADED).await, 0);
    assert_eq!(browser.run(ATTRIBUTES).await, json!([]));
    let tiles =
        browser.run("return document.querySelectorAll('.tiles > article.tile').length").await;
    assert_eq!(tiles, 2 * attempts("").len(), "an injection added or removed a tile");
    let colored = browser
        .run("return document.querySelectorAll('article:not(.tile):not(.blue)').length")
        .await;
    assert_eq!(colored, 0);
    let links = browser.run("return [...document.querySelectorAll('a')].map((a) => [a.getAttribute('href'), a.rel])").await;
    for link in links.as_array().expect("links") {
        let href = link[0].as_str().unwrap_or(&elsewhere.url);
        assert!(href.starts_with(&elsewhere.url), "{href}");
        assert_eq!(link[1], "nofollow noopener noreferrer");
    }
    // Clicking on a link whose script address was removed does nothing.
    browser
        .run("for (const one of document.querySelectorAll('a:not([href]), summary')) one.click()")
        .await;
    assert!(!browser.is_asking().await, "a script opened a dialog");
    assert_eq!(squeezed(&browser.title().await), squeezed(&name));
    assert_eq!(elsewhere.visits.load(Ordering::SeqCst), 0, "the browser requested another site");
}

/// Creates a dashboard with typical content.
async fn usual(site: &Site) -> Board {
    let sent = json!({
        "name": "Growth", "description": "How many come, and who stays.\nLooked at every Monday.",
        "tags": ["growth", "weekly", "team a"],
    });
    let board = Board::make(&site.workspace, sent).await;
    let text = "# Read this first\n\nThe **numbers** are *rounded*; see the [notes](https://notes.example/growth) or \
        `SELECT 1`.\n\n- Mondays: new users\n- Fridays: who came back\n\n> Growth is not everything.\n\n\
        | Segment | Owner | A column with a rather long heading | Another one | And one more |\n\
        |---|---|---|---|---|\n| Free | Ann | 1 | 2 | 3 |\n| Paid | Bob | 4 | 5 | 6 |\n\n![The funnel](https://x.example/p.png)";
    add_text(&site.workspace, &board, text, 0).await;
    let long = "Averyveryveryveryveryveryveryveryveryveryveryverylongwordwithoutanyspace";
    let insights = json!([
        ["blue", "Daily active users", { "kind": "InsightVizNode", "source": {
            "kind": "TrendsQuery", "interval": "day", "dateRange": { "date_from": "-30d" },
            "series": [{ "kind": "EventsNode", "event": "$pageview", "name": "$pageview", "math": "dau" }] } }],
        ["green", "Sign-up funnel", { "kind": "InsightVizNode", "source": {
            "kind": "FunnelsQuery", "dateRange": { "date_from": "2026-01-01", "date_to": "2026-03-31" },
            "series": [{ "event": "visited" }, { "event": "signed up" }, { "event": "paid" }] } }],
        ["purple", "Retention", { "kind": "InsightVizNode", "source": { "kind": "RetentionQuery" } }],
        ["black", "Revenue by country", { "kind": "DataTableNode", "source": { "kind": "HogQLQuery",
            "query": "select country, sum(amount) from charges group by country order by sum(amount) desc limit 100" } }],
        ["white", "", { "kind": "InsightVizNode", "source": { "kind": "LifecycleQuery" } }],
        ["crimson", long, { "a": "x".repeat(300) }],
    ]);
    for (y, insight) in (1..).zip(insights.as_array().expect("insights")) {
        let insight = json!({ "name": insight[1], "description": "What it is for, in a sentence.", "tags": ["kpi"],
            "color": insight[0], "query": insight[2], "y": y });
        add_insight(&site.workspace, &board, insight).await;
    }
    board
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_page_is_readable_on_every_screen_in_light_and_dark() {
    let site = Site::at("127.0.0.1").await;
    let board = usual(&site).await;
    let link = link(&site, &board).await;
    let browser = Browser::open().await;
    let mut grounds = Vec::new();
    for (width, scheme) in [(320, "light"), (320, "dark"), (1280, "light"), (1280, "dark")] {
        browser.look(width, scheme).await;
        browser.visit(&link).await;
        browser.run("for (const it of document.querySelectorAll('details')) it.open = true").await;
        let wide = browser.run("return document.documentElement.scrollWidth").await;
        assert_eq!(wide, width, "{scheme}: the page scrolls sideways");
        let cut = "return [...document.querySelectorAll('main *:not(.scroll *)')].filter((one) => one.getClientRects()\
            .length && one.getBoundingClientRect().right > innerWidth + 1).length";
        assert_eq!(browser.run(cut).await, 0, "{width} {scheme}: something is cut off");
        grounds.push(browser.run("return getComputedStyle(document.body).backgroundColor").await);
        let contrast = browser.run(CONTRAST).await.as_f64().expect("a number");
        assert!(contrast >= 4.5, "{width} {scheme}: a contrast of {contrast}");
    }
    assert_eq!((&grounds[0], &grounds[1]), (&grounds[2], &grounds[3]));
    assert_ne!(grounds[0], grounds[1]);
    assert!(browser.print().await.starts_with("JVBERi0"), "a PDF");
}

/// The lowest contrast between text and background on the page (WCAG 2, 1.4.3).
const CONTRAST: &str = "
    const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
    const light = (color) => { const [r, g, b] = numbers(color).map((n) => n / 255)
        .map((n) => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = (one) => { const own = getComputedStyle(one).backgroundColor;
        return numbers(own)[3] === 0 && one.parentElement ? behind(one.parentElement) : own; };
    const texts = [...document.querySelectorAll('main *')].filter((one) =>
        [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
    return Math.min(...texts.map((one) => {
        const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05); }));";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_page_has_headings_and_keyboard_navigation() {
    let site = Site::at("127.0.0.1").await;
    let board = usual(&site).await;
    let browser = Browser::open().await;
    browser.visit(&link(&site, &board).await).await;
    assert_eq!(browser.title().await, "Growth");
    assert_eq!(browser.run("return document.documentElement.lang").await, "en");
    let headings = "return [...document.querySelectorAll('h1, h2, h3')].map((h) => h.tagName + ' ' + h.textContent).join()";
    let expected = "H1 Growth,H2 Read this first,H2 Daily active users,H2 Sign-up funnel,H2 Retention,H2 Revenue by country,\
        H2 Untitled insight,H2 Averyveryveryveryveryveryveryveryveryveryveryverylongwordwithoutanyspace";
    assert_eq!(browser.run(headings).await, expected);
    let told =
        "return [...document.querySelectorAll('dd')].map((one) => one.textContent).join('|')";
    let expected = "Trends, by day|$pageview (unique users)|Last 30 days|Funnel|visited; signed up; paid|\
        From 2026-01-01 to 2026-03-31|Retention|SQL|Lifecycle";
    assert_eq!(browser.run(told).await, expected);
    let colors =
        "return [...document.querySelectorAll('article')].map((one) => one.className).join()";
    let expected = "tile blue,tile blue,tile green,tile purple,tile black,tile white,tile";
    assert_eq!(browser.run(colors).await, expected);
    let tags = browser
        .run("return [...document.querySelectorAll('header li')].map((li) => li.textContent)")
        .await;
    assert_eq!(tags, json!(["growth", "team a", "weekly"]));
    let about = "How many come, and who stays.\nLooked at every Monday.";
    assert_eq!(browser.text(".about").await, about);

    // Tab reaches each link and each summary, and the focus is visible.
    let mut seen = Vec::new();
    let focus = "const it = document.activeElement; return [it.textContent, getComputedStyle(it).outlineStyle]";
    while browser.run("return document.activeElement.tagName").await != "SUMMARY" {
        browser.press(Key::Tab).await;
        seen.push(browser.run(focus).await);
        assert!(seen.len() < 10, "{seen:?}");
    }
    let focused = |text: &str| json!([text, "solid"]);
    assert_eq!(seen.first(), Some(&focused("notes")));
    assert_eq!(seen.last(), Some(&focused("Definition")));
    assert!(seen.contains(&focused("The funnel")), "{seen:?}");
    browser.press(Key::Enter).await;
    let json = browser.text("details[open] pre").await;
    let shown: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(shown["source"]["kind"], "TrendsQuery");
}

#[tokio::test]
async fn empty_dashboards_and_unknown_tokens_have_their_own_pages() {
    let site = Site::at("127.0.0.1").await;
    let board = Board::make(&site.workspace, json!({ "name": "  " })).await;
    let browser = Browser::open().await;
    browser.visit(&link(&site, &board).await).await;
    assert_eq!(browser.title().await, "Untitled dashboard");
    assert_eq!(browser.text("h1").await, "Untitled dashboard");
    assert_eq!(browser.text(".none").await, "This dashboard has no tiles.");
    browser.visit(&format!("{}/shared/{}", site.base, "x".repeat(30))).await;
    assert_eq!(browser.title().await, "Page not found");
    assert_eq!(browser.text("h1").await, "Page not found");
}
