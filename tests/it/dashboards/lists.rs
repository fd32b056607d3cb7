//! Lists of dashboards: which of them the caller may see, and which the query asks for.

use proptest::prelude::*;
use proptest::sample::select;

use crate::support::prelude::*;

/// The IDs of the dashboards on a page, in its order.
pub fn ids(page: &Value) -> Vec<u64> {
    let rows = page["results"].as_array().expect("a list").iter();
    rows.map(|row| row["id"].as_u64().expect("an id")).collect()
}

async fn restore(caller: &TestClient, one: &str) {
    caller.patch(one, json!({ "deleted": false })).await.ok();
}

async fn remove(caller: &TestClient, one: &str) {
    caller.patch(one, json!({ "deleted": true })).await.ok();
}

/// The expected list item for the creator, an admin or a user with this level.
fn seen_as(mut item: Value, level: &str) -> Value {
    item["user_access_level"] = json!(level);
    item
}

/// The fields of a dashboard that the model needs.
#[derive(Debug, Clone)]
struct Model {
    id: u64,
    name: &'static str,
    pinned: bool,
    tags: Vec<&'static str>,
    ann_made_it: bool,
}

/// The levels that rules on one dashboard give to the caller by name, and to everyone.
type Said = (Option<&'static str>, Option<&'static str>);

/// The query: search, tags, pinned, and whether Ann is `created_by`.
type Query = (Option<&'static str>, Vec<&'static str>, Option<bool>, bool);

#[derive(Debug, Clone)]
struct Case {
    is_ann: bool,
    said: Vec<Said>,
    on_all: Said,
    asked: Query,
    deleted: bool,
    limit: usize,
}

const COUNT: usize = 9;

fn cases() -> impl Strategy<Value = Case> {
    let level = || {
        prop_oneof![
            4 => Just(None),
            2 => Just(Some("none")),
            1 => Just(Some("viewer")),
            1 => Just(Some("manager")),
        ]
    };
    let search =
        prop_oneof![2 => Just(None), 1 => select(vec![Some("x"), Some("SALES"), Some("zz")])];
    let tags = prop_oneof![
        2 => Just(vec![]),
        1 => select(vec![vec!["T"], vec![" u "], vec!["t", "u"], vec!["v"]]),
    ];
    let pinned = prop_oneof![2 => Just(None), 1 => any::<bool>().prop_map(Some)];
    (
        any::<bool>(),
        prop::collection::vec((level(), level()), COUNT),
        (level(), level()),
        (search, tags, pinned, prop::bool::weighted(0.2)),
        prop::bool::weighted(0.3),
        1_usize..5,
    )
        .prop_map(|(is_ann, said, on_all, asked, deleted, limit)| Case {
            is_ann,
            said,
            on_all,
            asked,
            deleted,
            limit,
        })
}

impl Model {
    fn is_visible(&self, case: &Case, at: usize) -> bool {
        let ((named, everyone), (named_on_all, on_all)) = (case.said[at], case.on_all);
        let level = named.or(named_on_all).or(on_all).or(everyone);
        (case.is_ann && self.ann_made_it) || level != Some("none")
    }

    fn is_sought(&self, (search, tags, pinned, by_ann): &Query) -> bool {
        search.is_none_or(|text| self.name.to_lowercase().contains(&text.to_lowercase()))
            && (tags.is_empty()
                || tags.iter().any(|tag| self.tags.contains(&&*tag.trim().to_lowercase())))
            && pinned.is_none_or(|pinned| self.pinned == pinned)
            && (!by_ann || self.ann_made_it)
    }
}

