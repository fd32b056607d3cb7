//! Checks the systemd unit, the container image and the sample configuration file against the program.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::process::{CommandOutput, DataFolder, STEWARD, cleared, tool};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs `systemd-analyze` with these arguments on the unit, with the path of the tested binary in it.
fn analyze(site: &DataFolder, words: &[&str]) -> CommandOutput {
    let unit = read("packaging/steward.service").replace("/usr/bin/steward", STEWARD);
    let path = site.path("steward.service");
    fs::write(&path, unit).expect("written");
    CommandOutput::new(tool("systemd-analyze", "systemd").args(words).arg(path))
}

#[test]
fn systemd_accepts_the_unit_without_warnings() {
    let site = DataFolder::empty();
    // The manual page is not installed on the test machine.
    let run = analyze(&site, &["verify", "--man=no", "--recursive-errors=no"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
}

#[test]
fn systemd_rates_the_unit_exposure_as_low() {
    let site = DataFolder::empty();
    let run = analyze(&site, &["security", "--offline=true", "--threshold=15", "--no-pager"]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let verdict = run.stdout.lines().last().expect("a verdict");
    assert!(verdict.contains("Overall exposure level"), "{verdict}");
}

#[test]
fn systemd_unit_matches_the_program() {
    let unit = read("packaging/steward.service");
    for line in [
        "Type=notify",
        "ExecStart=/usr/bin/steward serve --config /etc/steward/steward.toml",
        "ExecReload=/bin/kill -HUP $MAINPID",
        "RestartPreventExitStatus=2",
        "UMask=0077",
        "StateDirectory=steward",
    ] {
        assert!(unit.lines().any(|found| found == line), "no {line}");
    }
    assert!(unit.lines().any(|line| line.starts_with("WatchdogSec=")));
    let settings = DataFolder::empty().json(&["config"]);
    let seconds = |key: &str| {
        let all = settings["results"].as_array().expect("a list");
        let found = all.iter().find(|one| one["key"] == key).expect("a setting");
        humantime::parse_duration(found["value"].as_str().expect("a text"))
            .expect("a time")
            .as_secs()
    };
    let stop = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec="));
    let stop = humantime::parse_duration(stop.expect("a limit")).expect("a time").as_secs();
    assert!(seconds("grace") + seconds("drain-delay") + 10 < stop, "the stop timeout is too short");
}

#[test]
fn sample_config_is_valid_with_and_without_its_comments() {
    let sample = read("packaging/steward.toml");
    let is_setting = |line: &str| {
        line.starts_with('#') && line[1..].starts_with(|c: char| c.is_ascii_lowercase())
    };
    let full: String = sample
        .lines()
        .map(
            |line| if is_setting(line) { format!("{}\n", &line[1..]) } else { format!("{line}\n") },
        )
        .collect();
    assert!(full.contains("\ntls-cert = "), "{full}");
    let site = DataFolder::empty();
    for text in [&sample, &full] {
        fs::write(site.path("steward.toml"), text).expect("written");
        let shown = site.run(&["config", "--config", "steward.toml"]).ok();
        assert!(shown.contains("\ndata = \"/var/lib/steward/steward.redb\" # file\n"), "{shown}");
    }
}

/// Returns the instructions of the Dockerfile with their arguments, without comments, and with continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let text = read("Dockerfile");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let split = |line: &str| {
        let (name, rest) = line.split_once(' ').unwrap_or_else(|| panic!("no instruction: {line}"));
        (name.to_owned(), rest.trim().to_owned())
    };
    joined.lines().map(str::trim).filter(|line| !line.is_empty()).map(split).collect()
}

/// Returns the instructions from the last FROM on, which build the final image.
fn image() -> Vec<(String, String)> {
    let all = instructions();
    let last = all.iter().rposition(|(name, _)| name == "FROM").expect("a stage");
    all[last..].to_vec()
}

fn words(list: &str) -> Vec<String> {
    serde_json::from_str(list)
        .unwrap_or_else(|_| panic!("no list in JSON, and there is no shell: {list}"))
}

fn value<'i>(image: &'i [(String, String)], name: &str) -> &'i str {
    let found: Vec<_> = image.iter().filter(|(found, _)| found == name).collect();
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    &found[0].1
}

