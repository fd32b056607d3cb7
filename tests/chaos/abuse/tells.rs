//! Tests that no response contains an id, name or count of what its caller may not see.

use steward::testing::router::routes;

use crate::prelude::*;
use crate::support::batch_exports::to;

const ANN: &str = "ann@corp.example";
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// Collects all words and numbers of a JSON value, including the names of fields.
fn words(value: &Value, found: &mut BTreeSet<String>) {
    let mut split = |text: &str| {
        let words = text.split(|one: char| !one.is_ascii_alphanumeric());
        found.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    };
    match value {
        Value::String(text) => split(text),
        Value::Number(number) => split(&number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| words(item, found)),
        Value::Object(members) => {
            members.keys().for_each(|name| split(name));
            members.values().for_each(|member| words(member, found));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// What must be hidden from a caller: words, or several words joined, such as a UUID.
type Hidden = BTreeSet<String>;

/// Returns the hidden words that a response contains, except those in the request.
fn told<'h>(answer: &TestResponse, asked: &str, hidden: &'h Hidden) -> Vec<&'h String> {
    let mut found = BTreeSet::new();
    words(&answer.body, &mut found);
    let text = String::from_utf8_lossy(&answer.bytes);
    let is_told =
        |one: &str| if one.contains('-') { text.contains(one) } else { found.contains(one) };
    hidden.iter().filter(|one| is_told(one) && !asked.contains(one.as_str())).collect()
}

#[track_caller]
fn tells_nothing(answer: &TestResponse, asked: &str, hidden: &Hidden) {
    let told = told(answer, asked, hidden);
    assert!(told.is_empty(), "{asked} told {told:?}: {} {}", answer.status, answer.body);
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// An organization with an open and a private project, an open and a hidden dashboard that show one insight, and an
/// open copy of the hidden one; another organization of Ann; and an organization without Ann. All ids are large, so
/// that no other number in a response is equal to one.
struct Scene {
    workspace: Workspace,
    ann: TestClient,
    open: Value,
    hidden: Value,
    copy: Value,
    /// Values for the parameters of paths: organizations, projects, dashboards, other ids.
    organizations: Vec<String>,
    projects: Vec<String>,
    dashboards: Vec<String>,
    others: Vec<String>,
    /// What Ann may not see.
    secret: Hidden,
    /// What Ann may see, but not with a key that is limited to the first organization.
    elsewhere: Hidden,
}

async fn hide(workspace: &Workspace, dashboard: &Value) {
    let path = workspace.dashboards(&format!("{}/access_controls/", dashboard["id"]));
    workspace.owner.put(&path, json!({ "access_level": "none" })).await.ok();
}

async fn export(owner: &TestClient, project: &Value, name: &str) -> Value {
    let mut sent = to("HTTP", &json!({ "url": "https://a.example", "token": "t" }));
    sent["name"] = json!(name);
    owner.post(&format!("/api/projects/{project}/batch_exports/"), sent).await.ok()
}

/// Creates the dashboards: an open one, a hidden one, and an open copy of the hidden one.
async fn dashboards(workspace: &Workspace) -> [Value; 3] {
    let owner = &workspace.owner;
    let list = workspace.dashboards("");
    let tiles = json!([
        { "type": "INSIGHT", "name": "Visitors", "query": { "kind": "TrendsQuery" } },
        { "type": "TEXT", "body": "Shared" },
    ]);
    let open = from_tiles(owner, workspace, tiles).await.ok();
    let sent = json!({ "name": "Quetzal", "use_dashboard": open["id"] });
    let hidden = owner.post(&list, sent).await.ok();
    let sent = json!({ "name": "Copy", "use_dashboard": hidden["id"] });
    let copy = owner.post(&list, sent).await.ok();
    let path = workspace.dashboards(&format!("{}/", hidden["id"]));
    owner.patch(&path, json!({ "tiles": [{ "text": { "body": "Axolotl" } }] })).await.ok();
    let mut hidden = owner.get(&path).await.ok();
    hide(workspace, &hidden).await;
    let gone = owner.post(&list, json!({ "name": "Okapi" })).await.ok();
    hide(workspace, &gone).await;
    let path = workspace.dashboards(&format!("{}/", gone["id"]));
    owner.patch(&path, json!({ "deleted": true })).await.ok();
    hidden["gone"] = gone["id"].clone();
    [open, hidden, copy]
}

impl Scene {
    async fn new() -> Self {
        let workspace = Workspace::new().await;
        for (table, first) in
            [(Table::Dashboards, 10_000), (Table::Projects, 20_000), (Table::Tiles, 40_000)]
        {
            let skip = move |tx: &mut WriteTx<'_>| {
                (0..first).try_for_each(|_| tx.next_number(table).map(drop))
            };
            workspace.write(skip).await;
        }
        let owner = &workspace.owner;
        let ann = workspace.member("ann", Level::Member).await;
        let (zoe, foreign) = workspace.outsider("zoe").await;
        let foreign_project = zoe.get("/api/projects/@current/").await.ok();
        let foreign_dashboard =
            zoe.post("/api/projects/@current/dashboards/", json!({ "name": "Tapir" })).await.ok();
        let path = in_organization(&foreign, "domains/");
        let domain = zoe.post(&path, json!({ "domain": "other.example" })).await.ok();
        let sent = json!({ "name": "Narwhal", "access_control": true });
        let private = owner.post(&workspace.organization("projects/"), sent).await.ok();
        let private_export = export(owner, &private["id"], "Pangolin").await;
        let path = format!("/api/projects/{}/dashboards/", private["id"]);
        let private_dashboard = owner.post(&path, json!({ "name": "Numbat" })).await.ok();
        let sent = json!({
            "target_email": "new@corp.example",
            "private_project_access": [{ "id": private["id"], "level": "member" }],
        });
        owner.post(&workspace.organization("invites/"), sent).await.ok();
        let [open, hidden, copy] = dashboards(&workspace).await;
        // Ann's current organization is the second one from now on.
        let second = ann.post("/api/organizations/", json!({ "name": "Kakapo" })).await.ok();
        let second_project = ann.get("/api/projects/@current/").await.ok();
        assert_eq!(second_project["organization"], second["id"]);
        let mut secret = Hidden::from_iter(
            ["Quetzal", "Axolotl", "Okapi", "Tapir", "Narwhal", "Pangolin", "Numbat", "zoe"]
                .map(str::to_owned),
        );
        let tiles = hidden["tiles"].as_array().expect("tiles").iter().map(|tile| &tile["id"]);
        let known = [
            &foreign["id"],
            &foreign_project["id"],
            &foreign_project["api_token"],
            &foreign_dashboard["id"],
            &domain["id"],
            &private["id"],
            &private_export["id"],
            &private_dashboard["id"],
            &hidden["id"],
            &hidden["gone"],
        ];
        secret.extend(known.into_iter().chain(tiles).map(word));
        let elsewhere =
            [&second["id"], &second_project["id"], &second_project["api_token"], &json!("Kakapo")];
        Self {
            organizations: vec![
                workspace.made.organization_id.to_string(),
                word(&foreign["id"]),
                word(&second["id"]),
                "@current".to_owned(),
                NOBODY.to_owned(),
            ],
            projects: vec![
                workspace.made.project_id.to_string(),
                word(&private["id"]),
                word(&foreign_project["id"]),
                word(&second_project["id"]),
                "@current".to_owned(),
                "99999".to_owned(),
            ],
            dashboards: [&open, &hidden, &copy, &foreign_dashboard, &private_dashboard]
                .map(|dashboard| word(&dashboard["id"]))
                .into_iter()
                .chain([word(&hidden["gone"]), "99999".to_owned()])
                .collect(),
            others: vec![word(&private_export["id"]), word(&domain["id"]), NOBODY.to_owned()],
            elsewhere: elsewhere.map(word).into_iter().collect(),
            workspace,
            ann,
            open,
            hidden,
            copy,
            secret,
        }
    }

    /// Returns the path with all combinations of parameters.
    fn fill(&self, path: &str) -> Vec<String> {
        let mut paths = vec![path.to_owned()];
        for (parameter, values) in [
            ("{organization_id}", &self.organizations),
            ("{project_id}", &self.projects),
            ("{dashboard_id}", &self.dashboards),
            ("dashboards/{id}", &self.dashboards),
            ("{id}", &self.others),
            ("{user__uuid}", &self.others),
        ] {
            let whole = |value: &str| parameter.replace("{id}", value);
            let each = |path: &String| match path.contains(parameter) {
                true if parameter == "dashboards/{id}" => {
                    values.iter().map(|value| path.replace(parameter, &whole(value))).collect()
                }
                true => values.iter().map(|value| path.replace(parameter, value)).collect(),
                false => vec![path.clone()],
            };
            paths = paths.iter().flat_map(each).collect();
        }
        paths
    }

    /// Returns the path of a dashboard.
    fn one(&self, dashboard: &Value) -> String {
        self.workspace.dashboards(&format!("{}/", dashboard["id"]))
    }

    /// Returns Ann's keys, each with what is hidden from it.
    async fn callers(&self) -> Vec<(TestClient, Hidden)> {
        let all: Hidden = self.secret.union(&self.elsewhere).cloned().collect();
        let made = &self.workspace.made;
        let limits = [
            json!({ "organizations": [made.organization_id] }),
            json!({ "projects": [made.project_id] }),
        ];
        let mut callers = vec![(self.ann.clone(), self.secret.clone())];
        for limit in limits {
            callers.push((self.workspace.limited_key(ANN, &["*"], limit).await, all.clone()));
        }
        callers
    }
}

/// Returns whether a write to this path must fail, so that the test may send it.
fn is_refused(path: &str, hidden: &Hidden) -> bool {
    hidden.iter().any(|one| path.contains(one.as_str()))
}

#[tokio::test]
async fn responses_of_all_routes_reveal_nothing_hidden_from_the_caller() {
    let scene = Scene::new().await;
    let mut asked = 0;
    for (caller, hidden) in scene.callers().await {
        for row in routes().specs() {
            for path in scene.fill(row.path) {
                if row.method != Method::GET && !is_refused(&path, &scene.secret) {
                    continue;
                }
                let body = (row.method != Method::GET).then(|| json!({}));
                let answer = caller.send(row.method.clone(), &path, body).await;
                tells_nothing(&answer, &format!("{} {path}", row.method), &hidden);
                asked += 1;
            }
        }
        for query in ["deleted=true", "search=e", "created_by=1", "limit=1", "limit=1&offset=1"] {
            let answer = caller.get(&scene.workspace.dashboards(&format!("?{query}"))).await;
            tells_nothing(&answer, query, &hidden);
        }
    }
    assert!(asked > 2_000, "{asked}");
    let answer = scene.workspace.owner.get(&scene.one(&scene.open)).await;
    assert_eq!(told(&answer, "", &scene.secret).len(), 2, "the owner sees a dashboard and a tile");
    assert_eq!(scene.workspace.owner.get(&scene.workspace.dashboards("")).await.ok()["count"], 3);
    let seen = scene.ann.get(&scene.workspace.dashboards("")).await.ok();
    assert_eq!(seen["count"], 2, "hidden dashboards are not counted");
}

#[tokio::test]
async fn error_responses_reveal_no_more_than_the_request_body_named() {
    let scene = Scene::new().await;
    let (workspace, ann) = (&scene.workspace, &scene.ann);
    let (list, open) = (workspace.dashboards(""), scene.one(&scene.open));
    let tile = &scene.open["tiles"][0]["id"];
    let text = scene.hidden["tiles"].as_array().expect("tiles").iter();
    let hidden_text = text.filter_map(|tile| tile["text"]["id"].as_u64()).max().expect("a text");
    let hidden_tile = &scene.hidden["tiles"][0]["id"];
    let member = workspace.membership(OWNER).await;
    let mut http = to("HTTP", &json!({ "url": "https://a.example", "token": "t" }));
    let grants = json!({ "organization_member": member, "access_level": "viewer" });
    let private = scene.projects[1].parse::<u64>().expect("a number");
    let (given, foreign) = (json!([{ "id": private, "level": "member" }]), &scene.organizations[1]);
    let (me, keys) = ("/api/users/@me/".to_owned(), "/api/personal_api_keys/".to_owned());
    (http["name"], http["project_id"]) = (json!("x"), json!(private));
    let limited = |to: &str, value: Value| json!({ "label": "x", "scopes": ["*"], to: value });
    for (method, path, body) in [
        (Method::POST, list, json!({ "name": "x", "use_dashboard": scene.hidden["id"] })),
        (
            Method::PATCH,
            format!("{open}move_tile/"),
            json!({ "tile": { "id": tile }, "toDashboard": scene.hidden["id"] }),
        ),
        (
            Method::PATCH,
            format!("{}move_tile/", scene.one(&scene.hidden)),
            json!({ "tile": { "id": hidden_tile }, "toDashboard": scene.open["id"] }),
        ),
        (
            Method::PATCH,
            open.clone(),
            json!({ "tiles": [{ "id": hidden_tile, "show_description": true }] }),
        ),
        (Method::PATCH, open.clone(), json!({ "tiles": [{ "text": { "id": hidden_text } }] })),
        (Method::PATCH, open.clone(), json!({ "duplicate_tiles": [{ "id": hidden_tile }] })),
        (Method::PUT, format!("{}access_controls/", scene.one(&scene.hidden)), grants),
        (Method::POST, keys.clone(), limited("scoped_teams", json!([private]))),
        (Method::POST, keys, limited("scoped_organizations", json!([foreign]))),
        (Method::PATCH, me.clone(), json!({ "set_current_organization": foreign })),
        (Method::PATCH, me, json!({ "set_current_team": private })),
        (
            Method::POST,
            workspace.organization("invites/"),
            json!({ "target_email": "a@corp.example", "private_project_access": given }),
        ),
        (Method::POST, workspace.organization("batch_exports/"), http),
        (Method::POST, workspace.organization("domains/"), json!({ "domain": "other.example" })),
    ] {
        let answer = ann.send(method.clone(), &path, Some(body.clone())).await;
        assert!((400..500).contains(&answer.status), "{method} {path} {body}: {}", answer.body);
        tells_nothing(&answer, &format!("{method} {path} {body}"), &scene.secret);
    }
}

#[tokio::test]
async fn insight_lists_only_dashboards_visible_to_the_reader() {
    let scene = Scene::new().await;
    let listed = |answer: &Value| {
        let insight = &answer["tiles"].as_array().expect("tiles").iter();
        let insight = insight.clone().find(|tile| tile["insight"].is_object()).expect("one");
        let tiles = insight["insight"]["dashboard_tiles"].as_array().expect("tiles").iter();
        let of_tiles: Vec<_> = tiles.map(|tile| tile["dashboard_id"].clone()).collect();
        assert_eq!(insight["insight"]["dashboards"], json!(of_tiles));
        of_tiles
    };
    let [open, hidden, copy] =
        [&scene.open, &scene.hidden, &scene.copy].map(|dashboard| dashboard["id"].clone());
    let path = scene.one(&scene.open);
    let owner = &scene.workspace.owner;
    assert_eq!(listed(&owner.get(&path).await.ok()), [&open, &hidden, &copy].map(Clone::clone));
    let seen = [open, copy];
    assert_eq!(listed(&scene.ann.get(&path).await.ok()), seen);
    let patched = scene.ann.patch(&path, json!({ "description": "x" })).await.ok();
    assert_eq!(listed(&patched), seen);
    let path = scene.one(&scene.copy);
    assert_eq!(owner.get(&path).await.ok()["use_dashboard"], hidden);
    assert_eq!(scene.ann.get(&path).await.ok()["use_dashboard"], Value::Null);
}

#[tokio::test]
async fn insight_on_many_dashboards_lists_the_first_visible_ones_and_the_current_one() {
    const HIDDEN: usize = 110;
    let workspace = Workspace::new().await;
    let ben = workspace.member("ben", Level::Member).await;
    let owner = &workspace.owner;
    let tile = json!({ "type": "INSIGHT", "name": "Visitors", "query": { "kind": "TrendsQuery" } });
    let first = from_tiles(owner, &workspace, json!([tile])).await.ok();
    let mut ids = vec![first["id"].clone()];
    hide(&workspace, &first).await;
    for number in 1..HIDDEN + 5 {
        let copy = json!({ "use_dashboard": first["id"] });
        let copy = owner.post(&workspace.dashboards(""), copy).await.ok();
        if number < HIDDEN {
            hide(&workspace, &copy).await;
        }
        ids.push(copy["id"].clone());
    }
    let last = workspace.dashboards(&format!("{}/", ids[HIDDEN + 4]));
    let seen = ben.get(&last).await.ok();
    assert_eq!(seen["tiles"][0]["insight"]["dashboards"], json!(ids[HIDDEN..]));
    let all = owner.get(&last).await.ok();
    let first_and_read = [&ids[..99], &ids[HIDDEN + 4..]].concat();
    assert_eq!(all["tiles"][0]["insight"]["dashboards"], json!(first_and_read));
}

#[tokio::test]
async fn limited_key_error_does_not_name_the_current_project() {
    let scene = Scene::new().await;
    let limit = json!({ "organizations": [scene.workspace.made.organization_id] });
    let limited = scene.workspace.limited_key(ANN, &["*"], limit).await;
    let text = "API key does not have access to the requested project.";
    limited.get("/api/projects/@current/dashboards/").await.assert_denied(text);
}

#[tokio::test]
async fn invite_shows_only_private_projects_visible_to_the_member() {
    let scene = Scene::new().await;
    let path = scene.workspace.organization("invites/");
    let given = |list: &Value| list["results"][0]["private_project_access"].clone();
    let all = given(&scene.workspace.owner.get(&path).await.ok());
    assert_eq!(all.as_array().map(Vec::len), Some(1));
    assert_eq!(given(&scene.ann.get(&path).await.ok()), json!([]));
    let private = format!("/api/projects/{}/", scene.projects[1]);
    scene.workspace.set_rule(&private, Some(ANN), "member").await;
    assert_eq!(given(&scene.ann.get(&path).await.ok()), all);
    scene.workspace.set_active(ANN, false).await;
    scene.ann.get(&path).await.is_bad_key();
}
