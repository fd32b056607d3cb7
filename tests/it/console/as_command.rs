//! Forms that ask for their command: they show what their button would send, and change nothing.

use crate::support::crawler::{crawl, make_objects, shape};
use crate::support::dry_run::everything;
use crate::support::prelude::*;

const PROFILE: &str = "/console/profile/";
const LIST: &str = "/console/projects/1/dashboards/";

/// Forms that pages show only after something else has happened.
const UNSEEN: [&str; 3] = [
    "/console/steps/dismiss/",
    "/console/projects/{project_id}/insights/{id}/restore/",
    "/console/organizations/{organization_id}/domains/{id}/verify/",
];

#[tokio::test]
async fn no_form_changes_anything_when_it_asks_for_its_command() {
    let workspace = Workspace::new().await;
    let objects = make_objects(&workspace).await;
    let mut owner = Visitor::with_link(&workspace, true).await;
    let mut forms: Vec<_> =
        crawl(&owner).await.buttons.into_values().map(|(_, form)| form).collect();
    forms.extend(UNSEEN.map(|path| FilledForm::of(&objects.fill(path), &[])));
    let before = everything(&workspace).await;
    let mut asked = BTreeSet::new();
    let mut shown = 0;
    for form in &forms {
        for show in ["command", "anything"] {
            let page = owner.submit(&form.clone().with("_show", show)).await;
            assert!(matches!(page.status, 200 | 400), "{form:?}: {}", page.html);
            assert!(!page.headers.contains_key("set-cookie"));
            assert!(!page.headers.contains_key("location"));
            shown += usize::from(page.html.contains("id=\"commands\""));
        }
        asked.insert(shape(form.action.split('?').next().expect("a path")));
    }
    assert!(shown > 100, "{shown} of {}", forms.len());
    let table = routes();
    let posts = table.pages().iter().filter(|page| page.method == Method::POST);
    let (public, others): (Vec<_>, Vec<_>) =
        posts.partition(|row| row.access == PageAccess::Public);
    let parameter = regex::Regex::new(r"\{[^}]*\}").expect("a pattern");
    let missed =
        others.iter().filter(|row| !asked.contains(&*parameter.replace_all(row.path, ":id")));
    assert_eq!(missed.map(|row| row.path).collect::<Vec<_>>(), [] as [&str; 0]);
    for row in public {
        let page =
            owner.post(row.path, &[("_show", "command"), ("key", &workspace.made.api_key)]).await;
        page.assert_shows(400, "The request is not valid");
        assert!(!page.headers.contains_key("set-cookie"));
    }
    let after = everything(&workspace).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(owner.get("/console/sessions/").await.status, 200, "the session lives");
}

#[tokio::test]
async fn displayed_json_has_no_character_that_disguises_it() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let hidden = [
        '\u{202e}', '\u{2066}', '\u{61c}', '\u{200e}', '\u{200b}', '\u{2028}', '\u{85}', '\u{feff}',
    ];
    let name: String = hidden.iter().collect();
    workspace.owner.patch(ME, json!({ "notification_settings": { "a": name } })).await.ok();
    let form = owner.get(PROFILE).await.form("form");
    assert!(!form.value("notification_settings").contains(hidden), "{form:?}");
    assert!(form.value("notification_settings").contains("\\u202e"), "{form:?}");
    let page = owner.submit(&form.clone().with("last_name", &name).with("_show", "command")).await;
    let command = page.command();
    assert!(!command.contains(hidden), "{command}");
    // The command sends the same name, and the untouched field nothing.
    let (_, body) = command.split_once("--data-raw '").expect("a body");
    let body = body.split('\'').next().expect("its end");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body, json!({ "last_name": name }));
    let log = workspace.page("activity/");
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "x" })).await.ok();
    let filters = json!({ "filters": { "a": name } });
    workspace.owner.patch(&workspace.dashboards("1/"), filters).await.ok();
    let page = owner.get(&log).await;
    assert!(page.html.contains("\\u202e") && !page.html.contains('\u{202e}'), "{}", page.html);
}

#[tokio::test]
async fn form_that_has_to_be_corrected_shows_its_errors_instead_of_a_command() {
    let (_workspace, mut owner) = Visitor::in_new_workspace().await;
    let form = owner.get(PROFILE).await.form("form").with("_show", "command");
    assert_eq!(owner.submit(&form).await.commands(), [] as [&str; 0]);
    let page = owner.submit(&form.with("notification_settings", "{x")).await;
    page.assert_shows(400, "Profile").assert_has(&["This is not valid JSON"]);
    let page = owner.post(LIST, &[("action", "pin"), ("_show", "command")]).await;
    page.assert_shows(400, "Dashboards");
    owner.post("/console/sign_out/", &[]).await;
    let form = [("first_name", "Ada"), ("_show", "command")];
    let page = owner.post(PROFILE, &form).await.showing(401, "Your session has ended");
    assert_eq!(page.form("form").value("_show"), "command");
}

#[tokio::test]
async fn form_for_many_objects_shows_a_command_for_each() {
    let workspace = Workspace::new().await;
    for tags in [json!(["new"]), json!([]), json!([])] {
        let sent = json!({ "name": "A", "tags": tags });
        workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
    }
    let mut owner = Visitor::owner(&workspace).await;
    let ids = [("id", "1"), ("id", "2"), ("id", "3"), ("_show", "command")];
    let tag = [&[("action", "add_tag"), ("tag", "new")][..], &ids].concat();
    let page = owner.post(LIST, &tag).await;
    let commands = page.commands();
    page.assert_has(&["These 2 commands do what the button does."]);
    for (command, id) in commands.iter().zip([2, 3]) {
        assert!(command.starts_with("curl -X PATCH "), "{command}");
        assert!(command.contains("-H 'If-Match: "), "{command}");
        let end = format!(
            "--data-raw '{{\"tags\":[\"new\"]}}' \\\n    'http://localhost{}{id}/'",
            workspace.dashboards("")
        );
        assert!(command.ends_with(&end), "{command}");
    }
    let delete = [&[("action", "delete")][..], &ids].concat();
    assert_eq!(owner.post(LIST, &delete).await.commands().len(), 3);
    let one = [&[("only", "pin 2")][..], &ids].concat();
    assert!(owner.post(LIST, &one).await.command().contains(r#"'{"pinned":true}'"#));
}
