//! Hostile texts in a real browser: what people type stays text, in every field and on every page.

use super::assert_quiet;
use crate::prelude::*;
use crate::support::console::FORM;
use crate::support::crawler::crawl_from;
use crate::support::dns::Reply;
use crate::support::every_text::{Filled, fill};

/// Properties that no page shows: mails show them, they belong to what PostHog's apps compute, or the operation ignores them.
const SHOWN_NOWHERE: [&str; 12] = [
    "bulk 0.message",
    "bulk message",
    "create_from_template_json template.dashboard_filters",
    "create_from_template_json template.tiles",
    "dashboards use_template",
    "domains sso_enforcement",
    "insights filters",
    "invites message",
    "pause hogql_query",
    "pause name",
    "unpause hogql_query",
    "unpause name",
];

/// Properties that accept none of the texts.
const REFUSED: [&str; 13] = [
    "access_controls resource",
    "access_controls resource_id",
    "batch_exports destination.config",
    "batch_exports hogql_query",
    "dashboards duplicate_tiles.0.color",
    "dashboards duplicate_tiles.0.filters_overrides",
    "dashboards duplicate_tiles.0.layouts",
    "dashboards use_template",
    "domains saml_x509_cert",
    "operations scopes.0",
    "personal_api_keys scopes.0",
    "projects session_recording_sample_rate",
    "projects timezone",
];

/// Returns texts that would run a script, add an element or turn the direction if a page took them for more than text. The
/// number tells them apart.
fn hostile(schema: &Value, number: usize) -> Vec<String> {
    let mut texts = match schema["format"].as_str() {
        Some("email" | "idn-email") => {
            vec![
                format!("\"<x-hacked>{number}\"@x.example"),
                format!("'t{number}`${{x}}@x.example"),
            ]
        }
        Some("uuid" | "date-time" | "int64") => Vec::new(),
        _ => vec![
            format!(
                "javascript:hacked()//t{number}t</title></style></textarea><x-hacked><script>hacked()</script>\
                 \"'`<img src=x onerror=hacked()>${{hacked()}}{{{{7919*7907}}}}\u{2028}\u{202e}x"
            ),
            format!("t{number}t\"'><img src=x onerror=hacked()>"),
            format!("t{number}t\"'><x-hacked>"),
            format!("https://t{number}t.example/\"'><x-hacked>"),
            format!("https://t{number}t.example/?'`${{x}}"),
            format!("t{number}t.example"),
            format!("https://t{number}t.example/x"),
            format!("t{number}t@x.example"),
            format!("t{number}t"),
        ],
    };
    let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    texts.retain(|text| text.chars().count() as u64 <= most);
    texts
}

/// Returns the noun and the property in the name of a text: `dashboards tags.0`.
fn property(name: &str) -> String {
    let words: Vec<&str> = name.split(' ').collect();
    let noun = words[1].split('/').rfind(|part| !part.is_empty() && !part.starts_with('{'));
    format!("{} {}", noun.expect("a noun"), words[2])
}

/// A workspace whose texts are hostile.
struct Hostile {
    site: Site,
    filled: Filled,
    project: String,
    pages: BTreeSet<String>,
}

impl Hostile {
    async fn new(dns: &Dns) -> Self {
        let mut config = dns.config();
        config.mail.smtp_url = Some("smtp://127.0.0.1:9".parse().expect("a URL"));
        config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
        let site = Site::with("steward.localhost", config).await;
        let objects = Objects::make(&site.workspace, "corp").await;
        verify_domain(&site, &objects, dns).await;
        let filled = fill(&site.workspace, &objects, hostile).await;
        let project = objects.project().to_owned();
        sign_in_with_agent(&site, &format!("<x-hacked>{}", hostile(&json!({}), 0)[1])).await;
        let visitor = Visitor::with_link(&site.workspace, true).await;
        let organization = format!("/console/organizations/{}/members/", objects.organization());
        let start = [format!("/console/projects/{project}/dashboards/"), organization];
        let start: Vec<&str> = start.iter().map(String::as_str).collect();
        let found = crawl_from(&visitor, &[&start[..], &["/console/"]].concat()).await;
        let mut pages: BTreeSet<_> = found.pages.into_values().flatten().collect();
        let exports = format!("/projects/{project}/batch_exports/");
        let list = site.workspace.owner.get(&format!("/api{exports}?limit=100")).await.ok();
        for export in list["results"].as_array().expect("exports") {
            pages.insert(format!("/console{exports}{}/", export["id"].as_str().expect("an id")));
        }
        // For the trash, whose page is found when it is empty.
        let dashboards = format!("/api/projects/{project}/dashboards/");
        let name = json!({ "name": self::hostile(&json!({}), 0)[0] });
        let deleted = site.workspace.owner.post(&dashboards, name).await.ok();
        let deleted = format!("{dashboards}{}/", deleted["id"]);
        site.workspace.owner.patch(&deleted, json!({ "deleted": true })).await.ok();
        Self { site, filled, project, pages }
    }

