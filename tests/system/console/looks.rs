//! The look of pages on every screen, in light and in dark.

use super::assert_quiet;
use crate::prelude::*;
use crate::support::crawler::crawl_from;
use crate::support::every_text::fill;

/// A name, the width, the height, and the media features that the user prefers.
type Look = (&'static str, u32, u32, &'static [(&'static str, &'static str)]);

/// The screens of people. The first one is 1280 pixels wide, at a zoom of 400 %.
const LOOKS: [Look; 8] = [
    ("320", 320, 256, &[("prefers-color-scheme", "light")]),
    ("390-dark", 390, 900, &[("prefers-color-scheme", "dark")]),
    ("640", 640, 900, &[("prefers-color-scheme", "light")]),
    ("900", 900, 900, &[("prefers-color-scheme", "light")]),
    ("1280", 1280, 900, &[("prefers-color-scheme", "light")]),
    ("1280-dark", 1280, 900, &[("prefers-color-scheme", "dark")]),
    ("2560", 2560, 900, &[("prefers-color-scheme", "light")]),
    ("forced", 390, 900, &[("forced-colors", "active"), ("prefers-color-scheme", "light")]),
];

/// The looks whose pages axe-core reads: the narrow and the wide layout, light and dark.
const READ_BY_AXE: [&str; 3] = ["320", "1280", "1280-dark"];

/// Returns names as long as they may be, without spaces, every second one from right to left.
fn long(schema: &Value, number: usize) -> Vec<String> {
    let word = if number.is_multiple_of(2) { "Donaudampfschiff" } else { "שלוםעולם" };
    let text = |length: usize| -> String {
        let start = format!("{number}{word}");
        start.chars().chain(word.chars().cycle()).take(length).collect()
    };
    let label = "a".repeat(50);
    let mut texts = match schema["format"].as_str() {
        Some("email" | "idn-email") => vec![format!("{label}{number}@{label}.example")],
        Some("uuid" | "date-time") => Vec::new(),
        _ => [400, 255, 200, 150, 100, 60, 40, 25].map(text).to_vec(),
    };
    texts.push(format!("https://t{number}.example/{}", "a".repeat(160)));
    texts.push(format!("{label}{number}.{label}.example"));
    let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    texts.retain(|text| text.chars().count() as u64 <= most);
    texts
}

/// Returns the height of a page that scrolls although nothing stands below the screen.
const NEEDLESS_SCROLLING: &str = "const shell = document.querySelector('.shell'), height = document.documentElement.scrollHeight; \
    const end = shell ? Math.ceil(shell.getBoundingClientRect().bottom + scrollY) : height; \
    return [height].filter(height => height > Math.max(innerHeight, end))";

/// Returns the parts of the frame that a long name makes too high or too narrow.
const SQUEEZED_FRAME: &str = "const sizes = (selector) => [...document.querySelectorAll(selector)] \
      .filter(one => one.checkVisibility({ visibilityProperty: true })).map(one => [selector, one.offsetWidth, one.offsetHeight]); \
    return [...sizes('header.top').filter(([, , height]) => height > 72), ...sizes('.find').filter(([, width]) => width < 48), \
      ...sizes('nav.side .switch').filter(([, , height]) => height > 90), ...sizes('nav.side h2').filter(([, , height]) => height > 48)]";

