//! The frame of pages: navigation, switchers and what the palette lists, and what a limited session sees of them.

use crate::support::prelude::*;

#[tokio::test]
async fn frame_shows_the_current_project_and_unknown_pages_say_so() {
    let (workspace, owner) = Visitor::in_new_workspace().await;
    let project = workspace.made.project_id;
    let dashboards = format!("/console/projects/{project}/dashboards/");
    assert_eq!(owner.get(&workspace.page("")).await.location(), dashboards);
    let page = owner.open(&dashboards, "Dashboards").await;
    let current = format!("<a href=\"{dashboards}\" aria-current=\"page\">");
    page.assert_has(&[&current, "<bdi>Corp</bdi><small>Owner</small>"]);
    page.assert_has(&["<bdi>Web</bdi><small>Project 1</small>", "<bdi>Olga</bdi>"]);
    assert!(!page.html.contains("/console/health/"), "only the operator sees the service");
    let unknown = "no/such/page projects/abc/dashboards/ projects/999/dashboards/ \
        projects/1/dashboards/999/ projects/1/dashboards/abc/ \
        projects/1/batch_exports/new/?destination=FTP \
        organizations/01890000-0000-7000-8000-000000000000/ organizations/x/";
    for path in unknown.split(' ') {
        owner.get(&format!("/console/{path}")).await.assert_shows(404, "Not found");
    }
}

#[tokio::test]
async fn switchers_list_the_organizations_and_projects_of_the_user() {
    let workspace = Workspace::new().await;
    let projects = workspace.organization("projects/");
    let beside = workspace.owner.post(&projects, json!({ "name": "Shop" })).await.ok();
    let (_, made) = workspace.outsider("eve").await;
    let (other, other_project) = workspace.second_organization().await;
    let owner = Visitor::owner(&workspace).await;
    let page = owner.get(&format!("/console/projects/{}/dashboards/", beside["id"])).await;
    let organizations = page.between("id=\"organizations\" popover>", "</div>");
    assert!(organizations.contains("<bdi>Corp</bdi>"));
    assert!(organizations.contains("<bdi>Second</bdi>"));
    assert!(!organizations.contains(made["id"].as_str().expect("an id")));
    let projects = page.between("id=\"projects\" popover>", "</div>");
    assert!(projects.contains("<bdi>Web</bdi>"));
    assert!(projects.contains("aria-current=\"true\"><bdi>Shop</bdi>"));
    // A project outside of the current organization shows its own organization.
    let path = format!("/console/projects/{other_project}/dashboards/");
    let page = owner.open(&path, "Dashboards").await;
    page.assert_has(&["<bdi>Second</bdi><small>Owner</small>"]);
    page.part("id=\"projects\" popover>", "</div>").assert_lacks(&["<bdi>Web</bdi>"]);
    // Organizations lead to their first project.
    assert_eq!(owner.get(&format!("/console/organizations/{other}/")).await.location(), path);
}

#[tokio::test]
async fn session_of_a_limited_key_sees_what_the_key_may_see() {
    let workspace = Workspace::new().await;
    let key = workspace.key(OWNER, &["dashboard:read"]).await.key.expect("a key");
    let visitor = Visitor::with_key(&workspace, &key).await;
    visitor.get("/console/").await.assert_shows(200, "Projects");
    let project = workspace.made.project_id;
    let dashboards = format!("/console/projects/{project}/dashboards/");
    assert_eq!(visitor.get(&format!("/console/?project={project}")).await.location(), dashboards);
    visitor.open(&dashboards, "Dashboards").await.assert_lacks(&["Olga", "Corp"]);
    visitor.get("/console/sessions/").await.assert_shows(403, "You do not have access");

    let beside = workspace.owner.post(&workspace.organization("projects/"), json!({})).await.ok();
    let limits = json!({ "projects": [project] });
    let key = workspace.limited_key(OWNER, &["*"], limits).await.key.expect("a key");
    let visitor = Visitor::with_key(&workspace, &key).await;
    visitor.get("/console/").await.assert_shows(200, "Home");
    let page = visitor.get(&format!("/console/projects/{}/dashboards/", beside["id"])).await;
    page.assert_shows(403, "You do not have access");
    visitor.get(&dashboards).await.assert_lacks(&[&format!("/projects/{}/", beside["id"])]);
}

/// Returns the links of the content of a page.
fn links_of_main(page: &Page) -> Vec<String> {
    page.part("<main id=\"main\"", "</main>")
        .links()
        .into_iter()
        .filter(|link| !link.contains("/assets/"))
        .collect()
}

