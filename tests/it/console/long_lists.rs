//! Choices and lists of organizations and projects with more than a page shows at once.

use crate::support::prelude::*;

const ACCESS: &str = "/console/projects/1/dashboards/1/access/";

/// Adds members `m000`, `m001` and so on, without keys.
async fn add_members(workspace: &Workspace, count: usize) {
    let add = |number: usize| {
        workspace.run_operation(Operation::UserCreate(UserOptions {
            email: format!("m{number:03}@corp.example"),
            first_name: format!("m{number:03}"),
            last_name: String::new(),
            organization: Some(workspace.made.organization_id),
            level: Level::Member,
            existing: false,
        }))
    };
    join_all((0..count).map(add)).await;
}

/// Returns the ids of the memberships with these addresses.
async fn memberships(workspace: &Workspace, count: usize) -> Vec<Value> {
    let path = workspace.organization("members/?limit=1000&order=joined_at&search=m");
    let found = workspace.owner.get(&path).await.ok();
    let members = found["results"].as_array().expect("members").iter();
    let members = members.filter(|one| one["user"]["first_name"] != "Olga");
    members.take(count).map(|one| one["id"].clone()).collect()
}

async fn post_all(caller: &TestClient, path: &str, bodies: Vec<Value>) {
    for made in join_all(bodies.into_iter().map(|body| caller.post(path, body))).await {
        made.ok();
    }
}

/// Returns the number of values that a select offers.
fn offered(page: &Page, id: &str) -> usize {
    let options = page.between(&format!("<select id=\"{id}\""), "</select>");
    options.matches("<option ").count() - options.matches("<option value=\"\"").count()
}

#[tokio::test]
async fn forms_take_the_id_of_a_dashboard_if_there_are_too_many_to_offer() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let list = workspace.dashboards("");
    post_all(&workspace.owner, &list, (0..500).map(|n| json!({ "name": n })).collect()).await;
    let text = json!([{ "text": { "body": "One" } }]);
    let board = workspace.owner.patch(&workspace.dashboards("1/"), json!({ "tiles": text })).await;
    let tile = board.ok()["tiles"][0]["id"].clone();
    let new_insight = "/console/projects/1/insights/new/";
    let copy = "/console/projects/1/dashboards/new/?from=dashboard";
    let move_tile = format!("/console/projects/1/dashboards/1/tiles/{tile}/move/");
    let page = owner.get(new_insight).await;
    assert_eq!(page.html.matches("type=\"checkbox\" name=\"dashboards\"").count(), 500);
    assert_eq!(offered(&owner.get(copy).await, "form-use_dashboard"), 500);
    assert_eq!(offered(&owner.get(&move_tile).await, "form-toDashboard"), 499);

    let last = workspace.owner.post(&list, json!({ "name": "Last" })).await.ok()["id"].clone();
    for (path, id, hint) in [
        (new_insight, "dashboards", "The IDs of those that show the insight. One on each line."),
        (copy, "use_dashboard", "The ID of the dashboard, which is in the URL of its page."),
        (&move_tile, "toDashboard", "The ID of a dashboard that you may edit."),
    ] {
        let page = owner.get(path).await;
        page.assert_has(&[hint]).assert_lacks(&[&format!("<select id=\"form-{id}\"")]);
        page.assert_lacks(&["type=\"checkbox\" name=\"dashboards\""]);
    }
    let form = owner.get(new_insight).await.form("form").with("name", "Visitors");
    let form = form.with("dashboards", &last.to_string());
    let made = owner.submit(&form).await.location().replace("?done=insight-created", "");
    let stored = workspace.owner.get(&made.replace("/console/", "/api/")).await.ok();
    assert_eq!(stored["dashboards"], json!([last]));
    let form = owner.get(&move_tile).await.form("form").with("toDashboard", &last.to_string());
    let done = owner.submit(&form).await;
    assert_eq!(done.location(), "/console/projects/1/dashboards/1/?done=tile-moved");
    let form = owner.get(copy).await.form("form").with("name", "Copy");
    let form = form.with("use_dashboard", &last.to_string());
    assert!(owner.submit(&form).await.location().ends_with("?done=dashboard-created"));
}

