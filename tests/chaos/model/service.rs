//! The service, for the same steps as the model.

use std::collections::HashMap;
use std::sync::OnceLock;

use steward::testing::ids::{RoleId, UserUuid};
use steward::testing::resources::roles::RoleMembership;
use steward::testing::resources::{members, users};
use steward::testing::store::Snapshot;
use steward::testing::time::ManualClock;
use tokio::runtime::Runtime;

use super::data::{Data, Engine};
use super::steps::{Step, What};
use super::world::{ACCESS, DAY, Expected, NAMES, NEWCOMER, PEOPLE, SCOPES, SERIAL};
use crate::prelude::*;
use crate::support::wait::TEST_TIMEOUT;

/// An id that no object has.
const NOTHING: &str = "01890000-0000-7000-8000-000000000000";

/// A data file with the initial state of the model. It is created once, because hashing keys is slow.
struct Beginning {
    bytes: Vec<u8>,
    names: Names,
}

/// The service's ids for the model's numbers.
#[derive(Clone, Default)]
struct Names {
    /// The id and the value of each key.
    keys: BTreeMap<usize, (String, String)>,
    organizations: BTreeMap<usize, String>,
    /// The id and the token of each invite.
    invites: BTreeMap<usize, (String, String)>,
    domains: BTreeMap<usize, String>,
    exports: BTreeMap<usize, String>,
    roles: BTreeMap<usize, String>,
    people: [String; 5],
    /// The tokens of each dashboard, by the dashboard's number and the token's.
    shared: HashMap<(usize, usize), String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Beginning {
    async fn make() -> Self {
        let (config, _) = with_clock();
        let workspace = Workspace::with(config).await;
        let admin = workspace.member("p1", Level::Admin).await;
        let member = workspace.member("p2", Level::Member).await;
        let (outsider, other) = workspace.outsider("p3").await;
        let new = new_user(PEOPLE[0], Some(workspace.made.organization_id));
        let new = UserOptions { first_name: "P".to_owned(), level: Level::Owner, ..new };
        workspace.run_operation(Operation::UserCreate(new)).await;
        let owner = workspace.key(PEOPLE[0], &["*"]).await;
        // The model does not have the workspace's own owner.
        let first = workspace.uuid(crate::support::OWNER).await;
        let lowered = workspace.organization(&format!("members/{first}/"));
        owner.patch(&lowered, json!({ "level": 1 })).await.ok();
        owner.delete(&lowered).await.assert_empty(204);
        let mut names = Names::default();
        for (person, caller) in [owner, admin, member, outsider].iter().enumerate() {
            let key = caller.get("/api/personal_api_keys/@current/").await.ok();
            names.keys.insert(person, (text(&key["id"]), caller.key.clone().expect("a key")));
            names.people[person] = text(&caller.get("/api/users/@me/").await.ok()["uuid"]);
        }
        NOTHING.clone_into(&mut names.people[NEWCOMER]);
        let organizations = [workspace.made.organization_id.to_string(), text(&other["id"])];
        names.organizations = (0..).zip(organizations).collect();
        workspace.app.close().await;
        Self { bytes: fs::read(workspace.path()).expect("the file"), names }
    }
}

pub struct Service {
    runtime: Runtime,
    clock: ManualClock,
    config: steward::Config,
    /// One service for a data file, or one for each node. Each request is sent to the next one.
    apps: Vec<App>,
    data: Data,
    turn: AtomicUsize,
    names: Mutex<Names>,
    backups: usize,
}

impl Service {
    /// Starts a service on a data file, or on a shared database with this many nodes.
    pub fn new(engine: Engine) -> Self {
        static BEGINNING: OnceLock<Beginning> = OnceLock::new();
        let runtime = Runtime::new().expect("a runtime");
        let beginning = BEGINNING.get_or_init(|| runtime.block_on(Beginning::make()));
        let (mut config, clock) = with_clock();
        config.request_timeout = TEST_TIMEOUT;
        let data = Data::new(engine, &beginning.bytes);
        let apps = {
            let _entered = runtime.enter();
            data.serve(&config)
        };
        let names = Mutex::new(beginning.names.clone());
        let turn = AtomicUsize::new(0);
        Self { runtime, clock, config, apps, data, turn, names, backups: 0 }
    }

