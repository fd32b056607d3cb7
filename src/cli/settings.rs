//! How a command is asked to run: flags, before the environment, before a configuration file, before defaults.
//!
//! What a file may hold is read off the flags of `serve`, so a flag is a key of the file as soon as it is there.
//! What a file gives is put behind the command line as if it had been typed, and so it is held to what flags are
//! held to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};

use super::Cli;
use super::config_file::ConfigFile;

/// A command line with all that belongs to it.
pub(super) struct Asked {
    pub(super) cli: Cli,
    /// The flags of the command, in their order.
    pub(super) settings: Vec<Setting>,
    /// What is to be said about the configuration file.
    pub(super) warning: Option<String>,
}

/// A flag's value, and where it comes from.
pub(super) struct Setting {
    pub(super) flag: Arg,
    pub(super) source: Source,
    /// As it would be typed, once for each time; none where the flag has no value.
    pub(super) texts: Vec<String>,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Flag,
    Environment,
    File,
    Default,
}

/// Why it cannot be told how to run.
#[derive(Debug)]
pub(super) enum Unclear {
    /// The command line makes no sense, or asks for help.
    Line(clap::Error),
    /// The configuration file makes no sense; one line.
    File(String),
}

impl From<clap::Error> for Unclear {
    fn from(error: clap::Error) -> Self {
        Self::Line(error)
    }
}

/// Reads a command line, and the configuration file that it or the environment names.
pub(super) fn read(mut line: Vec<OsString>) -> Result<Asked, Unclear> {
    let mut whole = Cli::command();
    whole.build();
    // What is wrong with the line is told when it is read for good.
    let first = Cli::command().ignore_errors(true).try_get_matches_from(&line)?;
    let (command, matches) = innermost(&whole, &first);
    let mut file = None;
    if let Some(path) = matches.get_one::<PathBuf>("config") {
        let read = ConfigFile::read(path, serve(&whole)).map_err(Unclear::File)?;
        let (keys, words) = of_file(&read, command, matches).map_err(Unclear::File)?;
        let end = line.iter().position(|word| word == "--").unwrap_or(line.len());
        line.splice(end..end, words);
        file = Some((path, read, keys));
    }
    let (path, read, keys) = match &file {
        Some((path, read, keys)) => (Some(path.as_path()), Some(read), &keys[..]),
        None => (None, None, &[][..]),
    };
    let matches = Cli::command().try_get_matches_from(line);
    let matches = matches.map_err(|error| beside_a_file(error, path, keys))?;
    let (command, innermost) = innermost(&whole, &matches);
    let settings = flags(command).map(|flag| Setting::of(flag, innermost, keys)).collect();
    let warning = read.and_then(ConfigFile::exposed);
    Ok(Asked { cli: Cli::from_arg_matches(&matches)?, settings, warning })
}

/// The command that is asked for, and what is said to it.
fn innermost<'a>(
    mut command: &'a Command,
    mut matches: &'a ArgMatches,
) -> (&'a Command, &'a ArgMatches) {
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, below);
    }
    (command, matches)
}

/// The command whose flags are the keys of a file.
pub(super) fn serve(whole: &Command) -> &Command {
    whole.find_subcommand("serve").unwrap_or(whole)
}

/// The flags of a command that have a value, but the one that names the file.
pub(super) fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|flag| {
        let valued =
            matches!(flag.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue);
        valued && flag.get_long().is_some_and(|name| name != "config")
    })
}

/// The key of a flag: its long name.
pub(super) fn key(flag: &Arg) -> &str {
    flag.get_long().unwrap_or_default()
}

/// Whether a flag holds a secret: then its help tells no value from the environment either.
pub(super) fn is_secret(flag: &Arg) -> bool {
    flag.is_hide_env_values_set()
}

/// Which keys the file decides, and the words by which it does. A flag of the same name that another variable
/// stands for is another flag.
fn of_file(
    file: &ConfigFile,
    command: &Command,
    matches: &ArgMatches,
) -> Result<(Vec<String>, Vec<OsString>), String> {
    let (mut keys, mut words) = (Vec::new(), Vec::new());
    for (key, value) in file.values() {
        let same =
            |flag: &&Arg| flag.get_long() == Some(key) && flag.get_env() == value.flag().get_env();
        let Some(flag) = flags(command).find(same) else { continue };
        let texts = value.texts()?;
        if is_given(flag, matches) {
            continue;
        }
        keys.push(key.to_owned());
        if matches!(flag.get_action(), ArgAction::SetTrue) {
            words
                .extend(texts.iter().any(|text| text == "true").then(|| format!("--{key}").into()));
        } else {
            words.extend(texts.iter().map(|text| OsString::from(format!("--{key}={text}"))));
        }
    }
    Ok((keys, words))
}

/// Whether the command line or the environment says what a flag is.
fn is_given(flag: &Arg, matches: &ArgMatches) -> bool {
    let typed = matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine);
    typed || flag.get_env().is_some_and(|name| std::env::var_os(name).is_some())
}

/// A complaint about what does not go together says what a file put there.
fn beside_a_file(error: clap::Error, path: Option<&Path>, keys: &[String]) -> Unclear {
    match path.filter(|_| error.use_stderr() && !keys.is_empty()) {
        Some(path) => {
            let (text, kind) = (error.to_string(), error.kind());
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let text = format!("{text}\n{} gives {}.\n", path.display(), keys.join(", "));
            clap::Error::raw(kind, text).into()
        }
        None => error.into(),
    }
}

impl Setting {
    fn of(flag: &Arg, matches: &ArgMatches, of_file: &[String]) -> Self {
        let id = flag.get_id().as_str();
        let source = match matches.value_source(id) {
            _ if of_file.iter().any(|name| name == key(flag)) => Source::File,
            Some(ValueSource::CommandLine) => Source::Flag,
            Some(ValueSource::EnvVariable) => Source::Environment,
            _ => Source::Default,
        };
        let texts = if matches!(flag.get_action(), ArgAction::SetTrue) {
            vec![matches.get_flag(id).to_string()]
        } else {
            let texts = matches.get_raw(id).into_iter().flatten();
            texts.map(|text| text.to_string_lossy().into_owned()).collect()
        };
        Self { flag: flag.clone(), source, texts }
    }
}

#[cfg(test)]
mod tests;
