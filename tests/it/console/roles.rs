//! The roles of an organization, and one role with its members.

use crate::support::prelude::*;

#[tokio::test]
async fn role_is_created_renamed_and_deleted() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let list = workspace.page("roles/");
    let page = owner.open(&list, "Roles").await;
    page.assert_has(&["This organization has no roles."]);
    let made = owner.submit(&page.form("form").with("name", "Analysts")).await;
    let role = made.location().strip_suffix("?done=role-created").expect("a notice").to_owned();
    let page = owner.get(&list).await;
    page.assert_has(&[&format!("<a href=\"{role}\"><bdi>Analysts</bdi></a>")]);
    let taken = owner.submit(&page.form("form").with("name", "ANALYSTS")).await;
    taken.assert_shows(400, "Roles");
    taken.assert_field_error("name", "There is already a role with this name.");
    assert_eq!(taken.form("form").value("name"), "ANALYSTS");
    let page = owner.open(&role, "<bdi>Analysts</bdi>").await;
    let form = page.form("form").with("name", "Analytics");
    assert_eq!(owner.submit(&form).await.location(), format!("{role}?done=role-saved"));
    let page = owner.open(&format!("{role}delete/"), "<bdi>Delete the role Analytics?</bdi>").await;
    owner.submit(&page.form("form")).await.assert_leads_to(&format!("{list}?done=role-deleted"));
    owner.get(&role).await.assert_shows(404, "Not found");
    owner.get(&format!("{list}x/")).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn members_are_added_to_a_role_and_removed() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    workspace.member("ben", Level::Member).await;
    let ben = workspace.uuid("ben@corp.example").await;
    let (_, api) = add_role(&workspace, "Analysts").await;
    let role = api.replace("/api/", "/console/");
    let page = owner.get(&role).await;
    page.assert_has(&["This role has no members."]);
    page.assert_has(&[&format!("<option value=\"{ben}\">ben, ben@corp.example</option>")]);
    let form = page.form("add").with("user_uuid", &ben);
    assert!(owner.submit(&form.clone().with("_show", "command")).await.command().contains(&ben));
    assert_eq!(owner.submit(&form).await.location(), format!("{role}?done=member-added"));
    let page = owner.get(&role).await;
    page.assert_has(&[&format!("/members/{ben}/\"><bdi>ben</bdi></a>")]);
    assert!(!page.html.contains(&format!("<option value=\"{ben}\"")), "the member is in the role");
    let twice = form.with("_once", "another");
    let refused = owner.submit(&twice).await.showing(400, "<bdi>Analysts</bdi>");
    refused.assert_has(&["User is already part of the role."]);
    let start = format!("action=\"{role}members/");
    let remove = format!("{role}members/{}", page.between(&start, "\""));
    add_to_role(&workspace, &api, OWNER).await;
    let page = owner.get(&role).await;
    page.assert_has(&["All members of the organization have this role."]);
    page.assert_lacks(&["id=\"add\""]);
    let refused = owner.submit(&twice).await.showing(400, "<bdi>Analysts</bdi>");
    assert_eq!(refused.form("add").value("user_uuid"), ben);
    assert_eq!(owner.post(&remove, &[]).await.location(), format!("{role}?done=member-removed"));
    let page = owner.post(&remove, &[]).await.showing(404, "<bdi>Analysts</bdi>");
    assert!(page.between("role=\"alert\">", "</div>").contains("Not found."));
    owner.get(&format!("{role}?member=nobody")).await.assert_has(&["No other member matches."]);
    owner.get(&format!("{role}?member=ben")).await.assert_has(&[&ben, "value=\"ben\""]);
}