    /// Returns the service whose turn it is.
    fn app(&self) -> &App {
        &self.apps[self.turn.fetch_add(1, Ordering::Relaxed) % self.apps.len()]
    }

    fn backup(&self) -> PathBuf {
        self.data.path(&format!("backup-{}.redb", self.backups))
    }

    /// Takes a step and asserts that the response is as expected.
    pub fn take(&mut self, step: &Step, expected: Option<&Expected>) {
        match step.what {
            What::Wait => self.clock.advance(Duration::from_hours(step.hours())),
            What::Restart => self.reopen(|_| ()),
            What::Backup => {
                let _ = fs::remove_file(self.backup());
                self.backups += 1;
                let (store, registry) = (self.app().store(), record_registry());
                let made = async {
                    // As for `steward backup`, the node first asks for the commits of the others.
                    eventually_async("the last commit", async || store.refresh().await.ok()).await;
                    store.backup(self.backup(), registry, Progress::silent()).await
                };
                self.runtime.block_on(made).expect("a backup");
            }
            What::RestoreServing if self.backups > 0 => {
                self.runtime.block_on(self.data.restore_serving(&self.backup(), &self.apps));
            }
            What::RestoreClosed if self.backups > 0 => {
                let from = self.backup();
                self.reopen(|data| data.restore_closed(&from));
            }
            What::RestoreServing | What::RestoreClosed => {}
            _ => {
                let answer = self.ask(step);
                let expected = expected.expect("a request is answered");
                compare(step, &answer, expected);
                self.note(step, &answer, None);
                self.note_page(step, &answer, expected);
            }
        }
    }

    /// Closes the data, calls `meanwhile`, and serves them again.
    fn reopen(&mut self, meanwhile: impl FnOnce(&Data)) {
        for app in &self.apps {
            self.runtime.block_on(app.close());
        }
        meanwhile(&self.data);
        let _entered = self.runtime.enter();
        self.apps = self.data.serve(&self.config);
    }

    /// Asserts that `check` finds no problems.
    pub fn check(&self) {
        for app in &self.apps {
            let check = perform(app, Operation::Check, Progress::silent());
            let findings = self.runtime.block_on(check).expect("a check");
            assert_eq!(findings["problem_count"], 0, "{findings}");
        }
    }

    /// Asserts that a scrub finds no problems.
    pub fn scrub(&self) {
        let scrub = self.app().store().scrub(record_registry(), Progress::silent());
        let report = self.runtime.block_on(scrub).expect("a scrub");
        assert_eq!(report.problem_count, 0, "{:?}", report.problems);
    }

    /// Sends the request of a step.
    pub fn ask(&self, step: &Step) -> TestResponse {
        let (method, path, body) = self.request(step);
        let router = router(self.app().clone());
        let caller = match step.what {
            What::AcceptAsSomebodyNew | What::OpenShared => TestClient::nobody(router),
            _ => {
                let names = self.names.lock().expect("no panic");
                TestClient::of(router, names.keys.get(&step.by).map_or("unknown", |key| &key.1))
            }
        };
        let ask = async || {
            let answer = caller.send(method.clone(), &path, body.clone()).await;
            // A node responds with 503 if the database is slow. Nothing was done then.
            let is_refused = self.apps.len() > 1 && answer.status == 503;
            (!is_refused || may_be_done(&answer.body)).then_some(answer)
        };
        self.runtime.block_on(eventually_async("the request is carried out", ask))
    }