    /// Opens what is folded on the page, asserts that all is text, and returns the numbers of the texts that it shows.
    async fn check(&self, browser: &Browser, what: &str) -> Vec<usize> {
        let folded = "document.querySelectorAll('details:not([open])')";
        let asked = browser
            .run(&format!(
                "const asked = [...{folded}].filter(one => one.matches('[data-shown]')); \
                 {folded}.forEach(one => {{ one.open = true }}); return asked.length"
            ))
            .await;
        let answered = "performance.getEntriesByType('resource').filter(one => one.initiatorType === 'fetch').length";
        let filled = "[...document.querySelectorAll('[data-shown=command] [data-result]')].every(one => one.hasChildNodes())";
        browser.wait_until(what, &format!("{answered} >= {asked} && {filled}")).await;
        let texts: Vec<_> = self.filled.stored.iter().map(|(_, text)| text).collect();
        let check = include_str!("hostile.js");
        let found = browser.run(&format!("const texts = {};\n{check}", json!(texts))).await;
        assert_eq!(found[0], json!([]), "{what}");
        assert_quiet(browser, what).await;
        serde_json::from_value(found[1].clone()).expect("numbers")
    }
}

/// Verifies the domain, whose further fields can then be set.
async fn verify_domain(site: &Site, objects: &Objects, dns: &Dns) {
    let path = objects.fill("/api/organizations/{organization_id}/domains/{id}/");
    let domain = site.workspace.owner.get(&path).await.ok();
    let text = |name: &str| domain[name].as_str().expect("a text").to_owned();
    let name = format!("_posthog-challenge.{}.", text("domain"));
    dns.set(&name, Reply::texts(&[&[text("verification_challenge").as_str()]]));
    site.workspace.owner.post(&format!("{path}verify/"), json!({})).await.ok();
}

async fn sign_in_with_agent(site: &Site, agent: &str) {
    let headers = [FORM[0], FORM[1], ("user-agent", agent)];
    let form = format!("key={}", site.workspace.made.api_key);
    let nobody = Visitor::new(&site.workspace);
    nobody.fetch(axum::http::Method::POST, "/console/sign_in/", &headers, &form).await.location();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_every_property_stay_text_on_every_page() {
    let dns = Dns::start().await;
    let hostile = Hostile::new(&dns).await;
    let browser = browser().await;
    browser.run_first("window.ran = []; window.hacked = what => ran.push(what)").await;
    hostile.site.sign_in_by_link(&browser).await;
    let mut seen = BTreeSet::new();
    for page in &hostile.pages {
        browser.visit(&format!("{}{page}", hostile.site.base)).await;
        browser.text("h1").await;
        seen.extend(hostile.check(&browser, page).await);
    }
    let stored = hostile.filled.stored.iter().map(|(name, _)| property(name));
    let (stored, mut hidden): (Vec<_>, BTreeSet<_>) = (stored.clone().collect(), stored.collect());
    for at in seen {
        hidden.remove(&stored[at]);
    }
    palette_and_conflict(&hostile, &browser).await;
    let refused: BTreeSet<_> = hostile.filled.refused.iter().map(|name| property(name)).collect();
    let listed = (SHOWN_NOWHERE.map(str::to_owned).into(), REFUSED.map(str::to_owned).into());
    assert_eq!((hidden, refused), listed);
}

/// Checks what no link leads to: the palette, and a form that somebody else has overtaken.
async fn palette_and_conflict(hostile: &Hostile, browser: &Browser) {
    let list = format!("projects/{}/dashboards/", hostile.project);
    hostile.site.visit(browser, &list).await;
    browser.text("main h1").await;
    browser.press_with_control('k').await;
    let offered = "[...document.querySelectorAll('#palette [role=option]')].some(one => \
                   one.checkVisibility() && one.textContent.includes('<x-hacked>'))";
    browser.wait_until("the palette shows hostile names", offered).await;
    hostile.check(browser, "the palette").await;

    let api = format!("/api/{list}");
    let board = hostile.site.workspace.owner.get(&api).await.ok()["results"][0].clone();
    let path = format!("{api}{}/", board["id"]);
    hostile.site.visit(browser, &format!("{list}{}/edit/", board["id"])).await;
    browser.fill("#form-description", "Mine <x-hacked>").await;
    let theirs = json!({ "description": self::hostile(&json!({}), 999_999)[0] });
    hostile.site.workspace.owner.patch(&path, theirs).await.ok();
    browser.click("#form button.go").await;
    assert!(browser.text("#form table tbody").await.contains("t999999t</title>"));
    hostile.check(browser, "a conflict").await;
    assert_sound(browser, "a conflict").await;
    browser.click("#form button.go").await;
    let title = json!(format!("{} · Steward", board["name"].as_str().expect("a name")));
    browser.wait_until("the title is the name", &format!("document.title === {title}")).await;
}
