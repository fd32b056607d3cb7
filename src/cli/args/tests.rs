//! Tests that every flag of `serve` is a key of the configuration file and stands in `docs/configuration.md`. New flags are
//! included automatically.

use std::any::TypeId;
use std::fs;

use clap::builder::ValueRange;
use proptest::prelude::*;
use tempfile::TempDir;
use toml::{Table, Value};

use super::*;
use crate::cli::config_file::{mask_secret, parse_error};

#[path = "../../../tests/support/generated_page.rs"]
mod generated_page;

/// Sample values. Every flag accepts at least one of them.
const SAMPLES: [&str; 15] = [
    "17",
    "7m",
    "3MiB",
    "json",
    "10.1.0.0/16",
    "9/s",
    "smtps://ann:hunter2@mail.example.org",
    "https://app.example.org",
    "127.0.0.1:1053",
    "warn",
    "always",
    "never",
    "text",
    "off",
    "a-name",
];

/// Returns a sample that the flag accepts and that is not its default.
fn sample(flag: &Arg) -> &'static str {
    let default = flag.get_default_values().first().map(|text| text.to_string_lossy());
    let fits = |sample: &&&str| {
        parse_error(flag, sample).is_none() && default.as_deref() != Some(**sample)
    };
    SAMPLES.iter().find(fits).unwrap_or_else(|| panic!("no sample is valid for --{}", key(flag)))
}

fn whole() -> Command {
    let mut whole = Cli::command();
    whole.build();
    whole
}

/// Writes a file with a value for each flag of `serve`, and returns these values as they would be typed.
fn full() -> (TempDir, String, Vec<(String, String)>) {
    let (mut table, mut typed) = (Table::new(), Vec::new());
    for flag in flags(serve_command(&whole())) {
        let (value, text) = match flag.get_action() {
            ArgAction::SetTrue => (Value::Boolean(true), "true"),
            ArgAction::Append => (Value::Array(vec![sample(flag).into()]), sample(flag)),
            _ => (sample(flag).into(), sample(flag)),
        };
        table.insert(key(flag).to_owned(), value);
        typed.push((key(flag).to_owned(), text.to_owned()));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("steward.toml");
    fs::write(&path, table.to_string()).expect("written");
    (folder, path.display().to_string(), typed)
}

fn asked(words: &[&str]) -> ParsedArgs {
    let line = [&["steward"], words].concat().into_iter().map(OsString::from).collect();
    parse(line).unwrap_or_else(|unclear| panic!("{words:?}: {unclear:?}"))
}

fn shown(args: &ParsedArgs) -> Vec<(String, String)> {
    let shown = args.settings.iter();
    shown.map(|setting| (key(&setting.flag).to_owned(), setting.values.join(","))).collect()
}

#[test]
fn every_serve_flag_is_a_config_key_and_its_value_is_read() {
    let (_folder, path, typed) = full();
    for command in ["serve", "config"] {
        let args = asked(&[command, "--config", &path]);
        assert_eq!(shown(&args), typed);
        for setting in &args.settings {
            assert_eq!(setting.source, Source::File, "{}", key(&setting.flag));
        }
    }
}

#[test]
fn flags_override_the_config_file() {
    let (_folder, path, typed) = full();
    for flag in flags(serve_command(&whole())) {
        let given = match flag.get_action() {
            ArgAction::SetTrue => format!("--{}", key(flag)),
            _ => format!("--{}={}", key(flag), sample(flag)),
        };
        let args = asked(&["serve", &given, "--config", &path]);
        assert_eq!(shown(&args), typed, "the flag has one value");
        for setting in &args.settings {
            let overruled = key(&setting.flag) == key(flag);
            let source = if overruled { Source::Flag } else { Source::File };
            assert_eq!(setting.source, source, "{} beside {given}", key(&setting.flag));
        }
    }
}

#[test]
fn every_flag_has_an_environment_variable_of_its_name() {
    for flag in flags(serve_command(&whole())) {
        let variable = format!("STEWARD_{}", key(flag).replace('-', "_").to_uppercase());
        assert_eq!(flag.get_env(), Some(variable.as_ref()), "--{}", key(flag));
    }
}

/// Returns the arguments of a command and its subcommands.
fn arguments(command: &Command) -> Vec<&Arg> {
    let below = command.get_subcommands().flat_map(arguments);
    command.get_arguments().chain(below).collect()
}

#[test]
fn argument_for_a_file_takes_no_address_of_a_database() {
    let whole = whole();
    let is_path = |arg: &&Arg| arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    let paths: Vec<_> = arguments(&whole).into_iter().filter(is_path).collect();
    assert!(paths.len() > 12, "{}", paths.len());
    for arg in paths {
        match parse_error(arg, "mysql://ann:hunter2@db/x") {
            Some(why) => assert!(why.contains("address") && !why.contains("hunter2"), "{why}"),
            // It is read later, with a better error.
            None => assert_eq!(arg.get_id().as_str(), "data"),
        }
    }
}

#[test]
fn every_command_accepts_a_full_config_file() {
    let (_folder, path, _) = full();
    let mail = asked(&["mail", "test", "a@example.org", "--config", &path]);
    let found: Vec<_> = mail.settings.iter().map(|setting| setting.source).collect();
    assert!(found.len() > 5 && found.iter().all(|source| *source == Source::File), "{found:?}");
    for words in [&["check"][..], &["user", "list"], &["init", "--email", "a@example.org"]] {
        let taken = asked(&[words, &["--config", &path]].concat());
        let own = |setting: &&ArgValue| setting.source != Source::File;
        let own: Vec<_> = taken.settings.iter().filter(own).map(|one| key(&one.flag)).collect();
        assert!(!own.contains(&"data") && !own.contains(&"json"), "{words:?}: {own:?}");
    }
}

#[test]
fn config_flag_works_before_the_command_and_flags_before_a_double_dash() {
    let (_folder, path, typed) = full();
    assert_eq!(shown(&asked(&["--config", &path, "serve"])), typed);
    let args = asked(&["--config", &path, "mail", "test", "--", "a@example.org"]);
    assert!(args.settings.iter().all(|setting| setting.source == Source::File));
}

#[test]
fn mask_secret_hides_passwords() {
    for (text, shown) in [
        ("smtps://ann:hunter2@mail.example.org", "smtps://ann:********@mail.example.org"),
        ("smtps://ann@mail.example.org", "smtps://ann@mail.example.org"),
        ("hunter2", "********"),
        ("hunter:2", "********"),
    ] {
        assert_eq!(mask_secret(text), shown);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A file is accepted, or rejected with one line that begins with the file's name.
    #[test]
    fn any_config_file_is_accepted_or_rejected_with_one_line(text in proptest::collection::vec(pieces(), 0..12)) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("steward.toml");
        fs::write(&path, text.concat()).expect("written");
        let serve = serve_command(&whole()).clone();
        let errors = match ConfigFile::read(&path, &serve) {
            Ok(file) => file.values.iter().filter_map(|(flag, value)| file.to_args(flag, value).err()).collect(),
            Err(error) => vec![error],
        };
        for error in errors {
            prop_assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
            prop_assert!(!error.contains('\n') && !error.contains("hunter2"), "{error}");
        }
    }
}

/// Returns pieces of configuration files, valid and invalid.
fn pieces() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "listen",
            "smtp-url",
            "json",
            "max-body",
            "rate-limit",
            " = ",
            "\n",
            "\"",
            "'",
            "\"\"\"",
            "[",
            "]",
            "{",
            "}",
            ",",
            "true",
            "1",
            "-9223372036854775808",
            "1.5",
            "1979-05-27",
            "\\u0000",
            "\\n",
            "#",
            ".",
            "\"a\\nb\" = 1\n",
            "smtp-url = \"smtps://a:hunter2@b\"\n",
            "json = true\n",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ]
}

