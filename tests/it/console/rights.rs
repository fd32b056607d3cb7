//! Who may do what with dashboards and projects, because of which rule, and the public page of a dashboard.

use crate::support::prelude::*;

const ONE: &str = "/console/projects/1/dashboards/1/";
const BOARD: &str = "/console/projects/1/dashboards/1/access/";
const PROJECT: &str = "/console/projects/1/access/";

/// Returns the row of a member.
fn row<'p>(page: &'p Page, name: &str) -> &'p str {
    let mut rows = page.html.split("<tr>").skip(1).map(|row| row.split("</tr>").next().unwrap());
    let row = rows.find(|row| row.contains(&format!("<td><bdi>{name}</bdi></td>")));
    row.unwrap_or_else(|| panic!("no row {name}: {}", page.html))
}

#[tokio::test]
async fn each_member_is_listed_with_the_rule_that_decides() {
    let (workspace, ben) = Workspace::with_member("ben", Level::Member).await;
    workspace.member("cat", Level::Admin).await;
    ben.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    workspace.member("dan", Level::Member).await;
    let (role, path) = add_role(&workspace, "Sales & more").await;
    let role = role["id"].as_str().expect("an id").to_owned();
    add_to_role(&workspace, &path, "dan@corp.example").await;
    let rules = workspace.dashboards("1/access_controls/");
    workspace.owner.put(&rules, json!({ "role": role, "access_level": "viewer" })).await.ok();
    let owner = Visitor::owner(&workspace).await;
    let page = owner.open(BOARD, "Who can see <bdi>Growth</bdi>").await;
    for (name, may, because) in [
        ("Olga", "Manage", "The member is an admin or owner of the organization."),
        ("ben", "Manage", "The member created the dashboard."),
        ("cat", "Manage", "The member is an admin or owner of the organization."),
        ("dan", "View", "A rule on this dashboard gives a role of the member the level viewer."),
    ] {
        let row = row(&page, name);
        assert!(row.contains(&format!(">{may}</span>")) && row.contains(because), "{row}");
    }
    assert!(row(&page, "dan").contains("<bdi>Sales &#38; more</bdi>"));
    let viewers = owner.get(&format!("{BOARD}?access_level=viewer")).await;
    viewers.assert_has(&["<span>1 to 1 of 1</span>"]);
    owner.get(&format!("{BOARD}?search=zzz")).await.assert_has(&["No member matches."]);

    let uuid = workspace.uuid("dan@corp.example").await;
    page.assert_has(&[&format!("{BOARD}?member={uuid}#why")]);
    let why = owner.get(&format!("{BOARD}?member={uuid}")).await;
    let chain = why.between("<ol class=\"why\">", "</ol>");
    assert_eq!(chain.matches("<li").count(), 15);
    assert_eq!(chain.matches("This decides.").count(), 1);
    let hit = chain.split("<li class=\"hit\">").nth(1).expect("the deciding rule");
    assert!(hit.split("</li>").next().unwrap().contains("(Sales &#38; more)"), "{hit}");
    assert!(chain.contains("Not reached."));
    let membership = workspace.membership("dan@corp.example").await;
    assert_eq!(why.form("rule").value("organization_member"), membership.as_str().unwrap());
}