#[tokio::test]
async fn member_of_a_large_organization_is_found_for_a_rule_and_as_a_collaborator() {
    let workspace = Workspace::new().await;
    add_members(&workspace, 501).await;
    let board = json!({ "name": "Growth", "restriction_level": 37 });
    workspace.owner.post(&workspace.dashboards(""), board).await.ok();
    let made = workspace.owner.post("/api/projects/1/insights/", json!({ "name": "I" })).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let of_insight = format!("/console/projects/1/insights/{}/access/", made["id"]);
    let project = "/console/projects/1/access/";
    let of_m000 = workspace.membership("m000@corp.example").await;
    let of_m000 = of_m000.as_str().expect("an id");
    for (path, form) in
        [(ACCESS, "rule"), (&of_insight, "rule"), (project, "project"), (project, "kind")]
    {
        let page = owner.get(path).await;
        page.assert_has(&["There are more members than the choice below can show."]);
        let found = owner.get(&format!("{path}?subject=m000")).await;
        let choice = format!("<option value=\"{of_m000}\">m000, m000@corp.example</option>");
        found.assert_has(&[&choice]);
        assert_eq!(offered(&found, &format!("{form}-organization_member")), 1, "{path}");
        let level = if form == "project" { "member" } else { "viewer" };
        let form = found.form(form).with("organization_member", of_m000);
        let form = form.with("access_level", level).with("resource", "dashboard");
        assert!(owner.submit(&form).await.location().contains("done=access-saved"), "{path}");
    }
    // A member whose access is explained is offered, although the search would not find it.
    let uuid = workspace.uuid("m001@corp.example").await;
    let page = owner.get(&format!("{ACCESS}?member={uuid}&subject=m000")).await;
    let of_m001 = workspace.membership("m001@corp.example").await;
    assert_eq!(page.form("rule").value("organization_member"), of_m001.as_str().expect("an id"));
    page.assert_has(&["m001, m001@corp.example</option>"]);

    let uuid = workspace.uuid("m000@corp.example").await;
    let page = owner.get(ACCESS).await;
    assert_eq!(offered(&page, "collaborator-user_uuid"), 100);
    let none = owner.get(&format!("{ACCESS}?candidate=zzz")).await;
    none.assert_has(&["No member who may view but not edit matches."]);
    let page = owner.get(&format!("{ACCESS}?candidate=m000")).await;
    assert_eq!(offered(&page, "collaborator-user_uuid"), 1);
    let form = page.form("collaborator").with("user_uuid", &uuid);
    assert_eq!(owner.submit(&form).await.location(), format!("{ACCESS}?done=access-saved"));
    let added = workspace.owner.get(&workspace.dashboards("1/collaborators/")).await.ok();
    assert_eq!(added[0]["user_uuid"], uuid);
}

#[tokio::test]
async fn form_of_a_rule_takes_the_id_of_a_role_if_there_are_too_many_to_offer() {
    let workspace = Workspace::configured(|config| config.caps.max_roles = 501).await;
    let roles = workspace.organization("roles/");
    let all = (0..501).map(|number| json!({ "name": format!("r{number:03}") })).collect();
    post_all(&workspace.owner, &roles, all).await;
    let last = workspace.owner.get(&format!("{roles}?limit=1&offset=500&basic=true")).await.ok();
    let last = last["results"][0]["id"].as_str().expect("an id").to_owned();
    let mut owner = Visitor::owner(&workspace).await;
    let project = "/console/projects/1/access/";
    let page = owner.get(project).await;
    page.assert_has(&["The ID of the role, which is in the URL of its page."]);
    page.assert_lacks(&["<select id=\"project-role\""]);
    let form = page.form("project").with("role", &last).with("access_level", "member");
    assert_eq!(owner.submit(&form).await.location(), format!("{project}?done=access-saved"));
    let rules = workspace.owner.get(&workspace.access_controls()).await.ok();
    assert_eq!(rules["access_controls"][0]["role"], last);
}

#[tokio::test]
async fn long_lists_of_rules_and_collaborators_have_pages_of_their_own() {
    let workspace = Workspace::new().await;
    add_members(&workspace, 60).await;
    let board = json!({ "name": "Growth", "restriction_level": 37 });
    workspace.owner.post(&workspace.dashboards(""), board).await.ok();
    let members = memberships(&workspace, 60).await;
    for member in &members {
        let rule = |level| json!({ "organization_member": member, "access_level": level });
        workspace.owner.put(&workspace.dashboards("1/access_controls/"), rule("viewer")).await.ok();
        workspace.owner.put(&workspace.access_controls(), rule("member")).await.ok();
    }
    for number in 0..60 {
        let uuid = workspace.uuid(&format!("m{number:03}@corp.example")).await;
        let collaborator = json!({ "user_uuid": uuid, "level": 37 });
        workspace.owner.post(&workspace.dashboards("1/collaborators/"), collaborator).await.ok();
    }
    let owner = Visitor::owner(&workspace).await;
    let rows =
        |page: &Page| page.between("aria-label=\"Rules\">", "</table>").matches("<tr>").count() - 1;
    let collaborators = |page: &Page| page.html.matches("name=\"collaborator\"").count();
    let page = owner.get(ACCESS).await;
    assert_eq!((rows(&page), collaborators(&page)), (50, 50));
    page.assert_has(&[&format!("rel=\"next\" href=\"{ACCESS}?rules=50#rules\"")]);
    page.assert_has(&[&format!("rel=\"next\" href=\"{ACCESS}?collaborators=50#restricted\"")]);
    let page = owner.get(&format!("{ACCESS}?rules=50&search=m00")).await;
    assert_eq!((rows(&page), collaborators(&page)), (10, 50));
    page.assert_has(&["<span>51 to 60 of 60</span>"]);
    page.assert_has(&[&format!("rel=\"prev\" href=\"{ACCESS}?search=m00#rules\"")]);
    let page = owner.get(&format!("{ACCESS}?collaborators=50")).await;
    assert_eq!((rows(&page), collaborators(&page)), (50, 10));
    for list in ["rules", "collaborators"] {
        let beyond = owner.get(&format!("{ACCESS}?{list}=100")).await;
        assert_eq!(beyond.location(), format!("{ACCESS}?{list}=50"));
    }
    let project = "/console/projects/1/access/";
    let page = owner.get(project).await;
    assert_eq!(rows(&page), 50);
    page.assert_has(&[&format!("rel=\"next\" href=\"{project}?rules=50#rules\"")]);
    assert_eq!(rows(&owner.get(&format!("{project}?rules=50")).await), 10);
}
