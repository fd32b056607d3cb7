//! The members of an organization, and one member.

use crate::support::prelude::*;

/// Returns the names in the list, in order.
fn names(page: &Page) -> Vec<&str> {
    let links = page.html.split("<td><div class=\"person\">").skip(1);
    links.map(|row| row.split("<bdi>").nth(1).unwrap().split("</bdi>").next().unwrap()).collect()
}

/// Returns the row of a member.
fn row<'p>(page: &'p Page, uuid: &str) -> &'p str {
    let link = format!("/members/{uuid}/\"><bdi>");
    let row = page.html.split("<tr>").find(|row| row.contains(&link));
    row.unwrap_or_else(|| panic!("no row of {uuid}: {}", page.html))
}

fn options(row: &str) -> Vec<&str> {
    row.split("<option value=\"").skip(1).map(|option| option.split('"').next().unwrap()).collect()
}

#[tokio::test]
async fn members_are_listed_and_searched() {
    let (workspace, owner) = Visitor::in_new_workspace().await;
    workspace.member("ann", Level::Admin).await;
    workspace.member("ben", Level::Member).await;
    let list = workspace.page("members/");
    let page = owner.open(&list, "Members").await;
    assert_eq!(names(&page).len(), 3);
    page.assert_has(&["<span>1 to 3 of 3</span>", "aria-current=\"page\""]);
    assert!(row(&page, &workspace.uuid(OWNER).await).contains("<span class=\"tag\">You</span>"));
    assert_eq!(names(&owner.get(&format!("{list}?search=BEN")).await), ["ben"]);
    assert!(owner.get(&format!("{list}?search=nobody")).await.html.contains("No member matches."));
    let beyond = owner.get(&format!("{list}?search=BEN&offset=50")).await;
    assert_eq!(beyond.location(), format!("{list}?search=BEN"));
    let stranger = workspace.outsider("eve").await.0.key.expect("a key");
    let refused = Visitor::with_key(&workspace, &stranger).await.get(&list).await;
    assert!(matches!(refused.status, 403 | 404), "{}", refused.html);
    refused.assert_lacks(&["ben@"]);
}

#[tokio::test]
async fn list_offers_the_levels_that_the_session_may_give() {
    let (workspace, owner) = Visitor::in_new_workspace().await;
    let admin = workspace.member("ann", Level::Admin).await.key.expect("a key");
    let member = workspace.member("ben", Level::Member).await.key.expect("a key");
    let uuids = [
        workspace.uuid(OWNER).await,
        workspace.uuid(ANN).await,
        workspace.uuid("ben@corp.example").await,
    ];
    let admin = Visitor::with_key(&workspace, &admin).await;
    let member = Visitor::with_key(&workspace, &member).await;
    let reader = Visitor::with_scopes(&workspace, OWNER, &["organization_member:read"]).await;
    let all = vec!["1", "8", "15"];
    for (visitor, levels, removes) in [
        (&owner, [vec![], all.clone(), all], ["", "Remove", "Remove"]),
        (&admin, [vec![], vec![], vec!["1", "8"]], ["", "Leave", "Remove"]),
        (&member, [vec![], vec![], vec![]], ["", "", "Leave"]),
        (&reader, [vec![], vec![], vec![]], ["", "", ""]),
    ] {
        let page = visitor.get(&workspace.page("members/")).await;
        for ((uuid, levels), remove) in uuids.iter().zip(levels).zip(removes) {
            let row = row(&page, uuid);
            assert_eq!(options(row), levels, "{row}");
            assert_eq!(row.contains("/remove/\">"), !remove.is_empty(), "{row}");
            assert!(remove.is_empty() || row.contains(&format!("/remove/\">{remove}")), "{row}");
        }
    }
}

#[tokio::test]
async fn level_is_changed_in_the_list_and_a_refusal_is_shown_there() {
    let workspace = Workspace::new().await;
    let mut ben = Visitor::member(&workspace, "ben", Level::Member).await;
    let uuid = workspace.uuid("ben@corp.example").await;
    let mut owner = Visitor::owner(&workspace).await;
    let here = workspace.page("members/?search=ben");
    let page = owner.get(&here).await;
    assert!(row(&page, &uuid).contains(&format!("action=\"{here}\"")));
    let sent = [("user", uuid.as_str()), ("level", "8")];
    assert_eq!(owner.post(&here, &sent).await.location(), format!("{here}&done=level-saved"));
    let member = workspace.organization(&format!("members/{uuid}/"));
    assert_eq!(workspace.owner.get(&member).await.ok()["level"], 8);
    let me = workspace.uuid(OWNER).await;
    let page = ben.post(&workspace.page("members/"), &[("user", &me), ("level", "1")]).await;
    page.assert_shows(403, "Members");
    let alert = page.between("role=\"alert\">", "</div>");
    assert!(alert.contains("You can only edit others with level lower or equal to you."));
    owner.post(&here, &[("user", &uuid), ("level", "7")]).await.assert_shows(400, "Members");
    owner.post(&here, &[("user", "../../x"), ("level", "8")]).await.assert_shows(404, "Members");
}

