//! Reads the configuration of a command, and shows it for `steward config`. Flags override environment variables, which override the configuration file,
//! which overrides defaults.
//!
//! The keys of a configuration file are the flags of `serve`, so a new flag is a key at once. The values of a file
//! are appended to the command line, so clap checks them like flags.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use serde_json::{Value as Json, json};
use toml::Value;

use super::config_file::{
    ConfigFile, accepts_numbers, flags, is_named, is_secret, key, mask, serve_command, variable_of,
};
use super::{Cli, Failure};

/// The command that reads no configuration file.
const TEST: &str = "test";

/// A parsed command line with its settings.
pub(super) struct ParsedArgs {
    pub(super) cli: Cli,
    /// The flags of the command, in their order.
    pub(super) settings: Vec<ArgValue>,
    /// A warning about the configuration file, for stderr or the log.
    pub(super) warning: Option<String>,
}

/// The value of a flag, with its source.
pub(super) struct ArgValue {
    pub(super) flag: Arg,
    pub(super) source: Source,
    /// The values as they would be typed, one per use; empty if the flag has no value.
    pub(super) values: Vec<String>,
}

/// The source of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    Flag,
    Environment,
    File,
    Default,
}

/// Parses a command line, and the configuration file that `--config` or its environment variable names.
pub(super) fn parse(mut line: Vec<OsString>) -> Result<ParsedArgs, Failure> {
    let mut whole = root_command();
    whole.build();
    // Ignores errors in this first pass. The second pass, with the file's values, reports them.
    let first = root_command().ignore_errors(true).try_get_matches_from(&line)?;
    let (command, matches) = find_subcommand(&whole, &first);
    let (mut file, mut keys) = (None, Vec::new());
    let reads_file = first.subcommand_name() != Some(TEST);
    let path = matches.get_one::<PathBuf>("config").filter(|_| reads_file);
    if let Some(path) = path {
        let source = matches.value_source("config");
        let invalid = |text: String| match source {
            Some(ValueSource::EnvVariable) => {
                Failure::Usage(format!("{text}; STEWARD_CONFIG sets --config"))
            }
            _ => Failure::Usage(text),
        };
        let read = ConfigFile::read(path, serve_command(&whole)).map_err(invalid)?;
        let (named, words) = args_from_file(&read, command, matches).map_err(invalid)?;
        let end = line.iter().position(|word| word == "--").unwrap_or(line.len());
        line.splice(end..end, words);
        (file, keys) = (Some(read), named);
    }
    let parsed = root_command().try_get_matches_from(line);
    let variables = || flags(command).filter(|flag| is_from_environment(flag, matches));
    let matches = parsed.map_err(|error| with_context(error, file.as_ref(), &keys, variables()))?;
    let (command, innermost) = find_subcommand(&whole, &matches);
    let settings = flags(command).map(|flag| ArgValue::new(flag, innermost, &keys)).collect();
    let warning = file.as_ref().and_then(ConfigFile::permission_warning);
    Ok(ParsedArgs { cli: Cli::from_arg_matches(&matches)?, settings, warning })
}

/// Returns the innermost subcommand, with its matches.
fn find_subcommand<'a>(
    mut command: &'a Command,
    mut matches: &'a ArgMatches,
) -> (&'a Command, &'a ArgMatches) {
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches) = (found, below);
    }
    (command, matches)
}

