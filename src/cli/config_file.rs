//! A configuration file: TOML, its keys the flags of `serve`.

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

use super::settings::{flags, is_secret, key};

/// The largest file, in bytes.
const LARGEST: u64 = 1 << 20;

/// What stands in place of a secret.
const MASK: &str = "********";

/// A file that was read, with a flag for each of its keys.
pub(super) struct ConfigFile {
    path: PathBuf,
    /// Whether others may read it.
    open: bool,
    values: Vec<(Arg, Value)>,
}

/// One line of a file.
pub(super) struct Line<'f> {
    path: &'f Path,
    flag: &'f Arg,
    value: &'f Value,
}

impl ConfigFile {
    /// Reads the file. Its keys are flags of `command`. What is wrong with it is told in one line, which repeats
    /// nothing of the file that may be secret.
    pub(super) fn read(path: &Path, command: &Command) -> Result<Self, String> {
        let told = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        let (text, open) = text(path).map_err(|error| told(&error))?;
        let table = text.parse::<Table>().map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            told(&format_args!("line {line} is no TOML: {}", error.message()))
        })?;
        let flag_of = |(name, value): (String, Value)| {
            let flag = flags(command).find(|flag| key(flag) == name);
            let flag = flag.ok_or_else(|| {
                told(&format_args!("{name:?} is no key; the keys are: {}", keys(command)))
            })?;
            Ok((flag.clone(), value))
        };
        let values = table.into_iter().map(flag_of).collect::<Result<_, String>>()?;
        Ok(Self { path: path.to_owned(), open, values })
    }

    /// What it says, by key.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, Line<'_>)> {
        self.values.iter().map(|(flag, value)| (key(flag), Line { path: &self.path, flag, value }))
    }

    /// What is wrong with who may read it, where it holds a secret.
    pub(super) fn exposed(&self) -> Option<String> {
        let tells = |(flag, value): &&(Arg, Value)| {
            is_secret(flag) && value.as_str().is_some_and(|text| masked(text) != text)
        };
        let (flag, _) = self.values.iter().filter(|_| self.open).find(tells)?;
        let path = self.path.display();
        Some(format!("{path} holds a secret ({}) and others may read it; chmod 600 it", key(flag)))
    }
}

fn keys(command: &Command) -> String {
    flags(command).map(key).collect::<Vec<_>>().join(", ")
}

fn text(path: &Path) -> io::Result<(String, bool)> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    // Where the file is not ours, it is by its group that it is read.
    let others = if about.uid() == geteuid().as_raw() { 0o077 } else { 0o007 };
    let open = about.mode() & others != 0;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is larger than 1 MiB"));
    }
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8");
    Ok((String::from_utf8(bytes).map_err(no_text)?, open))
}

impl<'f> Line<'f> {
    /// The flag that the key stands for.
    pub(super) fn flag(&self) -> &'f Arg {
        self.flag
    }

    /// What would be typed for it, once the flag takes that.
    pub(super) fn texts(&self) -> Result<Vec<String>, String> {
        let texts = texts(self.flag, self.value).ok_or_else(|| self.refused(&self.expected()))?;
        for text in &texts {
            if self.flag.is_hide_env_values_set() && text.contains(MASK) {
                return Err(self.refused("the secret itself, which is masked here"));
            }
            if let Some(why) = why_not(self.flag, text) {
                return Err(self.refused(&format!("{}: {why}", self.expected())));
            }
        }
        Ok(texts)
    }

    fn refused(&self, expected: &str) -> String {
        format!("{}: {} takes {expected}", self.path.display(), key(self.flag))
    }

    fn expected(&self) -> String {
        let name = self.flag.get_value_names().and_then(|names| names.first());
        let name = name.map_or("VALUE", |name| name.as_str());
        match self.flag.get_action() {
            ArgAction::SetTrue => "true or false".to_owned(),
            ArgAction::Append => format!("a list of texts, each {name}"),
            _ if is_number(self.flag) => format!("a number, {name}"),
            _ => format!("a text, {name}"),
        }
    }
}

/// A value as it would be typed; none where it has the wrong type.
fn texts(flag: &Arg, value: &Value) -> Option<Vec<String>> {
    match (flag.get_action(), value) {
        (ArgAction::SetTrue, Value::Boolean(set)) => Some(vec![set.to_string()]),
        (ArgAction::SetTrue, _) => None,
        (ArgAction::Append, Value::Array(items)) => {
            items.iter().map(|item| text_of(flag, item)).collect()
        }
        (_, value) => Some(vec![text_of(flag, value)?]),
    }
}

fn text_of(flag: &Arg, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) if takes_numbers(flag) => Some(number.to_string()),
        _ => None,
    }
}

/// Whether a number may stand for what the flag takes: not where any text does.
pub(super) fn takes_numbers(flag: &Arg) -> bool {
    let texts = [TypeId::of::<String>(), TypeId::of::<PathBuf>(), TypeId::of::<OsString>()];
    let takes = flag.get_value_parser().type_id();
    !texts.into_iter().any(|text| takes == text)
}

fn is_number(flag: &Arg) -> bool {
    let numbers = [TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
    let takes = flag.get_value_parser().type_id();
    numbers.into_iter().any(|number| takes == number)
}

/// Why the flag does not take this text, if it does not.
pub(super) fn why_not(flag: &Arg, text: &str) -> Option<String> {
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

/// A secret without what is secret in it: of a URL, its password.
pub(super) fn masked(text: &str) -> String {
    let masked = || MASK.to_owned();
    match Url::parse(text) {
        Ok(url) if url.has_host() && url.password().is_none() => text.to_owned(),
        Ok(mut url) if url.has_host() => {
            url.set_password(Some(MASK)).map_or_else(|()| masked(), |()| url.into())
        }
        _ => masked(),
    }
}
