//! The activity log: sentences, differences, filters, paging, the last change of each field, and new entries.

use crate::support::prelude::*;

fn of_project(workspace: &Workspace) -> String {
    format!("/console/projects/{}/activity/", workspace.made.project_id)
}

/// Returns the text of some HTML, without its tags.
fn text(html: &str) -> String {
    let texts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    texts.collect::<String>().replace("&#39;", "'").replace("&#34;", "\"")
}

/// Returns the sentences of a page, newest first.
fn sentences(page: &Page) -> Vec<String> {
    let rows = page.html.split("<li id=\"entry-").skip(1);
    rows.map(|row| text(row.split("<p>").nth(1).unwrap().split("</p>").next().unwrap())).collect()
}

/// Returns the fields and the differences of the newest entry. `-` marks what was removed, `+` what was added.
fn differences(page: &Page) -> Vec<(String, String)> {
    let row = page.html.split("<li id=\"entry-").nth(1).expect("an entry");
    let cells = row.split("<tr>").skip(1).map(|row| row.split_once("</th>").expect("a header"));
    let marked = |html: &str| {
        let html =
            html.replace("<del><span class=\"vh\">before: </span>", "[-").replace("</del>", "]");
        let html =
            html.replace("<ins><span class=\"vh\">after: </span>", "[+").replace("</ins>", "]");
        text(html.split("</td>").next().unwrap())
    };
    cells.map(|(label, value)| (text(label), marked(value))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(one, two)| ((*one).to_owned(), (*two).to_owned())).collect()
}

#[tokio::test]
async fn entries_say_who_did_what_and_what_changed() {
    let (workspace, owner) = Workspace::owned().await;
    let sent = json!({ "name": "Growth", "description": "How many people come here" });
    let (board, path) = owner.create(&workspace.dashboards(""), sent).await;
    owner.patch(&path, json!({ "name": "Sales" })).await.ok();
    let sent = json!({
        "description": "How many people come here, and who stays", "pinned": true, "tags": ["weekly"],
        "restriction_level": 37,
    });
    owner.patch(&path, sent).await.ok();
    let visitor = Visitor::owner(&workspace).await;
    let page = visitor.open(&of_project(&workspace), "Activity").await;
    let expected = [
        "Olga updated the dashboard Sales",
        "Olga updated the name of the dashboard Sales",
        "Olga created the dashboard Growth",
    ];
    assert_eq!(sentences(&page), expected);
    let expected = [
        ("description", "How many people come here[+, and who stays]"),
        ("pinned", "[-no][+yes]"),
        ("restriction", "[-everyone edits][+collaborators edit]"),
        ("tags", "[+weekly]"),
    ];
    let mut found = differences(&page);
    found.sort();
    assert_eq!(found, pairs(&expected));
    let link =
        format!("<a href=\"/console/projects/1/dashboards/{}/\"><bdi>Sales</bdi></a>", board["id"]);
    page.assert_has(&[&link]);
    let command = page.between("<code dir=\"ltr\">curl", "</code>");
    assert!(command.ends_with("/api/projects/1/activity_log/?limit=50&#39;"), "{command}");

    owner.patch(&path, json!({ "filters": { "date_from": "-7d" } })).await.ok();
    let page = visitor.get(&of_project(&workspace)).await;
    assert_eq!(sentences(&page)[0], "Olga updated the filters of the dashboard Sales");
    let expected = "[-{}\n][+{\n  \"date_from\": \"-7d\"\n}\n]";
    assert_eq!(differences(&page), pairs(&[("filters", expected)]));
}

#[tokio::test]
async fn secrets_are_shown_as_hidden() {
    let workspace = Workspace::new().await;
    let project = workspace.project("");
    let made = workspace.owner.patch(&format!("{project}reset_token/"), json!({})).await.ok();
    let page = Visitor::owner(&workspace).await.get(&of_project(&workspace)).await;
    assert_eq!(sentences(&page), ["Olga updated the api token of the project Web"]);
    assert_eq!(differences(&page), pairs(&[("api token", "hidden")]));
    assert!(!page.html.contains(made["api_token"].as_str().expect("a token")));
}

