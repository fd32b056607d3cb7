//! Generates the table of `docs/configuration.md` from the definitions of the flags.

use clap::builder::ValueRange;
use clap::{Arg, ArgAction, CommandFactory};

use super::Cli;
use super::config_file::{flags, key, serve_command};

#[path = "../../tests/support/generated_page.rs"]
mod generated_page;

/// What stands above the table.
const HEAD: &str = "\
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
    let mut whole = Cli::command();
    whole.build();
    let rows = flags(serve_command(&whole)).map(row);
    HEAD.to_owned() + &rows.collect::<String>()
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
