//! `/api/projects/:project_id/dashboards/:id/access/`: what each member may do with a dashboard, and why.

use crate::dashboards::access::BAD_LEVEL;
use crate::support::prelude::*;

use super::decided;

impl Scene {
    fn access(&self, query: &str) -> String {
        format!("{}access/{query}", self.one)
    }

    /// The entry of the member with this name, as the owner sees it.
    async fn entry(&self, name: &str) -> Value {
        let uuid = self.workspace.uuid(&format!("{name}@corp.example")).await;
        let page = self.owner().get(&self.access(&format!("?user={uuid}"))).await.ok();
        assert_eq!(page["count"], 1);
        assert_eq!(page["results"].as_array().map(Vec::len), Some(1));
        page["results"][0].clone()
    }

    /// The level of the member with this name, and the rule that decides: its kind, subject and text.
    async fn decided(&self, name: &str) -> Value {
        let entry = self.entry(name).await;
        let decided = decided(&entry);
        json!([entry["access_level"], decided["rule"], decided["subject"], decided["text"]])
    }
}

/// Returns the expected entries of `because`. A line of `table` is the rule, the subject, its level on the dashboard, its
/// level on the project, whether it is reached or decides, and the text. A dash stands for null, and for not reached.
fn because(table: &str) -> Vec<Value> {
    let reason = |line: &str| {
        let mut words = line.splitn(6, ' ');
        let mut word = || words.next().filter(|word| *word != "-");
        let (rule, subject, level, on_project, mark) = (word(), word(), word(), word(), word());
        json!({
            "rule": rule, "subject": subject, "role": null, "role_name": null,
            "access_level": level, "project_level": on_project, "reached": mark.is_some(),
            "decided": mark == Some("decides"), "text": word(),
        })
    };
    table.lines().map(reason).collect()
}

/// A member to whom no rule applies.
const NO_RULES: &str = "\
organization_member - - - reached The user is a member of the organization.
organization_admin - - - reached The member is not an admin or owner of the organization.
project_default everyone - member reached The project is open to all members of the organization.
project_rule member - - - No rule on the project is for the member.
project_rule role - - - No rule on the project is for a role of the member.
creator - - - reached The member did not create the dashboard.
object_rule member - - reached No rule on this dashboard is for the member.
object_rule role - - reached No rule on this dashboard is for a role of the member.
kind_rule member - - reached No rule on all dashboards is for the member.
kind_rule role - - reached No rule on all dashboards is for a role of the member.
kind_rule everyone - - reached No rule on all dashboards is for everyone.
object_rule everyone - - reached No rule on this dashboard is for everyone.
no_rule - editor - decides Without an access rule, everyone is an editor.
restriction - - - reached Editing is not restricted to collaborators.
collaborator - - - - Without a restriction, there are no collaborators.";

/// A collaborator of a restricted dashboard in a private project, whose role opens both.
const OF_A_ROLE: &str = "\
organization_member - - - reached The user is a member of the organization.
organization_admin - - - reached The member is not an admin or owner of the organization.
project_default everyone none none reached The project is private: only rules on the project open it to members.
project_rule member - - reached No rule on the project is for the member.
project_rule role - admin reached A rule on the project gives a role of the member the level admin.
creator - - - reached The member did not create the dashboard.
object_rule member - - reached No rule on this dashboard is for the member.
object_rule role - - reached No rule on this dashboard is for a role of the member.
kind_rule member viewer - reached A rule on all dashboards gives the member the level viewer.
kind_rule role editor - reached A rule on all dashboards gives a role of the member the level editor.
kind_rule everyone manager - - A rule on all dashboards gives everyone the level manager.
object_rule everyone none - - A rule on this dashboard gives everyone the level none.
no_rule - editor - - Without an access rule, everyone is an editor.
restriction - viewer - reached Only collaborators, the creator and admins may edit the dashboard.
collaborator - editor - decides The member is a collaborator of the dashboard.";

#[tokio::test]
async fn access_of_a_member_has_exactly_these_fields_for_callers_who_read_the_rules() {
    let scene = Scene::new().await;
    let me = embedded(&scene.ann).await;
    let entry = json!({
        "user": me, "organization_member": scene.workspace.membership(ANN).await,
        "access_level": "editor", "can_edit_access_levels": false, "because": because(NO_RULES),
    });
    let page = page(json!([entry]));
    for caller in [&scene.ann, &scene.creator, scene.owner()] {
        let path = scene.access(&format!("?user={}", me["uuid"].as_str().expect("a uuid")));
        caller.get(&path).await.assert_is(200, page.clone());
    }
    scene.ann.get(&scene.access("?user=@me")).await.assert_is(200, page);
    scene.rule(Some("ann"), "viewer").await;
    scene.rule(Some("bob"), "none").await;
    scene.rule(Some("max"), "none").await;
    scene.grant("max", "admin").await;
    // A member who sees the dashboard, and an admin of the project who does not.
    for caller in [&scene.ann, &scene.max] {
        assert_eq!(caller.get(&scene.access("")).await.ok()["count"], 6);
    }
    scene.bob.get(&scene.access("")).await.assert_denied(VIEWER);
    scene.bob.get(&scene.access("?user=@me")).await.assert_denied(VIEWER);
    let (eve, _) = scene.workspace.outsider("eve").await;
    let foreign = eve.get(ME).await.ok()["uuid"].clone();
    let foreign = scene.access(&format!("?user={}", foreign.as_str().expect("a uuid")));
    assert_eq!(scene.owner().get(&foreign).await.ok()["count"], 0);
}