/// Returns what is wrong with a page on any screen.
pub async fn faults(browser: &Browser, page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut note = |what: &str, found: &Value| {
        if *found != json!([]) {
            faults.push(format!("{page} {what}: {found:#}"));
        }
    };
    for (name, width, height, features) in LOOKS {
        browser.resize(width, height).await;
        browser.prefer(features).await;
        let wide = format!(
            "return [document.documentElement.scrollWidth].filter(wide => wide !== {width})"
        );
        note(&format!("is too wide at {name}"), &browser.run(&wide).await);
        note(&format!("covers at {name}"), &browser.run(include_str!("overlaps.js")).await);
        note(&format!("splits words at {name}"), &browser.run(include_str!("split.js")).await);
        note(&format!("scrolls for nothing at {name}"), &browser.run(NEEDLESS_SCROLLING).await);
        note(&format!("squeezes its frame at {name}"), &browser.run(SQUEEZED_FRAME).await);
        if name == "forced" {
            note("loses its marks", &browser.run(include_str!("forced.js")).await);
        }
        if name == "320" {
            note("hides the focus", &browser.run(include_str!("focused.js")).await);
        }
        if READ_BY_AXE.contains(&name) {
            let found = browser.accessibility_violations().await;
            note(&format!("is not accessible at {name}"), &found);
        }
    }
    assert_quiet(browser, page).await;
    faults
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_with_long_names_is_accessible_and_fits_every_screen() {
    let dns = Dns::start().await;
    let mut config = dns.config();
    config.mail.smtp_url = Some("smtp://127.0.0.1:9".parse().expect("a URL"));
    config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
    config.console_mail_login = true;
    let site = Site::with("steward.localhost", config).await;
    let objects = Objects::make(&site.workspace, "corp").await;
    let filled = fill(&site.workspace, &objects, long).await;
    assert!(filled.stored.len() > 80, "{filled:?}");
    let visitor = Visitor::with_link(&site.workspace, true).await;
    let start = [
        format!("/console/projects/{}/dashboards/", objects.project()),
        format!("/console/organizations/{}/members/", objects.organization()),
        "/console/".to_owned(),
    ];
    let found = crawl_from(&visitor, &start.each_ref().map(String::as_str)).await;
    let browser = browser().await;
    let mut found_faults = Vec::new();
    for page in ["/console/sign_in/", "/console/sign_in/code/", "/console/enter/"] {
        browser.visit(&format!("{}{page}", site.base)).await;
        browser.text("h1").await;
        found_faults.extend(faults(&browser, page).await);
    }
    browser.look(1280, "light").await;
    site.sign_in_by_link(&browser).await;
    let pages = found.pages.values().map(|pages| pages[0].as_str());
    for page in pages.chain(["/console/no/such/page"]) {
        browser.visit(&format!("{}{page}", site.base)).await;
        browser.text("h1").await;
        found_faults.extend(faults(&browser, page).await);
    }
    assert!(found_faults.is_empty(), "{}", found_faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_and_low_screens_are_used() {
    let site = Site::new().await;
    site.board("Growth").await;
    let browser = browser().await;
    browser.resize(1280, 600).await;
    site.sign_in_by_link(&browser).await;
    let links = "return [...document.querySelectorAll('nav.side li a')].map(one => one.href)";
    let links = browser.run(links).await;
    let links: Vec<&str> =
        links.as_array().expect("links").iter().filter_map(Value::as_str).collect();
    assert!(links.len() > 15, "{links:?}");
    for link in links {
        browser.resize(1280, 600).await;
        browser.visit(link).await;
        browser.text("h1").await;
        let in_sight = "(() => { const nav = document.getElementById('nav').getBoundingClientRect(), \
                        entry = document.querySelector('nav [aria-current]').getBoundingClientRect(); \
                        return entry.top >= nav.top && entry.bottom <= Math.min(nav.bottom, innerHeight) })()";
        browser.wait_until(&format!("the entry of {link}"), in_sight).await;
        browser.resize(2560, 900).await;
        let used =
            browser.run("return document.querySelector('main').offsetWidth / innerWidth").await;
        assert!(used.as_f64() > Some(0.8), "{link} uses {used} of 2560 pixels");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_tables_of_texts_are_scrolled_by_keyboard() {
    let (site, browser) = Site::signed_in().await;
    let row = |cell: &str| format!("|{}\n", format!("{cell}|").repeat(20));
    let text = row("Donaudampfschiff") + &row("-") + &row("Kapitaen");
    let owner = &site.workspace.owner;
    let board = owner.post(&site.workspace.dashboards(""), json!({ "name": "Wide" })).await.ok();
    let path = site.workspace.dashboards(&format!("{}/", board["id"]));
    owner.patch(&path, json!({ "tiles": [{ "text": { "body": text } }] })).await.ok();
    let shared = owner.patch(&format!("{path}sharing/"), json!({ "enabled": true })).await.ok();
    let token = shared["access_token"].as_str().expect("a token");
    let page = format!("/console/projects/1/dashboards/{}/", board["id"]);
    for page in [page.clone(), format!("/shared/{token}/"), format!("{page}tiles/1/")] {
        for width in [390, 1280] {
            browser.look(width, "light").await;
            browser.visit(&format!("{}{page}", site.base)).await;
            if page.ends_with("/tiles/1/") {
                browser.click("details[data-shown=preview] summary").await;
            }
            browser.text(".text table").await;
            browser.run("document.querySelector('.text .scroll').focus()").await;
            browser.press(Key::Right).await;
            let scrolled = "document.querySelector('.text .scroll').scrollLeft > 0";
            browser.wait_until(&format!("{page} scrolls at {width}"), scrolled).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn browser_preferences_are_followed() {
    let site = Site::new().await;
    site.board("Growth").await;
    let browser = browser().await;
    browser.run_first("addEventListener('pagereveal', event => { window.moved = event.viewTransition !== null })").await;
    site.sign_in(&browser).await;
    let ground = "return getComputedStyle(document.body).backgroundColor";
    let light = browser.run(ground).await;
    browser.look(1280, "dark").await;
    let dark = browser.run(ground).await;
    assert_ne!(dark, light);
    // The theme that the user has chosen goes before that of the system.
    for (theme, expected) in [("light", &light), ("dark", &dark), ("system", &dark)] {
        site.workspace.owner.patch("/api/users/@me/", json!({ "theme_mode": theme })).await.ok();
        site.visit(&browser, "sessions/").await;
        shown(&browser, "Sessions").await;
        assert_eq!(browser.run(ground).await, *expected, "{theme}");
    }
    for (motion, moved) in [("no-preference", true), ("reduce", false)] {
        browser.prefer(&[("prefers-reduced-motion", motion)]).await;
        // A busy browser may skip a transition.
        let (mut seen, tries) = (Vec::new(), if moved { 20 } else { 1 });
        while seen.len() < tries && !seen.contains(&json!(moved)) {
            go_to(&browser, "nav.side a[href$='/dashboards/']", "Dashboards").await;
            browser.wait_until("the page is revealed", "window.moved !== undefined").await;
            seen.push(browser.run("return window.moved").await);
            go_to(&browser, "nav.side a[href='/console/']", "Home").await;
        }
        assert!(seen.contains(&json!(moved)), "{motion}: {seen:?}");
    }
    browser.prefer(&[("forced-colors", "active")]).await;
    browser.press_with_control('k').await;
    browser.wait_until("the palette is open", "document.getElementById('palette').open").await;
    browser.press(Key::Down).await;
    let differs = "(() => { const ground = (selector) => getComputedStyle(document.querySelector(`#palette ${selector}`)).backgroundColor; \
                   return ground('[aria-selected=true]') !== ground('[aria-selected=false]') })()";
    assert_eq!(browser.run(&format!("return {differs}")).await, true, "the place is not marked");
    assert_sound(&browser, "the palette").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tiles_stand_on_the_grid_of_their_layouts() {
    let site = Site::new().await;
    let board = site.board("Growth").await;
    let browser = site.browser().await;
    let path = format!("projects/1/dashboards/{}/", board["id"]);
    let places = "return [...document.querySelectorAll('.tile')].map(one => { const box = one.getBoundingClientRect(), \
        grid = one.parentElement.getBoundingClientRect(); return [Math.round((box.x - grid.x) / grid.width * 12), \
        Math.round(box.y - grid.y), Math.round(box.width / grid.width * 12), Math.round(box.height)] })";
    browser.look(1280, "light").await;
    site.visit(&browser, &path).await;
    browser.text(".tile h2").await;
    assert_eq!(browser.run(places).await, json!([[0, 0, 6, 250], [6, 0, 6, 250]]));
    browser.look(390, "light").await;
    site.visit(&browser, &path).await;
    browser.text(".tile h2").await;
    let narrow = browser.run(places).await;
    assert_eq!((&narrow[0][0], &narrow[0][2]), (&json!(0), &json!(12)), "{narrow}");
    assert!(narrow[1][1].as_i64() > narrow[0][1].as_i64(), "{narrow}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn navigation_slides_in_on_small_screens() {
    let (site, browser) = Site::signed_in().await;
    browser.look(390, "light").await;
    site.visit(&browser, "sessions/").await;
    browser.text("main h1").await;
    let visible =
        "document.querySelector('nav.side ul a').checkVisibility({ visibilityProperty: true })";
    browser.wait_until("the navigation is hidden", &format!("!{visible}")).await;
    browser.click("header .burger").await;
    browser.wait_until("the navigation is shown", visible).await;
    assert_sound(&browser, "the navigation").await;
    browser.click("nav.side .burger").await;
    browser.wait_until("the navigation is hidden again", &format!("!{visible}")).await;
}
