//! The operator's commands, with the real binary: with and without a running server.

mod config_file;
mod console;
mod environment;
mod mail;
mod man_pages;
mod outcomes;
mod progress_bar;

use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;

use crate::prelude::*;

/// A workspace, and possibly a server for it.
pub struct TestSetup {
    pub server: Option<Server>,
    pub site: DataFolder,
    made: Value,
    pub key: String,
    /// The path of the dashboards of the first project.
    pub dashboards: String,
}

impl TestSetup {
    pub fn new(serving: bool) -> Self {
        let (site, made) = DataFolder::with_workspace();
        let key = made["api_key"].as_str().expect("a key").to_owned();
        let dashboards = format!("/api/projects/{}/dashboards/", made["project_id"]);
        let server = serving.then(|| site.serve(&[]));
        Self { server, site, made, key, dashboards }
    }

    /// Calls `act` with the server, or with a server that runs only for this call.
    pub fn with<T>(&self, act: impl FnOnce(&Server) -> T) -> T {
        if let Some(server) = &self.server {
            return act(server);
        }
        let server = self.site.serve(&[]);
        let done = act(&server);
        server.stop();
        done
    }

    fn text(&self, name: &str) -> &str {
        self.made[name].as_str().expect("text")
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        self.site.run(args)
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        self.site.json(args)
    }

    #[track_caller]
    fn results(&self, args: &[&str]) -> Vec<Value> {
        let answer = self.json(args);
        assert_eq!(names(&answer), ["results"]);
        answer["results"].as_array().expect("a list").clone()
    }

    /// Returns the status of `@me` with this key.
    fn opens(&self, key: &str) -> u16 {
        self.with(|server| server.get("/api/users/@me/", key).status)
    }
}

/// Runs a test without a server, and again beside a running server.
pub fn each_way(test: impl Fn(&TestSetup)) {
    for serving in [false, true] {
        let place = TestSetup::new(serving);
        test(&place);
        place.site.check();
        if let Some(server) = place.server {
            assert!(server.stop().contains("stopped"));
            place.site.check();
        }
    }
}