/// Returns the keys whose values the file decides, and these values as command line words. A command's flag of the
/// same name but with another environment variable is a different flag.
fn args_from_file(
    file: &ConfigFile,
    command: &Command,
    matches: &ArgMatches,
) -> Result<(Vec<String>, Vec<OsString>), String> {
    let (mut keys, mut words) = (Vec::new(), Vec::new());
    for (named, value) in &file.values {
        let key = key(named);
        let same = |flag: &&Arg| flag.get_long() == Some(key) && flag.get_env() == named.get_env();
        let Some(flag) = flags(command).find(same) else { continue };
        let texts = file.to_args(named, value)?;
        if is_typed(flag, matches) || is_from_environment(flag, matches) {
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

/// Returns the command line of the program. An empty variable counts as unset: that is what Compose makes of `${NAME:-}`.
fn root_command() -> Command {
    without_empty_variables(Cli::command())
}

fn without_empty_variables(command: Command) -> Command {
    let reset = |arg: Arg| match arg.get_env().and_then(std::env::var_os) {
        Some(value) if value.is_empty() => arg.env(Resettable::Reset),
        _ => arg,
    };
    command.mut_args(reset).mut_subcommands(without_empty_variables)
}

fn is_typed(flag: &Arg, matches: &ArgMatches) -> bool {
    matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// Returns whether an environment variable sets a flag.
fn is_from_environment(flag: &Arg, matches: &ArgMatches) -> bool {
    let is_set = |variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    !is_typed(flag, matches) && flag.get_env().is_some_and(is_set)
}

/// Adds to an error about values where values came from that were not typed: keys of the file, and variables.
fn with_context<'f>(
    error: clap::Error,
    file: Option<&ConfigFile>,
    keys: &[String],
    variables: impl Iterator<Item = &'f Arg>,
) -> clap::Error {
    let about_values = [
        ErrorKind::InvalidValue,
        ErrorKind::ValueValidation,
        ErrorKind::MissingRequiredArgument,
        ErrorKind::ArgumentConflict,
    ];
    if !about_values.contains(&error.kind()) {
        return error;
    }
    let (text, kind) = (error.to_string(), error.kind());
    let mut text = text.strip_prefix("error: ").unwrap_or(&text).to_owned();
    let named = variables.filter(|flag| is_named(flag, &text));
    let mut sources: Vec<_> = named.filter_map(variable_of).collect();
    let file = file.filter(|_| !keys.is_empty());
    sources.extend(file.map(|file| format!("{} sets {}", file.path.display(), keys.join(", "))));
    if sources.is_empty() {
        return error;
    }
    for source in sources {
        text += "\n";
        text += &source;
        text += ".\n";
    }
    clap::Error::raw(kind, text)
}

/// Adds to an error about the configuration where the values of the flags that it names come from.
pub(super) fn with_sources(
    failure: Failure,
    settings: &[ArgValue],
    file: Option<&Path>,
) -> Failure {
    if !failure.is_of_configuration() {
        return failure;
    }
    let text = failure.to_string();
    let named = settings.iter().filter(|setting| is_named(&setting.flag, &text));
    let sources = named.filter_map(|setting| match (setting.source, file) {
        (Source::Environment, _) => variable_of(&setting.flag),
        (Source::File, Some(file)) => {
            Some(format!("{} sets {}", file.display(), key(&setting.flag)))
        }
        _ => None,
    });
    let sources: Vec<_> = sources.collect();
    Failure::Usage([vec![text], sources].concat().join("; "))
}

impl ArgValue {
    fn new(flag: &Arg, matches: &ArgMatches, of_file: &[String]) -> Self {
        let id = flag.get_id().as_str();
        let source = match matches.value_source(id) {
            _ if of_file.iter().any(|name| name == key(flag)) => Source::File,
            Some(ValueSource::CommandLine) => Source::Flag,
            Some(ValueSource::EnvVariable) => Source::Environment,
            _ => Source::Default,
        };
        let values = if matches!(flag.get_action(), ArgAction::SetTrue) {
            vec![matches.get_flag(id).to_string()]
        } else {
            let texts = matches.get_raw(id).into_iter().flatten();
            texts.map(|text| text.to_string_lossy().into_owned()).collect()
        };
        Self { flag: flag.clone(), source, values }
    }
}

/// Formats the settings as a valid configuration file, except for masked values. Defaults are comments, so that the
/// file does not pin them for later releases.
pub(super) fn to_toml(settings: &[ArgValue], file: Option<&Path>) -> String {
    let head = match file {
        Some(file) => {
            format!("# {}, overridden by flags and environment variables", file.display())
        }
        None => "# no file: flags, environment variables and defaults".to_owned(),
    };
    let lines = settings.iter().map(ArgValue::to_toml_line);
    [head].into_iter().chain(lines).map(|line| line + "\n").collect()
}

/// Formats the settings as JSON.
pub(super) fn to_json(settings: &[ArgValue]) -> Json {
    let one = |setting: &ArgValue| {
        json!({
            "key": key(&setting.flag),
            "value": setting.value(),
            "source": setting.source.as_str(),
            "masked": setting.is_masked(),
        })
    };
    json!({ "results": settings.iter().map(one).collect::<Vec<_>>() })
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        }
    }
}

impl ArgValue {
    /// Returns the value as it would be in a file, with secrets masked.
    fn value(&self) -> Option<Value> {
        let one = |text: &String| match text.parse() {
            _ if is_secret(&self.flag) => Value::String(mask(&self.flag, text)),
            Ok(number) if accepts_numbers(&self.flag) => Value::Integer(number),
            _ => Value::String(text.clone()),
        };
        let first = self.values.first();
        match self.flag.get_action() {
            ArgAction::SetTrue => first.map(|text| Value::Boolean(text == "true")),
            ArgAction::Append if self.values.is_empty() && self.source == Source::Default => None,
            ArgAction::Append => Some(Value::Array(self.values.iter().map(one).collect())),
            _ => first.map(one),
        }
    }

    fn to_toml_line(&self) -> String {
        let (name, source) = (key(&self.flag), self.source.as_str());
        match self.value() {
            Some(value) if self.source == Source::Default => {
                format!("# {name} = {value} # {source}")
            }
            Some(value) if self.is_masked() => format!("{name} = {value} # {source}, masked"),
            Some(value) => format!("{name} = {value} # {source}"),
            None => format!("# {name} is not set"),
        }
    }

    /// Returns whether a part of the value is masked.
    fn is_masked(&self) -> bool {
        is_secret(&self.flag) && self.values.iter().any(|text| mask(&self.flag, text) != *text)
    }
}

#[cfg(test)]
mod tests;