#[tokio::test]
async fn entries_name_the_members_that_they_are_about() {
    let workspace = Workspace::new().await;
    workspace.member("anna", Level::Member).await;
    let anna = workspace.uuid("anna@corp.example").await;
    let owner = &workspace.owner;
    let (_, path) = owner.create(&workspace.dashboards(""), json!({ "name": "Growth" })).await;
    owner.patch(&path, json!({ "restriction_level": 37 })).await.ok();
    let sent = json!({ "user_uuid": anna, "level": 37 });
    owner.post(&format!("{path}collaborators/"), sent).await.ok();
    owner.put(&format!("{path}access_controls/"), json!({ "access_level": "viewer" })).await.ok();
    let member = workspace.membership("anna@corp.example").await;
    let rule = json!({ "organization_member": member, "access_level": "viewer" });
    owner.put(&format!("{path}access_controls/"), rule).await.ok();
    let level = workspace.organization(&format!("members/{anna}/"));
    owner.patch(&level, json!({ "level": 8 })).await.ok();
    let visitor = Visitor::owner(&workspace).await;
    let page = visitor.open(&workspace.page("activity/"), "Activity").await;
    let found = sentences(&page);
    for expected in [
        "Olga updated the level of the membership of anna",
        "Olga created the access rule for anna on the dashboard Growth",
        "Olga created the access rule for everyone on the dashboard Growth",
        "Olga added anna as a collaborator of the dashboard Growth",
        "The operator created the organization Corp",
    ] {
        let shown = found.iter().any(|one| one.to_lowercase() == expected.to_lowercase());
        assert!(shown, "{expected}: {found:#?}");
    }
    assert_eq!(differences(&page), pairs(&[("level", "[-member][+admin]")]));
}

