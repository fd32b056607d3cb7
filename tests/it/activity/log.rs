//! Tests of `/api/organizations/:organization_id/activity_log/` and `/api/projects/:project_id/activity_log/`.

use crate::support::prelude::*;

/// Creates a workspace with a manual clock, set to 2025-01-02T03:04:05Z.
pub async fn at_a_standstill() -> (Workspace, ManualClock) {
    let (config, clock) = with_clock_at(1_735_787_045_000_000);
    (Workspace::with(config).await, clock)
}

/// Returns the paths of the first organization's log and the first project's log.
pub fn logs(workspace: &Workspace) -> [String; 2] {
    [workspace.organization("activity_log/"), workspace.project("activity_log/")]
}

/// Returns scope, item and activity of each entry of a page.
pub fn told(page: &Value) -> Vec<[String; 3]> {
    let text = |entry: &Value, name: &str| entry[name].as_str().expect("a text").to_owned();
    let entries = page["results"].as_array().expect("a list").iter();
    entries.map(|entry| ["scope", "item_id", "activity"].map(|name| text(entry, name))).collect()
}

#[tokio::test]
async fn both_activity_logs_show_changes_newest_first() {
    let (workspace, clock) = at_a_standstill().await;
    let owner = &workspace.owner;
    let olga = embedded(owner).await;
    let [whole, own] = logs(&workspace);
    owner.get(&own).await.assert_is(200, page(json!([])));
    let first = owner.get(&whole).await.ok();
    let id = &first["results"][0]["id"];
    assert!(id.as_str().is_some_and(|id| id.parse::<Uuid>().is_ok()), "{id}");
    let founded = json!({
        "id": id, "user": null, "scope": "Organization", "item_id": workspace.made.organization_id,
        "activity": "created", "detail": { "name": "Corp", "changes": [] }, "project_id": null,
        "created_at": "2025-01-02T03:04:05Z",
    });
    assert_eq!(first, page(json!([founded])), "the operator's entry has no user");

    clock.advance(Duration::from_millis(1500));
    let (id, one) = make(&workspace, owner, json!({ "name": "A" })).await;
    clock.advance(Duration::from_secs(1));
    owner.patch(&one, json!({ "name": "B", "tags": ["x"] })).await.ok();
    let log = owner.get(&own).await.ok();
    let ids = column(&log, "id");
    let change = |field: &str, before: Value, after: Value| {
        json!({
            "type": "Dashboard", "action": "changed", "field": field, "before": before, "after": after,
        })
    };
    let made = json!({
        "id": ids[1], "user": olga, "scope": "Dashboard", "item_id": id.to_string(),
        "activity": "created", "detail": { "name": "A", "changes": [] },
        "project_id": workspace.made.project_id, "created_at": "2025-01-02T03:04:06.500000Z",
    });
    let changes = [change("name", json!("A"), json!("B")), change("tags", json!([]), json!(["x"]))];
    let changes = json!({
        "id": ids[0], "activity": "updated", "detail": { "name": "B", "changes": changes },
        "created_at": "2025-01-02T03:04:07.500000Z",
    });
    let renamed = changed(made.clone(), changes);
    assert_eq!(log, page(json!([renamed, made])));
    owner.get(&whole).await.assert_is(200, page(json!([renamed, made, founded])));
    let names: Vec<_> = log["results"][0].as_object().expect("an entry").keys().cloned().collect();
    assert_eq!(names.join(" "), "id user scope item_id activity detail project_id created_at");
    // Reading the log writes no entries.
    owner.get(&whole).await.assert_is(200, page(json!([renamed, made, founded])));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn activity_log_filters_return_matching_entries() {
    let (workspace, clock) = at_a_standstill().await;
    let minute = Duration::from_mins(1);
    clock.advance(Duration::from_secs(1)); // 03:04:06
    let (owner, ann) = (&workspace.owner, workspace.member("ann", Level::Member).await);
    let (olga, uuid) = (embedded(owner).await, embedded(&ann).await["uuid"].clone());
    let member = workspace.organization(&format!("members/{}/", uuid.as_str().expect("a uuid")));
    let item = workspace.membership(ANN).await;
    clock.advance(Duration::from_secs(59)); // 03:05:05
    owner.patch(&member, json!({ "level": 8 })).await.ok();
    clock.advance(minute); // 03:06:05
    let (id, one) = make(&workspace, &ann, json!({ "name": "A" })).await;
    assert_eq!(id, workspace.made.project_id.0, "one id for two things");
    clock.advance(minute); // 03:07:05
    owner.patch(&one, json!({ "pinned": true })).await.ok();
    clock.advance(minute); // 03:08:05
    ann.patch(&workspace.project(""), json!({ "name": "W" })).await.ok();
    let [whole, own] = logs(&workspace);
    let [renamed, pinned, made] = ["a project renamed", "a dashboard pinned", "a dashboard made"];
    let [raised, joined, founded] = ["a member raised", "a member", "an organization"];
    let name = |entry: &[String; 3]| match [0, 2].map(|at| entry[at].as_str()) {
        ["Project", "updated"] => renamed,
        ["Dashboard", "updated"] => pinned,
        ["Dashboard", "created"] => made,
        ["OrganizationMembership", "updated"] => raised,
        ["OrganizationMembership", "created"] => joined,
        ["Organization", "created"] => founded,
        other => panic!("{other:?}"),
    };
    let (uuid, owners) = (uuid.as_str().expect("a uuid"), olga["uuid"].as_str().expect("a uuid"));
    let item = item.as_str().expect("an id");
    let every = vec![renamed, pinned, made, raised, joined, founded];
    for (query, found) in [
        ("", every.clone()),
        ("scope=Dashboard", vec![pinned, made]),
        ("scope=Dashboard&scope=Project", vec![renamed, pinned, made]),
        ("scopes=Dashboard,+Project,", vec![renamed, pinned, made]),
        ("scope=Dashboard&scopes=Organization", vec![pinned, made, founded]),
        ("scope=Notebook", vec![]),
        ("scope=&item_id=+&user=&after=&before=&activity=", every),
        ("activity=created", vec![made, joined, founded]),
        ("activity=created&scope=Dashboard", vec![made]),
        ("item_id=1", vec![renamed, pinned, made]),
        ("item_id=1&scope=Project", vec![renamed]),
        (&format!("item_id={item}"), vec![raised, joined]),
        ("item_id=1%00", vec![]),
        ("item_id=11", vec![]),
        (&format!("user={uuid}"), vec![renamed, made]),
        (&format!("user={}", uuid.to_uppercase()), vec![renamed, made]),
        (&format!("user={owners}"), vec![pinned, raised]),
        ("user=@me", vec![pinned, raised]),
        ("user=01890000-0000-7000-8000-000000000000", vec![]),
        (&format!("user={uuid}&item_id=1&scope=Dashboard"), vec![made]),
        ("after=2025-01-02T03:07:05Z", vec![renamed, pinned]),
        ("before=2025-01-02T03:07:05Z", vec![made, raised, joined, founded]),
        ("after=2025-01-02T03:05:05Z&before=2025-01-02T03:07:05Z", vec![made, raised]),
        ("after=2025-01-02T04:07:05%2B01:00", vec![renamed, pinned]),
        ("after=2025-01-02&before=2025-01-03&user=@me", vec![pinned, raised]),
        ("after=2025-01-02T03:07:05Z&item_id=1", vec![renamed, pinned]),
        ("before=2025-01-02T03:07:05Z&user=@me", vec![raised]),
        ("after=2025-01-03&before=2025-01-02", vec![]),
        ("after=2025-01-02&before=2025-01-02&item_id=1", vec![]),
        ("AFTER=x&unknown=1", vec![renamed, pinned, made, raised, joined, founded]),
    ] {
        for (path, in_project) in [(&whole, false), (&own, true)] {
            let log = owner.get(&format!("{path}?{query}")).await.ok();
            let mut found = found.clone();
            found.retain(|name| !in_project || ![raised, joined, founded].contains(name));
            assert_eq!(told(&log).iter().map(name).collect::<Vec<_>>(), found, "{path}?{query}");
            assert_eq!(log["count"], found.len(), "{query}");
        }
    }
}

#[tokio::test]
async fn invalid_activity_log_filter_is_rejected_by_name() {
    let workspace = Workspace::new().await;
    let date = "Datetime has wrong format. Use one of these formats instead: YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z].";
    for path in logs(&workspace) {
        for (query, attr, detail) in [
            ("after=yesterday", "after", date),
            ("before=2025-02-30", "before", date),
            ("before=1735787045", "before", date),
            ("after=2025-01-01&after=x", "after", date),
            ("user=olga", "user", BAD_UUID),
            ("user=1", "user", BAD_UUID),
            ("user=%FF", "user", BAD_UUID),
        ] {
            workspace.owner.get(&format!("{path}?{query}&limit=x")).await.assert_bad(attr, detail);
        }
    }
}

#[tokio::test]
async fn former_members_are_still_named_in_the_log() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Admin).await;
    make(&workspace, &ann, json!({ "name": "A" })).await;
    let shown = embedded(&ann).await;
    let uuid = shown["uuid"].as_str().expect("a uuid");
    workspace.remove_member(ANN).await;
    workspace.set_active(ANN, false).await;
    for path in logs(&workspace) {
        let found = workspace.owner.get(&format!("{path}?user={uuid}")).await.ok();
        assert_eq!((&found["count"], &found["results"][0]["user"]), (&json!(1), &shown), "{path}");
    }
    ann.get(&logs(&workspace)[0]).await.is_bad_key();
}