#[tokio::test]
async fn member_page_shows_roles_and_projects_and_changes_the_level() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    workspace.member("ben", Level::Member).await;
    let uuid = workspace.uuid("ben@corp.example").await;
    let (role, role_path) = add_role(&workspace, "Analysts").await;
    let id = role["id"].as_str().expect("an id");
    add_to_role(&workspace, &role_path, "ben@corp.example").await;
    add_role(&workspace, "Others").await;
    let path = workspace.page(&format!("members/{uuid}/"));
    let page = owner.open(&path, "<bdi>ben</bdi>").await;
    page.assert_has(&[&format!("/roles/{id}/\"><bdi>Analysts</bdi></a>")]);
    page.assert_lacks(&["Others"]);
    let projects = page.between("aria-label=\"Projects\">", "</table>");
    assert!(projects.contains("/console/projects/1/access/\"><bdi>Web</bdi></a>"), "{projects}");
    let level = "<td data-label=\"Level\"><span class=\"tag \">Member</span></td>";
    let text = "The project is open to all members, with the level member.";
    assert!(projects.contains(level) && projects.contains(text), "{projects}");
    let form = page.form("form");
    assert_eq!(form.value("level"), "1");
    let shown = owner.submit(&form.clone().with("level", "8").with("_show", "command")).await;
    let command = shown.command();
    assert!(command.contains(r#"{"level":8}"#) && command.contains("If-Match"), "{command}");
    let form = form.with("level", "8");
    assert_eq!(owner.submit(&form).await.location(), format!("{path}?done=level-saved"));
    assert!(owner.get(&path).await.html.contains("<span class=\"tag\">Admin</span>"));
    owner.get(&workspace.page("members/x/")).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn member_page_shows_the_roles_of_the_member_and_why_a_control_is_missing() {
    let (workspace, owner) = Visitor::in_new_workspace().await;
    let path = workspace.page(&format!("members/{}/", workspace.uuid(OWNER).await));
    let page = owner.get(&path).await;
    page.assert_has(&["Level: You can&#39;t change your own access level."]);
    page.assert_has(&["Leaving: Cannot leave the organization as its owner!"]);
    page.assert_lacks(&["id=\"form\"", "/remove/"]);
    let shown = async || {
        owner.open(&path, "<bdi>Olga</bdi>").await.between("<dt>Roles</dt><dd>", "</dd>").to_owned()
    };
    add_role(&workspace, "Others").await;
    assert_eq!(shown().await, "None");
    for number in 0..101 {
        let (_, role) = add_role(&workspace, &format!("Role {number:03}")).await;
        add_to_role(&workspace, &role, OWNER).await;
        if number == 99 {
            let roles = shown().await;
            assert_eq!(roles.matches("class=\"tag\"").count(), 100);
            assert!(!roles.contains("class=\"hint\""), "{roles}");
        }
    }
    let roles = shown().await;
    assert!(roles.contains("The member has 101 roles, of which the page shows 100."), "{roles}");
    assert!(roles.contains("Role 099") && !roles.contains("Role 100"), "{roles}");
}

#[tokio::test]
async fn member_leaves_after_a_question() {
    let workspace = Workspace::new().await;
    let mut ben = Visitor::member(&workspace, "ben", Level::Member).await;
    let (olga, uuid) = (workspace.uuid(OWNER).await, workspace.uuid("ben@corp.example").await);
    let page = ben.post(&workspace.page(&format!("members/{olga}/remove/")), &[]).await;
    page.assert_shows(403, "<bdi>Remove Olga?</bdi>");
    let path = workspace.page(&format!("members/{uuid}/remove/"));
    let page = ben.open(&path, "<bdi>Leave the organization?</bdi>").await;
    ben.submit(&page.form("form")).await.assert_leads_to("/console/?done=left");
    let page = Visitor::owner(&workspace).await.get(&workspace.page("members/")).await;
    assert_eq!(names(&page), ["Olga"]);
}

#[tokio::test]
async fn member_page_lists_what_the_member_may_do_in_the_projects_of_the_viewer() {
    let workspace = Workspace::new().await;
    workspace.member("ben", Level::Member).await;
    let ann = Visitor::member(&workspace, "ann", Level::Member).await;
    let (role, path) = add_role(&workspace, "<b>Analysts</b>").await;
    add_to_role(&workspace, &path, "ben@corp.example").await;
    let hidden = json!({ "name": "Payroll", "access_control": true });
    let hidden = workspace.owner.post(&workspace.organization("projects/"), hidden).await.ok();
    let rules = format!("/api/projects/{}/access_controls/", hidden["id"]);
    workspace.owner.put(&rules, json!({ "role": role["id"], "access_level": "admin" })).await.ok();
    let of_ben = workspace.page(&format!("members/{}/", workspace.uuid("ben@corp.example").await));
    let of_ann = workspace.page(&format!("members/{}/", workspace.uuid(ANN).await));
    let owner = Visitor::owner(&workspace).await;
    let page = owner.get(&of_ben).await;
    let row = page.between("/access/\"><bdi>Payroll</bdi>", "</tr>");
    assert!(row.contains("<span class=\"tag on\">Admin</span>"), "{row}");
    let reason = "A rule on the project gives a role of the member the level admin.";
    assert!(row.contains(reason), "{row}");
    let link =
        format!("/roles/{}/\"><bdi>&#60;b&#62;Analysts", role["id"].as_str().expect("an id"));
    assert!(row.contains(&link), "{row}");
    let row = owner.get(&of_ann).await;
    let row = row.between("/access/\"><bdi>Payroll</bdi>", "</tr>");
    assert!(row.contains("<span class=\"tag warn\">No access</span>"), "{row}");
    let seen = ann.open(&of_ben, "<bdi>ben</bdi>").await;
    seen.assert_has(&["<bdi>Web</bdi>"]).assert_lacks(&["Payroll"]);
}
