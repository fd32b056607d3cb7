//! Who sees a project, and the rules on all objects of a kind.

use serde_json::json;
use steward::testing::resources::members::Level;

use crate::support::Workspace;
use crate::support::console::Visitor;
use crate::support::roles::add_role;

const PATH: &str = "/console/projects/1/access/";

#[tokio::test]
async fn project_is_made_private_and_opened_to_members_and_roles() {
    let workspace = Workspace::new().await;
    let mut ben = Visitor::member(&workspace, "ben", Level::Member).await;
    let mut owner = Visitor::owner(&workspace).await;
    owner.open(PATH, "Access").await.assert_has(&["aria-current=\"page\"", "The project is open"]);
    ben.get(PATH).await.assert_lacks(&["name=\"everyone\"", "id=\"project\""]);
    let refused = ben.post(PATH, &[("everyone", "private")]).await.showing(403, "Access");
    refused.assert_has(&["Must be admin to modify project permissions."]);
    let done = owner.post(PATH, &[("everyone", "private")]).await;
    assert_eq!(done.location(), format!("{PATH}?done=access-saved"));
    let page = owner.get(PATH).await;
    page.assert_has(&["The project is private", "<bdi>Everyone</bdi>"]);
    ben.get(PATH).await.assert_shows(403, "You do not have access");
    let id = workspace.membership("ben@corp.example").await.as_str().expect("an id").to_owned();
    let form = page.form("project").with("organization_member", &id).with("access_level", "admin");
    assert_eq!(owner.submit(&form).await.location(), format!("{PATH}?done=access-saved"));
    let seen = ben.get(PATH).await;
    seen.assert_has(&["id=\"project\""]);
    seen.assert_has(&["<bdi>ben</bdi></td><td data-label=\"Level\"><span class=\"tag\">admin"]);
    seen.assert_lacks(&["id=\"kind\""]);
    let done = owner.post(PATH, &[("rule", &format!("member {id}"))]).await;
    assert_eq!(done.location(), format!("{PATH}?done=rule-removed"));
    ben.get(PATH).await.assert_shows(403, "You do not have access");
    owner.post(PATH, &[("everyone", "open")]).await.location();
    assert!(ben.get(PATH).await.html.contains("The project is open"));
    owner.post(PATH, &[("x", "y")]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn rules_on_kinds_are_a_matrix() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let (role, _) = add_role(&workspace, "Sales").await;
    let role = role["id"].as_str().expect("an id").to_owned();
    let form = owner.get(PATH).await.form("kind");
    for fields in [
        vec![("resource", "dashboard"), ("access_level", "viewer")],
        vec![("resource", "insight"), ("access_level", "editor"), ("role", &role)],
    ] {
        let form = fields.iter().fold(form.clone(), |form, (name, text)| form.with(name, text));
        assert_eq!(owner.submit(&form).await.location(), format!("{PATH}?done=access-saved"));
    }
    let page = owner.get(PATH).await;
    let table = page.between("aria-label=\"Rules on kinds\">", "</table>");
    let head =
        "<th scope=\"col\">For</th><th scope=\"col\">Dashboard</th><th scope=\"col\">Insight</th>";
    assert!(table.contains(head), "{table}");
    assert!(table.contains("<bdi>Everyone</bdi>") && table.contains("<bdi>Role Sales</bdi>"));
    let remove = format!("name=\"kind_rule\" value=\"insight role {role}\"");
    assert!(table.contains(&remove), "{table}");
    let page = owner
        .submit(&form.clone().with("resource", "activity_log").with("access_level", "manager"))
        .await;
    page.assert_shows(400, "Access");
    let error = page.between("id=\"kind-access_level-error\">", "</p>");
    assert!(error.contains("cannot be set above the maximum"), "{error}");
    for rule in ["dashboard ".to_owned(), format!("insight role {role}")] {
        let done = owner.post(PATH, &[("kind_rule", &rule)]).await;
        assert_eq!(done.location(), format!("{PATH}?done=rule-removed"));
    }
    let rules = format!("/api/projects/{}/resource_access_controls/", workspace.made.project_id);
    assert_eq!(workspace.owner.get(&rules).await.ok()["access_controls"], json!([]));
}
