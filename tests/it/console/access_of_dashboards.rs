//! Who may do what with a dashboard, because of which rule.

use serde_json::json;
use steward::testing::resources::members::Level;

use crate::support::Workspace;
use crate::support::console::{Page, Visitor};
use crate::support::roles::{add_role, add_to_role};

const PATH: &str = "/console/projects/1/dashboards/1/access/";

/// Returns the row of a member.
fn row<'p>(page: &'p Page, name: &str) -> &'p str {
    let mut rows = page.html.split("<tr>").skip(1).map(|row| row.split("</tr>").next().unwrap());
    let row = rows.find(|row| row.contains(&format!("<td><bdi>{name}</bdi></td>")));
    row.unwrap_or_else(|| panic!("no row {name}: {}", page.html))
}

#[tokio::test]
async fn each_member_is_listed_with_the_rule_that_decides() {
    let workspace = Workspace::new().await;
    let ben = workspace.member("ben", Level::Member).await;
    workspace.member("cat", Level::Admin).await;
    ben.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    workspace.member("dan", Level::Member).await;
    let (role, path) = add_role(&workspace, "Sales & more").await;
    let role = role["id"].as_str().expect("an id").to_owned();
    add_to_role(&workspace, &path, "dan@corp.example").await;
    let rules = workspace.dashboards("1/access_controls/");
    workspace.owner.put(&rules, json!({ "role": role, "access_level": "viewer" })).await.ok();
    let owner = Visitor::owner(&workspace).await;
    let page = owner.open(PATH, "Who can see <bdi>Growth</bdi>").await;
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
    let viewers = owner.get(&format!("{PATH}?access_level=viewer")).await;
    viewers.assert_has(&["<span>1 to 1 of 1</span>"]);
    owner.get(&format!("{PATH}?search=zzz")).await.assert_has(&["No member matches."]);

    let uuid = workspace.uuid("dan@corp.example").await;
    page.assert_has(&[&format!("{PATH}?member={uuid}#why")]);
    let why = owner.get(&format!("{PATH}?member={uuid}")).await;
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
    let page = owner.get(PATH).await;
    let form = page.form("rule");
    assert_eq!([form.value("organization_member"), form.value("role")], ["", ""]);
    let ben = workspace.membership("ben@corp.example").await.as_str().expect("an id").to_owned();
    for fields in [
        vec![("access_level", "viewer")],
        vec![("access_level", "editor"), ("role", &role)],
        vec![("access_level", "none"), ("organization_member", &ben)],
    ] {
        let form = fields.iter().fold(form.clone(), |form, (name, text)| form.with(name, text));
        assert_eq!(owner.submit(&form).await.location(), format!("{PATH}?done=access-saved"));
    }
    let page = owner.get(PATH).await;
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
        let done = owner.post(PATH, &[("rule", &subject)]).await;
        assert_eq!(done.location(), format!("{PATH}?done=rule-removed"));
    }
    let rules = workspace.owner.get(&workspace.dashboards("1/access_controls/")).await.ok();
    assert_eq!(rules["access_controls"], json!([]));
    owner.post(PATH, &[("x", "y")]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn dashboard_is_restricted_to_collaborators() {
    let workspace = Workspace::new().await;
    let mut ben = Visitor::member(&workspace, "ben", Level::Member).await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let page = owner.get(PATH).await;
    page.assert_lacks(&["Collaborators</h3>"]);
    let form = page.form("restriction");
    assert_eq!(form.value("restriction_level"), "21");
    let done = owner.submit(&form.with("restriction_level", "37")).await;
    assert_eq!(done.location(), format!("{PATH}?done=access-saved"));
    let seen = ben.get(PATH).await;
    seen.assert_has(&["Only collaborators, the creator and admins edit the dashboard."]);
    seen.assert_lacks(&["id=\"rule\"", "id=\"restriction\"", "id=\"collaborator\""]);
    let page = owner.get(PATH).await;
    let uuid = workspace.uuid("ben@corp.example").await;
    let form = page.form("collaborator").with("user_uuid", &uuid);
    assert_eq!(owner.submit(&form).await.location(), format!("{PATH}?done=access-saved"));
    let board = workspace.dashboards("1/collaborators/");
    assert_eq!(workspace.owner.get(&board).await.ok()[0]["level"], 37);
    let seen = ben.get(PATH).await;
    assert!(row(&seen, "ben").contains(">Edit</span>"), "{}", seen.html);
    assert!(!seen.html.contains("id=\"restriction\""), "collaborators do not lift the restriction");
    let page = owner.get(PATH).await;
    assert!(!page.html.contains("id=\"collaborator\""), "nobody else only views");
    page.assert_has(&[&format!("name=\"collaborator\" value=\"{uuid}\"")]);
    let done = ben.post(PATH, &[("collaborator", &uuid)]).await;
    assert_eq!(done.location(), format!("{PATH}?done=collaborator-removed"));
    let refused = ben.post(PATH, &[("collaborator", &uuid)]).await;
    refused.assert_shows(403, "Who can see <bdi>Growth</bdi>");
    let path = format!("{PATH}?form=restriction");
    let sent = [("restriction_level", "21"), ("_before", "{\"restriction_level\":37}")];
    ben.post(&path, &sent).await.assert_shows(403, "Who can see <bdi>Growth</bdi>");
}
