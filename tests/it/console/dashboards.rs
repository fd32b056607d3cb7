//! The list of dashboards, and one dashboard.

use crate::support::prelude::*;

const LIST: &str = "/console/projects/1/dashboards/";

/// Returns the names in the list, in order.
pub fn names(html: &str) -> Vec<&str> {
    let rows = html.split("<tr>\n<td>").skip(1);
    rows.map(|row| row.split("<bdi>").nth(1).unwrap().split("</bdi>").next().unwrap()).collect()
}

#[tokio::test]
async fn dashboards_are_searched_and_filtered_by_links() {
    let (workspace, anna) = Workspace::with_member("anna", Level::Member).await;
    for sent in [
        json!({ "name": "Growth", "description": "Who stays", "tags": ["weekly"], "pinned": true }),
        json!({ "name": "Sales", "tags": ["weekly", "sales"] }),
        json!({ "name": null }),
        json!({ "name": "Traffic", "use_template": "Website traffic" }),
    ] {
        workspace.owner.post(&workspace.dashboards(""), sent).await;
    }
    let restricted = json!({ "name": "Anna's", "restriction_level": 37 });
    anna.post(&workspace.dashboards(""), restricted).await.ok();
    let hers = workspace.uuid("anna@corp.example").await;
    let nobody = "0197a2f4-5c1e-7b3a-9d2e-3f4a5b6c7d8e";
    let owner = Visitor::owner(&workspace).await;
    let page = owner.get(LIST).await;
    page.assert_has(&[&format!("<option value=\"{hers}\">anna</option>")]);
    assert_eq!(names(&page.html).len(), 4 + usize::from(page.html.contains("Traffic")));
    assert_eq!(names(&page.html)[0], "Growth");
    page.assert_has(&["<bdi>Untitled dashboard</bdi>", "Collaborators edit", "Everyone edits"]);
    for (query, expected) in [
        ("search=stays", vec!["Growth"]),
        ("search=++sales+", vec!["Sales"]),
        ("tags=weekly", vec!["Growth", "Sales"]),
        ("tags=weekly&pinned=false", vec!["Sales"]),
        ("pinned=true", vec!["Growth"]),
        ("created_by=@me&search=anna", vec![]),
        ("search=anna", vec!["Anna&#39;s"]),
        ("creation_mode=duplicate", vec![]),
        (&format!("created_by={hers}"), vec!["Anna&#39;s"]),
        (&format!("created_by={nobody}"), vec![]),
    ] {
        let page = owner.open(&format!("{LIST}?{query}"), "Dashboards").await;
        assert_eq!(names(&page.html), expected, "{query}");
        assert_eq!(page.html.contains("No dashboard matches"), expected.is_empty());
        page.assert_has(&[&format!("href=\"{LIST}\">Clear</a>")]);
    }
    for (user, label) in [(hers.as_str(), "anna"), (nobody, "Created by another user")] {
        let page = owner.get(&format!("{LIST}?created_by={user}")).await;
        page.assert_has(&[&format!("<option value=\"{user}\" selected>{label}</option>")]);
    }
    let page = owner.get(&format!("{LIST}?created_by=evil&pinned=x")).await;
    assert!(!page.html.contains("Clear</a>"), "an unknown choice filters nothing");
    let page = owner.get(&format!("{LIST}?search=it's&tags=a%26b")).await;
    assert_eq!(
        page.between("<code dir=\"ltr\">", "</code>"),
        "curl -H &#34;Authorization: Bearer $KEY&#34; \\\n    &#39;http://localhost/api/projects/1/dashboards/\
         ?limit=50&#38;search=it%27s&#38;tags=a%26b&#39;"
    );
}

