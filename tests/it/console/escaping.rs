//! Names and texts of users never become markup, on no page.

use serde_json::json;

use crate::support::Workspace;
use crate::support::console::Visitor;

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

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a list of pages")]
async fn hostile_names_are_escaped_on_every_page() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let project = format!("/api/projects/{}/", workspace.made.project_id);
    for attack in ATTACKS {
        owner
            .patch("/api/users/@me/", json!({ "first_name": attack, "last_name": attack }))
            .await
            .ok();
        owner.patch(&workspace.organization(""), json!({ "name": attack })).await.ok();
        owner.patch(&project, json!({ "name": attack })).await.ok();
        let sent = json!({ "name": attack, "description": attack, "tags": [attack] });
        let (board, path) = owner.create(&workspace.dashboards(""), sent).await;
        let tiles = json!([
            { "text": { "body": attack }, "color": attack, "layouts": { "sm": { "x": attack, "w": attack } } },
            { "text": { "body": format!("[a]({attack}) ![b]({attack})") } },
        ]);
        owner.patch(&path, json!({ "tiles": tiles })).await.ok();
        let insight = json!({
            "name": attack, "description": attack, "tags": [attack], "dashboards": [board["id"]],
            "query": { "kind": attack, "series": [{ "event": attack }], attack: attack,
                "dateRange": { "date_from": attack, "date_to": attack } },
        });
        let insight = owner.post(&format!("{project}insights/"), insight).await.ok();
        let insights = format!("/console/projects/{}/insights/", workspace.made.project_id);
        let insight = format!("{insights}{}/", insight["id"]);

        let export = json!({
            "name": attack, "interval": "day", "filters": { attack: attack },
            "destination": { "type": "NoOp", "config": { "arg": attack } },
        });
        let export = owner.post(&format!("{project}batch_exports/"), export).await.ok();
        let exports = format!("/console/projects/{}/batch_exports/", workspace.made.project_id);
        let export = format!("{exports}{}/", export["id"].as_str().expect("an id"));
        let label: String = attack.chars().take(40).collect();
        let sent = json!({ "label": label, "scopes": ["dashboard:read"] });
        let key = owner.post("/api/personal_api_keys/", sent).await.ok();
        let key = key["id"].as_str().expect("an id");

        let mut visitor = Visitor::owner(&workspace).await;
        let link = workspace.app.create_sign_in_link(workspace.made.user_id, false).await;
        let code = link.expect("a link").code;
        let query: String = url::form_urlencoded::byte_serialize(attack.as_bytes()).collect();
        let list = format!("/console/projects/{}/dashboards/", workspace.made.project_id);
        let log = format!("/console/projects/{}/activity/", workspace.made.project_id);
        let of_organization = format!("organizations/{}", workspace.made.organization_id);
        let mut pages = vec![visitor.post("/console/enter/", &[("code", &code)]).await];
        assert!(pages[0].html.contains("alert") || !attack.contains("alert"), "it is shown");
        for path in [
            list.clone(),
            format!("{list}?search={query}&tags={query}"),
            format!("{list}{}/", board["id"]),
            format!("{insights}?search={query}&tags={query}"),
            insight.clone(),
            format!("{insight}edit/"),
            format!("{insight}sharing/"),
            exports.clone(),
            export.clone(),
            format!("{export}delete/"),
            format!("{log}?scope=Dashboard&item_id={}", board["id"]),
            format!("{log}?item_id={query}"),
            format!("{log}fields/?scope=Dashboard&item_id={}", board["id"]),
            log.replace(&format!("projects/{}", workspace.made.project_id), &of_organization),
            "/console/sessions/".to_owned(),
            format!("{list}new/?from=dashboard&dashboard={}", board["id"]),
            format!("{list}new/?from={query}"),
            log.replace("activity/", "access/"),
            format!("/console/projects/{}/settings/", workspace.made.project_id),
            format!("/console/projects/{}/settings/delete/", workspace.made.project_id),
            format!("/console/organizations/{}/projects/", workspace.made.organization_id),
            "/console/".to_owned(),
            "/console/keys/".to_owned(),
            "/console/keys/new/".to_owned(),
            format!("/console/keys/{key}/"),
            format!("/console/keys/{key}/revoke/"),
            format!("/console/organizations/{}/settings/", workspace.made.organization_id),
            format!("/console/organizations/{}/settings/delete/", workspace.made.organization_id),
        ] {
            pages.push(visitor.get(&path).await);
        }
        let form = pages.iter().find(|page| page.html.contains("hogql_query")).expect("a form");
        let form = form.form("form").with("_show", "command").with("destination.config.arg", "x");
        pages.push(visitor.submit(&form.with("filters", &json!([attack]).to_string())).await);
        let shown = owner.get(&path).await.ok();
        for rest in ["edit/", "delete/", "sharing/", "access/", "arrange/", "tiles/new/"] {
            pages.push(visitor.get(&format!("{list}{}/{rest}", board["id"])).await);
        }
        for tile in shown["tiles"].as_array().expect("tiles") {
            let tile = format!("{list}{}/tiles/{}/", board["id"], tile["id"]);
            pages.push(visitor.get(&tile).await);
            pages.push(visitor.get(&format!("{tile}move/")).await);
        }
        for page in &pages {
            assert_eq!(page.status, 200);
            assert_safe(&page.html);
        }
        let refused = visitor.get(&format!("{insights}?date_from={query}")).await;
        assert_eq!(refused.status, 400);
        assert_safe(&refused.html);
        let member = format!("{list}{}/access/", board["id"]);
        let tile = format!("{list}{}/tiles/new/", board["id"]);
        let id = board["id"].to_string();
        let asked = visitor.post(&list, &[("action", "delete"), ("id", &id)]).await;
        assert_safe(&asked.html);
        let deleted = visitor.submit(&asked.form("form")).await;
        let trash = visitor.get(&format!("{list}trash/")).await;
        let restored = visitor.post(&list, &[("action", "restore"), ("id", &id)]).await;
        assert_eq!([deleted.status, trash.status, restored.status], [303, 200, 303]);
        pages = vec![
            trash,
            visitor
                .post(&list, &[("action", "add_tag"), ("tag", attack), ("id", "99"), ("id", &id)])
                .await,
            visitor.post(&list, &[("only", attack), ("from", attack)]).await,
            visitor.post(&tile, &[("tiles.0.text.body", attack), ("_show", "preview")]).await,
            visitor.post(&tile, &[("tiles.0.text.body", attack), ("_show", "command")]).await,
            visitor.get(&format!("{member}?search={query}&member={query}")).await,
            visitor.post(&format!("{member}?form=rule"), &[("role", attack)]).await,
            visitor.post(&member, &[("rule", attack), ("collaborator", attack)]).await,
            visitor.post(&log.replace("activity/", "access/"), &[("kind_rule", attack)]).await,
            Visitor::new(&workspace).get(&format!("/console/sign_in/?next=/console/{query}")).await,
            visitor.get(&format!("/console/{query}")).await,
            visitor.get(&format!("{log}?item_id={query}&user={query}&after={query}")).await,
            visitor.post("/console/sign_in/", &[("key", attack), ("next", attack)]).await,
            visitor.post("/console/enter/", &[("code", attack)]).await,
        ];
        for page in &pages {
            assert_safe(&page.html);
        }
    }
}

