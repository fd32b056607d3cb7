//! `steward test`: what a test knows beforehand, what it may choose, and that nothing is left of a run.

use std::os::unix::process::ExitStatusExt;

use crate::prelude::*;
use crate::support::process::KillOnDrop;

pub const OWNER_KEY: &str =
    "phx_0000000000000000000001StewardTestOwnerKey00000000000000000000000002Xc0MH";
pub const MEMBER_KEY: &str =
    "phx_0000000000000000000002StewardTestMemberKey0000000000000000000000002rvj6y";
pub const ORGANIZATION: &str = "019b76da-a800-7cff-9d80-35f53fb9a9c4";
pub const DASHBOARDS: &str = "/api/projects/1/dashboards/";

/// Starts `steward test` in an empty folder.
pub fn serve(site: &DataFolder, args: &[&str]) -> Server {
    let args = [&["test", "--json"], args].concat();
    Server::start(&mut site.steward(&args)).expect("it serves")
}

/// Runs a command of the shell with a server.
fn run_shell(site: &DataFolder, script: &str) -> CommandOutput {
    site.run(&["test", "--", "sh", "-c", script])
}

/// Sends a request to the control plane with these further header lines.
fn ask(server: &Server, host: &str, path: &str, headers: &str) -> (u16, Value) {
    let mut connection = server.connect();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
    connection.write(head).expect("sent");
    let reply = connection.reply().expect("a response");
    (reply.status, serde_json::from_slice(&reply.body).expect("JSON"))
}

#[test]
fn workspace_in_memory_has_known_ids_and_keys_and_leaves_nothing() {
    let site = DataFolder::empty();
    let server = serve(&site, &["--now", "2026-03-01T00:00:00Z"]);
    let url = format!("http://{}", server.address);
    let expected = json!({
        "url": url, "test_url": format!("{url}/_test/"), "version": env!("CARGO_PKG_VERSION"),
        "pid": server.pid().as_raw_nonzero().get(), "random": 0, "now": "2026-03-01T00:00:00Z",
        "organization_id": ORGANIZATION, "project_id": 1,
        "user": {
            "email": "owner@example.com", "uuid": "019b76da-a800-7456-b897-78daca75bd50", "api_key": OWNER_KEY,
        },
        "member": {
            "email": "member@example.com", "uuid": "019b76da-a800-725b-8dac-87e730e4a793", "api_key": MEMBER_KEY,
        },
        "seeded": [],
    });
    assert_eq!(server.startup_message(), expected);
    let local = server.address.to_string();
    assert_eq!(ask(&server, &local, "/_test/", ""), (200, expected));
    let made = server.post(DASHBOARDS, OWNER_KEY, &json!({ "name": "A" })).ok();
    assert_eq!(made["created_at"], "2026-03-01T00:00:00Z", "the clock stands");
    let members = format!("/api/organizations/{ORGANIZATION}/members/");
    let levels = server.get(&members, MEMBER_KEY).ok()["results"].clone();
    let mut levels: Vec<_> = levels.as_array().expect("members").iter().collect();
    levels.sort_by_key(|member| member["level"].as_u64());
    let levels: Vec<_> = levels
        .iter()
        .map(|member| (member["user"]["email"].clone(), member["level"].clone()))
        .collect();
    assert_eq!(
        levels,
        [(json!("member@example.com"), json!(1)), (json!("owner@example.com"), json!(15)),]
    );
    server.stop();
    assert_eq!(site.names(), [""; 0]);
}

