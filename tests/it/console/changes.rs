//! Changes of one or many dashboards in the list, and the trash.

use crate::support::prelude::*;

const LIST: &str = "/console/projects/1/dashboards/";
const TRASH: &str = "/console/projects/1/dashboards/trash/";

async fn boards(workspace: &Workspace, names: &[&str]) {
    for name in names {
        workspace.owner.post(&workspace.dashboards(""), json!({ "name": name })).await.ok();
    }
}

async fn read(workspace: &Workspace, id: u64, field: &str) -> Value {
    workspace.owner.get(&workspace.dashboards(&format!("{id}/"))).await.ok()[field].clone()
}

#[tokio::test]
async fn selected_dashboards_are_changed_one_by_one() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    boards(&workspace, &["A", "B", "C"]).await;
    let page = owner.get(&format!("{LIST}?search=a&offset=0")).await;
    page.assert_has(&[&format!("action=\"{LIST}?search=a\"")]);
    for (action, field, values) in [
        ("pin", "pinned", [json!(true), json!(true), json!(false)]),
        ("unpin", "pinned", [json!(false), json!(false), json!(false)]),
        ("add_tag", "tags", [json!(["new"]), json!(["new"]), json!([])]),
        ("remove_tag", "tags", [json!([]), json!([]), json!([])]),
        ("restrict", "restriction_level", [json!(37), json!(37), json!(21)]),
        ("open", "restriction_level", [json!(21), json!(21), json!(21)]),
    ] {
        let sent = [("action", action), ("tag", " New "), ("id", "1"), ("id", "2")];
        let done = owner.post(&format!("{LIST}?search=a"), &sent).await;
        done.assert_leads_to(&format!("{LIST}?search=a&done=dashboard-saved&count=2"));
        for (id, value) in (1..).zip(values) {
            assert_eq!(read(&workspace, id, field).await, value, "{action} {id}");
        }
    }
    let share = workspace.dashboards("1/sharing/");
    workspace.owner.patch(&share, json!({ "enabled": true })).await.ok();
    let sent = [("action", "stop_sharing"), ("id", "1"), ("id", "3")];
    owner.post(LIST, &sent).await.assert_leads_to(&format!("{LIST}?done=page-disabled&count=2"));
    assert_eq!(read(&workspace, 1, "is_shared").await, false);
    let only = owner.post(LIST, &[("only", "pin 3"), ("action", "delete"), ("id", "1")]).await;
    assert_eq!(only.location(), format!("{LIST}?done=dashboard-saved"));
    assert_eq!(read(&workspace, 3, "pinned").await, true);
    let from = owner.post(LIST, &[("only", "unpin 3"), ("from", "3")]).await;
    assert_eq!(from.location(), format!("{LIST}3/?done=dashboard-saved"));
}

#[tokio::test]
async fn deletion_of_the_last_page_of_the_list_leads_to_the_page_before() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    boards(&workspace, &["n"; 51]).await;
    let sent = [("action", "delete"), ("sure", "true"), ("id", "51")];
    let deleted = owner.post(&format!("{LIST}?search=n&offset=50"), &sent).await;
    deleted.assert_leads_to(&format!("{LIST}?search=n&offset=50&done=dashboard-deleted&undo=51"));
    let beyond = owner.get(deleted.location()).await;
    assert_eq!(beyond.location(), format!("{LIST}?search=n&done=dashboard-deleted&undo=51"));
    let page = owner.get(beyond.location()).await;
    page.assert_has(&["<span>1 to 50 of 50</span>", "name=\"id\" value=\"51\""]);
}

