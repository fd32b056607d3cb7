//! The page of a project's settings, its token, and its deletion.

use crate::support::prelude::*;

fn settings(workspace: &Workspace) -> String {
    format!("/console/projects/{}/settings/", workspace.made.project_id)
}

/// Returns the names of the inputs on a page, except hidden ones.
fn inputs(page: &Page) -> Vec<String> {
    let tags = page.html.split('<').filter(|tag| {
        ["input ", "select ", "textarea "].iter().any(|name| tag.starts_with(name))
            && !tag.contains("type=\"hidden\"")
    });
    let names = tags.filter_map(|tag| tag.split(" name=\"").nth(1)?.split('"').next());
    names.filter(|name| *name != "search").map(str::to_owned).collect()
}

#[tokio::test]
async fn page_has_exactly_the_settings_of_the_schema() {
    let workspace = Workspace::new().await;
    let page = Visitor::owner(&workspace).await.get(&settings(&workspace)).await;
    page.assert_shows(200, "Project settings");
    let document = workspace.owner.get("/api/schema/?format=json").await.ok();
    let update = &document["paths"]["/api/projects/{project_id}/"]["patch"];
    let body = &update["requestBody"]["content"]["application/json"]["schema"];
    let name = body["$ref"].as_str().expect("a schema").rsplit('/').next().expect("its name");
    let schema = &document["components"]["schemas"][name]["properties"];
    let known: BTreeSet<_> = schema.as_object().expect("properties").keys().cloned().collect();
    let shown = inputs(&page);
    assert_eq!(shown.iter().cloned().collect::<BTreeSet<_>>(), known);
    assert_eq!(shown.len(), known.len(), "each once");
    assert!(known.len() >= 40);
}

#[tokio::test]
async fn settings_of_every_kind_are_saved_and_shown_again() {
    let workspace = Workspace::new().await;
    let board =
        workspace.owner.post(&workspace.dashboards(""), json!({"name": "Growth"})).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let page = owner.get(&settings(&workspace)).await;
    let token = workspace.owner.get(&workspace.project("")).await.ok()["api_token"].clone();
    page.assert_has(&[token.as_str().expect("a token")]);
    let form = page.form("form");
    assert_eq!((form.value("name"), form.value("timezone")), ("Web", "UTC"));
    let id = board["id"].to_string();
    let urls = json!(["https://a.example", "https://b.example"]);
    let typed = [
        ("name", "Shop", json!("Shop")),
        ("app_urls", "https://a.example\r\nhttps://b.example", urls),
        ("anonymize_ips", "true", json!(true)),
        ("week_start_day", "1", json!(1)),
        ("primary_dashboard", &id, board["id"].clone()),
        ("session_recording_sample_rate", "0.25", json!("0.25")),
        ("session_recording_minimum_duration_milliseconds", "500", json!(500)),
        ("session_replay_config", "{\"record_canvas\": true}", json!({"record_canvas": true})),
        ("autocapture_opt_out", "false", json!(false)),
        ("autocapture_exceptions_errors_to_ignore", "ResizeObserver", json!(["ResizeObserver"])),
    ];
    let sent = typed.iter().fold(form, |form, (name, text, _)| form.with(name, text));
    let location = owner.submit(&sent).await.location().to_owned();
    assert_eq!(location, format!("{}?done=settings-saved", settings(&workspace)));
    let saved = workspace.owner.get(&workspace.project("")).await.ok();
    for (name, _, value) in typed {
        assert_eq!(saved[name], value, "{name}");
    }
    assert_eq!(saved["timezone"], "UTC");
    let page = owner.get(&location).await;
    let again = page.form("form");
    for name in ["name", "anonymize_ips", "week_start_day", "primary_dashboard"] {
        assert_eq!(again.value(name), sent.value(name));
    }
    assert!(page.html.contains("Growth ("), "dashboards have names");
    // A change is marked, and errors stand beside their field.
    let wrong = again.with("timezone", "Mars/Base").with("name", "");
    let page = owner.submit(&wrong).await.showing(400, "Project settings");
    assert_eq!(page.html.matches(" data-changed>").count(), 2, "{}", page.html);
    page.assert_field_error("name", "may not be blank");
}

#[tokio::test]
async fn only_admins_decide_who_sees_the_project() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let form = owner.get(&settings(&workspace)).await.form("access");
    let location = owner.submit(&form.with("access_control", "true")).await.location().to_owned();
    assert_eq!(location, format!("{}?done=settings-saved", settings(&workspace)));
    assert_eq!(workspace.owner.get(&workspace.project("")).await.ok()["access_control"], true);
    let form = owner.get(&settings(&workspace)).await.form("access");
    assert_eq!(form.value("access_control"), "true");
    owner.submit(&form.without("access_control")).await.location();
    assert_eq!(workspace.owner.get(&workspace.project("")).await.ok()["access_control"], false);

    workspace.member("mia", Level::Member).await;
    let member = Visitor::with_scopes(&workspace, "mia@corp.example", &["*"]).await;
    let page = member.open(&settings(&workspace), "Project settings").await;
    assert!(page.html.contains(
        "Your organization access level is insufficient to configure project access restrictions."
    ));
    page.assert_lacks(&["Save access", "Replace the token", "settings/delete/"]);
}

#[tokio::test]
async fn token_is_replaced_after_a_question_and_the_project_deleted_with_its_name() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let before = workspace.owner.get(&workspace.project("")).await.ok()["api_token"].clone();
    let page = owner.get(&format!("{}token/", settings(&workspace))).await;
    page.assert_shows(200, "<bdi>Replace the project token?</bdi>");
    let location = owner.submit(&page.form("form")).await.location().to_owned();
    assert_eq!(location, format!("{}?done=token-replaced", settings(&workspace)));
    assert_ne!(workspace.owner.get(&workspace.project("")).await.ok()["api_token"], before);
    let page = owner.get(&format!("{}delete/", settings(&workspace))).await;
    page.assert_shows(200, "<bdi>Delete the project Web?</bdi>");
    let form = page.form("form");
    let wrong = owner.submit(&form.clone().with("name", "web")).await;
    wrong.assert_shows(400, "<bdi>Delete the project Web?</bdi>");
    wrong.assert_has(&["This is not the name."]);
    let done = owner.submit(&form.with("name", "Web")).await;
    let list = workspace.page("projects/");
    assert_eq!(done.location(), format!("{list}?done=project-deleted"));
    workspace.owner.get(&workspace.project("")).await.assert_not_found("Not found.");
    let page = owner.open(done.location(), "Projects").await;
    page.assert_has(&["This organization has no projects that you may see."]);
}
