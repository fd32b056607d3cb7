//! Tests of `GET /api/organizations/:organization_id/members/:user__uuid/projects/`.

use crate::support::prelude::*;

const ADAM: &str = "adam@corp.example";
const OPEN: &str = "The project is open to all members, with the level member.";

/// A workspace with an admin, two members and four projects: open, and private with a rule for nobody, for `ann`, and
/// for a role of `ann`.
struct Scene {
    workspace: Workspace,
    ann: TestClient,
    ben: TestClient,
    role: Value,
}

impl Scene {
    async fn new() -> Self {
        let workspace = Workspace::new().await;
        workspace.member("adam", Level::Admin).await;
        let ann = workspace.member("ann", Level::Member).await;
        let ben = workspace.member("ben", Level::Member).await;
        let (role, path) = add_role(&workspace, "Analysts").await;
        add_to_role(&workspace, &path, ANN).await;
        let of_ann = workspace.rule_for(Some(ANN), "member").await;
        let of_role = json!({ "role": role["id"], "access_level": "admin" });
        for (name, rule) in
            [("Secret", None), ("Of Ann", Some(of_ann)), ("Of the role", Some(of_role))]
        {
            let id = workspace.add_project(json!({ "name": name, "access_control": true })).await;
            if let Some(rule) = rule {
                let rules = format!("/api/projects/{id}/access_controls/");
                workspace.owner.put(&rules, rule).await.ok();
            }
        }
        Self { workspace, ann, ben, role }
    }

    async fn of(&self, email: &str) -> String {
        let uuid = self.workspace.uuid(email).await;
        self.workspace.organization(&format!("members/{uuid}/projects/"))
    }
}

fn columns(list: &Value) -> Vec<Value> {
    let rows = list["results"].as_array().expect("a list").iter();
    rows.map(|row| json!([row["name"], row["access_level"], row["rule"]])).collect()
}

#[tokio::test]
async fn projects_of_a_member_show_the_level_and_the_rule_that_decides_it() {
    let scene = Scene::new().await;
    let row = |id: u64, name: &str, level: &str, rule: &str, text: &str| {
        json!({
            "id": id, "name": name, "access_control": id > 1, "access_level": level, "rule": rule,
            "role": null, "role_name": null, "text": text,
        })
    };
    let no_rule = "The project is private, and no rule gives the member access.";
    let mut of_role = row(
        4,
        "Of the role",
        "admin",
        "role_rule",
        "A rule on the project gives a role of the member the level admin.",
    );
    of_role["role"] = scene.role["id"].clone();
    of_role["role_name"] = json!("Analysts");
    let by_member = "A rule on the project gives the member the level member.";
    let expected = page(json!([
        row(1, "Web", "member", "project_default", OPEN),
        row(2, "Secret", "none", "project_default", no_rule),
        row(3, "Of Ann", "member", "member_rule", by_member),
        of_role,
    ]));
    let owner = &scene.workspace.owner;
    owner.get(&scene.of(ANN).await).await.assert_is(200, expected);
    let page = owner.get(&format!("{}?limit=1&offset=1", scene.of(ANN).await)).await.ok();
    assert_eq!((&page["count"], &page["results"][0]["name"]), (&json!(4), &json!("Secret")));
    let admin = owner.get(&scene.of(ADAM).await).await.ok();
    assert_eq!(column(&admin, "access_level"), ["admin"; 4]);
    assert_eq!(column(&admin, "rule"), ["organization_admin"; 4]);
    scene.workspace.set_rule(&scene.workspace.project(""), None, "admin").await;
    let page = owner.get(&scene.of(ANN).await).await.ok();
    assert_eq!(columns(&page)[0], json!(["Web", "admin", "project_default"]));
}

#[tokio::test]
async fn level_in_a_project_is_what_requests_of_the_member_get() {
    let scene = Scene::new().await;
    for (email, client) in [(ANN, &scene.ann), ("ben@corp.example", &scene.ben)] {
        let page = scene.workspace.owner.get(&scene.of(email).await).await.ok();
        for row in page["results"].as_array().expect("a list") {
            let answer = client.get(&format!("/api/projects/{}/access_controls/", row["id"])).await;
            if row["access_level"] == "none" {
                assert_eq!(answer.status, 403, "{email} {row}");
                continue;
            }
            assert_eq!(answer.ok()["user_access_level"], row["access_level"], "{email} {row}");
        }
    }
}

#[tokio::test]
async fn projects_that_the_caller_may_not_see_are_not_listed() {
    let scene = Scene::new().await;
    let path = scene.of(ANN).await;
    let seen = scene.ben.get(&path).await.ok();
    assert_eq!(seen["count"], 1);
    assert_eq!(columns(&seen), vec![json!(["Web", "member", "project_default"])]);
    let own = scene.workspace.organization("members/@me/projects/");
    assert_eq!(column(&scene.ann.get(&own).await.ok(), "name"), ["Web", "Of Ann", "Of the role"]);

    // A key that may not list roles or members learns no name of a role, and nothing about others.
    let narrow = scene.workspace.key(ANN, &["access_control:read"]).await;
    assert_eq!(narrow.get(&own).await.ok()["results"][2]["role_name"], Value::Null);
    assert_eq!(narrow.get(&path).await.ok()["count"], 3);
    let others = narrow.get(&scene.of(OWNER).await).await.ok();
    assert_eq!((&others["count"], &others["results"]), (&json!(0), &json!([])));
    let (eve, other) = scene.workspace.outsider("eve").await;
    let uuid = scene.workspace.uuid(ANN).await;
    let other = other["id"].as_str().expect("an id");
    let under_other = format!("/api/organizations/{other}/members/{uuid}/projects/");
    eve.get(&under_other).await.assert_not_found("Not found.");
}
