//! Changes that are reverted, and objects that are restored, from the activity log.

use crate::support::prelude::*;

/// A workspace with one dashboard.
struct Scene {
    workspace: Workspace,
    owner: Visitor,
    id: Value,
    path: String,
}

impl Scene {
    async fn new(fields: Value) -> Self {
        let workspace = Workspace::new().await;
        let id = workspace.owner.post(&workspace.dashboards(""), fields).await.ok()["id"].clone();
        let path = workspace.dashboards(&format!("{id}/"));
        Self { owner: Visitor::owner(&workspace).await, workspace, id, path }
    }

    async fn patch(&self, sent: Value) -> Value {
        self.workspace.owner.patch(&self.path, sent).await.ok()
    }

    async fn read(&self) -> Value {
        self.workspace.owner.get(&self.path).await.ok()
    }

    fn log(&self) -> String {
        format!("/console/projects/{}/activity/", self.workspace.made.project_id)
    }

    fn history(&self) -> String {
        format!("{}?scope=Dashboard&item_id={}", self.log(), self.id)
    }

    /// Opens the page that asks before the entry at this place is reverted; 0 is the newest entry.
    async fn ask(&self, at: usize) -> Page {
        let link = offers(&self.owner.get(&self.log()).await)[at].clone().expect("an offer");
        self.owner.get(&link).await
    }
}

/// Returns the link of each entry on a page that reverts it.
fn offers(page: &Page) -> Vec<Option<String>> {
    let rows = page.html.split("<li id=\"entry-").skip(1);
    rows.map(|row| {
        let (_, link) = row.split_once("<a class=\"b small\" href=\"")?;
        Some(link.split('"').next()?.replace("&#38;", "&"))
    })
    .collect()
}

/// Returns what a page offers for each entry.
fn labels(page: &Page) -> Vec<&'static str> {
    let rows = page.html.split("<li id=\"entry-").skip(1);
    let label = |row: &str| match (row.contains("Revert …"), row.contains("Restore …")) {
        (true, false) => "revert",
        (false, true) => "restore",
        _ => "",
    };
    rows.map(label).collect()
}

