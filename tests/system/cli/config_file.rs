//! `--config` and `steward config`, with the real binary.

use crate::prelude::*;

/// Creates a folder with this configuration file, which only its owner may read.
fn with(text: &str) -> DataFolder {
    let site = DataFolder::empty();
    write(&site, text);
    site
}

fn write(site: &DataFolder, text: &str) {
    let path = site.path("steward.toml");
    fs::write(&path, text).expect("written");
    set_mode(path, 0o600);
}

/// Returns the value and the source of a setting.
fn setting(answer: &Value, key: &str) -> (Value, String) {
    let all = answer["results"].as_array().expect("a list");
    let found = all.iter().find(|one| one["key"] == key).expect("a setting");
    (found["value"].clone(), found["source"].as_str().expect("a source").to_owned())
}

const CONFIG: [&str; 3] = ["config", "--config", "steward.toml"];

#[test]
fn settings_precedence_is_flag_environment_file_default() {
    let site = with("grace = \"4s\"\nrate-limit = [\"9/s\", \"90/m\"]\njson = false\n");
    let variable = |value: &str, args: &[&str]| {
        let mut command = site.steward(&[&CONFIG[..], args, &["--json"]].concat());
        setting(&CommandOutput::new(command.env("STEWARD_GRACE", value)).json(), "grace")
    };
    assert_eq!(variable("3s", &["--grace", "2s"]), (json!("2s"), "flag".to_owned()));
    assert_eq!(variable("3s", &[]), (json!("3s"), "environment".to_owned()));
    // An empty variable counts as unset.
    for file in [variable("", &[]), setting(&site.json(&CONFIG), "grace")] {
        assert_eq!(file, (json!("4s"), "file".to_owned()));
    }
    // No value in the file is the default.
    let mut command = site.steward(&CONFIG);
    command.env("STEWARD_RATE_LIMIT", "1/s,10/m").env("STEWARD_JSON", "1");
    let answer = CommandOutput::new(&mut command).json();
    for (key, value) in [("rate-limit", json!(["1/s", "10/m"])), ("json", json!(true))] {
        assert_eq!(setting(&answer, key), (value, "environment".to_owned()), "{key}");
    }
    let none = site.json(&["config"]);
    assert_eq!(setting(&none, "grace"), (json!("30s"), "default".to_owned()));
    assert_eq!(setting(&none, "public-url"), (Value::Null, "default".to_owned()));
}

#[test]
fn environment_variable_names_the_config_file_and_a_flag_overrides_it() {
    let site = with("grace = \"4s\"\n");
    fs::write(site.path("other.toml"), "grace = \"5s\"\n").expect("written");
    let named = |args: &[&str]| {
        let mut command = site.steward(&[&["config", "--json"], args].concat());
        setting(&CommandOutput::new(command.env("STEWARD_CONFIG", "steward.toml")).json(), "grace")
            .0
    };
    assert_eq!(named(&[]), "4s");
    assert_eq!(named(&["--config", "other.toml"]), "5s");
}

#[test]
fn server_and_commands_use_the_config_file() {
    let site = with("data = \"elsewhere.redb\"\nlisten = \"127.0.0.1:0\"\njson = true\n");
    let mut command = site.steward(&["serve", "--config", "steward.toml"]);
    let server = Server::start(&mut command).expect("it serves");
    assert_eq!(server.startup_message()["data"], "elsewhere.redb");
    let list = ["user", "list", "--config", "steward.toml"];
    assert_eq!(site.run(&list).json()["results"][0]["id"], 1, "json in the file");
    server.stop();
    assert!(site.path("elsewhere.redb").exists() && !site.data().exists());
}