#[test]
fn container_image_contains_only_the_program_and_does_not_run_as_root() {
    let image = image();
    assert_eq!(image[0], ("FROM".to_owned(), "scratch".to_owned()));
    assert!(!image.iter().any(|(name, _)| name == "RUN" || name == "ADD"), "no shell");
    let user = value(&image, "USER");
    let ids: Vec<u32> = user.split(':').map(|id| id.parse().expect("a number")).collect();
    assert!(ids.len() == 2 && ids.iter().all(|id| *id > 0), "{user}");
    let owned = format!("--from=build --chown={user} /empty /data");
    assert!(image.contains(&("COPY".to_owned(), owned)), "the user must own the volume");
    assert_eq!(value(&image, "VOLUME"), "/data");
    let stages = instructions().iter().filter(|(name, _)| name == "FROM").count();
    assert_eq!(stages, 2);
}

#[test]
fn container_image_runs_existing_commands() {
    let (site, image) = (DataFolder::empty(), image());
    assert_eq!(words(value(&image, "ENTRYPOINT")), ["/steward"]);
    let started = words(value(&image, "CMD"));
    site.run(&[started[0].as_str(), "--help"]).ok();
    let health = value(&image, "HEALTHCHECK").split_once("CMD ").expect("a command").1;
    let health = words(health);
    assert_eq!(health, ["/steward", "healthcheck"]);
    site.run(&[health[1].as_str(), "--help"]).ok();
}

#[test]
fn container_image_sets_variables_that_the_program_reads() {
    let site = DataFolder::empty();
    let mut command = site.steward(&["config", "--json"]);
    for (name, rest) in image().iter().filter(|(name, _)| name == "ENV") {
        let (variable, value) = rest.split_once('=').unwrap_or_else(|| panic!("{name} {rest}"));
        command.env(variable, value);
    }
    let settings = CommandOutput::new(&mut command).json();
    let from_image: Vec<_> = settings["results"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|one| one["source"] == "environment")
        .map(|one| (one["key"].as_str().expect("a key"), one["value"].as_str().expect("a text")))
        .collect();
    assert_eq!(from_image, [("listen", "0.0.0.0:8000"), ("data", "/data/steward.redb")]);
    let set =
        image().iter().filter(|(name, rest)| name == "ENV" && rest.starts_with("STEWARD_")).count();
    assert_eq!(set, from_image.len(), "each key must be a flag");
    assert_eq!(value(&image(), "EXPOSE"), "8000");
}

/// Returns the paths that `.dockerignore` includes in the build context.
fn context() -> Vec<PathBuf> {
    let text = read(".dockerignore");
    let let_in =
        text.lines().filter_map(|line| line.strip_prefix('!')).map(PathBuf::from).collect();
    assert_eq!(text.lines().find(|line| !line.starts_with('#')), Some("*"));
    let_in
}

#[test]
fn cargo_finds_the_program_in_the_build_context() {
    let site = DataFolder::empty();
    for path in context() {
        let mut copy = cleared("cp");
        CommandOutput::new(
            copy.arg("-r").arg(root().join(&path)).arg(site.path(path.to_str().unwrap())),
        )
        .ok();
    }
    let mut cargo = cleared(env!("CARGO"));
    cargo.current_dir(site.folder()).env("HOME", std::env::var_os("HOME").unwrap_or_default());
    cargo.args(["metadata", "--no-deps", "--offline", "--locked", "--format-version=1"]);
    let run = CommandOutput::new(&mut cargo);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("\"src_path\":"), "{run:?}");
    // The sources include other files, such as templates. They must be in the build context too.
    assert!(context().contains(&PathBuf::from("src")) && site.path("askama.toml").exists());
}