/// What stands above the table.
const PAGE_HEAD: &str = "\
# Configuration

Every setting of `serve`. Each is a flag (`--listen`), an environment variable (`STEWARD_LISTEN`) and a key of the
configuration file that `--config` names. Flags override variables, and variables override the file.
[operations.md](operations.md) explains how the settings work together. `steward config` prints the values in force.

Times are written as `30s`, `5m`, `24h` or `3d`, sizes as `64MiB`. A repeatable key takes a list in the file, and its variable
takes the values separated by commas.

This page is generated from the definitions of the flags. After a change of a flag, run
`UPDATE_DOCS=1 cargo test --lib configuration_page`.

| Setting | Default | Meaning |
|---|---|---|
";

fn page() -> String {
    let rows: String = flags(serve_command(&whole())).map(row).collect();
    PAGE_HEAD.to_owned() + &rows
}

fn row(flag: &Arg) -> String {
    let default = flag.get_default_values().first().map(|value| value.to_string_lossy());
    let default = match (default, flag.get_action()) {
        (_, ArgAction::SetTrue) => "`false`".to_owned(),
        (Some(value), _) => format!("`{value}`"),
        (None, _) => String::new(),
    };
    let name = flag.get_value_names().and_then(|names| names.first());
    let value = match (flag.get_num_args(), name) {
        (Some(ValueRange::EMPTY), _) | (_, None) => String::new(),
        (_, Some(name)) => format!(" {name}"),
    };
    let help = flag.get_long_help().or(flag.get_help()).map(ToString::to_string);
    format!("| `{}{value}` | {default} | {} |\n", key(flag), as_cell(&help.unwrap_or_default()))
}

/// Returns the text in the form of a table cell: one line, ending with a period.
fn as_cell(help: &str) -> String {
    let line = help.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    if line.ends_with('.') { line } else { line + "." }
}

#[test]
fn configuration_page_is_current() {
    let command = "cargo test --lib configuration_page";
    generated_page::assert_current("docs/configuration.md", &page(), command);
}