#[tokio::test]
async fn refused_changes_are_named_with_the_reason() {
    let workspace = Workspace::new().await;
    let mut ben = Visitor::member(&workspace, "ben", Level::Member).await;
    boards(&workspace, &["Open", "<b>Closed</b>"]).await;
    let closed = json!({ "restriction_level": 37 });
    workspace.owner.patch(&workspace.dashboards("2/"), closed).await.ok();
    let sent = [("action", "pin"), ("id", "1"), ("id", "2"), ("id", "99")];
    let page = ben.post(LIST, &sent).await.showing(200, "Dashboards");
    let note = page.between("role=\"alert\">", "</ul>");
    assert!(note.contains("1 done, 2 refused:"), "{note}");
    let closed = "<bdi>&#60;b&#62;Closed&#60;/b&#62;</bdi>: <span dir=\"auto\">You don&#39;t have edit permissions for this dashboard.</span>";
    assert!(note.contains(closed), "{note}");
    let refused = "<bdi>Dashboard 99</bdi>: <span dir=\"auto\">Not found.</span>";
    assert!(note.contains(refused), "{note}");
    assert_eq!(read(&workspace, 1, "pinned").await, true);
    ben.post(LIST, &[("action", "pin"), ("id", "2")]).await.assert_shows(403, "Dashboards");
    for (sent, text) in [
        (vec![("action", "pin")], "Select the dashboards first."),
        (vec![("action", "add_tag"), ("id", "1"), ("tag", " ")], "Enter the tag."),
        (vec![("action", "evil"), ("id", "1")], "Choose what to do."),
    ] {
        ben.post(LIST, &sent).await.showing(400, "Dashboards").assert_has(&[text]);
    }
    let page = ben.post(LIST, &[("action", "add_tag"), ("id", "1"), ("tag", " ")]).await;
    page.assert_has(&["<option value=\"add_tag\" selected>", "name=\"id\" value=\"1\" checked"]);
    let page = ben.post(LIST, &[("action", "add_tag"), ("id", "2"), ("tag", "x\"y")]).await;
    page.assert_shows(403, "Dashboards").assert_has(&["name=\"tag\" value=\"x&#34;y\""]);
    ben.post(LIST, &[("action", "pin"), ("id", "x")]).await.assert_shows(404, "Not found");
}

#[tokio::test]
async fn trash_says_who_deleted_a_dashboard_and_restores_it() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    boards(&workspace, &["A", "B", "C"]).await;
    owner.get(TRASH).await.assert_shows(200, "Trash");
    assert!(owner.get(TRASH).await.html.contains("The trash is empty."));
    let one = owner.post(LIST, &[("action", "delete"), ("id", "2")]).await;
    one.assert_shows(200, "<bdi>Delete the dashboard B?</bdi>");
    let sent = [("action", "delete"), ("id", "1"), ("id", "2"), ("id", "3")];
    let asked = owner.post(LIST, &sent).await.showing(200, "<bdi>Delete 3 dashboards?</bdi>");
    for name in ["A", "B", "C"] {
        asked.assert_has(&[&format!("<bdi>{name}</bdi></li>")]);
    }
    assert!(owner.get(TRASH).await.html.contains("The trash is empty."), "it only asks");
    let deleted = owner.submit(&asked.form("form")).await;
    assert_eq!(deleted.location(), format!("{LIST}?done=dashboard-deleted&count=3&undo=1,2,3"));
    let list = owner.get(deleted.location()).await;
    list.assert_has(&["<p>3 dashboards deleted.</p>"]);
    for id in 1..=3 {
        list.assert_has(&[&format!("name=\"id\" value=\"{id}\"")]);
    }
    assert!(!owner.get(&format!("{LIST}?undo=1")).await.html.contains("Undo"));
    let page = owner.get(TRASH).await;
    page.assert_has(&["<bdi>A</bdi>", "<bdi>Olga</bdi>", "<span>1 to 3 of 3</span>"]);
    page.assert_has(&["datetime=\"20"]);
    let answer = owner.post(TRASH, &[("id", "1"), ("id", "2")]).await;
    answer.assert_leads_to(&format!("{TRASH}?done=dashboard-restored&count=2"));
    let one = owner.post(TRASH, &[("only", "3")]).await;
    assert_eq!(one.location(), format!("{TRASH}?done=dashboard-restored"));
    assert!(owner.get(TRASH).await.html.contains("The trash is empty."));
    owner.post(TRASH, &[]).await.assert_shows(400, "Trash");
    let page = owner.post(TRASH, &[("id", "99")]).await.showing(404, "Trash");
    page.assert_has(&["<bdi>Dashboard 99</bdi>: <span dir=\"auto\">Not found.</span>"]);
}