/// Returns the targets of the links in the sentences.
fn named(page: &Page) -> Vec<String> {
    let rows = page.html.split("<li id=\"entry-").skip(1);
    let sentences = rows.map(|row| row.split("<p>").nth(1).unwrap().split("</p>").next().unwrap());
    let links = sentences.filter_map(|sentence| sentence.split("<a href=\"").nth(1));
    links.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn log_of_an_organization_leads_to_the_objects_of_its_projects() {
    let (workspace, owner) = Workspace::owned().await;
    let second = owner.post(&workspace.organization("projects/"), json!({ "name": "B" })).await;
    let second = second.ok()["id"].clone();
    let project = format!("/api/projects/{second}/");
    let board = owner.post(&format!("{project}dashboards/"), json!({ "name": "One" })).await.ok();
    let insight = owner.post(&format!("{project}insights/"), json!({ "name": "Two" })).await.ok();
    let sent = nowhere("Nightly");
    let export = owner.post(&format!("{project}batch_exports/"), sent).await.ok();
    let visitor = Visitor::owner(&workspace).await;
    let page = visitor.open(&workspace.page("activity/"), "Activity").await;
    let pages = format!("/console/projects/{second}/");
    let expected = [
        format!("{pages}batch_exports/{}/", export["id"].as_str().expect("an id")),
        format!("{pages}insights/{}/", insight["id"]),
        format!("{pages}dashboards/{}/", board["id"]),
        format!("{pages}dashboards/"),
    ];
    assert_eq!(named(&page)[..4], expected);
    for link in &expected {
        assert_eq!(visitor.get(link).await.status, 200, "{link}");
    }
    let log = format!("<a href=\"{pages}activity/\"><bdi>B</bdi></a>");
    assert_eq!(page.html.matches(&log).count(), 4, "{}", page.html);
    // A project that cannot be opened any more is not linked.
    owner.delete(&project).await.assert_empty(204);
    let page = visitor.get(&workspace.page("activity/")).await;
    assert!(sentences(&page).iter().any(|one| one == "Olga created the dashboard One"));
    page.assert_lacks(&[&pages]);
}

#[tokio::test]
async fn log_is_filtered_by_links() {
    let (workspace, anna) = Workspace::with_member("anna", Level::Member).await;
    let owner = &workspace.owner;
    let (first, path) = owner.create(&workspace.dashboards(""), json!({ "name": "First" })).await;
    anna.post(&workspace.dashboards(""), json!({ "name": "Second" })).await.ok();
    owner.patch(&path, json!({ "deleted": true })).await.ok();
    let visitor = Visitor::owner(&workspace).await;
    let base = of_project(&workspace);
    for (query, expected) in [
        ("scope=Dashboard&activity=created", vec!["Second", "First"]),
        ("activity=deleted", vec!["First"]),
        ("user=@me&activity=created", vec!["First"]),
        (&format!("user={}", workspace.uuid("anna@corp.example").await), vec!["Second"]),
        (&format!("scope=Dashboard&item_id={}", first["id"]), vec!["First", "First"]),
        ("scope=Insight", vec![]),
        ("after=2000-01-01&before=2200-01-01", vec!["First", "Second", "First"]),
        ("before=2000-01-01", vec![]),
    ] {
        let page = visitor.open(&format!("{base}?{query}"), "Activity").await;
        let found = sentences(&page);
        let names: Vec<_> = found.iter().map(|one| one.rsplit(' ').next().unwrap()).collect();
        assert_eq!(names, expected, "{query}");
        assert_eq!(page.html.contains("No entry matches"), expected.is_empty());
        page.assert_has(&[&format!("href=\"{base}\">Clear</a>")]);
    }
    let page = visitor.get(&format!("{base}?scope=Evil&activity=x")).await;
    assert!(!page.html.contains("Clear</a>"), "an unknown choice filters nothing");
    let page = visitor.get(&format!("{base}?scope=Dashboard&item_id={}", first["id"])).await;
    assert!(text(&page.html).contains("Changes of the dashboard First, newest first."));

    let page = visitor.get(&format!("{base}?user=nobody&activity=created")).await;
    page.assert_shows(400, "Activity");
    assert!(text(page.between("role=\"alert\">", "</p>")).contains(BAD_UUID));
    page.assert_has(&["<option value=\"created\" selected>Created</option>"]);
    page.assert_has(&["<option value=\"nobody\" selected>By another user</option>"]);
}

#[tokio::test]
async fn log_has_pages_from_both_ends() {
    let workspace = Workspace::new().await;
    for number in 0..120 {
        let sent = json!({ "name": format!("n{number:03}") });
        workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
    }
    let visitor = Visitor::owner(&workspace).await;
    let base = of_project(&workspace);
    let link = |text: &str, query: &str| format!("href=\"{base}?{query}\">{text}</a>");
    let first = visitor.get(&format!("{base}?scope=Dashboard")).await;
    assert_eq!(sentences(&first).len(), 50);
    first.assert_has(&["<span>1 to 50 of 120</span>"]);
    assert!(first.html.contains(&link("Older", "scope=Dashboard&#38;offset=50")));
    assert!(first.html.contains(&link("Oldest", "scope=Dashboard&#38;offset=100")));
    first.assert_lacks(&[">Newest</a>", ">Newer</a>"]);
    let last = visitor.get(&format!("{base}?scope=Dashboard&offset=100")).await;
    assert_eq!(sentences(&last).len(), 20);
    assert_eq!(sentences(&last)[19], "Olga created the dashboard n000");
    assert!(last.html.contains(&link("Newest", "scope=Dashboard")));
    assert!(last.html.contains(&link("Newer", "scope=Dashboard&#38;offset=50")));
    last.assert_lacks(&[">Older</a>", ">Oldest</a>"]);
    let beyond = visitor.get(&format!("{base}?scope=Dashboard&offset=150")).await;
    assert_eq!(beyond.location(), format!("{base}?scope=Dashboard&offset=100"));
}

#[tokio::test]
async fn page_of_fields_says_who_changed_each_one_last() {
    let (workspace, anna) = Workspace::with_member("anna", Level::Member).await;
    let owner = &workspace.owner;
    let (board, path) = owner.create(&workspace.dashboards(""), json!({ "name": "A" })).await;
    owner.patch(&path, json!({ "name": "B", "pinned": true })).await.ok();
    anna.patch(&path, json!({ "name": "C" })).await.ok();
    let visitor = Visitor::owner(&workspace).await;
    let base = of_project(&workspace);
    let query = format!("scope=Dashboard&item_id={}", board["id"]);
    let page = visitor.open(&format!("{base}fields/?{query}"), "Last changes").await;
    assert!(text(&page.html).contains("Who changed each field of the dashboard C last."));
    let rows: Vec<_> = page.html.split("<tr>\n<th scope=\"row\">").skip(1).map(text).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows[0].starts_with("name") && rows[0].contains("before: B"));
    assert!(rows[0].contains("anna"));
    assert!(rows[1].starts_with("pinned") && rows[1].contains("Olga"));
    let log = visitor.get(&format!("{base}?{query}")).await;
    log.assert_has(&[&format!("{base}fields/?{}", query.replace('&', "&#38;"))]);
    for query in ["", "?scope=Dashboard", "?item_id=1", "?scope=Dashboard&item_id=999"] {
        visitor.get(&format!("{base}fields/{query}")).await.assert_shows(404, "Not found");
    }
}

#[tokio::test]
async fn script_learns_of_new_entries_with_few_bytes() {
    let workspace = Workspace::new().await;
    workspace.owner.post(&workspace.dashboards(""), json!({ "name": "A" })).await.ok();
    let visitor = Visitor::owner(&workspace).await;
    let base = of_project(&workspace);
    let page = visitor.get(&format!("{base}?scope=Dashboard")).await;
    assert_eq!(page.between("data-news=\"", "\""), format!("{base}news/?scope=Dashboard"));
    let since = page.between("data-since=\"", "\"");
    let news = format!("{base}news/?scope=Dashboard&since={since}");
    let none = visitor.get(&news).await;
    assert_eq!((none.status, &*none.html), (200, "{\"count\":0}"));
    let known = [("if-none-match", none.headers["etag"].to_str().expect("text"))];
    let ask = || visitor.fetch(Method::GET, &news, &known, "");
    let unchanged = ask().await;
    assert_eq!((unchanged.status, &*unchanged.html), (304, ""));
    for name in ["B", "C"] {
        workspace.owner.post(&workspace.dashboards(""), json!({ "name": name })).await.ok();
    }
    workspace.owner.patch(&workspace.project(""), json!({ "name": "Shop" })).await.ok();
    let two = ask().await;
    assert_eq!((two.status, &*two.html), (200, "{\"count\":2}"));
    assert_eq!(two.headers["cache-control"], "no-store");
    // Older pages and pages with an end show no new entries.
    for query in ["before=2200-01-01", "user=nobody"] {
        visitor.get(&format!("{base}?{query}")).await.assert_lacks(&["data-news"]);
    }
    let page = visitor.get(&format!("{base}?scope=Insight")).await;
    assert_eq!(page.between("data-since=\"", "\""), "");
    let news = visitor.get(&format!("{base}news/?scope=Dashboard&since=")).await;
    assert_eq!(news.html, "{\"count\":3}");
}