#[tokio::test]
async fn long_lists_of_dashboards_have_pages() {
    let workspace = Workspace::new().await;
    for number in 0..120 {
        let sent = json!({ "name": format!("n {number:03}") });
        workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
    }
    let owner = Visitor::owner(&workspace).await;
    let first = owner.get(&format!("{LIST}?search=n")).await;
    assert_eq!(names(&first.html).len(), 50);
    first.assert_has(&["<span>1 to 50 of 120</span>"]);
    first.assert_has(&[&format!("rel=\"next\" href=\"{LIST}?search=n&#38;offset=50\"")]);
    first.assert_lacks(&["rel=\"prev\""]);
    let last = owner.get(&format!("{LIST}?search=n&offset=100")).await;
    assert_eq!(names(&last.html), (100..120).map(|n| format!("n {n}")).collect::<Vec<_>>());
    last.assert_has(&[&format!("rel=\"prev\" href=\"{LIST}?search=n&#38;offset=50\"")]);
    last.assert_lacks(&["rel=\"next\""]);
}

#[tokio::test]
async fn full_page_of_dashboards_is_small_for_a_remote_browser() {
    let mut config = Config::default();
    config.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    let workspace = Workspace::with(config).await;
    for number in 0..50 {
        let sent = json!({
            "name": format!("{number:05} weekly revenue by channel"), "tags": ["growth", "weekly"],
            "description": "Signups, activation and churn of the self-serve plan against the week before",
        });
        workspace.owner.post(&workspace.dashboards(""), sent).await.ok();
    }
    let owner = Visitor::owner(&workspace).await;
    let page = owner.get(LIST).await;
    assert_eq!(names(&page.html).len(), 50);
    let cookie = owner.cookie.as_deref().expect("a session");
    let remote = [("x-forwarded-for", "192.0.2.1"), ("accept-encoding", "gzip")];
    let size = async |path: &str| {
        let headers = [remote[0], remote[1], ("cookie", cookie)];
        let answer = workspace.anonymous().fetch(Method::GET, path, &headers, "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["content-encoding"], "gzip");
        answer.bytes.len()
    };
    let own = size(LIST).await;
    assert!(own < 4_500, "the page has {own} bytes");
    let mut whole = own;
    let files = page.html.split('"').filter(|text| text.starts_with("/console/assets/"));
    let files: BTreeSet<_> = files.map(|url| url.split('#').next()).collect();
    assert_eq!(files.len(), 4);
    for file in files.into_iter().flatten() {
        whole += size(file).await;
    }
    assert!(whole < 24_000, "the page and its files have {whole} bytes");
}

#[tokio::test]
async fn dashboard_shows_texts_and_what_insights_ask() {
    let workspace = Workspace::new().await;
    let tiles = json!([
        { "type": "TEXT", "body": "# Read this\n\n**Numbers** are <b>rounded</b>.",
          "layouts": { "sm": { "x": 0, "y": 0, "w": 6, "h": 4 } } },
        { "type": "INSIGHT", "name": "Visitors", "description": "By day", "color": "blue",
          "layouts": { "sm": { "x": 6, "y": 0, "w": 6, "h": 4 } },
          "query": { "kind": "InsightVizNode", "source": { "kind": "TrendsQuery", "interval": "day",
            "series": [{ "event": "$pageview", "math": "dau" }], "dateRange": { "date_from": "-30d" } } } },
    ]);
    let template = json!({ "template": {
        "template_name": "Traffic", "dashboard_description": "Who came", "dashboard_filters": {}, "tags": ["weekly"], "tiles": tiles,
    }});
    let path = workspace.dashboards("create_from_template_json/");
    let made = workspace.owner.post(&path, template).await.ok();
    let owner = Visitor::owner(&workspace).await;
    let page = owner.open(&format!("{LIST}{}/", made["id"]), "Traffic").await;
    page.assert_has(&["Who came"]);
    let [text, insight] = [&made["tiles"][0], &made["tiles"][1]];
    assert_eq!(
        page.between("<style>", "</style>"),
        format!(
            "@media (min-width:56.01rem){{#tile-{}{{grid-area:1/1/span 4/span 6}}#tile-{}{{grid-area:1/7/span 4/span 6}}}}",
            text["id"], insight["id"]
        )
    );
    assert!(page.html.contains(
        "<h2>Read this</h2>\n<p><strong>Numbers</strong> are &lt;b&gt;rounded&lt;/b&gt;.</p>"
    ));
    page.assert_has(&[&format!("<article class=\"tile blue\" id=\"tile-{}\">", insight["id"])]);
    for (label, words) in [
        ("Kind", "Trends, by day"),
        ("Series", "$pageview (unique users)"),
        ("Dates", "Last 30 days"),
    ] {
        page.assert_has(&[&format!("<dt>{label}</dt><dd dir=\"auto\">{words}</dd>")]);
    }
    page.assert_has(&["&#34;kind&#34;: &#34;InsightVizNode&#34;"]);
    let command = page.between("<code dir=\"ltr\">curl", "</code>");
    assert!(command.ends_with(&format!("/api/projects/1/dashboards/{}/&#39;", made["id"])));
}

#[tokio::test]
async fn insight_that_the_session_may_not_view_shows_nothing_of_itself() {
    let workspace = Workspace::new().await;
    let visitor = Visitor::member(&workspace, "ben", Level::Member).await;
    let board = workspace.owner.post(&workspace.dashboards(""), json!({ "name": "A" })).await.ok();
    let insights = workspace.project("insights/");
    let sent = json!({ "name": "Payroll", "dashboards": [board["id"]], "query": { "kind": "TrendsQuery" } });
    let insight = workspace.owner.post(&insights, sent).await.ok();
    let rules = format!("{insights}{}/access_controls/", insight["id"]);
    workspace.owner.put(&rules, json!({ "access_level": "none" })).await.ok();
    let page = visitor.open(&format!("{LIST}{}/", board["id"]), "A").await;
    page.assert_has(&["You may not view this insight."]).assert_lacks(&["Payroll"]);
}

#[tokio::test]
async fn deletion_that_is_partly_refused_can_be_undone() {
    let workspace = Workspace::new().await;
    for name in ["A", "B"] {
        workspace.owner.post(&workspace.dashboards(""), json!({ "name": name })).await.ok();
    }
    let mut owner = Visitor::owner(&workspace).await;
    let sent = [("action", "delete"), ("id", "1"), ("id", "2"), ("id", "999")];
    let asked = owner.post(LIST, &sent).await;
    asked.assert_has(&["<bdi>Dashboard 999</bdi></li>"]);
    let page = owner.submit(&asked.form("form")).await.showing(200, "Dashboards");
    page.assert_has(&["2 done, 1 refused:"]);
    let undo = page.forms().into_iter().find(|form| form.fields.len() == 3).expect("an undo");
    assert_eq!(undo.values("id"), ["1", "2"]);
    owner.submit(&undo).await.assert_leads_to(&format!("{LIST}?done=dashboard-restored&count=2"));
    assert_eq!(names(&owner.get(LIST).await.html), ["A", "B"]);
    let sent = [("action", "delete"), ("sure", "true"), ("id", "999")];
    owner.post(LIST, &sent).await.showing(404, "Dashboards").assert_lacks(&["Undo</button>"]);
    let page = owner.post(LIST, &[("action", "pin"), ("id", "1"), ("id", "999")]).await;
    page.assert_lacks(&["Undo</button>"]);
}

#[tokio::test]
async fn pages_show_objects_with_numbers_beyond_64_bits() {
    let (workspace, visitor) = Visitor::in_new_workspace().await;
    let owner = &workspace.owner;
    let numbers = r#"{"v":[12345678901234567890123,-12345678901234567890123,1.50,1e400]}"#;
    let numbers: Value = serde_json::from_str(numbers).expect("JSON");
    owner.patch(ME, json!({ "notification_settings": numbers })).await.ok();
    let board = json!({ "name": "Large", "filters": numbers });
    let board = owner.post(&workspace.dashboards(""), board).await.ok()["id"].to_string();
    let insights = workspace.project("insights/");
    let insight = json!({ "name": "Digits", "query": numbers, "dashboards": [board] });
    let insight = owner.post(&insights, insight).await.ok()["id"].to_string();
    for path in ["", "edit/", "arrange/", "access/", "sharing/", "delete/"] {
        let page = visitor.get(&format!("{LIST}{board}/{path}")).await;
        assert_eq!(page.status, 200, "{path}: {}", page.html);
    }
    for path in ["", "edit/", "access/"] {
        let page = visitor.get(&format!("/console/projects/1/insights/{insight}/{path}")).await;
        assert_eq!(page.status, 200, "{path}: {}", page.html);
    }
}