#[tokio::test]
async fn session_of_every_preset_begins_on_a_page_with_a_way_on() {
    let workspace = Workspace::new().await;
    let mut owner = Visitor::with_link(&workspace, false).await;
    let new = owner.get("/console/keys/new/").await;
    let presets = new.html.split("name=\"_preset\" value=\"").skip(1);
    let presets: Vec<_> = presets.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(presets.len(), 4, "{presets:?}");
    for preset in presets {
        let form = owner.submit(&new.form("form").with("_preset", preset)).await.form("form");
        let visitor = Visitor::with_scopes(&workspace, OWNER, &form.values("scopes")).await;
        let home = visitor.get("/console/").await;
        let links = links_of_main(&home);
        assert!(!links.is_empty(), "{preset}: {}", home.html);
        for link in links {
            assert_eq!(visitor.get(&link).await.status, 200, "{preset}: {link}");
        }
    }
}

#[tokio::test]
async fn session_without_the_scope_of_the_user_begins_in_the_first_project_that_it_sees() {
    let workspace = Workspace::new().await;
    let beside = workspace.owner.post(&workspace.organization("projects/"), json!({})).await.ok();
    let beside = beside["id"].as_u64().expect("an id");
    let first = workspace.made.project_id.to_string();
    let scopes: &[&str] = &["dashboard:write", "insight:write", "project:read"];
    let to_one = json!({ "projects": [beside] });
    for (scopes, limits, project) in [
        (scopes, json!({}), first),
        (scopes, to_one.clone(), beside.to_string()),
        (&["dashboard:read"][..], to_one.clone(), beside.to_string()),
        (&["dashboard:read", "user:read"][..], to_one, beside.to_string()),
    ] {
        let key = workspace.limited_key(OWNER, scopes, limits).await.key.expect("a key");
        let home = Visitor::with_key(&workspace, &key).await.open("/console/", "Home").await;
        home.assert_has(&[&format!("/console/projects/{project}/dashboards/")]);
    }
    // The names are unknown, and all projects of the key can be reached.
    let project = workspace.made.project_id;
    let to_two = json!({ "projects": [project, beside] });
    let key = workspace.limited_key(OWNER, &["dashboard:read"], to_two).await.key.expect("a key");
    let home = Visitor::with_key(&workspace, &key).await.get("/console/").await;
    for project in [project.to_string(), beside.to_string()] {
        home.assert_has(&[&format!("href=\"/console/projects/{project}/dashboards/\"")]);
    }
    let scopes = ["organization:read", "organization_member:write"];
    let key = workspace.key(OWNER, &scopes).await.key.expect("a key");
    let home = Visitor::with_key(&workspace, &key).await.open("/console/", "Projects").await;
    let members = workspace.page("members/");
    assert!(links_of_main(&home).contains(&members), "{}", home.html);
    home.assert_has(&["<bdi>Corp</bdi><small>Owner</small>"]);
    let to_one = json!({ "organizations": [workspace.made.organization_id] });
    let scopes = ["organization_member:read"];
    let key = workspace.limited_key(OWNER, &scopes, to_one).await.key.expect("a key");
    let home = Visitor::with_key(&workspace, &key).await.get("/console/").await;
    assert!(links_of_main(&home).contains(&members), "{}", home.html);
}

#[tokio::test]
async fn page_marks_the_links_that_the_palette_lists() {
    let workspace = Workspace::new().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    let owner = Visitor::with_link(&workspace, true).await;
    let page =
        owner.get(&format!("/console/projects/{}/dashboards/", workspace.made.project_id)).await;
    let organization = workspace.page("");
    for (kind, end, href, text) in [
        ("page", "</nav>", "/console/projects/1/dashboards/", "Dashboards"),
        ("page", "</nav>", "/console/sessions/", "Sessions"),
        ("page", "</nav>", "/console/health/", "Health"),
        ("project", "</ul>", "/console/projects/1/dashboards/", "<bdi>Web</bdi>"),
        ("organization", "</ul>", &organization, "<bdi>Corp</bdi>"),
        ("dashboard", "</tbody>", "/console/projects/1/dashboards/1/", "<bdi>Growth</bdi>"),
    ] {
        let part = page.between(&format!(" data-kind=\"{kind}\""), end);
        let link = part.split("<a ").find(|link| link.starts_with(&format!("href=\"{href}\"")));
        let link = link.unwrap_or_else(|| panic!("{href}: {part}"));
        assert!(link.split("</a>").next().unwrap().ends_with(text), "{text}: {link}");
    }
}

#[tokio::test]
async fn page_knows_when_its_session_ends() {
    let (workspace, clock) = Workspace::timed().await;
    let owner = Visitor::owner(&workspace).await;
    let begun = workspace.app.now();
    let ends = |page: &Page| page.between("data-ends=\"", "\"").to_owned();
    let page = owner.get("/console/sessions/").await;
    assert_eq!(ends(&page), begun.plus(Duration::from_hours(12)).to_string());
    clock.advance(Duration::from_hours(1));
    let page = owner.get("/console/sessions/").await;
    assert_eq!(ends(&page), begun.plus(Duration::from_hours(13)).to_string());
}