fn query(case: &Case, ann: &str) -> String {
    let (search, tags, pinned, by_ann) = &case.asked;
    let mut pairs = vec![("limit", case.limit.to_string())];
    pairs.extend(search.map(|text| ("search", text.to_owned())));
    pairs.extend(tags.iter().map(|tag| ("tags", (*tag).to_owned())));
    pairs.extend(pinned.map(|pinned| ("pinned", pinned.to_string())));
    pairs.extend(by_ann.then(|| ("created_by", ann.to_owned())));
    pairs.extend(case.deleted.then(|| ("deleted", "true".to_owned())));
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Creates the dashboards of the model, and deletes the first half one after the other. Returns both lists
/// in their expected order.
async fn populated() -> (Scene, [Vec<Model>; 2]) {
    let scene = Scene::new().await;
    let own = Model { id: scene.id, name: "A", pinned: false, tags: vec![], ann_made_it: false };
    scene.clock.advance(minute());
    remove(&scene.creator, &scene.one).await;
    let mut models = BTreeMap::from([(scene.id, own)]);
    for at in 1..2 * COUNT {
        let name = ["", "x", "Sales x", "sales", "b"][at % 5];
        let tags = [vec![], vec!["t"], vec!["t", "u"]][at % 3].clone();
        let (pinned, ann_made_it) = (at % 4 == 0, at % 7 == 1);
        let maker = if ann_made_it { &scene.ann } else { &scene.creator };
        let sent = json!({ "name": name, "tags": tags, "pinned": pinned });
        let (id, one) = make(&scene.workspace, maker, sent).await;
        models.insert(id, Model { id, name, pinned, tags, ann_made_it });
        if at < COUNT {
            scene.clock.advance(minute());
            remove(&scene.creator, &one).await;
        }
    }
    let mut lists = Vec::new();
    for query in ["", "?deleted=true"] {
        let shown = ids(&scene.owner().get(&scene.workspace.dashboards(query)).await.ok());
        let known: Vec<_> = shown.iter().filter_map(|id| models.get(id).cloned()).collect();
        assert_eq!(known.len(), COUNT);
        lists.push(known);
    }
    assert!(lists[1].is_sorted_by_key(|model| std::cmp::Reverse(model.id)), "last deleted first");
    (scene, lists.try_into().expect("two lists"))
}

/// Sets the rules of the case for both callers, and deletes all other rules.
async fn establish(scene: &Scene, models: &[Model], case: &Case, members: &[Value; 2]) {
    let (caller, other) = if case.is_ann { (0, 1) } else { (1, 0) };
    let mut puts = Vec::new();
    let mut put = |path: &str, said: &Said| {
        for (member, level) in
            [(&members[caller], said.0), (&members[other], None), (&Value::Null, said.1)]
        {
            let sent = json!({
                "access_level": level, "organization_member": member, "resource": "dashboard",
            });
            puts.push((path.to_owned(), sent));
        }
    };
    for (model, said) in models.iter().zip(&case.said) {
        put(&scene.workspace.dashboards(&format!("{}/access_controls/", model.id)), said);
    }
    put(&scene.of_all(), &case.on_all);
    let puts = puts.iter().map(|(path, sent)| scene.owner().put(path, sent.clone()));
    for answer in join_all(puts).await {
        assert!(answer.status < 300, "{} {}", answer.status, answer.body);
    }
}

async fn follows_the_model(
    scene: &Scene,
    lists: &[Vec<Model>; 2],
    case: &Case,
    members: &[Value; 2],
    ann: &str,
) -> Result<(), TestCaseError> {
    // A deleted dashboard accepts no rules, so the rules on live ones must not apply.
    let models = &lists[usize::from(case.deleted)];
    if case.deleted {
        let none = Case { said: vec![(None, None); COUNT], ..case.clone() };
        establish(scene, &lists[0], &none, members).await;
    } else {
        establish(scene, models, case, members).await;
    }
    let said = if case.deleted { vec![(None, None); COUNT] } else { case.said.clone() };
    let case = Case { said, ..case.clone() };
    let caller = if case.is_ann { &scene.ann } else { &scene.bob };
    let path = scene.workspace.dashboards(&format!("?{}", query(&case, ann)));
    let none_of_all = case.on_all.0.or(case.on_all.1) == Some("none");
    let granted = case.said.iter().any(|(named, _)| named.is_some_and(|level| level != "none"));
    if none_of_all && !granted && !case.is_ann {
        caller.get(&path).await.assert_denied(VIEWER);
        return Ok(());
    }
    let visible = models.iter().enumerate().filter(|(at, model)| model.is_visible(&case, *at));
    let sought = visible.filter(|(_, model)| model.is_sought(&case.asked));
    let expected: Vec<u64> = sought.map(|(_, model)| model.id).collect();
    prop_assert_eq!(walked(caller, &path, "id").await, expected);
    Ok(())
}

#[test]
fn pages_contain_every_visible_dashboard_once_and_no_hidden_one() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (scene, lists) = runtime.block_on(populated());
    let (members, ann) = runtime.block_on(async {
        let member =
            async |name| scene.sent(Some(name), "none").await["organization_member"].clone();
        let ann = embedded(&scene.ann).await["uuid"].as_str().expect("a uuid").to_owned();
        ([member("ann").await, member("bob").await], ann)
    });
    let mut runner =
        TestRunner::new(Cases { cases: 48, failure_persistence: None, ..Cases::default() });
    let held = runner.run(&cases(), |case| {
        runtime.block_on(follows_the_model(&scene, &lists, &case, &members, &ann))
    });
    held.expect("every case passes");
    runtime.block_on(scene.workspace.assert_file_valid());
}