#[tokio::test]
async fn reasons_of_a_collaborator_of_a_role_in_a_private_project_are_complete() {
    let scene = Scene::new().await;
    let readers = scene.role("Readers", &["ann"]).await;
    let writers = scene.role("Writers", &["ann", "bob"]).await;
    scene.restrict(37).await;
    scene.workspace.add_collaborator(&scene.one, ANN).await;
    let on_project = scene.workspace.access_controls();
    let of_all = scene.of_all();
    for (path, sent) in [
        (&on_project, json!({ "access_level": "none" })),
        (&on_project, json!({ "role": readers, "access_level": "none" })),
        (&on_project, json!({ "role": writers, "access_level": "admin" })),
        (&scene.controls(), json!({ "access_level": "none" })),
        (&of_all, json!({ "resource": "dashboard", "role": readers, "access_level": "viewer" })),
        (&of_all, json!({ "resource": "dashboard", "role": writers, "access_level": "editor" })),
        (&of_all, json!({ "resource": "dashboard", "access_level": "manager" })),
    ] {
        scene.owner().put(path, sent).await.ok();
    }
    scene.rule_on_all(Some("ann"), "viewer").await;
    let mut expected = because(OF_A_ROLE);
    for at in [4, 9] {
        expected[at]["role"] = writers.clone();
        expected[at]["role_name"] = json!("Writers");
    }
    let ann = scene.entry("ann").await;
    assert_eq!(ann["access_level"], "editor");
    assert_eq!(ann["can_edit_access_levels"], true);
    assert_eq!(ann["because"], json!(expected));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn each_rule_decides_for_the_members_to_whom_it_applies() {
    let scene = Scene::new().await;
    let admin = "The member is an admin or owner of the organization. They manage all dashboards.";
    let creator = "The member created the dashboard. Creators manage their dashboards.";
    let private = "The project is private: only rules on the project open it to members.";
    let restriction = "Only collaborators, the creator and admins may edit the dashboard.";
    let rule = |place, level| format!("A rule on {place} gives everyone the level {level}.");
    let viewer = rule("this dashboard", "viewer");
    scene.rule(Some("bob"), "manager").await;
    scene.rule(None, "viewer").await;
    scene.restrict(37).await;
    for (name, expected) in [
        ("owner", json!(["manager", "organization_admin", null, admin])),
        ("ada", json!(["manager", "organization_admin", null, admin])),
        ("cleo", json!(["manager", "creator", null, creator])),
        ("bob", json!(["viewer", "restriction", null, restriction])),
        ("ann", json!(["viewer", "object_rule", "everyone", viewer])),
    ] {
        assert_eq!(scene.decided(name).await, expected, "{name}");
    }
    // A manager whom the restriction keeps from editing still edits the access rules.
    assert_eq!(scene.entry("bob").await["can_edit_access_levels"], true);
    scene.rule_on_all(None, "none").await;
    let hidden = rule("all dashboards", "none");
    assert_eq!(scene.decided("ann").await, json!(["none", "kind_rule", "everyone", hidden]));
    let rules = scene.workspace.access_controls();
    scene.owner().put(&rules, json!({ "access_level": "none" })).await.ok();
    scene.grant("bob", "member").await;
    for name in ["ann", "cleo"] {
        assert_eq!(scene.entry(name).await["can_edit_access_levels"], false, "{name}");
        let expected = json!(["none", "project_default", "everyone", private]);
        assert_eq!(scene.decided(name).await, expected, "{name}");
    }
    assert_eq!(scene.decided("bob").await[0], "viewer");
    assert_eq!(scene.decided("ada").await[1], "organization_admin");
}

#[tokio::test]
async fn members_are_listed_newest_first_filtered_and_paged() {
    let scene = Scene::new().await;
    scene.rule(Some("bob"), "viewer").await;
    scene.rule(Some("max"), "none").await;
    let address = |name: &&str| format!("{name}@corp.example");
    let bob = scene.workspace.uuid("bob@corp.example").await;
    for (query, expected) in [
        ("", &["ada", "max", "bob", "ann", "cleo", "owner"][..]),
        ("?search=", &["ada", "max", "bob", "ann", "cleo", "owner"]),
        ("?search=CORP.example", &["ada", "max", "bob", "ann", "cleo", "owner"]),
        ("?search=olga", &["owner"]),
        ("?search=zzz", &[]),
        ("?access_level=manager", &["ada", "cleo", "owner"]),
        ("?access_level=viewer", &["bob"]),
        ("?access_level=none", &["max"]),
        ("?access_level=editor", &["ann"]),
        ("?access_level=manager&search=a@", &["ada"]),
        (&format!("?user={bob}"), &["bob"]),
        (&format!("?user={bob}&access_level=viewer"), &["bob"]),
        (&format!("?user={bob}&access_level=none"), &[]),
        (&format!("?user={bob}&search=ann"), &[]),
        ("?user=01890000-0000-7000-8000-000000000000", &[]),
        ("?user=@me", &["owner"]),
    ] {
        let page = scene.owner().get(&scene.access(query)).await.ok();
        let expected: Vec<String> = expected.iter().map(address).collect();
        assert_eq!(emails(&page), expected, "{query}");
        assert_eq!(page["count"], expected.len(), "{query}");
    }
    let all = scene.owner().get(&scene.access("")).await.ok()["results"].clone();
    for (query, count, expected) in [
        ("?limit=2&offset=1", 6, json!([all[1], all[2]])),
        ("?access_level=manager&limit=1&offset=1", 3, json!([all[4]])),
        ("?limit=2&offset=7", 6, json!([])),
    ] {
        let page = scene.owner().get(&scene.access(query)).await.ok();
        assert_eq!((&page["count"], &page["results"]), (&json!(count), &expected), "{query}");
        assert!(page["previous"].as_str().expect("a link").contains("/access/?"), "{query}");
    }
    let path = |query| scene.access(query);
    for query in ["?user=bob", "?user=%40you", "?user=bob@corp.example"] {
        scene.ann.get(&path(query)).await.assert_bad("user", BAD_UUID);
    }
    for query in ["?access_level=admin", "?access_level=Viewer", "?access_level=1"] {
        scene.ann.get(&path(query)).await.assert_bad("access_level", BAD_LEVEL);
    }
    scene.ann.get(&path("?user=&access_level=&limit=x")).await.ok();
}

#[tokio::test]
async fn key_that_may_not_list_members_reads_only_the_access_of_its_user() {
    let scene = Scene::new().await;
    let role = scene.role("Readers", &["ann"]).await;
    let sent = json!({ "role": role, "access_level": "viewer" });
    scene.owner().put(&scene.controls(), sent).await.ok();
    let bob = scene.workspace.uuid("bob@corp.example").await;
    let project = json!({ "projects": [scene.workspace.made.project_id] });
    let scopes = ["access_control:read", "organization:read", "organization_member:read"];
    let limited = scene.workspace.limited_key(ANN, &scopes, project).await;
    for key in [&limited, &scene.workspace.key(ANN, &["access_control:read"]).await] {
        for query in ["", "?user=@me", "?access_level=viewer", "?search=ann", "?limit=1"] {
            let page = key.get(&scene.access(query)).await.ok();
            assert_eq!((&page["count"], emails(&page)), (&json!(1), vec![ANN]), "{query}");
            let rule = &page["results"][0]["because"][7];
            assert_eq!((&rule["role"], &rule["role_name"]), (&role, &Value::Null), "{query}");
            assert_eq!(rule["decided"], true);
        }
        for query in [&*format!("?user={bob}"), "?access_level=editor", "?search=bob", "?offset=1"]
        {
            assert_eq!(key.get(&scene.access(query)).await.ok()["results"], json!([]), "{query}");
        }
    }
    // The scopes for members and for roles show the names of members and of roles.
    let members = scene.workspace.key(ANN, &[scopes[0], scopes[2]]).await;
    let everything = scene.workspace.key(ANN, &scopes).await;
    for (key, name) in [(members, Value::Null), (everything, json!("Readers"))] {
        let page = key.get(&scene.access("")).await.ok();
        assert_eq!(page["count"], 6);
        assert_eq!(page["results"][3]["because"][7]["role_name"], name);
    }
}

#[tokio::test]
async fn users_whom_lists_omit_and_deleted_roles_are_left_out() {
    let scene = Scene::new().await;
    let role = scene.role("Readers", &["ann"]).await;
    let sent = json!({ "role": role, "access_level": "none" });
    scene.owner().put(&scene.controls(), sent).await.ok();
    assert_eq!(scene.decided("ann").await[0], "none");
    let max = scene.workspace.uuid("max@corp.example").await;
    let bob = scene.workspace.uuid("bob@corp.example").await;
    scene.workspace.set_active("max@corp.example", false).await;
    scene.leave("bob").await;
    let bot = new_user("max@posthogbot.user", Some(scene.workspace.made.organization_id));
    scene.workspace.run_operation(Operation::UserCreate(bot)).await;
    let page = scene.owner().get(&scene.access("")).await.ok();
    let left = ["ada", "ann", "cleo", "owner"].map(|name| format!("{name}@corp.example"));
    assert_eq!(page["count"], 4);
    assert_eq!(emails(&page), left);
    for uuid in [max, bob] {
        let page = scene.owner().get(&scene.access(&format!("?user={uuid}"))).await.ok();
        assert_eq!((&page["count"], &page["results"]), (&json!(0), &json!([])));
    }
    scene.owner().delete(&scene.role_path(&role)).await.assert_empty(204);
    assert_eq!(scene.decided("ann").await[1], "no_rule");
    assert_eq!(scene.entry("ann").await["because"][7]["role"], Value::Null);
}
