//! The pages of an organization: its projects, its settings, and a new one.

use crate::support::prelude::*;

#[tokio::test]
async fn projects_are_listed_and_created() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let list = owner.open(&workspace.page("projects/"), "Projects").await;
    list.assert_has(&["<bdi>Web</bdi></a><span class=\"sub\">Project 1</span>", "1 to 1 of 1"]);
    list.assert_has(&["New project"]);
    let new = owner.open(&workspace.page("projects/new/"), "New project").await;
    let form = new.form("form").with("name", "Shop").with("timezone", "Europe/Berlin");
    let created = owner.submit(&form).await;
    assert_eq!(created.location(), "/console/projects/2/settings/?done=project-created");
    assert_eq!(owner.submit(&form).await.location(), created.location(), "the form is sent twice");
    let found = workspace.owner.get(&workspace.organization("projects/")).await.ok();
    assert_eq!(found["count"], 2);
    let found = &found["results"][1];
    let of = (&found["name"], &found["timezone"], &found["is_demo"]);
    assert_eq!(of, (&json!("Shop"), &json!("Europe/Berlin"), &json!(false)));
    let new = owner.get(&workspace.page("projects/new/")).await;
    let wrong = owner.submit(&new.form("form").with("name", "X").with("timezone", "Mars")).await;
    wrong.assert_shows(400, "New project");
    assert_eq!(wrong.form("form").value("name"), "X");
    let beyond = owner.get(&workspace.page("projects/?offset=50")).await;
    assert_eq!(beyond.location(), workspace.page("projects/"));
}

#[tokio::test]
async fn members_create_only_demo_projects() {
    let workspace = Workspace::new().await;
    workspace.member("mia", Level::Member).await;
    let mut member = Visitor::with_scopes(&workspace, "mia@corp.example", &["*"]).await;
    let new = member.open(&workspace.page("projects/new/"), "New project").await;
    new.assert_has(&["Create the demo project"]).assert_lacks(&["name=\"is_demo\""]);
    member.submit(&new.form("form").with("name", "Demo")).await.location();
    let found = workspace.owner.get("/api/projects/2/").await.ok();
    assert_eq!((&found["name"], &found["is_demo"]), (&json!("Demo"), &json!(true)));
}

#[tokio::test]
async fn projects_beyond_the_cap_are_not_offered() {
    let workspace = Workspace::configured(|config| config.caps.max_projects = 1).await;
    let new = Visitor::owner(&workspace).await.get(&workspace.page("projects/new/")).await;
    new.assert_shows(200, "New project");
    new.assert_has(&["An organization can have at most 1 projects."]);
    new.assert_lacks(&["class=\"b go\""]);
}

#[tokio::test]
async fn organization_is_changed_by_admins_and_deleted_by_owners_with_its_name() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let (role, _) = add_role(&workspace, "Eng").await;
    let path = workspace.page("settings/");
    let form = owner.open(&path, "Organization settings").await.form("form");
    assert_eq!((form.value("name"), form.value("members_can_invite")), ("Corp", "true"));
    let sent = form
        .with("name", "Acme")
        .without("members_can_invite")
        .with("enforce_2fa", "true")
        .with("default_role_id", role["id"].as_str().expect("an id"));
    assert_eq!(owner.submit(&sent).await.location(), format!("{path}?done=settings-saved"));
    let found = workspace.owner.get(&workspace.organization("")).await.ok();
    let names = ["name", "members_can_invite", "enforce_2fa", "default_role_id"];
    let expected = [json!("Acme"), json!(false), json!(true), role["id"].clone()];
    assert_eq!(names.map(|name| found[name].clone()), expected);

    workspace.member("mia", Level::Member).await;
    let member = Visitor::with_scopes(&workspace, "mia@corp.example", &["*"]).await;
    let page = member.open(&path, "Organization settings").await;
    page.assert_has(&[TOO_LOW]).assert_lacks(&["settings/delete/"]);

    let question = owner.get(&format!("{path}delete/")).await;
    let done = owner.submit(&question.form("form").with("name", " Acme ")).await;
    assert_eq!(done.location(), "/console/?done=organization-deleted");
    let refused = workspace.owner.get(&workspace.organization("")).await;
    refused.assert_not_found("Organization not found.");
}

#[tokio::test]
async fn organization_is_created_from_the_switcher() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let link = "<a href=\"/console/organizations/new/\">";
    assert!(owner.get("/console/sessions/").await.html.contains(link));
    let form = owner.get("/console/organizations/new/").await.form("form").with("name", "Second");
    let location = owner.submit(&form).await.location().to_owned();
    let page = owner.open(&location, "Organization settings").await;
    assert_eq!(page.form("form").value("name"), "Second");
    let limits = json!({ "projects": [workspace.made.project_id] });
    let key = workspace.limited_key(OWNER, &["*"], limits).await;
    let limited = Visitor::with_key(&workspace, key.key.as_deref().expect("a key")).await;
    limited.get("/console/sessions/").await.assert_lacks(&[link]);
    let page = limited.open("/console/organizations/new/", "New organization").await;
    page.assert_has(&["<div class=\"note\">"]).assert_lacks(&["id=\"form\""]);
}