#[tokio::test]
async fn change_is_reverted_by_one_request() {
    let mut scene = Scene::new(json!({ "name": "A", "tags": ["weekly"] })).await;
    scene.patch(json!({ "name": "B", "pinned": true, "tags": [] })).await;
    let page = scene.owner.get(&scene.log()).await;
    assert_eq!(labels(&page), ["revert", ""]);
    let page = scene.ask(0).await.showing(200, "<bdi>Revert this change?</bdi>");
    page.assert_has(&["</svg>Revert</button>"]);
    let command = page.between("<code dir=\"ltr\">", "</code>");
    let body =
        "{&#34;name&#34;:&#34;A&#34;,&#34;pinned&#34;:false,&#34;tags&#34;:[&#34;weekly&#34;]}";
    assert!(command.starts_with("curl -X PATCH ") && command.contains("If-Match: "), "{command}");
    assert!(command.contains(body), "{command}");
    let before = scene.read().await;
    let done = scene.owner.submit(&page.form("form")).await;
    assert_eq!(done.location(), format!("{}&done=change-reverted", scene.history()));
    let again = scene.owner.submit(&page.form("form")).await;
    assert_eq!(again.location(), format!("{}&done=change-reverted", scene.history()), "sent twice");
    let after = scene.read().await;
    assert_eq!([&before["name"], &after["name"]], ["B", "A"]);
    assert_eq!([&after["pinned"], &after["tags"]], [&json!(false), &json!(["weekly"])]);
    // The change can be reverted once. Its reversal is a change itself.
    let page = scene.owner.get(&scene.log()).await;
    assert_eq!(labels(&page), ["revert", "revert", ""]);
    let page = scene.ask(1).await;
    page.assert_has(&["All these fields have their former values."]);
    page.assert_lacks(&["<button class=\"b go\">"]);
    let page = scene.ask(0).await;
    scene.owner.submit(&page.form("form")).await.location();
    assert_eq!(scene.read().await["name"], "B");
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn later_changes_are_shown_before_they_are_lost() {
    let mut scene = Scene::new(json!({ "name": "A", "description": "x" })).await;
    scene.patch(json!({ "name": "B", "description": "y" })).await;
    scene.patch(json!({ "name": "C" })).await;
    let page = scene.ask(1).await.showing(200, "<bdi>Revert this change?</bdi>");
    page.assert_has(&["</svg>Revert anyway</button>"]);
    let since = page.between("data-label=\"Changed since\">", "</td>");
    assert!(since.contains("before: </span>B</del>") && since.contains("after: </span>C</ins>"));
    assert_eq!(page.html.matches("data-label=\"Changed since\"").count(), 1);
    // A change between the page and its form.
    scene.patch(json!({ "name": "D" })).await;
    let stale = scene.owner.submit(&page.form("form")).await;
    stale.assert_shows(412, "<bdi>Revert this change?</bdi>");
    stale.assert_has(&["This has changed since you opened the page.", "after: </span>D</ins>"]);
    assert_eq!(scene.read().await["name"], "D");
    scene.owner.submit(&stale.form("form")).await.location();
    let now = scene.read().await;
    assert_eq!([&now["name"], &now["description"]], ["A", "x"]);
}

#[tokio::test]
async fn deleted_dashboard_is_restored() {
    let mut scene = Scene::new(json!({ "name": "A" })).await;
    scene.patch(json!({ "deleted": true })).await;
    assert_eq!(labels(&scene.owner.get(&scene.log()).await), ["restore", ""]);
    let page = scene.ask(0).await.showing(200, "<bdi>Restore the dashboard A?</bdi>");
    let done = scene.owner.submit(&page.form("form")).await;
    assert_eq!(done.location(), format!("{}&done=dashboard-restored", scene.history()));
    assert_eq!(scene.read().await["deleted"], false);
    // A page that was opened before says so.
    scene.owner.get(&page.form("form").action).await.assert_has(&["It is not deleted any more."]);
    assert_eq!(labels(&scene.owner.get(&scene.log()).await), ["", "", ""]);
}

#[tokio::test]
async fn restored_insight_stays_unsaved() {
    let mut scene = Scene::new(json!({ "name": "A" })).await;
    let insights = scene.workspace.project("insights/");
    let owner = scene.workspace.owner.clone();
    for saved in [false, true] {
        let (_, insight) = owner.create(&insights, json!({ "name": "I", "saved": saved })).await;
        owner.patch(&insight, json!({ "deleted": true, "saved": saved })).await.ok();
        let page = scene.ask(0).await.showing(200, "<bdi>Restore the insight I?</bdi>");
        let command = page.between("<code dir=\"ltr\">", "</code>");
        let body = format!("{{&#34;deleted&#34;:false,&#34;saved&#34;:{saved}}}");
        assert!(command.contains(&body), "{command}");
        scene.owner.submit(&page.form("form")).await.location();
        let stored = owner.get(&insight).await.ok();
        assert_eq!([&stored["deleted"], &stored["saved"]], [&json!(false), &json!(saved)]);
    }
}

#[tokio::test]
async fn tiles_and_texts_are_set_back() {
    let mut scene = Scene::new(json!({ "name": "A" })).await;
    let tiles = json!([{ "text": { "body": "One" } }, { "text": { "body": "Two" } }]);
    let made = scene.patch(json!({ "tiles": tiles })).await;
    let [one, two] = [&made["tiles"][0], &made["tiles"][1]];
    let layouts = json!({ "sm": { "x": 0, "y": 0, "w": 3, "h": 2 } });
    let sent = json!([
        { "id": one["id"], "color": "blue", "layouts": layouts,
          "text": { "id": one["text"]["id"], "body": "Changed" } },
        { "id": two["id"], "deleted": true },
    ]);
    scene.patch(json!({ "tiles": sent })).await;
    assert_eq!(labels(&scene.owner.get(&scene.log()).await), ["revert", "", ""], "new tiles stay");
    let page = scene.ask(0).await.showing(200, "<bdi>Revert this change?</bdi>");
    scene.owner.submit(&page.form("form")).await.location();
    let now = scene.read().await;
    assert_eq!(now["tiles"].as_array().expect("tiles").len(), 2);
    for (tile, before) in now["tiles"].as_array().expect("tiles").iter().zip([one, two]) {
        for field in ["id", "color", "layouts"] {
            assert_eq!(tile[field], before[field]);
        }
        assert_eq!(tile["text"]["body"], before["text"]["body"]);
    }
}

#[tokio::test]
async fn changes_outside_of_dashboards_are_reverted() {
    let workspace = Workspace::new().await;
    workspace.member("anna", Level::Member).await;
    let anna = workspace.uuid("anna@corp.example").await;
    let project = workspace.project("");
    let create = async |list: String, sent: Value| workspace.owner.create(&list, sent).await.1;
    let export = create(format!("{project}batch_exports/"), nowhere("Nightly")).await;
    let board = create(format!("{project}dashboards/"), json!({ "name": "A" })).await;
    let insight = create(format!("{project}insights/"), json!({ "name": "A" })).await;
    let (_, role) = add_role(&workspace, "Analysts").await;
    let domain = json!({ "domain": "zoo.example" });
    let domain = create(workspace.organization("domains/"), domain).await;
    let mut owner = Visitor::owner(&workspace).await;
    let log = workspace.page("activity/");
    for (path, change, field) in [
        (project, json!({ "timezone": "Europe/Berlin" }), "timezone"),
        (board, json!({ "pinned": true }), "pinned"),
        (insight, json!({ "favorited": true }), "favorited"),
        (workspace.organization(""), json!({ "name": "Zoo" }), "name"),
        (role, json!({ "name": "Readers" }), "name"),
        (export, json!({ "paused": true }), "paused"),
        (domain, json!({ "saml_entity_id": "zoo" }), "saml_entity_id"),
        (workspace.organization(&format!("members/{anna}/")), json!({ "level": 8 }), "level"),
    ] {
        let before = workspace.owner.get(&path).await.ok();
        workspace.owner.patch(&path, change.clone()).await.ok();
        assert_ne!(workspace.owner.get(&path).await.ok()[field], before[field], "{path}");
        let page = owner.get(&log).await;
        let link = offers(&page)[0].clone().unwrap_or_else(|| panic!("no offer: {path}"));
        let page = owner.open(&link, "<bdi>Revert this change?</bdi>").await;
        let done = owner.submit(&page.form("form")).await;
        assert!(done.location().ends_with("&done=change-reverted"), "{path}");
        assert_eq!(workspace.owner.get(&path).await.ok()[field], before[field], "{path}");
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn only_changes_that_the_session_may_revert_are_offered() {
    let mut scene = Scene::new(json!({ "name": "A" })).await;
    scene.patch(json!({ "name": "B" })).await;
    let sharing = format!("{}sharing/", scene.path);
    scene.workspace.owner.patch(&sharing, json!({ "enabled": true })).await.ok();
    let project = scene.workspace.project("");
    scene.workspace.owner.patch(&format!("{project}reset_token/"), json!({})).await.ok();
    scene.patch(json!({ "description": "x".repeat(5000) })).await;
    scene.patch(json!({ "description": "short" })).await;
    scene.patch(json!({ "filters": { "date_from": "-7d" } })).await;
    let shown = labels(&scene.owner.get(&scene.log()).await);
    assert_eq!(shown, ["", "", "revert", "", "", "revert", ""]);
    // A key that may not write is offered nothing, and its form is refused.
    let link = offers(&scene.owner.get(&scene.log()).await)[5].clone().expect("an offer");
    let form = scene.owner.get(&link).await.form("form");
    let scopes = ["activity_log:read", "dashboard:read", "project:read"];
    let key = scene.workspace.key(OWNER, &scopes).await.key.expect("a key");
    let mut reader = Visitor::with_key(&scene.workspace, &key).await;
    assert!(labels(&reader.get(&scene.log()).await).iter().all(|label| label.is_empty()));
    let page = reader.get(&link).await;
    page.assert_has(&["role=\"alert\""]).assert_lacks(&["<button class=\"b go\">"]);
    reader.submit(&form).await.assert_shows(403, "<bdi>Revert this change?</bdi>");
    // A member who may only view the dashboard sees why there is no button.
    let anna = scene.workspace.member("anna", Level::Member).await;
    let rules = format!("{}access_controls/", scene.path);
    scene.workspace.owner.put(&rules, json!({ "access_level": "viewer" })).await.ok();
    let mut anna = Visitor::with_key(&scene.workspace, &anna.key.expect("a key")).await;
    let page = anna.get(&link).await;
    page.assert_has(&["role=\"alert\""]).assert_lacks(&["<button class=\"b go\">"]);
    anna.submit(&form).await.assert_shows(403, "<bdi>Revert this change?</bdi>");
    assert_eq!(scene.read().await["name"], "B");
    assert_eq!(scene.patch(json!({ "deleted": true })).await["deleted"], true);
    assert_eq!(labels(&scene.owner.get(&scene.log()).await)[..2], ["restore", ""]);
    let page = scene.owner.get(&scene.log()).await;
    assert!(!labels(&page).contains(&"revert"), "it is deleted");
    scene.owner.get(&link).await.assert_shows(404, "Not found");
    assert_eq!(scene.owner.submit(&form).await.status, 404);
}

#[tokio::test]
async fn addresses_of_other_entries_have_no_page() {
    let scene = Scene::new(json!({ "name": "A" })).await;
    scene.patch(json!({ "name": "B" })).await;
    let page = scene.owner.get(&scene.log()).await;
    let link = offers(&page)[0].clone().expect("an offer");
    for (part, other) in [
        ("scope=Dashboard", "scope=Insight"),
        ("scope=Dashboard&", ""),
        ("&at=2", "&at=1"),
        ("&at=", "&x="),
        ("entry=", "entry=x"),
    ] {
        scene.owner.get(&link.replace(part, other)).await.assert_shows(404, "Not found");
    }
    let created = page.html.split("<li id=\"entry-").nth(2).expect("an entry");
    let id = created.split('"').next().expect("an id");
    let moment = created.split("datetime=\"").nth(1).and_then(|rest| rest.split('"').next());
    let query =
        format!("scope=Dashboard&item_id={}&at={}&entry={id}", scene.id, moment.expect("a time"));
    let page = scene.owner.get(&format!("{}revert/?{query}", scene.log())).await;
    page.assert_shows(404, "Not found").assert_has(&["This change cannot be reverted."]);
}
