//! `/api/projects/:project_id/insights/:id/access/`: what each member may do with an insight, and why.

use crate::support::prelude::*;

use super::decided;

const NAMES: [&str; 6] = ["ada", "max", "bob", "ann", "cleo", "owner"];

impl Scene {
    /// The level of each member on the insight at this path, with the rule that decides and its text, as the owner sees them.
    async fn access_to(&self, insight: &str) -> BTreeMap<String, Value> {
        let page = self.owner().get(&format!("{insight}access/")).await.ok();
        assert_eq!(page["count"], NAMES.len());
        let entries = page["results"].as_array().expect("a list").iter();
        let described = entries.map(|entry| {
            assert_eq!(entry["because"].as_array().map(Vec::len), Some(15));
            let decided = decided(entry);
            assert_eq!(decided["reached"], true);
            assert_eq!(decided["access_level"], entry["access_level"]);
            let email = entry["user"]["email"].as_str().expect("an address");
            let name = email.split('@').next().unwrap_or_default().to_owned();
            (name, json!([entry["access_level"], decided["rule"], entry["can_edit_access_levels"]]))
        });
        described.collect()
    }

    /// Asserts that the service enforces the access to the insight.
    async fn enforces(&self, insight: &str, access: &BTreeMap<String, Value>) {
        for name in NAMES {
            let (caller, said) = (self.caller(name), &access[name]);
            let may = |levels: &[&str], success: u16| {
                if levels.iter().any(|level| said[0] == *level) { success } else { 403 }
            };
            let read = caller.get(insight).await.status;
            assert_eq!(read, may(&["viewer", "editor", "manager"], 200), "{name} {said}");
            let renamed = caller.patch(insight, json!({ "name": "B" })).await.status;
            assert_eq!(renamed, may(&["editor", "manager"], 200), "{name} {said}");
            // Without a level, so that the rule is not set.
            let ruled = caller.put(&format!("{insight}access_controls/"), json!({})).await.status;
            assert_eq!(ruled, if said[2] == true { 400 } else { 403 }, "{name} {said}");
        }
    }
}

fn expected(table: &[(&str, &str, &str, bool)]) -> BTreeMap<String, Value> {
    let rows = table.iter();
    rows.map(|(name, level, rule, rules)| ((*name).to_owned(), json!([level, rule, rules])))
        .collect()
}