    #[expect(clippy::too_many_lines, reason = "one line for each kind of request")]
    fn request(&self, step: &Step) -> (Method, String, Option<Value>) {
        use What::*;
        let names = self.names.lock().expect("no panic").clone();
        let nothing = NOTHING.to_owned();
        let organization = |rest: &str| {
            let id = names.organizations.get(&step.at).map_or(NOTHING, String::as_str);
            format!("/api/organizations/{id}/{rest}")
        };
        let project = |rest: &str| format!("/api/projects/{}/{rest}", step.at);
        let board = |rest: &str| project(&format!("dashboards/{}/{rest}", step.which));
        let person = || &names.people[step.whom];
        let member = || organization(&format!("members/{}/", person()));
        let export = |rest: &str| {
            let id = names.exports.get(&step.which).unwrap_or(&nothing);
            format!("batch_exports/{id}/{rest}")
        };
        let unknown = || (nothing.clone(), "unknown".to_owned());
        let (invite, token) = names.invites.get(&step.which).cloned().unwrap_or_else(unknown);
        let insight = |rest: &str| project(&format!("insights/{}/{rest}", step.which));
        let role_id = |number| names.roles.get(&number).unwrap_or(&nothing);
        let role = |rest: &str| organization(&format!("roles/{}/{rest}", role_id(step.which)));
        let domain = || names.domains.get(&step.which).unwrap_or(&nothing);
        let membership = |whom| self.membership(step, whom);
        let get = |path| (Method::GET, path, None);
        let post = |path, body| (Method::POST, path, Some(body));
        let put = |path, body| (Method::PUT, path, Some(body));
        let patch = |path, body| (Method::PATCH, path, Some(body));
        let delete = |path| (Method::DELETE, path, None);
        let granted = || step.granted().map(|admin| if admin { "admin" } else { "member" });
        let access = || step.access().map(|level| ACCESS[level]);
        let yes = step.yes();
        let restriction = if yes { 37 } else { 21 };
        let rule = || {
            let member = step.ruled().map(membership);
            json!({ "access_level": access(), "organization_member": member })
        };
        match step.what {
            CreateOrganization => post("/api/organizations/".to_owned(), json!({ "name": "New" })),
            DeleteOrganization => delete(organization("")),
            LetInvite => patch(organization(""), json!({ "members_can_invite": yes })),
            SetLevel => patch(member(), json!({ "level": step.level() })),
            RemoveMember => delete(member()),
            ListMembers => get(organization("members/")),
            Invite => {
                let sent = json!({
                    "target_email": PEOPLE[step.whom], "level": step.level(),
                    "combine_pending_invites": step.which % 2 == 1,
                });
                post(organization("invites/"), sent)
            }
            Withdraw => delete(organization(&format!("invites/{invite}/"))),
            ListInvites => get(organization("invites/")),
            Accept | AcceptAsSomebodyNew => {
                let sent = json!({ "token": token, "first_name": "New" });
                post(format!("/api/signup/{invite}/"), sent)
            }
            CreateProject => post(organization("projects/"), json!({ "access_control": yes })),
            DeleteProject => delete(project("")),
            CloseProject => patch(project(""), json!({ "access_control": yes })),
            Grant => {
                let member = membership(step.whom);
                let sent = json!({ "access_level": granted(), "organization_member": member });
                put(project("access_controls/"), sent)
            }
            GetProject => get(project("")),
            ListProjects => get(organization("projects/")),
            AddDomain => post(organization("domains/"), json!({ "domain": NAMES[step.name()] })),
            RemoveDomain => delete(organization(&format!("domains/{}/", domain()))),
            ListDomains => get(organization("domains/")),
            AddExport => {
                post(project("batch_exports/"), crate::support::batch_exports::nowhere("export"))
            }
            Pause => post(organization(&export("pause/")), json!({})),
            Unpause => post(organization(&export("unpause/")), json!({})),
            GetExport => get(project(&export(""))),
            CreateKey => {
                let mut sent = json!({ "label": "made", "scopes": SCOPES[step.scopes()] });
                if let Some(days) = step.days() {
                    sent["expires_at"] = json!(self.apps[0].now().plus_seconds(days * DAY));
                }
                post("/api/personal_api_keys/".to_owned(), sent)
            }
            DeleteKey => delete(format!(
                "/api/personal_api_keys/{}/",
                names.keys.get(&step.which).map_or(NOTHING, |key| &key.0)
            )),
            CreateBoard => {
                let sent = json!({ "name": NAMES[step.name()], "restriction_level": restriction });
                post(project("dashboards/"), sent)
            }
            GetBoard => get(board("")),
            ListBoards => get(project("dashboards/")),
            Rename => patch(board(""), json!({ "name": NAMES[step.name()] })),
            Pin => patch(board(""), json!({ "pinned": yes })),
            Restrict => patch(board(""), json!({ "restriction_level": restriction })),
            AddText => patch(board(""), json!({ "tiles": [{ "text": { "body": "A text" } }] })),
            Remove => patch(board(""), json!({ "deleted": true })),
            BringBack => patch(board(""), json!({ "deleted": false })),
            AddEditor => {
                post(board("collaborators/"), json!({ "user_uuid": person(), "level": 37 }))
            }
            RemoveEditor => delete(board(&format!("collaborators/{}/", person()))),
            Rule => put(board("access_controls/"), rule()),
            Share => patch(board("sharing/"), json!({ "enabled": yes })),
            OpenShared => {
                let token = names.shared.get(&(step.which, step.how / 4));
                get(format!("/shared/{}.json", token.map_or("unknown", String::as_str)))
            }
            CreateInsight => {
                let sent = json!({ "name": NAMES[step.name()], "dashboards": step.boards() });
                post(project("insights/"), sent)
            }
            GetInsight => get(insight("")),
            ListInsights => get(project("insights/")),
            RenameInsight => patch(insight(""), json!({ "name": NAMES[step.name()] })),
            PlaceInsight => patch(insight(""), json!({ "dashboards": step.boards() })),
            RemoveInsight => patch(insight(""), json!({ "deleted": true })),
            RestoreInsight => patch(insight(""), json!({ "deleted": false })),
            RuleInsight => put(insight("access_controls/"), rule()),
            CreateRole => post(organization("roles/"), json!({ "name": NAMES[step.name()] })),
            DeleteRole => delete(role("")),
            ListRoles => get(organization("roles/")),
            JoinRole => post(role("role_memberships/"), json!({ "user_uuid": person() })),
            LeaveRole => {
                let id = self.role_membership(role_id(step.which), person());
                delete(role(&format!("role_memberships/{id}/")))
            }
            GrantRole => {
                let sent = json!({ "access_level": granted(), "role": role_id(step.whom) });
                put(project("access_controls/"), sent)
            }
            RuleRole => {
                let sent = json!({ "access_level": access(), "role": role_id(step.whom) });
                put(board("access_controls/"), sent)
            }
            Wait | Restart | Backup | RestoreServing | RestoreClosed => unreachable!("no request"),
        }
    }