#[tokio::test]
async fn entries_name_the_project_of_their_object() {
    let (workspace, ann) = Workspace::with_member("ann", Level::Member).await;
    let owner = &workspace.owner;
    let project = workspace.made.project_id;
    let (_, board) = make(&workspace, owner, json!({ "name": "A" })).await;
    let second = workspace.add_project(json!({ "name": "B" })).await;
    let elsewhere = format!("/api/projects/{second}/");
    owner.post(&format!("{elsewhere}dashboards/"), json!({ "name": "C" })).await.ok();
    owner.patch(&workspace.organization(""), json!({ "name": "Corp & Co" })).await.ok();
    let of = |page: &Value, scope: &str| {
        let entries = page["results"].as_array().expect("a list").iter();
        let entries = entries.filter(|entry| entry["scope"] == scope);
        entries.map(|entry| entry["project_id"].clone()).collect::<Vec<_>>()
    };
    let [of_organization, of_project] = logs(&workspace);
    for query in ["", "?scope=Organization,Dashboard,Project"] {
        let page = ann.get(&format!("{of_organization}{query}")).await.ok();
        assert_eq!(of(&page, "Dashboard"), [second.clone(), json!(project)], "{query}");
        assert!(of(&page, "Organization").iter().all(Value::is_null), "{page}");
        assert_eq!(of(&page, "Project")[0], second);
    }
    let page = ann.get(&of_project).await.ok();
    assert_eq!(of(&page, "Dashboard"), [json!(project)]);
    // A dry run shows the entry that it would write.
    let dry = dry_run(owner, Method::PATCH, &board, Some(&json!({ "name": "D" }))).await;
    assert_eq!(dry.body["activity"][0]["project_id"], json!(project), "{}", dry.body);
    // What a reader may not see is left out with its project.
    owner.patch(&elsewhere, json!({ "access_control": true })).await.ok();
    let page = ann.get(&of_organization).await.ok();
    assert!(!column(&page, "project_id").contains(&second));
    owner.delete(&elsewhere).await.assert_empty(204);
    let page = owner.get(&format!("{of_organization}?scope=Dashboard")).await.ok();
    assert_eq!(of(&page, "Dashboard"), [second, json!(project)]);
}