#[test]
fn same_requests_get_the_same_bytes_with_the_same_number() {
    let site = DataFolder::empty();
    let run = |number: &str| {
        let server = serve(&site, &["--now", "2026-03-01", "--random", number]);
        let organization = format!("/api/organizations/{ORGANIZATION}/");
        let invites = format!("{organization}invites/");
        let bodies = [
            (DASHBOARDS, json!({ "name": "A", "use_template": "DEFAULT_APP" })),
            (&invites, json!({ "target_email": "ann@example.com" })),
            ("/api/organizations/", json!({ "name": "My organization" })),
            ("/api/personal_api_keys/", json!({ "label": "x", "scopes": ["user:read"] })),
        ];
        let answers: Vec<String> = bodies
            .iter()
            .map(|(path, body)| {
                let made = server.post(path, OWNER_KEY, body).ok();
                made.to_string().replace(&server.address.to_string(), "HOST")
            })
            .collect();
        let log = server.get(&format!("{organization}activity_log/"), OWNER_KEY);
        server.stop();
        (answers, log.body)
    };
    let first = run("7");
    assert_eq!(run("7"), first);
    let (other, _) = run("8");
    for (other, first) in other.iter().zip(&first.0).skip(1) {
        assert_ne!(other, first);
    }
}

#[test]
fn command_gets_the_server_in_variables_that_win_over_those_outside() {
    let site = DataFolder::empty();
    let mut command =
        site.steward(&["test", "--", "sh", "-c", "env | grep -v ^P[WA] | sort; exit 7"]);
    command.env("POSTHOG_HOST", "https://posthog.example").env("STEWARD_DATA", "other.redb");
    let run = CommandOutput::new(&mut command);
    assert_eq!(run.code, Some(7), "{run:?}");
    let note = "steward: POSTHOG_HOST has another value for the command than outside of it\n";
    assert!(run.stderr.ends_with(note), "{run:?}");
    let value = |name: &str| {
        let line = run.stdout.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("no {name}: {run:?}")).to_owned()
    };
    let url = value("STEWARD_URL");
    assert!(run.stderr.contains(&url), "the ready text is on stderr: {run:?}");
    let test_url = format!("{url}/_test/");
    for (names, expected) in [
        (&["POSTHOG_HOST", "TEST_POSTHOG_API_BASE_URL"][..], url.as_str()),
        (&["STEWARD_TEST_URL"], &test_url),
        (
            &[
                "STEWARD_API_KEY",
                "POSTHOG_API_KEY",
                "POSTHOG_PERSONAL_API_KEY",
                "TEST_POSTHOG_PERSONAL_API_KEY",
            ],
            OWNER_KEY,
        ),
        (&["STEWARD_MEMBER_API_KEY"], MEMBER_KEY),
        (&["STEWARD_ORGANIZATION_ID", "POSTHOG_ORGANIZATION_ID", "TEST_ORG_ID"], ORGANIZATION),
        (&["STEWARD_PROJECT_ID", "POSTHOG_PROJECT_ID", "TEST_PROJECT_ID"], "1"),
        (&["POSTHOG_TEST_USER_EMAIL"], "member@example.com"),
    ] {
        for name in names {
            assert_eq!(value(name), expected, "{name}");
        }
    }
    assert_eq!(site.names(), [""; 0]);
}

#[test]
fn exit_code_is_that_of_the_command_as_in_a_shell() {
    let site = DataFolder::empty();
    assert_eq!(run_shell(&site, "exit 0").code, Some(0));
    assert_eq!(run_shell(&site, "kill -9 $$").code, Some(137));
    let absent = site.run(&["test", "--", "no-such-command"]);
    assert_eq!(absent.code, Some(127), "{absent:?}");
    assert!(
        absent
            .stderr
            .ends_with("cannot start no-such-command: No such file or directory (os error 2)\n")
    );
    assert_eq!(site.run(&["test", "--", "/etc/passwd"]).code, Some(126));
    // The shell leaves a signal to the command, and ends when that does.
    let mut command = site.steward(&["test", "--", "sh", "-c"]);
    command.arg("trap 'exit 5' TERM; echo on; while :; do sleep 0.05; done");
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = KillOnDrop(command.spawn().expect("the binary starts"));
    wait_for_line(&mut server.0);
    kill_process(Pid::from_child(&server.0), Signal::TERM).expect("it runs");
    let ended = until("the server ends", || server.0.try_wait().expect("a child"));
    assert_eq!(ended.code(), Some(5));
}