#[test]
fn printed_config_is_a_valid_config_file() {
    let text = "grace = \"4s\"\nconnections = 9\ntrusted-proxy = [\"10.0.0.0/8\"]\nmax-body = 4096\n\
                smtp-url = \"smtp://localhost\"\nsmtp-from = \"S 'q' \\\" \\\\ <a@example.org>\"\n";
    let site = with(text);
    let printed = site.run(&CONFIG).ok();
    write(&site, &printed);
    assert_eq!(site.run(&CONFIG).ok(), printed);
    for line in text.lines() {
        let key = line.split(' ').next().expect("a key");
        let found = printed.lines().filter(|line| line.starts_with(&format!("{key} = ")));
        assert_eq!(found.count(), 1, "{key} in {printed}");
    }
    let defaults = printed.lines().filter(|line| line.ends_with("# default"));
    assert!(defaults.clone().count() > 5 && defaults.clone().all(|line| line.starts_with("# ")));
}

#[test]
fn invalid_config_file_is_rejected_with_file_key_and_expected_value() {
    for (text, told) in [
        ("grase = \"4s\"", "steward.toml: \"grase\" is not a valid key; the keys are: listen, "),
        ("config = \"a\"", "steward.toml: \"config\" is not a valid key; "),
        ("email = \"a\"", "steward.toml: \"email\" is not a valid key; "),
        ("[serve]\ngrace = \"4s\"", "steward.toml: \"serve\" is not a valid key; "),
        ("grace = 4", "steward.toml: grace takes a string, TIME: "),
        ("grace = 4.5", "steward.toml: grace takes a string, TIME"),
        ("grace = [\"4s\"]", "steward.toml: grace takes a string, TIME"),
        ("header-timeout = \"soon\"", "TIME: write a time such as 30s, 15m, 6h or 3d"),
        ("connections = 0", "connections takes a number, N: 0 is not in 1..="),
        ("connections = true", "connections takes a number, N"),
        ("listen = 8000", "listen takes a string, ADDR"),
        ("data = \"\"", "data takes a string, DATA: "),
        ("json = \"yes\"", "json takes true or false"),
        ("json = 1", "json takes true or false"),
        ("rate-limit = [\"9/s\", 9]", "rate-limit takes a list of strings, each RATE"),
        ("rate-limit = [\"9/s\", \"many\"]", "each RATE: write a rate such as 10/s"),
        ("grace = \"4s\"\ngrace = \"5s\"", "line 2 is not valid TOML: duplicate key"),
        ("grace", "steward.toml: line 1 is not valid TOML: "),
        ("log-format = \"xml\"", "use auto, text or json"),
    ] {
        let site = with(text);
        for command in [&CONFIG[..], &["serve", "--config", "steward.toml"]] {
            let run = site.run(command);
            assert_eq!(run.stderr.matches('\n').count(), 1, "{text}: {run:?}");
            assert!(run.stderr.starts_with("steward: steward.toml: "), "{text}: {run:?}");
            run.assert_usage_error(told);
        }
        assert_eq!(site.names(), ["steward.toml"], "a refused command created a file");
    }
}

#[test]
fn unreadable_config_file_is_rejected_by_name() {
    let site = DataFolder::empty();
    site.run(&CONFIG).assert_usage_error("steward: steward.toml: No such file or directory");
    fs::create_dir(site.path("steward.toml")).expect("a folder");
    site.run(&CONFIG).assert_usage_error("steward: steward.toml: ");
    fs::remove_dir(site.path("steward.toml")).expect("removed");
    fs::write(site.path("steward.toml"), b"grace = \"\xff\"").expect("written");
    site.run(&CONFIG).assert_usage_error("steward.toml: it is not UTF-8");
    fs::write(site.path("steward.toml"), vec![b'\n'; (1 << 20) + 1]).expect("written");
    site.run(&CONFIG).assert_usage_error("steward.toml: it is larger than 1 MiB");
    site.run(&["config", "--config", "/dev/zero"])
        .assert_usage_error("/dev/zero: it is larger than 1 MiB");
}

#[test]
fn unknown_config_key_is_an_error_and_other_serve_keys_are_ignored() {
    let site = with("connections = 0\ndata = \"other.redb\"\n");
    site.run(&["check", "--config", "steward.toml"]).assert_failed("other.redb does not exist");
    write(&site, "nonsense = 0\n");
    for command in [&["check"][..], &["user", "list"], &["init", "--email", "a@b.example"]] {
        let run = site.run(&[command, &["--config", "steward.toml"]].concat());
        run.assert_usage_error("steward.toml: \"nonsense\" is not a valid key; the keys are: ");
    }
    assert_eq!(site.names(), ["steward.toml"]);
}