#[tokio::test]
async fn every_kind_and_activity_that_the_api_writes_has_words() {
    let (workspace, visitor) = Visitor::in_new_workspace().await;
    let document = workspace.owner.get("/api/schema/?format=json").await.ok();
    let path = "/api/projects/{project_id}/activity_log/";
    let parameters = document["paths"][path]["get"]["parameters"].as_array().expect("parameters");
    let page = visitor.get(&of_project(&workspace)).await;
    for name in ["scope", "activity"] {
        let parameter = parameters.iter().find(|one| one["name"] == name).expect("the parameter");
        let values = parameter["schema"]["items"]["enum"].as_array().expect("values").iter();
        let known: BTreeSet<_> = values.map(|value| value.as_str().expect("text")).collect();
        let select = page.between(&format!("<select name=\"{name}\""), "</select>");
        let options = select.split("<option value=\"").skip(2);
        let offered: BTreeSet<_> =
            options.map(|option| option.split('"').next().unwrap()).collect();
        assert_eq!(offered, known);
    }
    // One object of each type, created by the examples of the routes.
    let objects = Objects::make(&workspace, "other").await;
    let page =
        visitor.get(&format!("/console/organizations/{}/activity/", objects.organization())).await;
    let found = sentences(&page);
    assert!(found.len() > 12, "{found:#?}");
    assert!(found.iter().all(|one| !one.contains("recorded") && !one.contains('{')), "{found:#?}");
}

#[tokio::test]
async fn long_changes_are_folded_and_times_are_exact_without_scripts() {
    let (workspace, owner) = Workspace::owned().await;
    owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
    let board = workspace.dashboards("1/");
    let layout = |y: usize| json!({ "sm": { "x": 0, "y": y, "w": 6, "h": 4 } });
    let tile = |y: usize| json!({ "text": { "body": format!("Tile {y}") }, "layouts": layout(y) });
    owner.patch(&board, json!({ "tiles": (0..5).map(tile).collect::<Vec<_>>() })).await.ok();
    let visitor = Visitor::owner(&workspace).await;
    let log = of_project(&workspace);
    let newest = async || {
        let page = visitor.get(&log).await;
        let entry = page.between("<li id=\"entry-", "</li>").to_owned();
        (page, entry)
    };
    owner.patch(&board, json!({ "name": "Sales" })).await.ok();
    let (_, entry) = newest().await;
    assert!(!entry.contains("<details>"), "a short change is shown: {entry}");

    let moved: Vec<_> = (0..5).map(|y| json!({ "id": y + 1, "layouts": layout(9 - y) })).collect();
    owner.patch(&board, json!({ "tiles": moved })).await.ok();
    let (_, entry) = newest().await;
    assert!(entry.contains("<details><summary>5 fields</summary>"), "{entry}");
    assert_eq!(entry.matches("<details>").count(), 1, "{entry}");

    let text = "One line of a long text.\n".repeat(40);
    owner.patch(&board, json!({ "description": text })).await.ok();
    let (page, entry) = newest().await;
    assert!(entry.contains("<td><details><summary>40 lines</summary>"), "{entry}");
    // The question about a change shows all of it.
    let revert = page.links().into_iter().find(|link| link.contains("/revert/?")).expect("a link");
    let question = visitor.open(&revert, "<bdi>Revert this change?</bdi>").await;
    question.assert_lacks(&["<summary>40 lines</summary>"]);

    let at = owner
        .get(&format!(
            "{}?limit=1",
            log.replace("/console/", "/api/").replace("activity/", "activity_log/")
        ))
        .await
        .ok();
    let at = at["results"][0]["created_at"].as_str().expect("a time").to_owned();
    let exact = format!("data-ago>{} {} UTC</time>", &at[..10], &at[11..16]);
    assert!(entry.contains(&exact), "{exact}: {entry}");
}
