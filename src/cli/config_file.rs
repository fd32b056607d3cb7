//! The configuration file: TOML whose keys are the flags of `serve`. Also what its users ask of a flag.

use std::any::TypeId;
use std::error::Error as _;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};
use rustix::process::geteuid;
use toml::{Table, Value};
use url::Url;

use crate::store::{DatabaseUrl, looks_like_database_address};

/// The maximum size of the file, in bytes.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// The text that replaces a secret.
const MASK: &str = "********";

/// A parsed file, with the flag of each key.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// Whether other users may read the file.
    is_world_readable: bool,
    pub(super) values: Vec<(Arg, Value)>,
}

impl ConfigFile {
    /// Reads the file. Its keys are the long names of `command`'s flags. An error is one line and never repeats a
    /// value that may be secret.
    pub(super) fn read(path: &Path, command: &Command) -> Result<Self, String> {
        let in_file = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let (text, is_world_readable) = read_file(path).map_err(|error| in_file(&error))?;
        let table = text.parse::<Table>().map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            in_file(&format_args!("line {line} is not valid TOML: {}", error.message()))
        })?;
        let flag_of = |(name, value): (String, Value)| {
            let flag = flags(command).find(|flag| key(flag) == name);
            let flag = flag.ok_or_else(|| {
                in_file(&format_args!(
                    "{name:?} is not a valid key; the keys are: {}",
                    known_keys(command)
                ))
            })?;
            Ok((flag.clone(), value))
        };
        let values = table.into_iter().map(flag_of).collect::<Result<_, String>>()?;
        Ok(Self { path: path.to_owned(), is_world_readable, values })
    }

    /// Returns the values of a key as they would be typed, if its flag accepts them.
    pub(super) fn to_args(&self, flag: &Arg, value: &Value) -> Result<Vec<String>, String> {
        let invalid = |expected: &str| {
            Err(format!("{}: {} takes {expected}", self.path.display(), key(flag)))
        };
        let Some(texts) = to_args(flag, value) else { return invalid(&expected(flag)) };
        for text in &texts {
            if is_secret(flag) && text.contains(MASK) {
                return invalid("the secret itself, not a masked one");
            }
            if let Some(why) = parse_error(flag, text) {
                return invalid(&format!("{}: {why}", expected(flag)));
            }
        }
        Ok(texts)
    }

    /// Returns a warning if the file contains a secret and other users may read it.
    pub(super) fn permission_warning(&self) -> Option<String> {
        let tells = |(flag, value): &&(Arg, Value)| {
            is_secret(flag) && value.as_str().is_some_and(|text| mask(flag, text) != text)
        };
        let (flag, _) = self.values.iter().filter(|_| self.is_world_readable).find(tells)?;
        let path = self.path.display();
        Some(format!(
            "{path} holds a secret ({}) and other users may read it; run chmod 600 on it",
            key(flag)
        ))
    }
}

fn known_keys(command: &Command) -> String {
    flags(command).map(key).collect::<Vec<_>>().join(", ")
}

fn read_file(path: &Path) -> io::Result<(String, bool)> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    // A file of another user is readable through its group, so the group's permission is expected.
    let others = if about.uid() == geteuid().as_raw() { 0o077 } else { 0o007 };
    let open = about.mode() & others != 0;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_SIZE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is larger than 1 MiB"));
    }
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
    Ok((String::from_utf8(bytes).map_err(no_text)?, open))
}

fn expected(flag: &Arg) -> String {
    let name = flag.get_value_names().and_then(|names| names.first());
    let name = name.map_or("VALUE", |name| name.as_str());
    match flag.get_action() {
        ArgAction::SetTrue => "true or false".to_owned(),
        ArgAction::Append => format!("a list of strings, each {name}"),
        _ if is_number(flag) => format!("a number, {name}"),
        _ => format!("a string, {name}"),
    }
}

/// Returns the values as they would be typed, or `None` if a value has the wrong type.
fn to_args(flag: &Arg, value: &Value) -> Option<Vec<String>> {
    match (flag.get_action(), value) {
        (ArgAction::SetTrue, Value::Boolean(set)) => Some(vec![set.to_string()]),
        (ArgAction::SetTrue, _) => None,
        (ArgAction::Append, Value::Array(items)) => {
            items.iter().map(|item| to_arg(flag, item)).collect()
        }
        (_, value) => Some(vec![to_arg(flag, value)?]),
    }
}

fn to_arg(flag: &Arg, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) if accepts_numbers(flag) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns whether the flag accepts numbers. Flags that accept any text do not.
pub(super) fn accepts_numbers(flag: &Arg) -> bool {
    let texts = [TypeId::of::<String>(), TypeId::of::<PathBuf>(), TypeId::of::<OsString>()];
    let takes = flag.get_value_parser().type_id();
    !texts.into_iter().any(|text| takes == text)
}

fn is_number(flag: &Arg) -> bool {
    let numbers = [TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
    let takes = flag.get_value_parser().type_id();
    numbers.into_iter().any(|number| takes == number)
}

/// Returns why the flag rejects `text`, or `None` if it accepts it.
pub(super) fn parse_error(flag: &Arg, text: &str) -> Option<String> {
    if matches!(flag.get_action(), ArgAction::SetTrue) {
        return None;
    }
    let mut alone = Arg::new("it")
        .long("it")
        .action(ArgAction::Append)
        .value_parser(flag.get_value_parser().clone());
    if let Some(delimiter) = flag.get_value_delimiter() {
        alone = alone.value_delimiter(delimiter);
    }
    let command = Command::new("it").no_binary_name(true).arg(alone);
    let error = command.try_get_matches_from([format!("--it={text}")]).err()?;
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let first = why.lines().next().unwrap_or_default();
    Some(first.strip_prefix("error: ").unwrap_or(first).to_owned())
}

/// Masks the secret in the value of a flag. The path of a data file has none.
pub(super) fn mask(flag: &Arg, text: &str) -> String {
    match text.parse::<DatabaseUrl>() {
        _ if key(flag) != "data" => mask_secret(text),
        Ok(url) => url.shown().to_owned(),
        Err(_) if looks_like_database_address(text) => MASK.to_owned(),
        Err(_) => text.to_owned(),
    }
}

/// Masks a secret. In a URL, only the password is masked.
pub(super) fn mask_secret(text: &str) -> String {
    let masked = || MASK.to_owned();
    match Url::parse(text) {
        Ok(url) if url.has_host() && url.password().is_none() => text.to_owned(),
        Ok(mut url) if url.has_host() => {
            url.set_password(Some(MASK)).map_or_else(|()| masked(), |()| url.into())
        }
        _ => masked(),
    }
}

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
