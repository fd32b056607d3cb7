//! `steward config`: how `steward serve` would run, as a configuration file.

use std::path::Path;

use clap::ArgAction;
use serde_json::{Value as Json, json};
use toml::Value;

use super::config_file::{masked, takes_numbers};
use super::settings::{Setting, Source, is_secret, key};

/// The settings as TOML that serves as a file again, but for what is masked. Defaults are comments, so a default
/// of a later release is not fixed by the file.
pub(super) fn as_toml(settings: &[Setting], file: Option<&Path>) -> String {
    let head = match file {
        Some(file) => format!("# {}, overruled by flags and the environment", file.display()),
        None => "# no file: flags, the environment and defaults".to_owned(),
    };
    let lines = settings.iter().map(Setting::line);
    [head].into_iter().chain(lines).map(|line| line + "\n").collect()
}

/// The same for programs.
pub(super) fn as_json(settings: &[Setting]) -> Json {
    let one = |setting: &Setting| {
        json!({
            "key": key(&setting.flag),
            "value": setting.value(),
            "source": setting.source.word(),
            "masked": setting.is_masked(),
        })
    };
    json!({ "results": settings.iter().map(one).collect::<Vec<_>>() })
}

impl Source {
    fn word(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        }
    }
}

impl Setting {
    /// The value that a file would give; secrets masked.
    fn value(&self) -> Option<Value> {
        let one = |text: &String| match text.parse() {
            _ if is_secret(&self.flag) => Value::String(masked(text)),
            Ok(number) if takes_numbers(&self.flag) => Value::Integer(number),
            _ => Value::String(text.clone()),
        };
        let first = self.texts.first();
        match self.flag.get_action() {
            ArgAction::SetTrue => first.map(|text| Value::Boolean(text == "true")),
            ArgAction::Append if self.texts.is_empty() && self.source == Source::Default => None,
            ArgAction::Append => Some(Value::Array(self.texts.iter().map(one).collect())),
            _ => first.map(one),
        }
    }

    fn line(&self) -> String {
        let (name, source) = (key(&self.flag), self.source.word());
        match self.value() {
            Some(value) if self.source == Source::Default => {
                format!("# {name} = {value} # {source}")
            }
            Some(value) if self.is_masked() => format!("{name} = {value} # {source}, masked"),
            Some(value) => format!("{name} = {value} # {source}"),
            None => format!("# {name} is not set"),
        }
    }

    /// Whether something of it is not shown.
    fn is_masked(&self) -> bool {
        is_secret(&self.flag) && self.texts.iter().any(|text| masked(text) != *text)
    }
}