/// Waits until a process writes a line.
fn wait_for_line(child: &mut Child) -> String {
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("stdout is a pipe");
    std::io::BufRead::read_line(&mut BufReader::new(stdout), &mut line).expect("a line");
    line
}

/// Whether a process runs: not one that has ended and is not yet waited for.
fn runs(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat"));
    status.is_ok_and(|text| !text.rsplit(") ").next().unwrap_or_default().starts_with('Z'))
}

#[test]
fn server_ends_with_its_stdin_with_its_parent_and_the_command_with_the_server() {
    let site = DataFolder::empty();
    let mut command = site.steward(&["test", "--json", "--until-stdin-closes"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = KillOnDrop(command.spawn().expect("the binary starts"));
    wait_for_line(&mut server.0);
    drop(server.0.stdin.take());
    let ended = until("the server ends", || server.0.try_wait().expect("a child"));
    assert_eq!(ended.code(), Some(0));

    let mut shell = cleared("sh");
    shell.args(["-c", "\"$0\" test --json & echo $!; wait", STEWARD]).stdout(Stdio::piped());
    let mut parent = KillOnDrop(shell.spawn().expect("a shell"));
    let stdout = BufReader::new(parent.0.stdout.take().expect("stdout is a pipe"));
    let lines = std::io::BufRead::lines(stdout).take(2).map(|line| line.expect("a line"));
    let (ready, pids): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with('{'));
    assert_eq!((ready.len(), pids.len()), (1, 1));
    let pid = pids.concat();
    assert!(runs(&pid));
    parent.0.kill().expect("it runs");
    assert_eq!(parent.0.wait().expect("it ends").signal(), Some(9));
    until("the orphaned server ends", || (!runs(&pid)).then_some(()));

    let mut command = site.steward(&["test", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = KillOnDrop(command.spawn().expect("the binary starts"));
    let pid = wait_for_line(&mut server.0).trim().to_owned();
    assert!(runs(&pid));
    server.0.kill().expect("it runs");
    until("the command of a killed server ends", || (!runs(&pid)).then_some(()));
}

#[test]
fn kept_data_is_served_and_started_from_without_the_keys_of_the_run() {
    let site = DataFolder::empty();
    let post = format!(
        "curl -sS -o answer -H \"Authorization: Bearer $STEWARD_API_KEY\" --json '{{\"name\": \"Kept\"}}' \
         \"$STEWARD_URL{DASHBOARDS}\""
    );
    tool("curl", "curl");
    let run = site.run(&["test", "--keep", "kept.redb", "--", "sh", "-c", &post]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(site.names(), ["answer", "kept.redb"]);
    let again = site.run(&["test", "--keep", "kept.redb", "--", "true"]);
    again.assert_usage_error("--keep: kept.redb exists");

    let server = site.serve(&["--data", "kept.redb"]);
    assert_eq!(server.get("/api/users/@me/", OWNER_KEY).status, 401, "the key is of the run");
    server.stop();
    let exported = site.run(&["export", "--data", "kept.redb", "kept.jsonl"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    for from in ["kept.redb", "kept.jsonl"] {
        let before = fs::read(site.path(from)).expect("the file");
        let server = serve(&site, &["--from", from]);
        let ready = server.startup_message();
        let (user, member) = (&ready["user"], &ready["member"]);
        assert_eq!(
            (&user["email"], &member["email"]),
            (&json!("owner@example.com"), &json!("member@example.com"))
        );
        for person in [user, member] {
            let key = person["api_key"].as_str().expect("a key");
            let found = server.dashboards(DASHBOARDS, key);
            assert_eq!(found, [(1, "Kept".to_owned())], "{from}");
        }
        assert_eq!(server.get("/api/users/@me/", OWNER_KEY).status, 401);
        server.stop();
        assert_eq!(fs::read(site.path(from)).expect("the file"), before, "{from} does not change");
    }
}

#[test]
fn files_that_no_run_can_start_from_are_refused() {
    let (site, _) = DataFolder::with_workspace();
    let whole = fs::read(site.data()).expect("the file");
    fs::write(site.path("cut.redb"), &whole[..whole.len() / 2]).expect("written");
    fs::write(site.path("text"), "hello\n").expect("written");
    fs::write(site.path("empty"), "").expect("written");
    for (file, part) in [
        ("cut.redb", "--from: cut.redb is damaged"),
        ("text", "--from: it is not a Steward export: line 1"),
        ("empty", "--from: it is not a Steward export: line 1"),
        ("absent", "--from: absent does not exist; name a file that `steward backup` wrote"),
        (".", "--from: "),
    ] {
        site.run(&["test", "--from", file]).assert_usage_error(part);
    }
    let server = site.serve(&[]);
    site.run(&["test", "--from", "steward.redb"]).assert_usage_error("in use");
    server.stop();
}

#[test]
fn flags_of_a_real_service_are_refused_with_a_reason() {
    let site = DataFolder::empty();
    for (args, part) in [
        (&["--data", "x.redb"][..], "--data: steward test keeps its workspace in memory"),
        (&["--smtp-url", "smtp://x.example", "--smtp-from", "a@x.example"], "sends no mail"),
        (&["--dns-resolver", "192.0.2.1:53"], "asks no name server"),
        (&["--tls-cert", "x"], "plain HTTP"),
        (&["--backup-dir", "x"], "writes no backups"),
        (&["--config", "x"], "reads no configuration file"),
        (&["--scrub", "1h"], "has no data file"),
        (&["--listen", "0.0.0.0:0"], "serves this machine only"),
        (&["--listen", "192.0.2.1:0"], "serves this machine only"),
        (&["--random=-1"], "--random: write a number"),
        (&["--random", "x"], "--random: write a number"),
        (&["--now", "yesterday"], "write a time such as"),
        (&["--until-stdin-closes", "--", "true"], "cannot be used with"),
        (&["--keep", "no-folder/x"], "--keep"),
        (&["--console-mail-login", "--console", "off"], "--console-mail-login needs --console on"),
    ] {
        site.run(&[&["test"], args].concat()).assert_usage_error(part);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    site.run(&["test", "--listen", &address]).assert_failed(&format!("cannot listen on {address}"));
}

#[test]
fn control_plane_answers_programs_of_this_machine_and_no_page() {
    let site = DataFolder::empty();
    let server = serve(&site, &[]);
    let port = server.address.port();
    let denied = json!({
        "type": "authentication_error", "code": "permission_denied",
        "detail": "The control plane of steward test answers programs of this machine only.", "attr": null,
    });
    let unserved = json!({
        "type": "invalid_request", "code": "not_found", "detail": "API endpoint not found.", "attr": null,
    });
    for host in ["localhost", "127.0.0.1", "[::1]", "steward.localhost"] {
        assert_eq!(ask(&server, &format!("{host}:{port}"), "/_test/", "").0, 200, "{host}");
        assert_eq!(ask(&server, host, "/_test/nothing", ""), (404, unserved.clone()), "{host}");
    }
    for (host, headers) in [
        ("rebound.example", ""),
        ("localhost.example", ""),
        ("192.0.2.1", ""),
        ("localhost", "Origin: http://page.example\r\n"),
        ("localhost", "Origin: null\r\n"),
    ] {
        for path in ["/_test/", "/_test/nothing"] {
            assert_eq!(
                ask(&server, host, path, headers),
                (403, denied.clone()),
                "{host} {headers}"
            );
        }
    }
    server.stop();
    let server = site.serve(&[]);
    for path in ["/_test/", "/_test/nothing"] {
        assert_eq!(ask(&server, "localhost", path, ""), (404, unserved.clone()));
    }
    server.stop();
}