/// A workspace with dashboards to search for, and a member.
async fn searchable() -> (Workspace, TestClient) {
    let scene = Scene::new().await;
    let (workspace, ann) = (scene.workspace, scene.ann);
    for (name, description, tags, pinned) in [
        (json!("Sales 2024"), "", json!(["Money", "old"]), true),
        (json!("sales ÄRA"), "", json!(["money"]), false),
        (json!(null), "All of our \"SALES\"", json!([]), false),
        (json!("Web"), "traffic\nby day", json!(["mixed case", "old"]), true),
    ] {
        let sent =
            json!({ "name": name, "description": description, "tags": tags, "pinned": pinned });
        make(&workspace, &ann, sent).await;
    }
    (workspace, ann)
}

#[tokio::test]
async fn query_parameters_filter_the_list() {
    let (workspace, ann) = searchable().await;
    let me = embedded(&ann).await;
    let (uuid, number) = (me["uuid"].as_str().expect("a uuid"), &me["id"]);
    // In list order: 2 and 5 are pinned, followed by 1, 3 and 4 by name.
    let all = [2, 5, 1, 3, 4];
    for (query, found) in [
        ("", &all[..]),
        ("search=sales", &[2, 3, 4]),
        ("search=SALES+2", &[2]),
        ("search=%C3%A4ra", &[3]),
        ("search=++web++", &[5]),
        ("search=BY+day", &[5]),
        ("search=%22sales%22", &[4]),
        ("search=%5C", &[]),
        ("search=%25", &[]),
        ("search=", &all[..]),
        ("search=web&search=sales", &[2, 3, 4]),
        ("tags=money", &[2, 3]),
        ("tags=+MONEY+", &[2, 3]),
        ("tags=money&tags=old", &[2, 5, 3]),
        ("tags=old&tags=Mixed+Case", &[2, 5]),
        ("tags=mon", &[]),
        ("tags=", &all[..]),
        ("tags=[%22old%22,%22Money%22]", &[2, 5, 3]),
        ("pinned=true", &[2, 5]),
        ("pinned=False", &[1, 3, 4]),
        ("pinned=", &all[..]),
        ("creation_mode=default", &all[..]),
        ("creation_mode=template", &[]),
        ("creation_mode=duplicate", &[]),
        (&format!("created_by={uuid}"), &[2, 5, 3, 4]),
        (&format!("created_by={}", uuid.to_uppercase()), &[2, 5, 3, 4]),
        (&format!("created_by={number}"), &[2, 5, 3, 4]),
        ("created_by=@me", &[2, 5, 3, 4]),
        ("created_by=2", &[1]),
        ("created_by=999", &[]),
        ("created_by=01890000-0000-7000-8000-000000000000", &[]),
        (&format!("created_by={number}.0"), &[2, 5, 3, 4]),
        ("created_by=-1", &[]),
        ("search=sales&tags=money&pinned=true", &[2]),
        (&format!("search=sales&created_by={number}&pinned=0"), &[3, 4]),
        ("deleted=false", &all[..]),
        ("deleted=1", &[]),
        ("SEARCH=web", &all[..]),
    ] {
        let page = ann.get(&workspace.dashboards(&format!("?{query}"))).await.ok();
        assert_eq!(ids(&page), found, "{query}");
        assert_eq!(page["count"], found.len(), "{query}");
    }
}