    /// Returns a state that has every acknowledged change.
    fn fresh(&self) -> Arc<Snapshot> {
        let fresh = async || self.app().store().fresh().await.ok();
        self.runtime.block_on(eventually_async("a snapshot", fresh))
    }

    /// Returns the id of a person's membership in the organization of the step's project.
    fn membership(&self, step: &Step, whom: usize) -> String {
        let tx = self.fresh();
        let people = &self.names.lock().expect("no panic").people;
        let uuid: UserUuid = people[whom].parse().expect("a UUID");
        let user = tx.lookup(&users::BY_UUID, &uuid).expect("read");
        let id = steward::testing::ids::ProjectId(u64::try_from(step.at).expect("few"));
        let project = steward::testing::resources::projects::find_by_id(&*tx, id).expect("read");
        let found = user.zip(project).and_then(|(user, project)| {
            members::find(&*tx, project.organization, user).expect("read")
        });
        found.map_or(NOTHING.to_owned(), |member| member.id.to_string())
    }

    /// Returns the id of a person's membership in a role.
    fn role_membership(&self, role: &str, person: &str) -> String {
        let tx = self.fresh();
        let (role, uuid): (RoleId, UserUuid) =
            (role.parse().expect("a UUID"), person.parse().expect("a UUID"));
        let user = tx.lookup(&users::BY_UUID, &uuid).expect("read");
        let mut found = None;
        let scanned = tx.scan::<RoleMembership, _>(&(), Window::all(Order::Ascending), |row| {
            if row.meta.role == role && Some(row.meta.user) == user {
                found = Some(row.meta.id.to_string());
            }
            Ok(())
        });
        scanned.expect("read");
        found.unwrap_or_else(|| NOTHING.to_owned())
    }