#[tokio::test]
async fn access_to_an_insight_is_what_the_service_enforces() {
    let scene = Scene::new().await;
    let (_, [insight, short]) = scene.insight().await;
    let admin = "organization_admin";
    let open = expected(&[
        ("ada", "manager", admin, true),
        ("owner", "manager", admin, true),
        ("cleo", "manager", "creator", true),
        ("ann", "editor", "no_rule", false),
        ("bob", "editor", "no_rule", false),
        ("max", "editor", "no_rule", false),
    ]);
    assert_eq!(scene.access_to(&insight).await, open);
    assert_eq!(scene.access_to(&short).await, open);
    scene.enforces(&insight, &open).await;

    scene.rule_on(&insight, Some("ann"), "manager").await;
    scene.rule_on(&insight, None, "viewer").await;
    scene.rule_on_insights(Some("max"), "none").await;
    let ruled = expected(&[
        ("ada", "manager", admin, true),
        ("owner", "manager", admin, true),
        ("cleo", "manager", "creator", true),
        ("ann", "manager", "object_rule", true),
        ("bob", "viewer", "object_rule", false),
        ("max", "none", "kind_rule", false),
    ]);
    assert_eq!(scene.access_to(&insight).await, ruled);
    scene.enforces(&insight, &ruled).await;
    // No rule on dashboards says anything about insights.
    scene.rule_on_all(None, "none").await;
    assert_eq!(scene.access_to(&insight).await, ruled);
    scene.rule_on_all(None, Value::Null).await;

    let rules = scene.workspace.access_controls();
    scene.owner().put(&rules, json!({ "access_level": "none" })).await.ok();
    scene.grant("max", "admin").await;
    let closed = scene.access_to(&insight).await;
    for name in ["cleo", "ann", "bob"] {
        assert_eq!(closed[name], json!(["none", "project_default", false]), "{name}");
    }
    assert_eq!(closed["max"], json!(["none", "kind_rule", true]));
    scene.enforces(&insight, &closed).await;
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn restricted_dashboards_keep_members_from_editing_their_insights() {
    let scene = Scene::new().await;
    let admin = "organization_admin";
    // Max made the restricted dashboard, Ann collaborates on it, and Cleo made the insight.
    let (id, restricted) = make(&scene.workspace, &scene.max, json!({ "name": "B" })).await;
    scene.max.patch(&restricted, json!({ "restriction_level": 37 })).await.ok();
    let ann = scene.workspace.uuid(ANN).await;
    let sent = json!({ "user_uuid": ann, "level": 37 });
    scene.max.post(&format!("{restricted}collaborators/"), sent).await.ok();
    let (_, [insight, _]) = scene.insight().await;
    scene.owner().patch(&insight, json!({ "dashboards": [id] })).await.ok();
    let on_restricted = expected(&[
        ("ada", "manager", admin, true),
        ("owner", "manager", admin, true),
        ("cleo", "viewer", "restriction", true),
        ("ann", "editor", "dashboard_editor", false),
        ("bob", "viewer", "restriction", false),
        ("max", "editor", "dashboard_editor", false),
    ]);
    let access = scene.access_to(&insight).await;
    assert_eq!(access, on_restricted);
    scene.enforces(&insight, &access).await;
    let cleo = scene.creator.get(&format!("{insight}access/?user=@me")).await.ok();
    let because = cleo["results"][0]["because"].as_array().expect("reasons");
    let reached: Vec<_> =
        because.iter().filter(|reason| reason["reached"] == true).map(|it| &it["rule"]).collect();
    let rules = ["organization_member", admin, "project_default", "creator", "restriction"];
    assert_eq!(json!(reached[..5]), json!(rules), "{because:?}");
    assert_eq!(
        because[13]["text"],
        "A restricted dashboard shows the insight. Only members who may edit a dashboard that shows it may edit it."
    );

    // A dashboard that is hidden from a member restricts too, and exempts nobody.
    scene.rule_on(&restricted, Some("ann"), "none").await;
    let access = scene.access_to(&insight).await;
    assert_eq!(access["ann"], json!(["viewer", "restriction", false]));
    scene.enforces(&insight, &access).await;
    // One dashboard that a member may edit suffices.
    scene.owner().patch(&insight, json!({ "dashboards": [id, scene.id] })).await.ok();
    let access = scene.access_to(&insight).await;
    assert_eq!(access["cleo"], json!(["manager", "dashboard_editor", true]));
    assert_eq!(access["bob"], json!(["editor", "dashboard_editor", false]));
    scene.enforces(&insight, &access).await;
    // Viewers stay viewers, whatever the dashboards allow.
    scene.rule_on(&insight, Some("bob"), "viewer").await;
    let access = scene.access_to(&insight).await;
    assert_eq!(access["bob"], json!(["viewer", "object_rule", false]));
    scene.enforces(&insight, &access).await;
}

#[tokio::test]
async fn access_to_an_insight_is_filtered_and_refused_like_that_to_a_dashboard() {
    let scene = Scene::new().await;
    let (_, [insight, _]) = scene.insight().await;
    scene.rule_on(&insight, Some("bob"), "none").await;
    let path = |query: &str| format!("{insight}access/{query}");
    for (query, count) in
        [("", 6), ("?access_level=none", 1), ("?search=ann", 1), ("?user=@me", 1), ("?limit=2", 6)]
    {
        assert_eq!(scene.ann.get(&path(query)).await.ok()["count"], count, "{query}");
    }
    scene.bob.get(&path("")).await.assert_denied(VIEWER);
    let refused = scene.ann.get(&path("?access_level=admin")).await;
    assert_eq!((refused.status, &refused.body["attr"]), (400, &json!("access_level")));
    let key = scene.workspace.key(ANN, &["access_control:read"]).await;
    assert_eq!(key.get(&path("")).await.ok()["count"], 1);
}