#[test]
fn required_settings_may_come_from_other_sources_or_are_reported() {
    let site = with("smtp-url = \"smtp://localhost\"\n");
    let run = site.run(&CONFIG);
    assert!(run.stderr.contains("--smtp-from <ADDRESS>"), "{run:?}");
    run.assert_usage_error("steward.toml sets smtp-url.");
    let flag = site.run(&[&CONFIG[..], &["--smtp-from", "a@example.org"]].concat()).ok();
    assert!(flag.contains("\nsmtp-from = \"a@example.org\" # flag\n"), "{flag}");
    write(&site, "smtp-from = \"a@example.org\"\n");
    let mut command = site.steward(&CONFIG);
    let variable = CommandOutput::new(command.env("STEWARD_SMTP_URL", "smtp://localhost")).ok();
    assert!(variable.contains("\nsmtp-url = \"smtp://localhost\" # environment\n"), "{variable}");
}

#[test]
fn config_output_masks_passwords() {
    let url = "smtps://ann:hunter2@mail.example.org";
    let good = format!("smtp-url = \"{url}\"\nsmtp-from = \"a@example.org\"\n");
    let site = with(&good);
    let (text, json) = (site.run(&CONFIG).ok(), site.json(&CONFIG).to_string());
    assert!(text.contains("smtp-url = \"smtps://ann:********@mail.example.org\" # file, masked\n"));
    let flags = ["config", "--smtp-url", url, "--smtp-from", "a@example.org"];
    let by_flag = site.run(&flags).ok();
    let mut command = site.steward(&["config", "--smtp-from", "a@example.org"]);
    let by_variable = CommandOutput::new(command.env("STEWARD_SMTP_URL", url)).ok();
    for shown in [text, json, by_flag, by_variable] {
        assert!(shown.contains("ann:********@") && !shown.contains("hunter2"), "{shown}");
        if shown.contains("# file") {
            let copy = with(&shown);
            copy.run(&CONFIG)
                .assert_usage_error("smtp-url takes the secret itself, not a masked one");
        }
    }
    for bad in [
        "smtp-url = \"http://ann:hunter2@mail.example.org\"".to_owned(),
        "smtp-url = \"smtps://ann:hunter2@mail.example.org".to_owned(),
        "smtp-url = smtps://ann:hunter2@mail.example.org".to_owned(),
        "smtp-url = [\"smtps://ann:hunter2@mail.example.org\"]".to_owned(),
        format!("{good}smtp-url = \"hunter2\""),
        format!("{good}nonsense = 1"),
        format!("smtp-url = \"{url}\""),
    ] {
        write(&site, &bad);
        let run = site.run(&CONFIG);
        assert!(!run.stderr.contains("hunter2"), "{bad}: {run:?}");
        run.assert_usage_error("steward.toml");
    }
}

#[test]
fn config_file_with_a_password_readable_by_others_causes_a_warning() {
    let site =
        with("smtp-url = \"smtps://ann:hunter2@127.0.0.1:1\"\nsmtp-from = \"a@example.org\"\n");
    let open = |mode| set_mode(site.path("steward.toml"), mode);
    let told =
        "steward.toml holds a secret (smtp-url) and other users may read it; run chmod 600 on it";
    for mode in [0o640, 0o604] {
        open(mode);
        let run = site.run(&CONFIG);
        assert_eq!((run.code, run.stderr), (Some(0), format!("steward: {told}\n")));
        let log = site.serve(&["--config", "steward.toml"]).stop();
        assert!(log.contains(told) && !log.contains("hunter2"), "{log}");
    }
    open(0o600);
    let log = site.serve(&["--config", "steward.toml"]).stop();
    assert!(!log.contains("other users may read"), "{log}");
    write(&site, "smtp-url = \"smtps://ann@127.0.0.1:1\"\nsmtp-from = \"a@example.org\"\n");
    open(0o644);
    site.run(&CONFIG).ok();
}