    /// Remembers the id of the created object, under `number` or else the next number.
    pub fn note(&self, step: &Step, answer: &TestResponse, number: Option<usize>) {
        let body = &answer.body;
        let names = &mut *self.names.lock().expect("no panic");
        let id = text(&body["id"]);
        let next = |made: usize| number.unwrap_or(made);
        match (step.what, answer.status) {
            (What::CreateOrganization, 201) => {
                names.organizations.insert(next(names.organizations.len()), id);
            }
            (What::Invite, 201) => {
                let url = text(&body["accept_url"]);
                let token = url.split_once("?token=").expect("a token").1.to_owned();
                names.invites.insert(next(names.invites.len()), (id, token));
            }
            (What::AcceptAsSomebodyNew, 201) => {
                let key = &body["personal_api_key"];
                let key = (text(&key["id"]), text(&key["value"]));
                names.keys.insert(next(names.keys.len()), key);
                names.people[NEWCOMER] = text(&body["uuid"]);
            }
            (What::AddDomain, 201) => drop(names.domains.insert(next(names.domains.len()), id)),
            (What::AddExport, 201) => drop(names.exports.insert(next(names.exports.len()), id)),
            (What::CreateRole, 201) => drop(names.roles.insert(next(names.roles.len()), id)),
            (What::CreateKey, 201) => {
                names.keys.insert(next(names.keys.len()), (id, text(&body["value"])));
            }
            _ => {}
        }
    }

    /// Remembers the token of a public page.
    fn note_page(&self, step: &Step, answer: &TestResponse, expected: &Expected) {
        if step.what == What::Share && answer.status == 200 {
            let serial = expected.body.iter().find(|(name, _)| *name == SERIAL).expect("a serial");
            let serial = serde_json::from_value(serial.1.clone()).expect("a number");
            let shown = text(&answer.body["access_token"]);
            let names = &mut *self.names.lock().expect("no panic");
            let before = names.shared.insert((step.which, serial), shown.clone());
            assert!(before.is_none_or(|before| before == shown), "{step:?}: a different token");
        }
    }
}

/// Whether this is the body of a 503 after which the change may have been made.
pub fn may_be_done(body: &Value) -> bool {
    text(&body["detail"]).ends_with("The change may have been made.")
}

/// Returns the part of a response that the model compares.
fn found(name: &str, body: &Value) -> Value {
    let results = || body["results"].as_array().cloned().unwrap_or_default();
    let each = |of: &dyn Fn(&Value) -> Value| results().iter().map(of).collect::<Vec<_>>();
    match name {
        "ids" => json!(each(&|one| one["id"].clone())),
        "domains" => json!(each(&|one| one["domain"].clone())),
        "members" => {
            let mut all = each(&|one| json!([one["user"]["email"], one["level"]]));
            all.sort_by_key(Value::to_string);
            json!(all)
        }
        "invites" => {
            json!(each(&|one| json!([one["target_email"], one["level"], one["is_expired"]])))
        }
        "roles" => {
            let members = |one: &Value| one["members"].as_array().map_or(0, Vec::len);
            json!(each(&|one| json!([one["name"], members(one)])))
        }
        "tiles" => json!(body["tiles"].as_array().map_or(0, Vec::len)),
        pointer => body.pointer(pointer).cloned().unwrap_or_default(),
    }
}

/// Returns the difference between a response and the expected one, if there is any.
pub fn difference(answer: &TestResponse, expected: &Expected) -> Option<String> {
    if answer.status != expected.status {
        return Some(format!("{}, expected {}", answer.status, expected.status));
    }
    let members = expected.body.iter().filter(|(name, _)| *name != SERIAL);
    let mut found = members.map(|(name, value)| (name, value, found(name, &answer.body)));
    let (name, value, found) = found.find(|(_, value, found)| *value != found)?;
    Some(format!("{name}: {found}, expected {value}"))
}

#[track_caller]
fn compare(step: &Step, answer: &TestResponse, expected: &Expected) {
    let difference = difference(answer, expected);
    assert_eq!(difference, None, "{step:?}\n{}\n{expected:?}", answer.body);
}
