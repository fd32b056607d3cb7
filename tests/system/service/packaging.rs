//! Checks the systemd unit, the container image and the sample configuration file against the program.

use std::collections::BTreeMap;

use crate::prelude::*;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the text of a file of the repository.
pub fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn duration(text: &str) -> Duration {
    humantime::parse_duration(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns the value of a setting that no file, flag or variable sets.
pub fn default_of(key: &str) -> Duration {
    let settings = DataFolder::empty().json(&["config"]);
    let found =
        settings["results"].as_array().expect("a list").iter().find(|one| one["key"] == key);
    duration(found.expect("a setting")["value"].as_str().expect("a text"))
}

/// Returns the settings, by key, that the program reads from these variables.
pub fn settings_from<'v>(
    variables: impl IntoIterator<Item = (&'v str, &'v str)>,
) -> BTreeMap<String, Value> {
    let site = DataFolder::empty();
    let mut command = site.steward(&["config", "--json"]);
    let settings = CommandOutput::new(command.envs(variables)).json();
    let all = settings["results"].as_array().expect("a list").iter();
    let read = all.filter(|one| one["source"] == "environment");
    read.map(|one| (one["key"].as_str().expect("a key").to_owned(), one["value"].clone())).collect()
}

/// Runs `systemd-analyze` with these arguments on a unit, with the path of the tested binary in it.
fn analyze(unit: &str, words: &[&str]) -> CommandOutput {
    let site = DataFolder::empty();
    let text = read(&format!("packaging/{unit}")).replace("/usr/bin/steward", STEWARD);
    let path = site.path(&unit.replace("cluster/", "").replace('@', "@a"));
    fs::write(&path, text).expect("written");
    CommandOutput::new(tool("systemd-analyze", "systemd").args(words).arg(path))
}

#[test]
fn systemd_accepts_the_units_without_warnings() {
    for unit in ["steward.service", "cluster/steward@.service"] {
        // The manual page is not installed on the test machine.
        let run = analyze(unit, &["verify", "--man=no", "--recursive-errors=no"]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    }
}

#[test]
fn systemd_rates_the_unit_exposure_as_low() {
    let words = ["security", "--offline=true", "--threshold=15", "--no-pager"];
    let run = analyze("steward.service", &words);
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
    let stop = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec="));
    let needed = default_of("grace") + default_of("drain-delay") + Duration::from_secs(10);
    assert!(needed < duration(stop.expect("a limit")), "the stop timeout is too short");
}

#[test]
fn sample_configs_are_valid_with_and_without_their_comments() {
    let setting = Regex::new("(?m)^#([a-z-]+ = )").expect("a pattern");
    let site = DataFolder::empty();
    for (name, optional, expected) in [
        ("steward.toml", "\ntls-cert = ", "\ndata = \"/var/lib/steward/steward.redb\" # file\n"),
        ("cluster/node.toml", "\ndata-ca = ", "\nnode = \"a\" # file\n"),
    ] {
        let sample = read(&format!("packaging/{name}"));
        let full = setting.replace_all(&sample, "$1").into_owned();
        assert!(full.contains(optional), "{full}");
        for text in [&sample, &full] {
            fs::write(site.path("a.toml"), text).expect("written");
            set_mode(site.path("a.toml"), 0o600);
            let shown = site.run(&["config", "--config", "a.toml"]).ok();
            assert!(shown.contains(expected) && !shown.contains("PASSWORD"), "{shown}");
        }
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
fn container_image_contains_only_the_program_and_runs_it_without_root() {
    let (site, image) = (DataFolder::empty(), image());
    assert_eq!(image[0], ("FROM".to_owned(), "scratch".to_owned()));
    assert!(!image.iter().any(|(name, _)| name == "RUN" || name == "ADD"), "no shell");
    let user = value(&image, "USER");
    let ids: Vec<u32> = user.split(':').map(|id| id.parse().expect("a number")).collect();
    assert!(ids.len() == 2 && ids.iter().all(|id| *id > 0), "{user}");
    let owned = format!("--from=build --chown={user} /empty /data");
    assert!(image.contains(&("COPY".to_owned(), owned)), "the user must own the volume");
    assert_eq!(value(&image, "VOLUME"), "/data");
    assert_eq!(instructions().iter().filter(|(name, _)| name == "FROM").count(), 2);
    assert_eq!(words(value(&image, "ENTRYPOINT")), ["/steward"]);
    let started = words(value(&image, "CMD"));
    site.run(&[started[0].as_str(), "--help"]).ok();
    let health = value(&image, "HEALTHCHECK").split_once("CMD ").expect("a command").1;
    let health = words(health);
    assert_eq!(health, ["/steward", "healthcheck"]);
    site.run(&[health[1].as_str(), "--help"]).ok();
    let set = image.iter().filter(|(name, _)| name == "ENV");
    let set: Vec<_> = set.map(|(_, rest)| rest.split_once('=').expect("a variable")).collect();
    let own = set.iter().filter(|(name, _)| name.starts_with("STEWARD_")).count();
    let read = settings_from(set);
    let expected = [("data", "/data/steward.redb"), ("listen", "0.0.0.0:8000")];
    assert_eq!(read, BTreeMap::from(expected.map(|(key, value)| (key.to_owned(), json!(value)))));
    assert_eq!(own, read.len(), "each key must be a flag");
    assert_eq!(value(&image, "EXPOSE"), "8000");
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