/// Returns the names of an object's members, in order.
fn names(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn init_creates_a_workspace_and_prints_it() {
    let site = DataFolder::empty();
    let named = ["--organization", "Corp", "--project", "Web", "--first-name", "Olga"];
    let made = site.json(&[&["init", "--email", OWNER][..], &named].concat());
    assert_eq!(names(&made), ["organization_id", "project_id", "user_uuid", "user_id", "api_key"]);
    assert_eq!((&made["project_id"], &made["user_id"]), (&json!(1), &json!(1)));
    let files: Vec<_> = site.files().into_iter().map(|(name, mode, _)| (name, mode)).collect();
    assert_eq!(files, ["", ".lock"].map(|end| (format!("steward.redb{end}"), 0o600)));

    let server = site.serve(&[]);
    let key = made["api_key"].as_str().unwrap();
    let me = server.get("/api/users/@me/", key).ok();
    assert_eq!((&me["email"], &me["first_name"]), (&json!(OWNER), &json!("Olga")));
    assert_eq!(me["uuid"], made["user_uuid"]);
    let organization = server.get("/api/organizations/@current/", key).ok();
    assert_eq!(organization["id"], made["organization_id"]);
    assert_eq!(organization["name"], "Corp");
    assert_eq!(server.get("/api/projects/1/", key).ok()["name"], "Web");
}

#[test]
fn failed_init_creates_no_files() {
    let site = DataFolder::empty();
    let init = ["init", "--email", OWNER];
    let long = "x".repeat(201);
    site.run(&["init", "--email", "nobody"]).assert_failed("email: Enter a valid email address.");
    for (name, value, told) in [
        ("--organization", " ", "name: This field may not be blank."),
        ("--project", &long, "name: Ensure this field has"),
    ] {
        site.run(&[&init[..], &[name, value]].concat()).assert_failed(told);
    }
    site.run(&["init"]).assert_usage_error("--email <EMAIL>");
    assert_eq!(site.names(), [""; 0]);
    let text = site.run(&init).ok();
    let lines: Vec<_> = text.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(lines, ["organization_id", "project_id", "user_uuid", "user_id", "api_key"]);
    assert_eq!(site.json(&["organization", "list"])["results"][0]["name"], "My organization");
}

#[test]
fn command_without_a_data_file_names_the_commands_that_create_one() {
    let site = DataFolder::empty();
    for args in [&["check"][..], &["user", "list"], &["key", "list"], &["organization", "list"]] {
        site.run(args).assert_failed(
            "steward: steward.redb does not exist; `steward serve` or `steward init` creates it\n",
        );
    }
    site.run(&["check", "--data", "other.redb"]).assert_failed("other.redb does not exist");
    assert_eq!(site.names(), [""; 0]);
}

#[test]
fn organizations_are_created_for_new_and_existing_owners_and_listed() {
    each_way(|place| {
        let new = place.json(&["organization", "create", "Two", "--owner", "New@two.example"]);
        assert_eq!(names(&new), ["id", "name", "project_id"]);
        assert_eq!((&new["name"], &new["project_id"]), (&json!("Two"), &json!(2)));
        let known = place.json(&["organization", "create", " Three ", "--owner", OWNER]);
        assert_eq!((&known["name"], &known["project_id"]), (&json!("Three"), &json!(3)));

        let listed = place.results(&["organization", "list"]);
        let shown: Vec<_> = listed.iter().map(|one| (&one["id"], &one["name"])).collect();
        let first = (&place.made["organization_id"], &json!("Corp"));
        assert_eq!(shown, [first, (&new["id"], &json!("Two")), (&known["id"], &json!("Three"))]);
        for one in &listed {
            assert_eq!(names(one).join(" "), "id name members projects bytes quota created_at");
            assert_eq!((&one["members"], &one["projects"]), (&json!(1), &json!(1)));
        }

        let users = place.results(&["user", "list"]);
        assert_eq!(users.len(), 2, "only the new address became a user");
        assert_eq!(users[1]["email"], "New@two.example");
        assert_eq!(users[1]["organizations"], json!([{ "id": new["id"], "level": "owner" }]));
        assert_eq!(users[0]["organizations"].as_array().unwrap().len(), 2);

        let create = |name, owner| place.run(&["organization", "create", name, "--owner", owner]);
        create(" ", OWNER).assert_failed("name: This field may not be blank.");
        create("Four", "nobody").assert_failed("email: Enter a valid email address.");
        place.run(&["organization", "create", "Four"]).assert_usage_error("--owner <EMAIL>");
        assert_eq!(place.results(&["organization", "list"]), listed);

        let text = create("Five", OWNER).ok();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("id          0"), "{text}");
        assert_eq!(lines[1..], ["name        Five", "project_id  4"]);
        let text = place.run(&["organization", "list"]).ok();
        let heads: Vec<_> = text.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(heads, ["ID", "NAME", "MEMBERS", "PROJECTS", "BYTES", "QUOTA", "CREATED_AT"]);
        assert_eq!(text.lines().count(), 5);
    });
}

