//! Texts of requests never become markup, on no page. The browser of the system tests reads pages with hostile stored texts.

use crate::support::prelude::*;

/// Markup for each context of a page: text, attributes, styles, scripts and commands.
const ATTACKS: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' autofocus onfocus='alert(1)",
    "</title></style><svg onload=alert(1)>",
    "{{ 7919*7907 }}{% raw %}${7919*7907}",
    "javascript:alert(1)",
    "'; rm -rf /; $(id) `id` \\",
];

/// Returns the tags of a page, without the values of their attributes.
fn tags(html: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut in_tag, mut in_value) = (false, false);
    let mut rest = html.chars().peekable();
    while let Some(one) = rest.next() {
        match one {
            '<' if !in_tag && rest.peek().is_some_and(char::is_ascii_alphabetic) => {
                in_tag = true;
                found.push(String::new());
            }
            '>' if in_tag && !in_value => in_tag = false,
            '"' if in_tag => in_value = !in_value,
            one if in_tag && !in_value => found.last_mut().expect("a tag").push(one),
            _ => {}
        }
    }
    found
}

fn assert_safe(html: &str) {
    for markup in ["<script>alert", "<img", "<svg onload", "href=\"javascript:"] {
        assert!(!html.contains(markup), "{markup}: {html}");
    }
    for tag in tags(html) {
        let is_event = |name: &str| name.starts_with("on") || name.starts_with("autofocus=");
        assert!(!tag.split_whitespace().any(is_event), "{tag}: {html}");
    }
    assert!(!html.contains("62615533"), "a template was evaluated");
}

#[tokio::test]
async fn hostile_texts_of_requests_are_escaped_on_every_page() {
    for attack in ATTACKS {
        let workspace = Workspace::new().await;
        let (board, _) = workspace.owner.create(&workspace.dashboards(""), json!({})).await;
        let board = board["id"].to_string();
        let export = nowhere("Nightly");
        let export = workspace.owner.post("/api/projects/1/batch_exports/", export).await.ok();
        let project = "/console/projects/1/";
        let (list, log) = (format!("{project}dashboards/"), format!("{project}activity/"));
        let of_organization = workspace.page("");
        let mut visitor = Visitor::owner(&workspace).await;
        let query: String = url::form_urlencoded::byte_serialize(attack.as_bytes()).collect();
        let export = format!("{project}batch_exports/{}/", export["id"].as_str().expect("an id"));
        let form = visitor.get(&export).await.form("form").with("_show", "command");
        let form = form.with("destination.config.arg", "x");
        let filters = json!([attack]).to_string();
        let mut pages = vec![visitor.submit(&form.with("filters", &filters)).await];
        for path in [
            format!("{list}?search={query}&tags={query}"),
            format!("{list}new/?from={query}"),
            format!("{project}insights/?search={query}&tags={query}"),
            format!("{log}?item_id={query}"),
            format!("{of_organization}members/?search={query}"),
        ] {
            pages.push(visitor.get(&path).await);
        }
        for page in &pages {
            assert_eq!(page.status, 200);
        }
        let (member, tile) =
            (format!("{list}{board}/access/"), format!("{list}{board}/tiles/new/"));
        for (path, sent) in [
            (&*list, &[("action", "add_tag"), ("tag", attack), ("id", "99"), ("id", &board)][..]),
            (&list, &[("only", attack), ("from", attack)]),
            (&tile, &[("tiles.0.text.body", attack), ("_show", "preview")]),
            (&tile, &[("tiles.0.text.body", attack), ("_show", "command")]),
            (&format!("{member}?form=rule"), &[("role", attack)]),
            (&member, &[("rule", attack), ("collaborator", attack)]),
            (&format!("{project}access/"), &[("kind_rule", attack)]),
            ("/console/sign_in/", &[("key", attack), ("next", attack)]),
            ("/console/enter/", &[("code", attack)]),
        ] {
            pages.push(visitor.post(path, sent).await);
        }
        for path in [
            format!("{project}insights/?date_from={query}"),
            format!("{member}?search={query}&member={query}"),
            format!("/console/{query}"),
            format!("{log}?item_id={query}&user={query}&after={query}"),
        ] {
            pages.push(visitor.get(&path).await);
        }
        let next = format!("/console/sign_in/?next=/console/{query}");
        pages.push(Visitor::new(&workspace).get(&next).await);
        for page in &pages {
            assert_safe(&page.html);
        }
    }
}

#[tokio::test]
async fn hostile_user_agents_are_escaped_in_the_list_of_sessions() {
    let workspace = Workspace::new().await;
    let nobody = Visitor::new(&workspace);
    for attack in ATTACKS {
        let headers = [FORM[0], FORM[1], ("user-agent", attack)];
        let form = format!("key={}", workspace.made.api_key);
        nobody.fetch(Method::POST, "/console/sign_in/", &headers, &form).await.location();
    }
    let page = Visitor::owner(&workspace).await.get("/console/sessions/").await;
    assert_safe(&page.html);
    page.assert_has(&["&#60;script&#62;alert(1)&#60;/script&#62;"]);
}