#[tokio::test]
async fn hostile_names_of_people_and_roles_are_escaped() {
    let workspace = Workspace::new().await;
    let owner = &workspace.owner;
    let me = workspace.uuid(crate::support::OWNER).await;
    for attack in ATTACKS {
        let names = json!({ "first_name": attack, "last_name": attack });
        owner.patch("/api/users/@me/", names).await.ok();
        let role = owner.post(&workspace.organization("roles/"), json!({ "name": attack })).await;
        let role = role.ok()["id"].as_str().expect("an id").to_owned();
        let memberships = workspace.organization(&format!("roles/{role}/role_memberships/"));
        owner.post(&memberships, json!({ "user_uuid": me })).await.ok();
        let name: String = attack.chars().take(30).collect();
        let invite =
            json!({ "target_email": "ann@x.example", "first_name": name, "message": attack });
        owner.post(&workspace.organization("invites/"), invite).await.ok();
        let visitor = Visitor::owner(&workspace).await;
        let query: String = url::form_urlencoded::byte_serialize(attack.as_bytes()).collect();
        for path in [
            "members/".to_owned(),
            format!("members/?search={query}"),
            format!("members/{me}/"),
            "invites/".to_owned(),
            "roles/".to_owned(),
            format!("roles/{role}/"),
            format!("roles/{role}/?member={query}"),
            format!("roles/{role}/delete/"),
        ] {
            let organization = workspace.made.organization_id;
            let page = visitor.get(&format!("/console/organizations/{organization}/{path}")).await;
            assert_eq!(page.status, 200, "{path}");
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
    assert!(page.html.contains("&#60;script&#62;alert(1)&#60;/script&#62;"));
}