#[test]
fn users_are_created_added_deactivated_and_reactivated() {
    each_way(|place| {
        let organization = place.text("organization_id");
        let ann =
            place.json(&["user", "create", "--email", "ann@x.example", "--first-name", "Ann"]);
        assert_eq!(names(&ann), ["id", "uuid", "email", "membership_id"]);
        assert_eq!((&ann["id"], &ann["email"]), (&json!(2), &json!("ann@x.example")));
        assert_eq!(ann["membership_id"], Value::Null);

        let again = ["user", "create", "--email", "ANN@x.example"];
        let part = "email: user with this email already exists; pass --existing to use that user.";
        place.run(&again).assert_failed(part);
        let join = ["--existing", "--organization", organization, "--level", "admin"];
        let joined = place.json(&[&again[..], &join].concat());
        assert_eq!((&joined["id"], &joined["uuid"]), (&ann["id"], &ann["uuid"]));
        assert!(joined["membership_id"].is_string());
        let refused = place.run(&[&again[..], &join].concat());
        refused.assert_failed("already belongs to the organization");
        let kept = place.json(&[&again[..], &["--existing"]].concat());
        assert_eq!(kept, ann, "--existing alone takes the user as it is");

        let bob = ["user", "create", "--email", "bob@x.example", "--last-name", "Bo"];
        let create = |more: &[&str]| place.run(&[&bob[..], more].concat());
        let unknown = ["--organization", "00000000-0000-7000-8000-000000000000"];
        create(&unknown).assert_failed("Organization not found.");
        create(&["--level", "admin"]).assert_usage_error("--organization <ID>");
        let boss = create(&["--organization", organization, "--level", "boss"]);
        boss.assert_usage_error("write member, admin or owner");
        create(&["--organization", "nonsense"]).assert_usage_error("--organization");
        let refused = place.run(&["user", "create", "--email", "nobody"]);
        refused.assert_failed("email: Enter a valid email");
        let member = ["--existing", "--organization", organization];
        let bob = place.json(&[&bob[..], &member].concat());
        assert_eq!(bob["id"], 3, "--existing creates a new user, and refusals use no number");

        let users = place.results(&["user", "list"]);
        let levels = users.iter().map(|user| user["organizations"][0]["level"].clone());
        assert_eq!(levels.collect::<Vec<_>>(), ["owner", "admin", "member"]);
        let expected = json!({
            "id": 3, "uuid": bob["uuid"], "email": "bob@x.example", "first_name": "",
            "last_name": "Bo", "is_active": true, "is_email_verified": false, "link_account": null,
            "organizations": [{ "id": organization, "level": "member" }],
        });
        assert_eq!(users[2], expected);
        assert_eq!(names(&users[2]), names(&expected));

        let key = ["key", "create", "--email", "ann@x.example", "--label", "L", "--scope", "*"];
        let key = place.json(&key)["value"].as_str().unwrap().to_owned();
        assert_eq!(place.opens(&key), 200);
        let stopped = place.json(&["user", "deactivate", "ann@X.example"]);
        assert_eq!(stopped, json!({ "id": 2, "email": "ann@x.example", "is_active": false }));
        assert_eq!(place.opens(&key), 401, "at once");
        assert_eq!(place.results(&["user", "list"])[1]["is_active"], false);
        let started = place.json(&["user", "activate", "ann@x.example"]);
        assert_eq!(started, json!({ "id": 2, "email": "ann@x.example", "is_active": true }));
        assert_eq!(place.opens(&key), 200);
        for change in ["deactivate", "activate"] {
            let refused = place.run(&["user", change, "zed@x.example"]);
            refused.assert_failed("There is no user zed@x.example.");
        }
        place.run(&["user", "deactivate"]).assert_usage_error("<EMAIL>");
    });
}

