//! The flags of a command, which are also the keys of a configuration file.

use clap::{Arg, ArgAction, Command};

/// Returns the `serve` command, whose flags are the keys of a configuration file.
pub(super) fn serve_command(whole: &Command) -> &Command {
    whole.find_subcommand("serve").unwrap_or(whole)
}

/// Returns the flags of a command that have a value, except `--config`.
pub(super) fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|flag| {
        let valued =
            matches!(flag.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue);
        valued && flag.get_long().is_some_and(|name| name != "config")
    })
}

/// Returns the key of a flag, which is its long name.
pub(super) fn key(flag: &Arg) -> &str {
    flag.get_long().unwrap_or_default()
}

/// Returns whether a flag holds a secret. The help texts of such flags do not show values from the environment.
pub(super) fn is_secret(flag: &Arg) -> bool {
    flag.is_hide_env_values_set()
}

/// Returns whether a message names a flag.
pub(super) fn is_named(flag: &Arg, message: &str) -> bool {
    let words = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter_map(|word| word.strip_prefix("--")).any(|word| word == key(flag))
}

/// Returns the words that name the variable of a flag, for a message about a value that comes from it.
pub(super) fn variable_of(flag: &Arg) -> Option<String> {
    Some(format!("{} sets --{}", flag.get_env()?.display(), key(flag)))
}