#[tokio::test]
async fn rules_are_set_and_removed() {
    let workspace = Workspace::new().await;
    workspace.member("ben", Level::Member).await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    let (role, _) = add_role(&workspace, "Sales").await;
    let role = role["id"].as_str().expect("an id").to_owned();
    let mut owner = Visitor::owner(&workspace).await;
    let page = owner.get(BOARD).await;
    let form = page.form("rule");
    assert_eq!([form.value("organization_member"), form.value("role")], ["", ""]);
    let ben = workspace.membership("ben@corp.example").await.as_str().expect("an id").to_owned();
    for fields in [
        vec![("access_level", "viewer")],
        vec![("access_level", "editor"), ("role", &role)],
        vec![("access_level", "none"), ("organization_member", &ben)],
    ] {
        let form = fields.iter().fold(form.clone(), |form, (name, text)| form.with(name, text));
        assert_eq!(owner.submit(&form).await.location(), format!("{BOARD}?done=access-saved"));
    }
    let page = owner.get(BOARD).await;
    let table = page.between("aria-label=\"Rules\">", "</table>");
    for (name, level) in [("Everyone", "viewer"), ("Role Sales", "editor"), ("ben", "none")] {
        let row =
            format!("<bdi>{name}</bdi></td><td data-label=\"Level\"><span class=\"tag\">{level}");
        assert!(table.contains(&row), "{row}: {table}");
    }
    let both = form.clone().with("role", &role).with("organization_member", &ben);
    let page = owner.submit(&both.with("access_level", "editor")).await;
    page.assert_shows(400, "Who can see <bdi>Growth</bdi>");
    page.assert_has(&["You can not scope an access control to both"]);
    assert_eq!(page.form("rule").value("role"), role);
    let page = owner.submit(&form).await.showing(400, "Who can see <bdi>Growth</bdi>");
    assert!(page.between("id=\"rule-access_level-error\">", "</p>").contains("required"));
    for subject in [String::new(), format!("role {role}"), format!("member {ben}")] {
        let done = owner.post(BOARD, &[("rule", &subject)]).await;
        assert_eq!(done.location(), format!("{BOARD}?done=rule-removed"));
    }
    let rules = workspace.owner.get(&workspace.dashboards("1/access_controls/")).await.ok();
    assert_eq!(rules["access_controls"], json!([]));
    owner.post(BOARD, &[("x", "y")]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn dashboard_is_restricted_to_collaborators() {
    let workspace = Workspace::new().await;
    let mut ben = Visitor::member(&workspace, "ben", Level::Member).await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let form = owner.get(BOARD).await.assert_lacks(&["Collaborators</h3>"]).form("restriction");
    assert_eq!(form.value("restriction_level"), "21");
    let done = owner.submit(&form.with("restriction_level", "37")).await;
    assert_eq!(done.location(), format!("{BOARD}?done=access-saved"));
    let seen = ben.get(BOARD).await;
    seen.assert_has(&["Only collaborators, the creator and admins edit the dashboard."]);
    seen.assert_lacks(&["id=\"rule\"", "id=\"restriction\"", "id=\"collaborator\""]);
    let page = owner.get(BOARD).await;
    let uuid = workspace.uuid("ben@corp.example").await;
    let form = page.form("collaborator").with("user_uuid", &uuid);
    assert_eq!(owner.submit(&form).await.location(), format!("{BOARD}?done=access-saved"));
    let board = workspace.dashboards("1/collaborators/");
    assert_eq!(workspace.owner.get(&board).await.ok()[0]["level"], 37);
    let seen = ben.get(BOARD).await;
    assert!(row(&seen, "ben").contains(">Edit</span>"), "{}", seen.html);
    assert!(!seen.html.contains("id=\"restriction\""), "collaborators do not lift the restriction");
    let page = owner.get(BOARD).await;
    assert!(!page.html.contains("id=\"collaborator\""), "nobody else only views");
    page.assert_has(&[&format!("name=\"collaborator\" value=\"{uuid}\"")]);
    let done = ben.post(BOARD, &[("collaborator", &uuid)]).await;
    assert_eq!(done.location(), format!("{BOARD}?done=collaborator-removed"));
    let refused = ben.post(BOARD, &[("collaborator", &uuid)]).await;
    refused.assert_shows(403, "Who can see <bdi>Growth</bdi>");
    let path = format!("{BOARD}?form=restriction");
    let sent = [("restriction_level", "21"), ("_before", "{\"restriction_level\":37}")];
    ben.post(&path, &sent).await.assert_shows(403, "Who can see <bdi>Growth</bdi>");
}

#[tokio::test]
async fn project_is_made_private_and_opened_to_members_and_roles() {
    let workspace = Workspace::new().await;
    let mut ben = Visitor::member(&workspace, "ben", Level::Member).await;
    let mut owner = Visitor::owner(&workspace).await;
    let page = owner.open(PROJECT, "Access").await;
    page.assert_has(&["aria-current=\"page\"", "The project is open"]);
    ben.get(PROJECT).await.assert_lacks(&["name=\"everyone\"", "id=\"project\""]);
    let refused = ben.post(PROJECT, &[("everyone", "private")]).await.showing(403, "Access");
    refused.assert_has(&["Must be admin to modify project permissions."]);
    let done = owner.post(PROJECT, &[("everyone", "private")]).await;
    assert_eq!(done.location(), format!("{PROJECT}?done=access-saved"));
    let page = owner.get(PROJECT).await;
    page.assert_has(&["The project is private", "<bdi>Everyone</bdi>"]);
    ben.get(PROJECT).await.assert_shows(403, "You do not have access");
    let id = workspace.membership("ben@corp.example").await.as_str().expect("an id").to_owned();
    let form = page.form("project").with("organization_member", &id).with("access_level", "admin");
    assert_eq!(owner.submit(&form).await.location(), format!("{PROJECT}?done=access-saved"));
    let seen = ben.get(PROJECT).await;
    seen.assert_has(&["id=\"project\""]);
    seen.assert_has(&["<bdi>ben</bdi></td><td data-label=\"Level\"><span class=\"tag\">admin"]);
    seen.assert_lacks(&["id=\"kind\""]);
    let done = owner.post(PROJECT, &[("rule", &format!("member {id}"))]).await;
    assert_eq!(done.location(), format!("{PROJECT}?done=rule-removed"));
    ben.get(PROJECT).await.assert_shows(403, "You do not have access");
    owner.post(PROJECT, &[("everyone", "open")]).await.location();
    assert!(ben.get(PROJECT).await.html.contains("The project is open"));
    owner.post(PROJECT, &[("x", "y")]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn rules_on_kinds_are_a_matrix() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let (role, _) = add_role(&workspace, "Sales").await;
    let role = role["id"].as_str().expect("an id").to_owned();
    let form = owner.get(PROJECT).await.form("kind");
    for fields in [
        vec![("resource", "dashboard"), ("access_level", "viewer")],
        vec![("resource", "insight"), ("access_level", "editor"), ("role", &role)],
    ] {
        let form = fields.iter().fold(form.clone(), |form, (name, text)| form.with(name, text));
        assert_eq!(owner.submit(&form).await.location(), format!("{PROJECT}?done=access-saved"));
    }
    let page = owner.get(PROJECT).await;
    let table = page.between("aria-label=\"Rules on kinds\">", "</table>");
    let head =
        "<th scope=\"col\">For</th><th scope=\"col\">Dashboard</th><th scope=\"col\">Insight</th>";
    assert!(table.contains(head), "{table}");
    assert!(table.contains("<bdi>Everyone</bdi>") && table.contains("<bdi>Role Sales</bdi>"));
    let remove = format!("name=\"kind_rule\" value=\"insight role {role}\"");
    assert!(table.contains(&remove), "{table}");
    let sent = form.clone().with("resource", "activity_log").with("access_level", "manager");
    let page = owner.submit(&sent).await;
    page.assert_shows(400, "Access");
    let error = page.between("id=\"kind-access_level-error\">", "</p>");
    assert!(error.contains("cannot be set above the maximum"), "{error}");
    for rule in ["dashboard ".to_owned(), format!("insight role {role}")] {
        let done = owner.post(PROJECT, &[("kind_rule", &rule)]).await;
        assert_eq!(done.location(), format!("{PROJECT}?done=rule-removed"));
    }
    let rules = workspace.project("resource_access_controls/");
    assert_eq!(workspace.owner.get(&rules).await.ok()["access_controls"], json!([]));
}

#[tokio::test]
async fn public_page_is_enabled_rotated_and_disabled() {
    let workspace = Workspace::new().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    let text = json!({ "tiles": [{ "text": { "body": "Read this" } }] });
    workspace.owner.patch(&workspace.dashboards("1/"), text).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let path = format!("{ONE}sharing/");
    assert!(owner.get(ONE).await.html.contains(&format!("href=\"{path}\"")));
    let page = owner.open(&path, "Sharing of <bdi>Growth</bdi>").await;
    page.assert_has(&["The dashboard is not public"]).assert_lacks(&["/shared/"]);
    page.part("<code dir=\"ltr\">", "</code>").assert_has(&["{&#34;enabled&#34;:true}"]);
    let done = owner.post(&path, &[("action", "enable")]).await;
    assert_eq!(done.location(), format!("{path}?done=page-enabled"));
    let page = owner.get(&path).await;
    let link = page.between("<output id=\"link\">http://localhost", "</output>").to_owned();
    assert_eq!(workspace.anonymous().get(&link).await.status, 200);
    let done = owner.post(&path, &[("action", "rotate"), ("_once", "k")]).await;
    assert_eq!(done.location(), format!("{path}?done=link-replaced"));
    let page = owner.get(&path).await;
    let rotated = page.between("<output id=\"link\">http://localhost", "</output>").to_owned();
    assert_ne!(link, rotated);
    let done = owner.post(&path, &[("action", "disable")]).await;
    assert_eq!(done.location(), format!("{path}?done=page-disabled"));
    for link in [link, rotated] {
        assert_eq!(workspace.anonymous().get(&link).await.status, 404);
    }
    owner.post(&path, &[("action", "evil")]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn users_who_may_not_share_see_why() {
    let (workspace, owner) = Workspace::owned().await;
    let mut ben = Visitor::member(&workspace, "ben", Level::Member).await;
    let sent = json!({ "name": "Growth", "restriction_level": 37 });
    owner.post(&workspace.dashboards(""), sent).await.ok();
    let path = format!("{ONE}sharing/");
    let page = ben.get(&path).await;
    page.assert_has(&["Only users who may edit the dashboard can share it."]);
    page.assert_lacks(&["value=\"enable\""]);
    let page = ben.post(&path, &[("action", "enable")]).await;
    page.assert_shows(403, "Sharing of <bdi>Growth</bdi>");
    let alert = page.between("role=\"alert\">", "</div>");
    assert!(alert.contains("You don&#39;t have edit permissions for this dashboard."), "{alert}");
    owner.patch(&workspace.dashboards("1/"), json!({ "restriction_level": 21 })).await.ok();
    let insights = workspace.project("insights/");
    let sent = json!({ "name": "Pay", "dashboards": [1], "query": { "kind": "TrendsQuery" } });
    let insight = owner.post(&insights, sent).await.ok();
    let rules = format!("{insights}{}/access_controls/", insight["id"]);
    owner.put(&rules, json!({ "access_level": "none" })).await.ok();
    let page = ben.get(&path).await;
    page.assert_has(&["The dashboard shows an insight that you may not view."]);
    page.assert_lacks(&["value=\"enable\""]);
}