#[test]
fn keys_are_created_with_limits_listed_masked_and_revoked_at_once() {
    each_way(|place| {
        let organization = place.text("organization_id");
        let create = ["key", "create", "--email", OWNER, "--label", "Robot"];
        let scopes = ["--scope", "dashboard:read", "--scope", "user:read"];
        let limits = ["--organization", organization, "--project", "1", "--expires-in", "90d"];
        let made = place.json(&[&create[..], &scopes, &limits].concat());
        assert_eq!(names(&made), ["id", "value", "label", "scopes"]);
        assert_eq!(made["label"], "Robot");
        assert_eq!(made["scopes"], json!(["dashboard:read", "user:read"]));
        let value = made["value"].as_str().unwrap();
        assert!(value.starts_with("phx_") && value.len() > 60);
        assert_eq!(place.opens(value), 200);

        let keys = place.results(&["key", "list"]);
        let members =
            "id label mask email scopes organizations projects created_at expires_at last_used_at";
        let listed = keys.iter().find(|key| key["id"] == made["id"]).expect("the new key");
        assert_eq!(names(listed).join(" "), members);
        assert_eq!(listed["mask"], format!("phx_...{}", &value[value.len() - 4..]));
        assert_eq!(listed["email"], OWNER);
        assert_eq!(listed["organizations"], json!([organization]));
        assert_eq!(listed["projects"], json!([1]));
        assert_ne!(listed["expires_at"], Value::Null);
        assert!(!place.run(&["key", "list"]).ok().contains(value), "the value is shown once");

        let with = |more: &[&str]| place.run(&[&create[..], more].concat());
        with(&["--scope", "everything"]).assert_usage_error("such as dashboard:read");
        with(&["--scope", "dashboard:admin"]).assert_usage_error("such as dashboard:read");
        with(&[]).assert_usage_error("--scope <SCOPE>");
        let limited = |flag, value| with(&["--scope", "*", flag, value]);
        limited("--project", "one").assert_usage_error("write a project's numeric id");
        limited("--organization", "1").assert_usage_error("--organization <ID>");
        limited("--expires-in", "soon").assert_usage_error("--expires-in <TIME>");
        limited("--expires-in", "0s").assert_usage_error("--expires-in <TIME>");
        limited("--project", "99").assert_failed("scoped_teams: You must be a member");
        let other = "00000000-0000-7000-8000-000000000000";
        limited("--organization", other).assert_failed("scoped_organizations: You must");
        let zed = ["key", "create", "--email", "zed@x.example", "--label", "L", "--scope", "*"];
        place.run(&zed).assert_failed("There is no user zed@x.example.");
        let long = "x".repeat(41);
        for (label, part) in [("", "label: This field may not be blank."), (&long, "label: Ensure")]
        {
            let args = ["key", "create", "--email", OWNER, "--scope", "*", "--label", label];
            place.run(&args).assert_failed(part);
        }
        assert_eq!(place.results(&["key", "list"]).len(), 2, "a refused command created something");

        let id = made["id"].as_str().unwrap();
        assert_eq!(place.json(&["key", "revoke", id]), json!({ "id": id }));
        assert_eq!(place.opens(value), 401, "at once");
        place.run(&["key", "revoke", id]).assert_failed(&format!("There is no key {id}."));
        place.run(&["key", "revoke", "nonsense"]).assert_usage_error("<ID>");
        let text = with(&["--scope", "*", "--expires-in", "1h"]).ok();
        assert!(text.contains("\nvalue   phx_") && text.ends_with("\nscopes  *\n"), "{text}");
    });
}

#[test]
fn very_long_key_lifetime_is_limited_to_the_last_timestamp() {
    let (site, _) = DataFolder::with_workspace();
    let create = ["key", "create", "--email", OWNER, "--label", "L", "--scope", "*"];
    for ages in ["250000y", "9000000000000000000s"] {
        site.json(&[&create[..], &["--expires-in", ages]].concat());
    }
    for key in &site.json(&["key", "list"])["results"].as_array().unwrap()[1..] {
        assert_eq!(key["expires_at"], "9999-12-31T23:59:59.999999Z");
    }
    site.check();
}

#[test]
fn control_characters_are_replaced_in_terminal_output() {
    let (site, _) = DataFolder::with_workspace();
    site.run(&["user", "create", "--email", "ann@x.example", "--first-name", "\x1b[2JAnn"]).ok();
    let text = site.run(&["user", "list"]).ok();
    assert!(text.contains("?[2JAnn") && !text.contains('\x1b'), "{text}");
}

#[test]
fn environment_variables_set_flags() {
    let (site, _) = DataFolder::with_workspace();
    fs::rename(site.data(), site.path("elsewhere.redb")).unwrap();
    for (yes, no) in [("true", "false"), ("1", "0"), ("yes", "")] {
        let list = |json: &str| {
            let mut command = site.steward(&["user", "list"]);
            command.env("STEWARD_DATA", "elsewhere.redb").env("STEWARD_JSON", json);
            CommandOutput::new(&mut command)
        };
        assert_eq!(list(yes).json()["results"][0]["email"], OWNER, "STEWARD_JSON={yes}");
        assert!(list(no).ok().starts_with("ID  "), "STEWARD_JSON={no}");
    }
    let mut command = site.steward(&["check", "--data", "elsewhere.redb"]);
    CommandOutput::new(command.env("STEWARD_DATA", "wrong.redb")).ok();
}

