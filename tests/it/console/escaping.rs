//! Names and texts of users never become markup, on no page.

use serde_json::json;

use crate::support::Workspace;
use crate::support::console::Visitor;
use crate::support::crawler::crawl;

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

#[test]
fn tags_are_found_without_the_values_of_their_attributes() {
    let html = "a < b <p class=\"x > y\" onload=z>\" onfocus=1</p><br>";
    assert_eq!(tags(html), ["p class= onload=z", "br"]);
}

/// Gives this name to the user, the organization, the project and one object of each kind. Returns the ids of the dashboard
/// and of the batch export.
async fn name_everything(workspace: &Workspace, attack: &str) -> [String; 2] {
    let owner = &workspace.owner;
    let project = format!("/api/projects/{}/", workspace.made.project_id);
    let names = json!({ "first_name": attack, "last_name": attack });
    owner.patch("/api/users/@me/", names).await.ok();
    for path in [workspace.organization(""), project.clone()] {
        owner.patch(&path, json!({ "name": attack })).await.ok();
    }
    let sent = json!({ "name": attack, "description": attack, "tags": [attack] });
    let (board, path) = owner.create(&workspace.dashboards(""), sent).await;
    let body = format!("{attack}\n\n[a]({attack}) ![b]({attack})");
    let layouts = json!({ "sm": { "x": attack, "w": attack } });
    let tiles = json!([{ "text": { "body": body }, "color": attack, "layouts": layouts }]);
    owner.patch(&path, json!({ "tiles": tiles })).await.ok();
    let insight = json!({
        "name": attack, "description": attack, "tags": [attack], "dashboards": [board["id"]],
        "query": { "kind": attack, "series": [{ "event": attack }], attack: attack,
            "dateRange": { "date_from": attack, "date_to": attack } },
    });
    owner.create(&format!("{project}insights/"), insight).await;
    let export = json!({
        "name": attack, "interval": "day", "filters": { attack: attack },
        "destination": { "type": "NoOp", "config": { "arg": attack } },
    });
    let (export, _) = owner.create(&format!("{project}batch_exports/"), export).await;
    let first = |count: usize| attack.chars().take(count).collect::<String>();
    let key = json!({ "label": first(40), "scopes": ["dashboard:read"] });
    owner.create("/api/personal_api_keys/", key).await;
    let (_, role) =
        owner.create(&workspace.organization("roles/"), json!({ "name": attack })).await;
    let me = json!({ "user_uuid": workspace.uuid(crate::support::OWNER).await });
    owner.post(&format!("{role}role_memberships/"), me).await.ok();
    let invite =
        json!({ "target_email": "ann@x.example", "first_name": first(30), "message": attack });
    owner.create(&workspace.organization("invites/"), invite).await;
    [board["id"].to_string(), export["id"].as_str().expect("an id").to_owned()]
}

#[tokio::test]
async fn hostile_names_are_escaped_on_every_page() {
    for attack in ATTACKS {
        let workspace = Workspace::new().await;
        let [board, export] = name_everything(&workspace, attack).await;
        let project = format!("/console/projects/{}/", workspace.made.project_id);
        let (list, log) = (format!("{project}dashboards/"), format!("{project}activity/"));
        let of_organization = format!("/console/organizations/{}/", workspace.made.organization_id);
        let mut visitor = Visitor::owner(&workspace).await;
        let link = workspace.app.create_sign_in_link(workspace.made.user_id, false).await;
        let code = link.expect("a link").code;
        let mut pages = vec![visitor.post("/console/enter/", &[("code", &code)]).await];
        assert!(pages[0].html.contains("alert") || !attack.contains("alert"), "it is shown");
        let found = crawl(&visitor).await.pages;
        assert!(found.len() > 30, "{:?}", found.keys());
        for path in found.values().flatten() {
            assert_safe(&visitor.get(path).await.html);
        }
        let query: String = url::form_urlencoded::byte_serialize(attack.as_bytes()).collect();
        for path in [
            format!("{list}?search={query}&tags={query}"),
            format!("{list}new/?from={query}"),
            format!("{project}insights/?search={query}&tags={query}"),
            format!("{log}?item_id={query}"),
            format!("{log}fields/?scope=Dashboard&item_id={board}"),
            format!("{of_organization}members/?search={query}"),
        ] {
            pages.push(visitor.get(&path).await);
        }
        let form = visitor.get(&format!("{project}batch_exports/{export}/")).await.form("form");
        let form = form.with("_show", "command").with("destination.config.arg", "x");
        pages.push(visitor.submit(&form.with("filters", &json!([attack]).to_string())).await);
        for page in &pages {
            assert_eq!(page.status, 200);
            assert_safe(&page.html);
        }
        let refused = visitor.get(&format!("{project}insights/?date_from={query}")).await;
        assert_eq!(refused.status, 400);
        assert_safe(&refused.html);
        let access = format!("{project}access/");
        let (member, tile) =
            (format!("{list}{board}/access/"), format!("{list}{board}/tiles/new/"));
        let asked = visitor.post(&list, &[("action", "delete"), ("id", &board)]).await;
        assert_safe(&asked.html);
        let deleted = visitor.submit(&asked.form("form")).await;
        let trash = visitor.get(&format!("{list}trash/")).await;
        let restored = visitor.post(&list, &[("action", "restore"), ("id", &board)]).await;
        assert_eq!([deleted.status, trash.status, restored.status], [303, 200, 303]);
        pages = vec![trash];
        for (path, sent) in [
            (&*list, &[("action", "add_tag"), ("tag", attack), ("id", "99"), ("id", &board)][..]),
            (&list, &[("only", attack), ("from", attack)]),
            (&tile, &[("tiles.0.text.body", attack), ("_show", "preview")]),
            (&tile, &[("tiles.0.text.body", attack), ("_show", "command")]),
            (&format!("{member}?form=rule"), &[("role", attack)]),
            (&member, &[("rule", attack), ("collaborator", attack)]),
            (&access, &[("kind_rule", attack)]),
            ("/console/sign_in/", &[("key", attack), ("next", attack)]),
            ("/console/enter/", &[("code", attack)]),
        ] {
            pages.push(visitor.post(path, sent).await);
        }
        for path in [
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
        let headers = [
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("user-agent", attack),
        ];
        let form = format!("key={}", workspace.made.api_key);
        nobody
            .fetch(axum::http::Method::POST, "/console/sign_in/", &headers, &form)
            .await
            .location();
    }
    let page = Visitor::owner(&workspace).await.get("/console/sessions/").await;
    assert_safe(&page.html);
    page.assert_has(&["&#60;script&#62;alert(1)&#60;/script&#62;"]);
}