#[tokio::test]
async fn deleted_dashboards_are_listed_with_deletion_time_and_user() {
    let scene = Scene::new().await;
    let (workspace, owner) = (&scene.workspace, scene.owner());
    let list = workspace.dashboards("?deleted=true");
    scene.ann.get(&list).await.assert_is(200, page(json!([])));
    let (id, other) = make(workspace, owner, json!({ "name": "B", "pinned": true })).await;
    let created_at = json!("2025-01-02T03:04:05Z");
    let a = json!({ "name": "A", "deleted": true, "created_at": created_at });
    let mut a = item(detail(&scene.creator, scene.id, a).await);
    let b = json!({ "name": "B", "deleted": true, "pinned": true, "created_at": created_at });
    let mut b = item(detail(owner, id, b).await);
    scene.clock.advance(minute());
    remove(&scene.ann, &other).await;
    scene.clock.advance(minute());
    remove(&scene.admin, &scene.one).await;
    a["deleted_at"] = json!("2025-01-02T03:06:05Z");
    a["deleted_by"] = embedded(&scene.admin).await;
    b["deleted_at"] = json!("2025-01-02T03:05:05Z");
    b["deleted_by"] = embedded(&scene.ann).await;
    scene.admin.get(&list).await.assert_is(200, page(json!([a, b])));
    for (caller, levels) in [(&scene.creator, ["manager", "editor"]), (&scene.bob, ["editor"; 2])] {
        let seen = [seen_as(a.clone(), levels[0]), seen_as(b.clone(), levels[1])];
        caller.get(&list).await.assert_is(200, page(json!(seen)));
    }
    scene.bob.get(&workspace.dashboards("")).await.assert_is(200, page(json!([])));
    assert_eq!(walked(&scene.bob, &format!("{list}&limit=1"), "id").await, [1, 2]);
    for (query, found) in [
        ("search=a", vec![1]),
        ("pinned=true", vec![2]),
        ("created_by=@me", vec![]),
        ("tags=x", vec![]),
    ] {
        let page = scene.bob.get(&format!("{list}&{query}")).await.ok();
        assert_eq!((ids(&page), &page["count"]), (found.clone(), &json!(found.len())), "{query}");
    }

    restore(&scene.ann, &scene.one).await;
    scene.admin.get(&list).await.assert_is(200, page(json!([b])));
    scene.clock.advance(minute());
    remove(&scene.bob, &scene.one).await;
    a["deleted_at"] = json!("2025-01-02T03:07:05Z");
    a["deleted_by"] = embedded(&scene.bob).await;
    scene.admin.get(&list).await.assert_is(200, page(json!([a, b])));
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_dashboards_are_hidden_like_live_ones() {
    let scene = Scene::new().await;
    let (workspace, owner) = (&scene.workspace, scene.owner());
    let (own, path) = make(workspace, &scene.ann, json!({})).await;
    let (third, other) = make(workspace, owner, json!({})).await;
    scene.rule(None, "none").await;
    scene.rule_on(&path, None, "none").await;
    for one in [&scene.one, &path, &other] {
        scene.clock.advance(minute());
        remove(owner, one).await;
    }
    let list = workspace.dashboards("?deleted=true");
    let listed = async |caller: &TestClient| {
        let page = caller.get(&list).await.ok();
        assert_eq!(page["count"], ids(&page).len());
        ids(&page)
    };
    assert_eq!(listed(&scene.admin).await, [third, own, scene.id]);
    assert_eq!(listed(&scene.ann).await, [third, own]);
    assert_eq!(listed(&scene.bob).await, [third]);
    scene.rule_on_all(None, "none").await;
    assert_eq!(listed(&scene.ann).await, [own]);
    scene.bob.get(&list).await.assert_denied(VIEWER);
}