#[test]
fn help_explains_every_command() {
    let site = DataFolder::empty();
    site.run(&[]).assert_usage_error("Usage: steward [OPTIONS] <COMMAND>");
    let top = site.run(&["--help"]).ok();
    assert!(top.contains("Start with `steward serve`"), "{top}");
    for command in ["serve", "init", "organization", "user", "key", "check"] {
        let line = top.lines().find(|line| line.trim_start().starts_with(command));
        assert!(line.is_some_and(|line| line.len() > 40), "{command} is not explained: {top}");
    }
    assert!(site.run(&["--version"]).ok().starts_with("steward 0."));
}

#[test]
fn concurrent_commands_all_succeed() {
    each_way(|place| {
        thread::scope(|scope| {
            // A command waits five seconds for the file, and so for all others.
            for number in 0..3 {
                scope.spawn(move || {
                    let email = format!("user{number}@x.example");
                    place.json(&["user", "create", "--email", &email]);
                });
            }
        });
        assert_eq!(place.results(&["user", "list"]).len(), 4);
    });
}

#[test]
fn command_reports_an_unknown_outcome_if_the_server_stops() {
    let (site, _) = DataFolder::with_workspace();
    let lock = fs::File::options().write(true).open(site.path("steward.redb.lock")).unwrap();
    lock.lock().unwrap();
    let listener = UnixListener::bind(site.path("steward.redb.sock")).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| drop(listener.accept()));
        site.run(&["user", "list"]).assert_failed("the server stopped before it answered");
    });
}

/// Runs only as root, because it starts a server as another user.
#[test]
fn server_of_another_user_is_not_sent_a_command() {
    if !geteuid().is_root() {
        return;
    }
    let site = DataFolder::empty();
    let program = site.program_for_all();
    let folder = site.path("theirs");
    fs::create_dir(&folder).unwrap();
    chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let server = Server::start(&mut as_nobody(&program, &folder, &serve)).unwrap();
    site.run(&["user", "list", "--data", "theirs/steward.redb"])
        .assert_failed("the server runs as user 65534; run the command as that user");
    server.stop();
}

#[test]
fn command_waits_for_a_starting_server() {
    let (site, _) = DataFolder::with_workspace();
    for _ in 0..5 {
        thread::scope(|scope| {
            let listed = scope.spawn(|| site.json(&["user", "list"]));
            let served = site.try_serve(&[]);
            listed.join().unwrap();
            if let Err(run) = served {
                run.assert_failed("steward.redb is in use by another steward process");
            }
        });
    }
}

#[test]
fn check_reports_what_it_read() {
    each_way(|place| {
        let found = place.json(&["check"]);
        assert_eq!(names(&found), ["values", "problem_count", "problems"]);
        assert!(found["values"].as_u64().unwrap() > 10);
        assert_eq!((&found["problem_count"], &found["problems"]), (&json!(0), &json!([])));
        let text = place.run(&["check"]).ok();
        assert!(text.ends_with("\nproblem_count  0\nproblems       -\n"), "{text}");
        let litter = place.site.names().into_iter().find(|name| !name.starts_with("steward.redb"));
        assert_eq!(litter, None, "check left its copy behind");
    });
}

/// Changes a letter of a name wherever the closed file contains the name.
#[test]
fn check_of_a_damaged_file_exits_with_1_beside_a_server_and_without_one() {
    const NAME: &str = "Needle in a haystack";
    let Served { site, server, key, dashboards: path } = Served::with(&[]);
    server.post(&path, &key, &json!({ "name": NAME })).ok();
    server.stop();
    let mut bytes = fs::read(site.data()).unwrap();
    let places: Vec<_> =
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(NAME.as_bytes())).collect();
    for at in places {
        bytes[at] ^= 0x20;
    }
    fs::write(site.data(), bytes).unwrap();
    let assert_found = || {
        let run = site.run(&["check", "--json"]);
        let found: Value = serde_json::from_str(&run.stdout).unwrap();
        assert!(run.code == Some(1) && found["problem_count"].as_u64() > Some(0), "{run:?}");
    };
    assert_found();
    let server = site.serve(&[]);
    assert_found();
    server.get(&path, &key).assert_error(500, "server_error", "error");
    assert_eq!(server.get("/_readyz", "").status, 200);
}
