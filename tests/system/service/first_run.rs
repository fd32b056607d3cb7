//! The first start: the records that it creates, the message that it prints, and the files that it must not change.

use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;

use crate::prelude::*;

/// Returns the `curl` command of the message.
fn line_to_try(greeting: &str) -> &str {
    let line = greeting.lines().find(|line| line.starts_with("  curl "));
    line.expect("a line to try").trim()
}

/// Runs a command in a shell, as a user would after copying it.
fn in_a_shell(line: &str) -> Value {
    tool("curl", "curl");
    let run = CommandOutput::new(cleared("sh").args(["-c", &line.replace("curl ", "curl -sS ")]));
    serde_json::from_str(&run.ok()).expect("JSON")
}

#[test]
fn first_start_in_an_empty_directory_creates_a_workspace_with_a_key() {
    let site = DataFolder::empty();
    let mut command = site.steward(&["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::start(&mut command).unwrap();
    assert_ne!(server.address.port(), 0, "the real address is printed");
    let expected = format!(
        "Created a new workspace in steward.redb.\nThe first API key is in steward.redb.first-key. Try it:\n\n  \
         curl -H \"Authorization: Bearer $(cat 'steward.redb.first-key')\" http://{0}/api/projects/1/dashboards/\n\n\
         For a link that opens the console:\n\n  steward console --data 'steward.redb'\n\n\
         Steward is serving http://{0} from steward.redb\n",
        server.address
    );
    assert_eq!(server.greeting, expected);
    let files: Vec<_> = site.files().into_iter().map(|(name, mode, _)| (name, mode)).collect();
    let mine = ["", ".first-key", ".lock", ".sock"];
    assert_eq!(files, mine.map(|end| (format!("steward.redb{end}"), 0o600)));
    let key = site.first_key();
    assert!(key.starts_with("phx_"));
    let empty = json!({ "count": 0, "next": null, "previous": null, "results": [] });
    assert_eq!(server.get("/api/projects/1/dashboards/", &key).ok(), empty);
    let line = format!("cd '{}' && {}", site.folder().display(), line_to_try(&server.greeting));
    assert_eq!(in_a_shell(&line), empty);
    let log = server.stop();
    assert!(!log.contains("phx_"), "{log}");
    site.check();
    // The second start prints no key, and keeps the file of the first one.
    let server = Server::start(&mut command).unwrap();
    let expected = format!("Steward is serving http://{} from steward.redb\n", server.address);
    assert_eq!(server.greeting, expected);
    assert_eq!(site.first_key(), key);
    assert_eq!(server.get("/api/users/@me/", &key).status, 200);
    server.stop();
    assert_eq!(site.names(), ["steward.redb", "steward.redb.first-key", "steward.redb.lock"]);
}

#[test]
fn startup_message_is_one_json_object_with_the_json_flag() {
    let site = DataFolder::empty();
    let server = site.serve(&[]);
    let greeted = server.startup_message();
    let organization = greeted["organization_id"].clone();
    assert!(organization.is_string());
    let url = format!("http://{}", server.address);
    let expected = json!({
        "url": url, "data": "steward.redb", "organization_id": organization, "project_id": 1,
        "api_key": null, "api_key_file": "steward.redb.first-key", "console_url": null,
    });
    assert_eq!(greeted, expected);
    server.stop();
    let server = site.serve(&[]);
    let expected = json!({
        "url": format!("http://{}", server.address), "data": "steward.redb", "organization_id": null,
        "project_id": null, "api_key": null, "api_key_file": null, "console_url": null,
    });
    assert_eq!(server.startup_message(), expected);
}

/// Starts a server whose output is a terminal.
fn on_a_terminal(site: &DataFolder, args: &[&str]) -> (Terminal, Child) {
    let (terminal, stdout) = Terminal::new();
    let mut command = site.steward(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
    let child = command.stdout(stdout).stderr(Stdio::null()).spawn().unwrap();
    (terminal, child)
}

#[test]
fn on_a_terminal_the_first_key_is_printed_once_and_not_written() {
    let site = DataFolder::empty();
    let (mut terminal, mut child) = on_a_terminal(&site, &[]);
    let seen = terminal.until_shows(" from steward.redb");
    let key = seen.lines().find_map(|line| line.strip_prefix("  phx_")).expect("the key");
    assert!(seen.contains("The first API key, shown only once:"), "{seen}");
    assert!(line_to_try(&seen).contains(&format!("Bearer phx_{key}\"")), "{seen}");
    assert_eq!(in_a_shell(line_to_try(&seen))["count"], 0);
    let about = "Open the console with this link, once within five minutes:\n\n  ";
    let (_, link) = seen.split_once(about).expect("a link to the console");
    let link = link.lines().next().unwrap();
    let (base, code) = link.split_once("/console/enter/#").expect("a code");
    let (_, address) = seen.split_once("Steward is serving http://127.0.0.1:").unwrap();
    let port = address.split_whitespace().next().unwrap();
    assert_eq!(base, format!("http://steward.localhost:{port}"));
    assert!(code.len() == 44 && code.chars().all(|c| c.is_ascii_alphanumeric()), "{code}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!site.path("steward.redb.first-key").exists());
}

#[test]
fn closing_the_terminal_stops_a_server_without_tls() {
    let site = DataFolder::empty();
    let (mut terminal, mut child) = on_a_terminal(&site, &[]);
    terminal.until_shows("Steward is serving");
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    let status = until("the server exits", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0), "it closes its file");
    // A server in the background, such as one of nohup, goes on.
    let server = site.serve(&[]);
    server.signal(Signal::HUP);
    assert_eq!(server.get("/_livez", "").status, 200);
    site.check();
    server.stop();
}

#[test]
fn first_start_without_the_console_says_nothing_about_it() {
    let site = DataFolder::empty();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--console", "off"];
    let server = Server::start(&mut site.steward(&serve)).unwrap();
    assert!(!server.greeting.contains("console"), "{}", server.greeting);
    let site = DataFolder::empty();
    let (mut terminal, mut child) = on_a_terminal(&site, &["--console", "off"]);
    let seen = terminal.until_shows(" from steward.redb");
    assert!(seen.contains("The first API key") && !seen.contains("console"), "{seen}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn path_with_spaces_and_quotes_is_served_and_the_printed_command_works() {
    let site = DataFolder::empty();
    let folder = site.path("it's \"mine\" $HOME");
    fs::create_dir(&folder).unwrap();
    let data = folder.join("my data.redb");
    let mut command = site.steward(&["serve", "--listen", "127.0.0.1:0", "--data"]);
    let server = Server::start(command.arg(&data)).unwrap();
    assert_eq!(in_a_shell(line_to_try(&server.greeting))["count"], 0);
}

#[test]
fn path_too_long_for_a_socket_is_served_and_accepts_commands() {
    let site = DataFolder::empty();
    let folder = site.path(&"long".repeat(30));
    fs::create_dir(&folder).unwrap();
    let data = folder.join("steward.redb");
    let data = data.to_str().unwrap();
    let runtime = site.path("run");
    let mut command = site.steward(&["serve", "--listen", "127.0.0.1:0", "--data", data]);
    let server = Server::start(command.env("XDG_RUNTIME_DIR", &runtime)).unwrap();
    assert_eq!(fs::metadata(&runtime).unwrap().mode() & 0o777, 0o700);
    let list = |data: &str, runtime: &Path| {
        let mut command = site.steward(&["user", "list", "--json", "--data", data]);
        CommandOutput::new(command.env("XDG_RUNTIME_DIR", runtime))
    };
    assert_eq!(list(data, &runtime).json()["results"].as_array().unwrap().len(), 1);
    list(data, &site.path("elsewhere")).assert_failed("is in use by another steward process");
    server.stop();
    assert_eq!(fs::read_dir(runtime).unwrap().count(), 0, "the socket is removed");
}

#[test]
fn what_is_no_data_file_is_rejected_and_left_untouched() {
    let folder = DataFolder::empty();
    fs::create_dir(folder.data()).unwrap();
    let no_file = "steward.redb is not a regular file; --data takes the path of a file";
    let foreign = "steward.redb is not a Steward data file and was left untouched";
    for (site, told) in [
        (&folder, no_file),
        (&DataFolder::with_bytes(b""), foreign),
        (&DataFolder::with_bytes(b"Dear diary,\ntoday I made a file.\n"), foreign),
    ] {
        let before = site.files();
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        let list = ["organization", "list", "--json"];
        for args in [&serve[..], &["check"], &["user", "list"], &list] {
            site.run(args).assert_failed(told);
        }
        site.run(&["init", "--email", "a@b.example"]).assert_failed("steward.redb already exists");
        assert_eq!(site.files(), before);
    }
    assert_eq!(fs::read_dir(folder.data()).unwrap().count(), 0);
}

#[test]
fn missing_directory_and_address_in_use_are_named_in_the_error_and_nothing_is_created() {
    let site = DataFolder::empty();
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", "nowhere/steward.redb"];
    site.run(&args).assert_failed("nowhere/steward.redb.lock: No such file or directory");
    site.run(&["check", "--data", "nowhere/steward.redb"]).assert_failed(
        "nowhere/steward.redb does not exist; `steward serve` or `steward init` creates it",
    );
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let part = format!("cannot listen on {address}: Address already in use");
    site.run(&["serve", "--listen", &address]).assert_failed(&part);
    site.run(&["serve", "--listen", "nonsense"]).assert_usage_error("write an address and a port");
    assert_eq!(site.names(), [""; 0]);
}

#[test]
fn read_only_directory_is_named_in_the_error_and_left_empty() {
    let site = DataFolder::empty();
    let program = site.program_for_all();
    let folder = site.create_folder("fixed", 0o555);
    let run = |args: &[&str]| CommandOutput::new(&mut as_nobody(&program, &folder, args));
    let part = "cannot create steward.redb.lock: Permission denied";
    run(&["serve", "--listen", "127.0.0.1:0"]).assert_failed(part);
    run(&["init", "--email", "a@b.example"]).assert_failed(part);
    run(&["user", "list"]).assert_failed("steward.redb does not exist");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn file_used_by_another_server_is_rejected_and_still_served() {
    let Served { site, server, key, .. } = Served::with(&[]);
    let part = "steward.redb is in use by another steward process";
    site.run(&["serve", "--listen", "127.0.0.1:0"]).assert_failed(part);
    assert_eq!(server.get("/api/users/@me/", &key).status, 200);
    let listed = site.json(&["user", "list"]);
    assert_eq!(listed["results"][0]["id"], 1, "the first server must keep its socket");
    let before = site.names();
    site.run(&["init", "--email", "a@b.example"]).assert_failed("steward.redb already exists");
    assert_eq!(site.names(), before);
    server.stop();
}

#[test]
fn concurrent_first_starts_create_one_workspace() {
    for _ in 0..5 {
        let site = DataFolder::empty();
        let outcomes = thread::scope(|scope| {
            let starts = [(); 2].map(|()| scope.spawn(|| site.try_serve(&[])));
            starts.map(|start| start.join().unwrap())
        });
        let (mut winners, mut refused) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            match outcome {
                Ok(winner) => winners.push(winner),
                Err(run) => refused.push(run),
            }
        }
        assert_eq!((winners.len(), refused.len()), (1, 1), "{refused:?}");
        for run in refused {
            run.assert_failed("steward.redb is in use by another steward process");
        }
        let server = winners.remove(0);
        assert_eq!(server.startup_message()["project_id"], 1, "the winner creates the workspace");
        assert_eq!(server.get("/api/users/@me/", &site.first_key()).status, 200);
        server.stop();
        site.check();
    }
}

/// Returns how often a process has written so far.
fn writes(process: u32) -> usize {
    let counts = fs::read_to_string(format!("/proc/{process}/io")).expect("a process");
    let count = counts.lines().find_map(|line| line.strip_prefix("syscw: ")).expect("a count");
    count.parse().expect("a number")
}

#[test]
fn first_start_interrupted_at_any_moment_is_completed_by_the_next() {
    let landmarks = ["lock", "creating", "first-key", "", "sock"].map(|end| match end {
        "" => "steward.redb".to_owned(),
        end => format!("steward.redb.{end}"),
    });
    for round in 0..12 {
        let site = DataFolder::empty();
        let mut command = site.steward(&["serve", "--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // A landmark, or a number of writes. Either may be over by the time the test looks again.
        let landmark = landmarks.get(round);
        let written = || writes(child.id()) >= (round + 1 - landmarks.len()) * 7;
        until("the moment of the kill", || {
            let is_there = landmark.map_or_else(written, |name| site.path(name).exists());
            (is_there || site.path("steward.redb.sock").exists()).then_some(())
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let key = site.data().exists().then(|| site.first_key());
        let server = site.serve(&[]);
        let is_second = server.startup_message()["project_id"].is_null();
        assert_eq!(is_second, key.is_some(), "round {round}");
        let key = key.unwrap_or_else(|| site.first_key());
        assert_eq!(server.get("/api/users/@me/", &key).status, 200);
        server.stop();
        let names = ["steward.redb", "steward.redb.first-key", "steward.redb.lock"];
        assert_eq!(site.names(), names, "round {round}");
        site.check();
    }
}
